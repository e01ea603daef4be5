//! A store and a clock per test, and announces in one line.

use std::sync::Arc;

use domain::clock::ManualClock;
use domain::{
    AnnounceEvent, Cause, ClientId, InfoHash, NodeId, Passkey, PeerId, RunId, Seconds, SessionId, UnixTime,
};
use journal::{
    Batch, DeliveredEntry, EntryId, Fields, Lane, Rejected, Totals, TrafficEntry, View, ViewError,
};
use keyspace::{BaseNames, KeyNames, Redis, RedisSettings};
use testkit::{RedisCluster, RedisServer};
use views::activity::memory::MemoryActivity;
use views::activity::store::ActivityStore;
use views::{Activity, ActivitySettings, Page};

pub const NOW: UnixTime = UnixTime(1_750_000_000);
pub const THRESHOLD: u32 = 2400;

/// A store of one test.
pub enum Backend {
    /// Processes cannot share it; the concurrent consumers of a case do.
    Memory(Arc<MemoryActivity>),
    Redis(Box<RedisServer>),
    /// Shared by the cases, which run one after another.
    Cluster(Arc<RedisCluster>),
}

impl Backend {
    pub fn memory() -> Self {
        Backend::Memory(Arc::default())
    }

    pub fn redis() -> Self {
        Backend::Redis(Box::new(RedisServer::start()))
    }

    /// A view as a separate process opens it.
    pub async fn open(&self, settings: ActivitySettings, clock: &ManualClock) -> Activity {
        let clock = Arc::new(clock.clone());
        match self {
            Backend::Memory(store) => Activity::on(store.clone(), settings, clock),
            Backend::Redis(server) => on_redis(&server.url(), settings, clock),
            Backend::Cluster(cluster) => {
                // One node suffices to find the others.
                let url = format!("redis+cluster://127.0.0.1:{}", cluster.node(0).port());
                on_redis(&url, settings, clock)
            }
        }
    }

    /// Whether nothing is stored, without using the view.
    pub async fn is_empty(&self) -> bool {
        match self {
            Backend::Memory(store) => store.memory_usage().torrents == 0,
            Backend::Redis(server) => server.cli(&["DBSIZE"]) == "0",
            Backend::Cluster(cluster) => (0..3).all(|node| cluster.node(node).cli(&["DBSIZE"]) == "0"),
        }
    }

    /// With default settings, at [`NOW`].
    pub async fn fixture(&self) -> Fixture {
        self.fixture_with(ActivitySettings::default()).await
    }

    pub async fn fixture_with(&self, settings: ActivitySettings) -> Fixture {
        let clock = ManualClock::at(NOW);
        Fixture { activity: self.open(settings, &clock).await, clock }
    }
}

pub fn on_redis(url: &str, settings: ActivitySettings, clock: Arc<ManualClock>) -> Activity {
    let redis = Redis::new(RedisSettings::from_url(url).unwrap()).unwrap();
    let names = KeyNames::new(&BaseNames::default(), redis.mode()).unwrap();
    Activity::on_redis(redis, names, settings, clock)
}

pub struct Fixture {
    pub activity: Activity,
    pub clock: ManualClock,
}

/// Torrent number and listed time.
pub type Listed = Vec<(u32, u32)>;

impl Fixture {
    /// Applies one batch, of which no entry is rejected.
    pub async fn apply(&self, announces: &[Announce]) {
        assert_eq!(self.try_apply(announces).await.unwrap(), []);
    }

    pub async fn try_apply(&self, announces: &[Announce]) -> Result<Vec<Rejected>, ViewError> {
        apply(&self.activity, announces).await
    }

    pub async fn seeding(&self, user: u32) -> Listed {
        self.all(user, true).await
    }

    pub async fn leeching(&self, user: u32) -> Listed {
        self.all(user, false).await
    }

    /// A whole list, read in small pages.
    async fn all(&self, user: u32, is_seeding: bool) -> Listed {
        let mut listed = Vec::new();
        let mut page = Page::first(3);
        loop {
            let part = match is_seeding {
                true => self.activity.seeding(&passkey(user), &page).await.unwrap(),
                false => self.activity.leeching(&passkey(user), &page).await.unwrap(),
            };
            listed.extend(part.torrents.iter().map(|found| (number_of(&found.info_hash), found.at.0)));
            page.after = part.next;
            if page.after.is_none() {
                return listed;
            }
        }
    }

    /// Lengths of both lists.
    pub async fn counts(&self, user: u32) -> (u64, u64) {
        let counts = self.activity.counts(&passkey(user)).await.unwrap();
        (counts.seeding, counts.leeching)
    }

    pub fn wait(&self, seconds: u32) {
        self.clock.advance(Seconds(seconds));
    }
}

pub async fn apply(activity: &Activity, announces: &[Announce]) -> Result<Vec<Rejected>, ViewError> {
    let arrivals: Vec<DeliveredEntry> = announces.iter().map(Announce::arrival).collect();
    let batch =
        Batch { lane: Lane::Traffic, consumer: "c1", taken_from: None, is_retry: false, arrivals: &arrivals };
    activity.apply(&batch).await
}

pub fn passkey(user: u32) -> Passkey {
    format!("{user:016x}").parse().unwrap()
}

/// Spread over the whole range, so that the order by number differs from the order by infohash.
pub fn info_hash(torrent: u32) -> InfoHash {
    let mut bytes = [0xaa; 20];
    bytes[..4].copy_from_slice(&torrent.wrapping_mul(0x9e37_79b1).to_be_bytes());
    bytes[16..].copy_from_slice(&torrent.to_be_bytes());
    InfoHash(bytes)
}

pub fn number_of(info_hash: &InfoHash) -> u32 {
    u32::from_be_bytes(info_hash.0[16..].try_into().unwrap())
}

/// One announce, short enough for a line.
#[derive(Clone, Copy, Debug)]
pub struct Announce {
    pub user: u32,
    pub torrent: u32,
    pub client: u32,
    pub event: AnnounceEvent,
    pub left: Option<u64>,
    /// Seconds after [`NOW`].
    pub at: i64,
    /// Of two announces in the same second, the one with the higher number is later.
    pub seq: u64,
    /// Seconds since the client's last announce.
    pub since_last_s: u32,
    /// Whether the entry has only the fourteen fields.
    pub has_fourteen_fields: bool,
    pub interval_s: u32,
}

/// A heartbeat of a seeder.
pub fn seeds(user: u32, torrent: u32, at: i64) -> Announce {
    Announce {
        user,
        torrent,
        client: 1,
        event: AnnounceEvent::None,
        left: Some(0),
        at,
        seq: 0,
        since_last_s: 10,
        has_fourteen_fields: false,
        interval_s: 1800,
    }
}

/// A heartbeat of a leecher.
pub fn leeches(user: u32, torrent: u32, at: i64) -> Announce {
    Announce { left: Some(1000), ..seeds(user, torrent, at) }
}

pub fn stops(user: u32, torrent: u32, at: i64) -> Announce {
    Announce { event: AnnounceEvent::Stopped, ..seeds(user, torrent, at) }
}

impl Announce {
    pub fn by(self, client: u32) -> Self {
        Announce { client, ..self }
    }

    pub fn seq(self, seq: u64) -> Self {
        Announce { seq, ..self }
    }

    /// In the same second as the client's last announce.
    pub fn in_same_second(self) -> Self {
        Announce { since_last_s: 0, ..self }
    }

    pub fn event(self, event: AnnounceEvent) -> Self {
        Announce { event, ..self }
    }

    pub fn with_interval(self, interval_s: u32) -> Self {
        Announce { interval_s, ..self }
    }

    pub fn fourteen_fields_only(self) -> Self {
        Announce { has_fourteen_fields: true, ..self }
    }

    pub fn time(&self) -> UnixTime {
        UnixTime(u32::try_from(i64::from(NOW.0) + self.at).unwrap())
    }

    pub fn arrival(&self) -> DeliveredEntry {
        let origin = EntryId { ms: u64::from(self.time().0) * 1000, seq: self.seq };
        let entry = match self.has_fourteen_fields {
            true => TrafficEntry::parse(&self.fourteen_fields()).unwrap(),
            false => self.entry(),
        };
        DeliveredEntry { id: origin, origin, entry }
    }

    /// The entry as another producer writes it (J3).
    fn fourteen_fields(&self) -> Fields {
        let entry = self.entry();
        let mut fields = Fields::new();
        fields.push_text("passkey", passkey(self.user));
        fields.push_text("infohash", entry.info_hash);
        fields.push_text("peer_id", entry.peer_id);
        fields.push_text("ip", entry.ip);
        fields.push("af", "IPv4");
        fields.push("event", entry.event.name());
        fields.push_text("ts", entry.at);
        fields.push_text("left", entry.left.unwrap());
        for (name, value) in [("port", 6881), ("du", 0), ("dd", 0), ("dt", self.since_last_s)] {
            fields.push_text(name, value);
        }
        fields.push_text("interval", self.interval_s);
        fields.push("min_interval", "900");
        fields
    }

    fn entry(&self) -> TrafficEntry {
        let mut peer_id = *b"-TR4050-000000000000";
        peer_id[16..].copy_from_slice(&self.client.to_be_bytes());
        let session = SessionId { client: ClientId(u64::from(self.client)), run: RunId(1) };
        TrafficEntry {
            passkey: Some(passkey(self.user)),
            info_hash: info_hash(self.torrent),
            peer_id: PeerId(peer_id),
            port: 6881,
            ip: "10.0.0.1".parse().unwrap(),
            uploaded_delta: 0,
            downloaded_delta: 0,
            left: self.left,
            event: self.event,
            at: self.time(),
            steady: None,
            since_last: Some(Seconds(self.since_last_s)),
            interval: Seconds(self.interval_s),
            min_interval: Seconds(900),
            user: None,
            torrent: None,
            node: Some(NodeId(1)),
            totals: Some(Totals { session, uploaded: 0, downloaded: 0 }),
            cause: Cause::Announce,
            key: None,
            uncredited_upload: 0,
        }
    }
}

/// The listed time of an announce `at` seconds after [`NOW`].
pub fn shown(at: i64) -> u32 {
    seeds(0, 0, at).time().0
}

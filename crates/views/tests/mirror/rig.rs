//! A Redis of one's own, entries in one line, and everything that is in the layout.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use domain::clock::{Clock, ManualClock, SystemClock};
use domain::{AnnounceEvent, Cause, InfoHash, Passkey, PeerId, Seconds, TorrentId, UnixTime, UserId};
use journal::{
    Arrival, Batch, EntryId, Fields, Journal, JournalError, Lane, LeaderLease, RedisJournal, TrafficEntry,
    View, ViewError,
};
use keyspace::{BaseNames, KeyNames, MirrorNames, Redis, RedisSettings, read_reply};
use redis::Pipeline;
use testkit::{RedisCluster, RedisServer};
use views::mirror::Directory;
use views::{Mirror, MirrorParts, MirrorSettings};

pub const REAP: u32 = 2410;

/// A time that is yet to come, so that no key expires by itself while a test runs.
pub fn soon() -> UnixTime {
    SystemClock.now() + Seconds(3600)
}

pub enum Place {
    Single(Box<RedisServer>),
    Cluster(Box<RedisCluster>),
}

impl Place {
    pub fn single() -> Place {
        Place::Single(Box::new(RedisServer::start()))
    }

    pub fn cluster() -> Place {
        Place::Cluster(Box::new(RedisCluster::start()))
    }

    pub fn redis(&self) -> Redis {
        let url = match self {
            Place::Single(server) => server.url(),
            Place::Cluster(cluster) => format!("redis+cluster://127.0.0.1:{}", cluster.node(0).port()),
        };
        Redis::new(RedisSettings::from_url(&url).unwrap()).unwrap()
    }

    pub fn cli(&self, args: &[&str]) -> String {
        match self {
            Place::Single(server) => server.cli(args),
            Place::Cluster(cluster) => cluster.cli(args),
        }
    }

    fn keys(&self) -> Vec<String> {
        let texts = match self {
            Place::Single(server) => vec![server.cli(&["KEYS", "*"])],
            Place::Cluster(cluster) => (0..3).map(|node| cluster.node(node).cli(&["KEYS", "*"])).collect(),
        };
        texts.iter().flat_map(|text| text.lines()).map(str::to_owned).collect()
    }

    /// Every key of the layout with what it holds; without ours.
    pub async fn layout(&self) -> Layout {
        let is_layout = |key: &String| {
            let key = key.strip_prefix("{t}:").map_or(key.clone(), |rest| format!("t:{rest}"));
            key.starts_with("t:") && !key.starts_with("t:m:")
        };
        let keys: Vec<String> = self.keys().into_iter().filter(is_layout).collect();
        let redis = self.redis();
        let mut types = Pipeline::new();
        for key in &keys {
            types.cmd("TYPE").arg(key);
        }
        let types: Vec<String> =
            redis.pipeline(&types).await.into_iter().map(|reply| read_reply(reply).unwrap()).collect();
        let mut reads = Pipeline::new();
        for (key, kind) in keys.iter().zip(&types) {
            match kind.as_str() {
                "hash" => reads.cmd("HGETALL").arg(key),
                "set" => reads.cmd("SMEMBERS").arg(key),
                "zset" => reads.cmd("ZRANGE").arg(key).arg(0).arg(-1).arg("WITHSCORES"),
                _ => reads.cmd("MGET").arg(key),
            };
            reads.cmd("EXPIRETIME").arg(key);
        }
        let replies = redis.pipeline(&reads).await;
        let mut layout = Layout::new();
        for ((key, kind), replies) in keys.into_iter().zip(types).zip(replies.chunks(2)) {
            let mut words: Vec<String> = match kind.as_str() {
                // Both come as pairs or as one list, by the protocol.
                "hash" => {
                    let pairs: BTreeMap<String, String> = read_reply(replies[0].clone()).unwrap();
                    pairs.into_iter().map(|(field, value)| format!("{field}={value}")).collect()
                }
                "zset" => {
                    let pairs: Vec<(String, f64)> = read_reply(replies[0].clone()).unwrap();
                    pairs.into_iter().map(|(member, score)| format!("{member}={score}")).collect()
                }
                _ => read_reply(replies[0].clone()).unwrap(),
            };
            words.sort();
            let expires: i64 = read_reply(replies[1].clone()).unwrap();
            if key.contains(":ptimeout:") {
                words.push(format!("until {expires}"));
            }
            layout.insert(plain(&key), words);
        }
        layout
    }
}

/// Keys by their names on a single Redis, with what they hold.
pub type Layout = BTreeMap<String, Vec<String>>;

/// The name on a single Redis of a key on a cluster.
fn plain(key: &str) -> String {
    let key = key.replace("{t}:", "t:");
    let Some((head, rest)) = key.split_once('{') else { return key };
    let (tag, tail) = rest.split_once('}').unwrap();
    match head {
        "t:t:" | "t:tpeers:" => format!("{head}{}", tail.trim_start_matches(':')),
        _ => format!("{head}{tag}{tail}"),
    }
}

/// A turn that is ours until the test takes it away.
#[derive(Debug, Default)]
pub struct TestTurn {
    is_lost: AtomicBool,
}

impl TestTurn {
    pub fn lose(&self) {
        self.is_lost.store(true, Ordering::SeqCst);
    }
}

#[async_trait]
impl LeaderLease for TestTurn {
    async fn take(&self) -> Result<bool, JournalError> {
        Ok(self.is_held())
    }
    fn is_held(&self) -> bool {
        !self.is_lost.load(Ordering::SeqCst)
    }
    async fn release(&self) {}
    fn renew_interval(&self) -> Duration {
        Duration::from_millis(100)
    }
}

/// As the group of a mirror that has read everything.
fn group_on(place: &Place, arguments: &[&str]) {
    let names = KeyNames::new(&BaseNames::default(), place.redis().mode()).unwrap();
    let command: Vec<&str> = ["XGROUP", arguments[0], names.traffic(), "mirror", "$"]
        .into_iter()
        .chain(arguments[1..].to_vec())
        .collect();
    place.cli(&command);
}

/// Knows torrents by the last bytes of their infohash and users by the value of their passkey, up to a number.
pub struct Numbers;

impl Directory for Numbers {
    fn user_of(&self, passkey: &Passkey) -> Option<UserId> {
        let number = u64::from_str_radix(&passkey.to_string(), 16).ok()?;
        (number < 1000).then(|| UserId::new(number)).flatten()
    }

    fn torrent_of(&self, info_hash: &InfoHash) -> Option<(TorrentId, InfoHash)> {
        let number = u32::from_be_bytes(info_hash.0[16..].try_into().unwrap());
        (number < 1000).then(|| TorrentId::new(number.into())).flatten().map(|torrent| (torrent, *info_hash))
    }
}

pub struct Rig {
    pub place: Place,
    pub clock: ManualClock,
    pub start: UnixTime,
    pub turn: Arc<TestTurn>,
    pub mirror: Arc<Mirror>,
    pub journal: Arc<dyn Journal>,
}

pub fn journal_on(redis: Redis) -> Arc<dyn Journal> {
    let names = KeyNames::new(&BaseNames::default(), redis.mode()).unwrap();
    Arc::new(RedisJournal::new(redis, names))
}

/// A mirror as a process of its own has it.
pub fn mirror_on(
    redis: Redis,
    turn: Arc<dyn LeaderLease>,
    clock: &ManualClock,
    settings: MirrorSettings,
    name: &str,
) -> Mirror {
    let names = MirrorNames::new(redis.mode());
    let parts = MirrorParts {
        journal: journal_on(redis.clone()),
        redis,
        names,
        turn,
        directory: Arc::new(Numbers),
        clock: Arc::new(clock.clone()),
    };
    Mirror::new(parts, settings, format!("{name}.reaper"))
}

/// Who is who as the test says, for torrents whose names change.
#[derive(Default)]
pub struct Changing {
    pub torrents: std::sync::Mutex<std::collections::HashMap<InfoHash, u64>>,
    pub removed: std::sync::Mutex<Vec<u64>>,
}

impl Changing {
    pub fn put(&self, torrent: u64, info_hash: InfoHash) {
        let mut torrents = self.torrents.lock().unwrap();
        torrents.retain(|_, other| *other != torrent);
        torrents.insert(info_hash, torrent);
    }

    pub fn remove(&self, torrent: u64) {
        self.torrents.lock().unwrap().retain(|_, other| *other != torrent);
        self.removed.lock().unwrap().push(torrent);
    }
}

impl Directory for Changing {
    fn user_of(&self, passkey: &Passkey) -> Option<UserId> {
        Numbers.user_of(passkey)
    }

    fn torrent_of(&self, info_hash: &InfoHash) -> Option<(TorrentId, InfoHash)> {
        let torrent = *self.torrents.lock().unwrap().get(info_hash)?;
        TorrentId::new(torrent).map(|torrent| (torrent, *info_hash))
    }

    fn is_removed(&self, torrent: TorrentId, _info_hash: &InfoHash) -> bool {
        self.removed.lock().unwrap().contains(&torrent.get())
    }
}

/// A mirror that is told who is who.
pub fn mirror_told_by(rig: &Rig, directory: Arc<dyn Directory>) -> Mirror {
    let redis = rig.place.redis();
    let names = MirrorNames::new(redis.mode());
    let (journal, turn, clock) = (journal_on(redis.clone()), rig.turn.clone(), Arc::new(rig.clock.clone()));
    let parts = MirrorParts { journal, redis, names, turn, directory, clock };
    Mirror::new(parts, MirrorSettings::default(), "told.reaper".to_owned())
}

impl Rig {
    pub fn on(place: Place) -> Rig {
        Rig::with(place, MirrorSettings::default())
    }

    pub fn with(place: Place, settings: MirrorSettings) -> Rig {
        let start = soon();
        let clock = ManualClock::at(start);
        let turn = Arc::new(TestTurn::default());
        let mirror = mirror_on(place.redis(), turn.clone(), &clock, settings, "test");
        let journal = journal_on(place.redis());
        group_on(&place, &["CREATE", "MKSTREAM"]);
        Rig { place, clock, start, turn, mirror: Arc::new(mirror), journal }
    }

    /// As if everything in the journal had been applied, and some of it lost on the way.
    pub fn catch_up(&self) {
        group_on(&self.place, &["SETID"]);
    }

    /// Another mirror on the same Redis, as after a restart.
    pub fn another(&self) -> Mirror {
        mirror_on(
            self.place.redis(),
            Arc::new(TestTurn::default()),
            &self.clock,
            MirrorSettings::default(),
            "other",
        )
    }

    /// Applies entries as one batch; each gets the next id.
    pub async fn hear(&self, announces: &[Announce]) {
        self.offer(&self.arrivals(announces)).await.unwrap();
    }

    pub fn arrivals(&self, announces: &[Announce]) -> Vec<Arrival> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let arrival = |announce: &Announce| {
            let id = EntryId { ms: 1000, seq: NEXT.fetch_add(1, Ordering::SeqCst).into() };
            let entry = TrafficEntry::parse(&announce.fields(self.start)).unwrap();
            Arrival { id, origin: id, entry }
        };
        announces.iter().map(arrival).collect()
    }

    pub async fn offer(&self, arrivals: &[Arrival]) -> Result<(), ViewError> {
        offer_to(&self.mirror, arrivals).await
    }

    /// What a key of a single Redis holds, as in [`Layout`].
    pub async fn holds(&self, key: &str) -> Vec<String> {
        self.place.layout().await.remove(key).unwrap_or_default()
    }
}

pub async fn offer_to(mirror: &Mirror, arrivals: &[Arrival]) -> Result<(), ViewError> {
    let batch = Batch { lane: Lane::Traffic, consumer: "c1", taken_from: None, is_retry: false, arrivals };
    mirror.apply(&batch).await.map(drop)
}

pub fn info_hash(torrent: u64) -> InfoHash {
    let mut bytes = [0xaa; 20];
    bytes[16..].copy_from_slice(&u32::try_from(torrent).unwrap().to_be_bytes());
    InfoHash(bytes)
}

pub fn peer_id(peer: u64) -> PeerId {
    let mut bytes = *b"-TR4050-000000000000";
    bytes[12..].copy_from_slice(&peer.to_be_bytes());
    PeerId(bytes)
}

pub fn passkey(user: u64) -> Passkey {
    format!("{user:016x}").parse().unwrap()
}

/// One entry, small enough to write in a line.
#[derive(Clone, Copy, Debug)]
pub struct Announce {
    pub user: u64,
    pub torrent: u64,
    pub peer: u64,
    pub event: AnnounceEvent,
    pub cause: Cause,
    pub left: u64,
    /// Seconds after the start.
    pub at: u32,
    pub dt: u32,
    pub moved: (u64, u64),
    /// Whether the entry has the fourteen fields only.
    pub is_foreign: bool,
    /// Whether our tracker heard the client's counters.
    pub has_totals: bool,
    /// The number in the torrent's infohash, if it is not the torrent's.
    pub named: Option<u64>,
}

/// A heartbeat of a user's first client.
pub fn leeches(user: u64, torrent: u64, at: u32) -> Announce {
    Announce {
        user,
        torrent,
        peer: user * 1000 + torrent,
        event: AnnounceEvent::None,
        cause: Cause::Announce,
        left: 1000,
        at,
        dt: 0,
        moved: (0, 0),
        is_foreign: false,
        has_totals: false,
        named: None,
    }
}

pub fn seeds(user: u64, torrent: u64, at: u32) -> Announce {
    Announce { left: 0, ..leeches(user, torrent, at) }
}

impl Announce {
    pub fn event(self, event: AnnounceEvent) -> Self {
        Announce { event, ..self }
    }

    pub fn stops(self) -> Self {
        self.event(AnnounceEvent::Stopped)
    }

    pub fn completes(self) -> Self {
        Announce { left: 0, ..self.event(AnnounceEvent::Completed) }
    }

    /// Silent since so many seconds.
    pub fn falls_silent(self, dt: u32) -> Self {
        Announce { cause: Cause::Timeout, dt, ..self.stops() }
    }

    pub fn by(self, peer: u64) -> Self {
        Announce { peer, ..self }
    }

    pub fn moving(self, up: u64, down: u64, dt: u32) -> Self {
        Announce { moved: (up, down), dt, ..self }
    }

    pub fn named(self, number: u64) -> Self {
        Announce { named: Some(number), ..self }
    }

    pub fn is_removed(self) -> Self {
        Announce { cause: Cause::Removal, ..self.stops() }
    }

    pub fn foreign(self) -> Self {
        Announce { is_foreign: true, ..self }
    }

    pub fn fields(&self, start: UnixTime) -> Fields {
        let mut fields = Fields::new();
        fields.push_text("passkey", passkey(self.user));
        fields.push_text("infohash", info_hash(self.named.unwrap_or(self.torrent)));
        fields.push_text("peer_id", peer_id(self.peer));
        fields.push("port", "6881");
        fields.push("ip", "10.0.0.1");
        fields.push("af", "IPv4");
        fields.push_text("du", self.moved.0);
        fields.push_text("dd", self.moved.1);
        fields.push_text("left", self.left);
        fields.push("event", self.event.name());
        fields.push_text("ts", start.0 + self.at);
        fields.push_text("dt", self.dt);
        fields.push("interval", "1800");
        fields.push("min_interval", "900");
        if !self.is_foreign && self.has_totals {
            fields.push("node", "00000000000000ab");
            fields.push_text("sid", format!("{:016x}-0000002a", self.peer));
            fields.push_text("up", self.at);
            fields.push_text("down", self.at);
            fields.push("key", "0badcafe");
        }
        if !self.is_foreign {
            fields.push("cause", self.cause.name());
            fields.push_text("user", self.user);
            fields.push_text("torrent", self.torrent);
        }
        fields
    }
}

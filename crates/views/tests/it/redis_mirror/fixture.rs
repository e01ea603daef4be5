//! A Redis per test, entries in one line, and snapshots of all public keys.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use domain::clock::{Clock, ManualClock, SystemClock};
use domain::{AnnounceEvent, Cause, InfoHash, Passkey, PeerId, Seconds, TorrentId, UnixTime, UserId};
use journal::{
    Batch, DeliveredEntry, EntryId, Fields, Journal, JournalError, Lane, LeaderLease, RedisJournal,
    TrafficEntry, View, ViewError,
};
use keyspace::{BaseNames, KeyNames, Redis, RedisMirrorNames, RedisSettings, read_reply};
use redis::Pipeline;
use testkit::{RedisCluster, RedisServer};
use views::redis_mirror::Directory;
use views::{RedisMirror, RedisMirrorParts, RedisMirrorSettings};

pub const REAP: u32 = 2410;

/// A time in the future, so that no key expires during a test.
pub fn future_start() -> UnixTime {
    SystemClock.now() + Seconds(3600)
}

pub enum Backend {
    Single(Box<RedisServer>),
    Cluster(Box<RedisCluster>),
}

impl Backend {
    pub fn single() -> Backend {
        Backend::Single(Box::new(RedisServer::start()))
    }

    pub fn cluster() -> Backend {
        Backend::Cluster(Box::new(RedisCluster::start()))
    }

    pub fn redis(&self) -> Redis {
        let url = match self {
            Backend::Single(server) => server.url(),
            Backend::Cluster(cluster) => format!("redis+cluster://127.0.0.1:{}", cluster.node(0).port()),
        };
        Redis::new(RedisSettings::from_url(&url).unwrap()).unwrap()
    }

    pub fn cli(&self, args: &[&str]) -> String {
        match self {
            Backend::Single(server) => server.cli(args),
            Backend::Cluster(cluster) => cluster.cli(args),
        }
    }

    fn keys(&self) -> Vec<String> {
        let texts = match self {
            Backend::Single(server) => vec![server.cli(&["KEYS", "*"])],
            Backend::Cluster(cluster) => (0..3).map(|node| cluster.node(node).cli(&["KEYS", "*"])).collect(),
        };
        texts.iter().flat_map(|text| text.lines()).map(str::to_owned).collect()
    }

    /// All public keys of the mirror with their values.
    pub async fn snapshot(&self) -> Snapshot {
        let is_public = |key: &String| {
            let key = key.strip_prefix("{t}:").map_or(key.clone(), |rest| format!("t:{rest}"));
            key.starts_with("t:") && !key.starts_with("t:m:")
        };
        let keys: Vec<String> = self.keys().into_iter().filter(is_public).collect();
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
        let mut snapshot = Snapshot::new();
        for ((key, kind), replies) in keys.into_iter().zip(types).zip(replies.chunks(2)) {
            let mut words: Vec<String> = match kind.as_str() {
                // Pairs or a flat list, depending on the protocol version.
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
            snapshot.insert(plain(&key), words);
        }
        snapshot
    }
}

/// Values by key name on a single Redis.
pub type Snapshot = BTreeMap<String, Vec<String>>;

/// The single-Redis name of a cluster key.
fn plain(key: &str) -> String {
    let key = key.replace("{t}:", "t:");
    let Some((head, rest)) = key.split_once('{') else { return key };
    let (tag, tail) = rest.split_once('}').unwrap();
    match head {
        "t:t:" | "t:tpeers:" => format!("{head}{}", tail.trim_start_matches(':')),
        _ => format!("{head}{tag}{tail}"),
    }
}

/// A lease that is held until the test drops it.
#[derive(Debug, Default)]
pub struct TestLease {
    is_lost: AtomicBool,
}

impl TestLease {
    pub fn lose(&self) {
        self.is_lost.store(true, Ordering::SeqCst);
    }
}

#[async_trait]
impl LeaderLease for TestLease {
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

/// Sets the group to the end of the stream, as after reading everything.
fn group_on(backend: &Backend, arguments: &[&str]) {
    let names = KeyNames::new(&BaseNames::default(), backend.redis().mode()).unwrap();
    let command: Vec<&str> = ["XGROUP", arguments[0], names.traffic(), "mirror", "$"]
        .into_iter()
        .chain(arguments[1..].to_vec())
        .collect();
    backend.cli(&command);
}

/// Resolves infohashes by their last bytes and passkeys by their value, below 1000.
pub struct NumericDirectory;

impl Directory for NumericDirectory {
    fn user_of(&self, passkey: &Passkey) -> Option<UserId> {
        let number = u64::from_str_radix(&passkey.to_string(), 16).ok()?;
        (number < 1000).then(|| UserId::new(number)).flatten()
    }

    fn torrent_of(&self, info_hash: &InfoHash) -> Option<(TorrentId, InfoHash)> {
        let number = u32::from_be_bytes(info_hash.0[16..].try_into().unwrap());
        (number < 1000).then(|| TorrentId::new(number.into())).flatten().map(|torrent| (torrent, *info_hash))
    }
}

pub struct Fixture {
    pub backend: Backend,
    pub clock: ManualClock,
    pub start: UnixTime,
    pub lease: Arc<TestLease>,
    pub mirror: Arc<RedisMirror>,
    pub journal: Arc<dyn Journal>,
}

pub fn journal_on(redis: Redis) -> Arc<dyn Journal> {
    let names = KeyNames::new(&BaseNames::default(), redis.mode()).unwrap();
    Arc::new(RedisJournal::new(redis, names))
}

/// A mirror as a separate process opens it.
pub fn mirror_on(
    redis: Redis,
    turn: Arc<dyn LeaderLease>,
    clock: &ManualClock,
    settings: RedisMirrorSettings,
    name: &str,
) -> RedisMirror {
    let names = RedisMirrorNames::new(redis.mode());
    let parts = RedisMirrorParts {
        journal: journal_on(redis.clone()),
        redis,
        names,
        lease: turn,
        directory: Arc::new(NumericDirectory),
        clock: Arc::new(clock.clone()),
    };
    RedisMirror::new(parts, settings, format!("{name}.reaper"))
}

/// Resolves torrents as set by the test.
#[derive(Default)]
pub struct MutableDirectory {
    pub torrents: std::sync::Mutex<std::collections::HashMap<InfoHash, u64>>,
    pub removed: std::sync::Mutex<Vec<u64>>,
}

impl MutableDirectory {
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

impl Directory for MutableDirectory {
    fn user_of(&self, passkey: &Passkey) -> Option<UserId> {
        NumericDirectory.user_of(passkey)
    }

    fn torrent_of(&self, info_hash: &InfoHash) -> Option<(TorrentId, InfoHash)> {
        let torrent = *self.torrents.lock().unwrap().get(info_hash)?;
        TorrentId::new(torrent).map(|torrent| (torrent, *info_hash))
    }

    fn is_removed(&self, torrent: TorrentId, _info_hash: &InfoHash) -> bool {
        self.removed.lock().unwrap().contains(&torrent.get())
    }
}

pub fn mirror_with_directory(fixture: &Fixture, directory: Arc<dyn Directory>) -> RedisMirror {
    let redis = fixture.backend.redis();
    let names = RedisMirrorNames::new(redis.mode());
    let (journal, turn, clock) =
        (journal_on(redis.clone()), fixture.lease.clone(), Arc::new(fixture.clock.clone()));
    let parts = RedisMirrorParts { journal, redis, names, lease: turn, directory, clock };
    RedisMirror::new(parts, RedisMirrorSettings::default(), "directory.reaper".to_owned())
}

impl Fixture {
    pub fn on(backend: Backend) -> Fixture {
        Fixture::with(backend, RedisMirrorSettings::default())
    }

    pub fn with(backend: Backend, settings: RedisMirrorSettings) -> Fixture {
        let start = future_start();
        let clock = ManualClock::at(start);
        let lease = Arc::new(TestLease::default());
        let mirror = mirror_on(backend.redis(), lease.clone(), &clock, settings, "test");
        let journal = journal_on(backend.redis());
        group_on(&backend, &["CREATE", "MKSTREAM"]);
        Fixture { backend, clock, start, lease, mirror: Arc::new(mirror), journal }
    }

    /// As if everything in the journal had been delivered, and some of it lost.
    pub fn catch_up(&self) {
        group_on(&self.backend, &["SETID"]);
    }

    /// Another mirror on the same Redis, as after a restart.
    pub fn another(&self) -> RedisMirror {
        mirror_on(
            self.backend.redis(),
            Arc::new(TestLease::default()),
            &self.clock,
            RedisMirrorSettings::default(),
            "other",
        )
    }

    /// Applies entries as one batch; each gets the next id.
    pub async fn apply(&self, announces: &[Announce]) {
        self.try_apply(&self.arrivals(announces)).await.unwrap();
    }

    pub fn arrivals(&self, announces: &[Announce]) -> Vec<DeliveredEntry> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let arrival = |announce: &Announce| {
            let id = EntryId { ms: 1000, seq: NEXT.fetch_add(1, Ordering::SeqCst).into() };
            let entry = TrafficEntry::parse(&announce.fields(self.start)).unwrap();
            DeliveredEntry { id, origin: id, entry }
        };
        announces.iter().map(arrival).collect()
    }

    pub async fn try_apply(&self, arrivals: &[DeliveredEntry]) -> Result<(), ViewError> {
        apply_to(&self.mirror, arrivals).await
    }

    /// The value of a key on a single Redis, as in [`Snapshot`].
    pub async fn value_of(&self, key: &str) -> Vec<String> {
        self.backend.snapshot().await.remove(key).unwrap_or_default()
    }
}

pub async fn apply_to(mirror: &RedisMirror, arrivals: &[DeliveredEntry]) -> Result<(), ViewError> {
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

/// One entry, short enough for a line.
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
    /// Whether the entry has only the fourteen fields.
    pub has_fourteen_fields: bool,
    /// Whether the entry has node, totals and key.
    pub has_totals: bool,
    /// The number in the infohash, if it differs from the torrent id.
    pub named: Option<u64>,
}

/// A regular announce of a user's first client.
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
        has_fourteen_fields: false,
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

    /// Last announce `dt` seconds ago.
    pub fn times_out(self, dt: u32) -> Self {
        Announce { cause: Cause::Timeout, dt, ..self.stops() }
    }

    pub fn by(self, peer: u64) -> Self {
        Announce { peer, ..self }
    }

    pub fn transferring(self, up: u64, down: u64, dt: u32) -> Self {
        Announce { moved: (up, down), dt, ..self }
    }

    pub fn with_info_hash(self, number: u64) -> Self {
        Announce { named: Some(number), ..self }
    }

    pub fn is_removed(self) -> Self {
        Announce { cause: Cause::Removal, ..self.stops() }
    }

    pub fn fourteen_fields_only(self) -> Self {
        Announce { has_fourteen_fields: true, ..self }
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
        if !self.has_fourteen_fields && self.has_totals {
            fields.push("node", "00000000000000ab");
            fields.push_text("sid", format!("{:016x}-0000002a", self.peer));
            fields.push_text("up", self.at);
            fields.push_text("down", self.at);
            fields.push("key", "0badcafe");
        }
        if !self.has_fourteen_fields {
            fields.push("cause", self.cause.name());
            fields.push_text("user", self.user);
            fields.push_text("torrent", self.torrent);
        }
        fields
    }
}

//! Entries per second into the views on Redis, against raw pipelined writes of the keys of each entry.
//!
//! The raw side handles neither late entries nor two clients of one user, counts nothing and keeps no sets; its bytes
//! are encoded before the timer starts. Both sides use the same server and the same number of peers.

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use async_trait::async_trait;
use domain::{AnnounceEvent, InfoHash, Passkey, TorrentId, UserId};
use journal::{Batch, DeliveredEntry, JournalError, Lane, LeaderLease, RedisJournal, View};
use keyspace::{BaseNames, KeyNames, Mode, Redis, RedisMirrorNames, RedisSettings};
use testkit::RedisServer;
use views::redis_mirror::Directory;
use views::{Activity, ActivitySettings, RedisMirror, RedisMirrorParts, RedisMirrorSettings};

use crate::load::{BATCH, Traffic, TrafficKind};
use crate::measure::{Comparison, RoundWatch};
use crate::presence::redis_counters::RedisCounters;
use crate::progress::Stage;
use crate::raw_redis::{Piece, RawRedis};
use crate::run::{Figure, Run};
use crate::server::new_runtime;
use crate::store::StoreKind;

const KINDS: [(TrafficKind, &str); 2] =
    [(TrafficKind::Steady, "heartbeats"), (TrafficKind::Changing, "every entry a change")];

pub fn activity(run: &mut Run<'_>) -> anyhow::Result<()> {
    for (kind, what) in KINDS {
        let name = format!("activity, {what}");
        let measured = measure(run, &name, kind, activity_writes, |redis, traffic| {
            let keys = KeyNames::new(&BaseNames::default(), Mode::Single)?;
            let clock = Arc::new(traffic.clock());
            Ok(Activity::on_redis(redis, keys, ActivitySettings::default(), clock))
        })?;
        run.add_rates(&name, &measured.comparison, "");
    }
    Ok(())
}

pub fn mirror(run: &mut Run<'_>) -> anyhow::Result<()> {
    for (kind, what) in KINDS {
        let name = format!("mirror, {what}");
        let measured = measure(run, &name, kind, mirror_writes, |redis, traffic| {
            let keys = KeyNames::new(&BaseNames::default(), Mode::Single)?;
            let parts = RedisMirrorParts {
                names: RedisMirrorNames::new(Mode::Single),
                journal: Arc::new(RedisJournal::new(redis.clone(), keys)),
                redis,
                lease: Arc::new(AlwaysLeader),
                directory: Arc::new(NoLookup),
                clock: Arc::new(traffic.clock()),
            };
            Ok(RedisMirror::new(parts, RedisMirrorSettings::default(), "bench.reaper".to_owned()))
        })?;
        run.add_rates(&name, &measured.comparison, "");
        let commands = Figure::of(measured.commands_per_entry);
        run.add(
            &format!("{name}: commands in Redis"),
            commands.noting("those that scripts run included, by INFO commandstats"),
        );
        let memory = Figure::of(measured.bytes_per_peer);
        run.add(
            &format!("{name}: memory in Redis"),
            memory.noting("all keys of the mirror and ours, ten peers a torrent and ten a user, all active"),
        );
    }
    Ok(())
}

/// A lease that is always granted.
struct AlwaysLeader;

#[async_trait]
impl LeaderLease for AlwaysLeader {
    async fn take(&self) -> Result<bool, JournalError> {
        Ok(true)
    }
    fn is_held(&self) -> bool {
        true
    }
    async fn release(&self) {}
    fn renew_interval(&self) -> Duration {
        Duration::from_secs(1)
    }
}

/// A lookup that is never needed: entries contain their ids.
struct NoLookup;

impl Directory for NoLookup {
    fn user_of(&self, _: &Passkey) -> Option<UserId> {
        None
    }
    fn torrent_of(&self, _: &InfoHash) -> Option<(TorrentId, InfoHash)> {
        None
    }
}

struct ViewCost {
    comparison: Comparison,
    commands_per_entry: f64,
    /// After every peer has joined.
    bytes_per_peer: f64,
}

fn measure<V: View>(
    run: &Run<'_>,
    name: &str,
    kind: TrafficKind,
    raw_writes: fn(&mut Piece, &DeliveredEntry),
    open: impl FnOnce(Redis, &Traffic) -> anyhow::Result<V>,
) -> anyhow::Result<ViewCost> {
    StoreKind::Redis.need()?;
    let server = run.cores.on_server(RedisServer::start)?;
    let pid = Some(server.pid());
    let traffic = Traffic::new(run.sizes.view_clients, kind);
    let runtime = new_runtime()?;
    let redis = runtime.block_on(Redis::connect(RedisSettings::from_url(&server.url())?))?;
    let view = open(redis, &traffic)?;
    let mut raw = RawRedis::connect(server.port())?;
    let rounds = run.sizes.rounds;
    let mut stage = Stage::begin(name, u64::from(rounds));
    let mut comparison = Comparison::default();
    let (mut commands, mut bytes_per_peer) = (0.0, 0.0);
    // The first lap is a warm-up.
    for lap in 0..=rounds {
        let arrivals = traffic.arrivals(traffic.positions_of(lap))?;
        let pieces: Vec<Piece> = arrivals.chunks(BATCH).map(|batch| raw_piece(batch, raw_writes)).collect();
        let before = RedisCounters::of(&server)?;
        let watch = RoundWatch::start(pid)?;
        runtime.block_on(apply(&view, &arrivals))?;
        let ours = watch.stop(traffic.lap())?;
        let spent = RedisCounters::of(&server)?.since(&before);
        let watch = RoundWatch::start(pid)?;
        raw.send(&pieces)?;
        let limit = watch.stop(traffic.lap())?;
        if lap > 0 {
            comparison.add(ours, limit);
            commands += spent.commands / f64::from(rounds);
        } else {
            bytes_per_peer = spent.memory_bytes / f64::from(run.sizes.view_clients);
        }
        stage.at(u64::from(lap));
    }
    stage.end(&comparison.summary());
    Ok(ViewCost { comparison, commands_per_entry: commands / traffic.lap() as f64, bytes_per_peer })
}

/// Applies entries to a view in batches. A refused entry is an error.
pub async fn apply(view: &dyn View, arrivals: &[DeliveredEntry]) -> anyhow::Result<()> {
    for arrivals in arrivals.chunks(BATCH) {
        let batch =
            Batch { lane: Lane::Traffic, consumer: "bench", taken_from: None, is_retry: false, arrivals };
        let rejected = view.apply(&batch).await?;
        if let Some(first) = rejected.first() {
            bail!(
                "{} of {} entries were rejected, such as: {}",
                rejected.len(),
                arrivals.len(),
                first.reason
            );
        }
    }
    Ok(())
}

fn raw_piece(arrivals: &[DeliveredEntry], writes: fn(&mut Piece, &DeliveredEntry)) -> Piece {
    let mut piece = Piece::default();
    arrivals.iter().for_each(|arrival| writes(&mut piece, arrival));
    piece
}

/// Adds to one list and removes from the other; `stopped` removes from both.
fn activity_writes(piece: &mut Piece, DeliveredEntry { entry, .. }: &DeliveredEntry) {
    let user = entry.passkey.map_or_else(String::new, |passkey| passkey.to_string());
    let torrent = entry.info_hash.to_string();
    let (seed, leech) = (format!("raw:user:seed:{user}"), format!("raw:user:leech:{user}"));
    let (into, out_of) = if entry.is_complete() { (&seed, &leech) } else { (&leech, &seed) };
    match entry.event {
        AnnounceEvent::Stopped => piece.add(&["ZREM", into, &torrent]),
        _ => piece.add(&["ZADD", into, &entry.at.0.to_string(), &torrent]),
    }
    piece.add(&["ZREM", out_of, &torrent]);
}

/// A peer's hash, its timeout and the torrent's count of announces.
fn mirror_writes(piece: &mut Piece, DeliveredEntry { entry, .. }: &DeliveredEntry) {
    let (torrent, user) = (entry.torrent.map_or(0, TorrentId::get), entry.user.map_or(0, UserId::get));
    let (at, user) = (entry.at.to_string(), user.to_string());
    let peer = format!("raw:p:{torrent}:{}", entry.peer_id);
    let complete = if entry.is_complete() { "1" } else { "0" };
    let mut hash = vec!["HSET", &peer, "speed_up", "9.1", "speed_dn", "0", "completed", complete];
    hash.extend(["user_id", &user, "first_announce", &at, "last_announce", &at]);
    hash.extend(["total_time", "0", "active", "1"]);
    piece.add(&hash);
    piece.add(&["SET", &format!("raw:ptimeout:{torrent}:{}", entry.peer_id), "1", "EX", "2410"]);
    piece.add(&["HINCRBY", &format!("raw:t:{}", entry.info_hash), "announces", "1"]);
}

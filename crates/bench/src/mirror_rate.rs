//! Entries per second into the Redis mirror, and their cost in Redis, against raw pipelined writes of the keys of each
//! entry.
//!
//! The raw side writes a peer's hash, its timeout and the torrent's count of announces. It handles neither duplicate
//! nor late entries, counts no peers and keeps no sets; its bytes are encoded before the timer starts. Both sides use
//! the same server and the same number of peers.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::clock::ManualClock;
use domain::{InfoHash, Passkey, Seconds, TorrentId, UserId};
use journal::{DeliveredEntry, JournalError, LeaderLease, RedisJournal};
use keyspace::{BaseNames, KeyNames, Mode, Redis, RedisError, RedisMirrorNames, RedisSettings};
use testkit::RedisServer;
use views::redis_mirror::Directory;
use views::{RedisMirror, RedisMirrorParts, RedisMirrorSettings};

use crate::activity_rate::{ActivityPlan, apply};
use crate::error::BenchError;
use crate::installed::need_redis;
use crate::journal_append::new_runtime;
use crate::progress::Stage;
use crate::rate_comparison::{LapWatch, RateComparison};
use crate::raw_redis::{Piece, RawRedis};
use crate::report::Row;
use crate::traffic::{Traffic, TrafficKind};

/// Entries in a batch: as many as the consumer reads at a time.
const BATCH: usize = 1_000;

#[derive(Debug)]
pub struct MirrorRate {
    pub comparison: RateComparison,
    /// Cost in Redis.
    pub rows: Vec<Row>,
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

/// Measures entries of one kind.
pub fn measure(plan: &ActivityPlan, kind: TrafficKind) -> Result<MirrorRate, BenchError> {
    need_redis()?;
    let name = match kind {
        TrafficKind::Steady => "mirror, heartbeats",
        TrafficKind::Changing => "mirror, every entry a change",
    };
    let server = plan.cores.on_server(RedisServer::start)?;
    let traffic = Traffic::new(plan.clients, kind);
    let clock = traffic.clock();
    let runtime = new_runtime()?;
    let mirror = runtime.block_on(open(&server, clock.clone()));
    let mirror = mirror.map_err(|disconnect| BenchError::Database(disconnect.to_string()))?;
    let mut raw = RawRedis::connect(server.port())?;
    let mut stage = Stage::begin(name, u64::from(plan.rounds));
    let mut comparison = RateComparison::new(name);
    let (mut memory, mut commands, mut entries) = (0.0, 0, 0);
    // The first lap is a warm-up.
    for lap in 0..=plan.rounds {
        let first = u64::from(lap) * traffic.lap();
        let arrivals = traffic.arrivals(first..first + traffic.lap())?;
        let pieces: Vec<Piece> = arrivals.chunks(BATCH).map(raw_piece).collect();
        let before = (used_memory(&server), commands_run(&server));
        let watch = LapWatch::start(Some(server.pid()))?;
        runtime.block_on(apply(&mirror, &arrivals))?;
        let product = watch.stop()?;
        let after = (used_memory(&server), commands_run(&server));
        let watch = LapWatch::start(Some(server.pid()))?;
        raw.send(&pieces)?;
        if lap > 0 {
            comparison.add(arrivals.len(), product, watch.stop()?);
            commands += after.1 - before.1;
            entries += arrivals.len() as u64;
        } else {
            memory = after.0.saturating_sub(before.0) as f64 / f64::from(plan.clients);
        }
        clock.advance(Seconds(1));
        stage.at(u64::from(lap));
    }
    stage.end(&comparison.summary());
    let rows = vec![
        Row::plain(
            format!("{name}: commands in Redis"),
            commands as f64 / entries.max(1) as f64,
            "per entry",
        )
        .noting("those that scripts run included, by INFO commandstats".to_owned()),
        Row::plain(format!("{name}: memory in Redis"), memory, "bytes per peer").noting(
            "all keys of the mirror and ours, ten peers a torrent and ten a user, all active".to_owned(),
        ),
    ];
    Ok(MirrorRate { comparison, rows })
}

async fn open(server: &RedisServer, clock: ManualClock) -> Result<RedisMirror, RedisError> {
    let redis = Redis::connect(RedisSettings::from_url(&server.url())?).await?;
    let keys = KeyNames::new(&BaseNames::default(), Mode::Single)?;
    let parts = RedisMirrorParts {
        names: RedisMirrorNames::new(Mode::Single),
        journal: Arc::new(RedisJournal::new(redis.clone(), keys)),
        redis,
        lease: Arc::new(AlwaysLeader),
        directory: Arc::new(NoLookup),
        clock: Arc::new(clock),
    };
    Ok(RedisMirror::new(parts, RedisMirrorSettings::default(), "loadgen.reaper".to_owned()))
}

/// A number of `INFO`; zero if it is missing.
fn used_memory(server: &RedisServer) -> u64 {
    let info = server.cli(&["INFO", "memory"]);
    let line = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

fn commands_run(server: &RedisServer) -> u64 {
    let info = server.cli(&["INFO", "commandstats"]);
    let calls =
        info.lines().filter_map(|line| line.split_once(":calls=")?.1.split(',').next()?.parse::<u64>().ok());
    calls.sum()
}

/// The writes that each entry needs at least.
fn raw_piece(arrivals: &[DeliveredEntry]) -> Piece {
    let mut piece = Piece::default();
    for DeliveredEntry { entry, .. } in arrivals {
        let (torrent, user) = (entry.torrent.map_or(0, TorrentId::get), entry.user.map_or(0, UserId::get));
        let at = entry.at.to_string();
        let peer = format!("raw:p:{torrent}:{}", entry.peer_id);
        let complete = if entry.is_complete() { "1" } else { "0" };
        let words = [
            "HSET",
            &peer,
            "speed_up",
            "9.1",
            "speed_dn",
            "0",
            "completed",
            complete,
            "user_id",
            &user.to_string(),
            "first_announce",
            &at,
            "last_announce",
            &at,
            "total_time",
            "0",
            "active",
            "1",
        ];
        piece.push(words.iter().map(|word| word.as_bytes()));
        let timeout = format!("raw:ptimeout:{torrent}:{}", entry.peer_id);
        piece.push(["SET", &timeout, "1", "EX", "2410"].iter().map(|word| word.as_bytes()));
        let counts = format!("raw:t:{}", entry.info_hash);
        piece.push(["HINCRBY", &counts, "announces", "1"].iter().map(|word| word.as_bytes()));
    }
    piece
}

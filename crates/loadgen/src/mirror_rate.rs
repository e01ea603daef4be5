//! How fast entries become the tracker's layout in Redis, and what that costs there, against raw pipelined writes of the
//! keys that each entry is about.
//!
//! The raw side writes a peer's hash, its timeout and the torrent's count of announces. It knows neither repeated nor
//! late entries, counts no peers and keeps no sets; its bytes are ready before the stopwatch starts. Both work on the
//! same server, with as many peers.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::clock::ManualClock;
use domain::{InfoHash, Passkey, Seconds, TorrentId, UserId};
use journal::{Arrival, JournalError, RedisJournal, Turn};
use keyspace::{BaseNames, KeyNames, MirrorNames, MirrorTemplates, Mode, Redis, RedisSettings, Trouble};
use testkit::RedisServer;
use views::mirror::Directory;
use views::{Mirror, MirrorParts, MirrorSettings};

use crate::activity_rate::{ActivityPlan, apply};
use crate::contest::{Contest, LapWatch};
use crate::error::LoadError;
use crate::installed::need_redis;
use crate::journal_append::new_runtime;
use crate::progress::Stage;
use crate::raw_redis::{Piece, RawRedis};
use crate::report::Row;
use crate::traffic::{Mood, Traffic};

/// Entries in a batch: as many as the consumer reads at a time.
const BATCH: usize = 1_000;

/// What came of it.
#[derive(Debug)]
pub struct MirrorRate {
    /// The rounds.
    pub contest: Contest,
    /// What it costs in Redis.
    pub rows: Vec<Row>,
}

/// Nobody else wants it.
struct Ours;

#[async_trait]
impl Turn for Ours {
    async fn take(&self) -> Result<bool, JournalError> {
        Ok(true)
    }
    fn is_ours(&self) -> bool {
        true
    }
    async fn release(&self) {}
    fn renew_every(&self) -> Duration {
        Duration::from_secs(1)
    }
}

/// The entries say everything themselves.
struct Nobody;

impl Directory for Nobody {
    fn user_of(&self, _: &Passkey) -> Option<UserId> {
        None
    }
    fn torrent_of(&self, _: &InfoHash) -> Option<(TorrentId, InfoHash)> {
        None
    }
}

/// Measures entries of one kind.
pub fn measure(plan: &ActivityPlan, mood: Mood) -> Result<MirrorRate, LoadError> {
    need_redis()?;
    let name = match mood {
        Mood::Steady => "layout, heartbeats",
        Mood::Changing => "layout, every entry a change",
    };
    let server = plan.cores.on_server(RedisServer::start)?;
    let traffic = Traffic::new(plan.clients, mood);
    let clock = traffic.clock();
    let runtime = new_runtime()?;
    let mirror = runtime.block_on(open(&server, clock.clone()));
    let mirror = mirror.map_err(|trouble| LoadError::Database(trouble.to_string()))?;
    let mut raw = RawRedis::connect(server.port())?;
    let mut stage = Stage::begin(name, u64::from(plan.rounds));
    let mut contest = Contest::new(name);
    let (mut memory, mut commands, mut entries) = (0.0, 0, 0);
    // The first lap is not measured: nothing is known of anybody yet.
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
            contest.add(arrivals.len(), product, watch.stop()?);
            commands += after.1 - before.1;
            entries += arrivals.len() as u64;
        } else {
            memory = after.0.saturating_sub(before.0) as f64 / f64::from(plan.clients);
        }
        clock.advance(Seconds(1));
        stage.at(u64::from(lap));
    }
    stage.end(&contest.summary());
    let rows = vec![
        Row::plain(
            format!("{name}: commands in Redis"),
            commands as f64 / entries.max(1) as f64,
            "per entry",
        )
        .noting("those that scripts run included, by INFO commandstats".to_owned()),
        Row::plain(format!("{name}: memory in Redis"), memory, "bytes per peer").noting(
            "all keys of the layout and ours, ten peers a torrent and ten a user, all active".to_owned(),
        ),
    ];
    Ok(MirrorRate { contest, rows })
}

async fn open(server: &RedisServer, clock: ManualClock) -> Result<Mirror, Trouble> {
    let redis = Redis::connect(RedisSettings::from_url(&server.url())?).await?;
    let keys = KeyNames::new(&BaseNames::default(), Mode::Single)?;
    let parts = MirrorParts {
        names: MirrorNames::new(&MirrorTemplates::default(), Mode::Single)?,
        journal: Arc::new(RedisJournal::new(redis.clone(), keys)),
        redis,
        turn: Arc::new(Ours),
        directory: Arc::new(Nobody),
        clock: Arc::new(clock),
    };
    Ok(Mirror::new(parts, MirrorSettings::default(), "loadgen.reaper".to_owned()))
}

/// A number of `INFO`; zero if there is none.
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

/// What anybody must write for each entry.
fn raw_piece(arrivals: &[Arrival]) -> Piece {
    let mut piece = Piece::default();
    for Arrival { entry, .. } in arrivals {
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

//! How fast entries become lists of who seeds and who leeches in Redis, against raw pipelined `ZADD` and `ZREM` of the
//! same entries.
//!
//! The raw side knows neither two clients of one user nor late entries; its bytes are ready before the stopwatch
//! starts. Both work on the same server, with as many users.

use std::sync::Arc;

use domain::{AnnounceEvent, Seconds};
use journal::{Arrival, Batch, Lane, TrafficEntry, View};
use keyspace::{BaseNames, KeyNames, Mode, Redis, RedisSettings};
use testkit::RedisServer;
use views::{Activity, ActivitySettings};

use crate::contest::{Contest, LapWatch};
use crate::error::LoadError;
use crate::installed::need_redis;
use crate::journal_append::new_runtime;
use crate::process::Cores;
use crate::progress::Stage;
use crate::raw_redis::{Piece, RawRedis};
use crate::traffic::{Mood, Traffic};

/// Entries in a batch: as many as a consumer reads at a time.
const BATCH: usize = 1_000;

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct ActivityPlan {
    /// Which core does what.
    pub cores: Cores,
    /// Rounds of each side.
    pub rounds: u32,
    /// Clients of users on torrents; all of them announce in every round.
    pub clients: u32,
}

/// Measures entries of one kind.
pub fn measure(plan: &ActivityPlan, mood: Mood) -> Result<Contest, LoadError> {
    need_redis()?;
    let name = match mood {
        Mood::Steady => "activity, heartbeats",
        Mood::Changing => "activity, every entry a change",
    };
    let server = plan.cores.on_server(RedisServer::start)?;
    let traffic = Traffic::new(plan.clients, mood);
    let clock = traffic.clock();
    let runtime = new_runtime()?;
    let activity = runtime.block_on(async {
        let redis = Redis::connect(RedisSettings::from_url(&server.url())?).await?;
        let keys = KeyNames::new(&BaseNames::default(), Mode::Single)?;
        Ok(Activity::on_redis(redis, keys, ActivitySettings::default(), Arc::new(clock.clone())))
    });
    let activity = activity.map_err(|trouble: keyspace::Trouble| LoadError::Database(trouble.to_string()))?;
    let mut raw = RawRedis::connect(server.port())?;
    let mut stage = Stage::begin(name, u64::from(plan.rounds));
    let mut contest = Contest::new(name);
    // The first lap is not measured: nothing is known of anybody yet.
    for lap in 0..=plan.rounds {
        let first = u64::from(lap) * traffic.lap();
        let arrivals = traffic.arrivals(first..first + traffic.lap())?;
        let pieces: Vec<Piece> = arrivals.chunks(BATCH).map(raw_piece).collect();
        let watch = LapWatch::start(Some(server.pid()))?;
        runtime.block_on(apply(&activity, &arrivals))?;
        let product = watch.stop()?;
        let watch = LapWatch::start(Some(server.pid()))?;
        raw.send(&pieces)?;
        if lap > 0 {
            contest.add(arrivals.len(), product, watch.stop()?);
        }
        clock.advance(Seconds(1));
        stage.at(u64::from(lap));
    }
    stage.end(&contest.summary());
    Ok(contest)
}

/// Applies entries to a view in batches, none of which it may refuse.
pub(crate) async fn apply(view: &dyn View, arrivals: &[Arrival]) -> Result<(), LoadError> {
    for batch in arrivals.chunks(BATCH) {
        let batch = Batch {
            lane: Lane::Traffic,
            consumer: "loadgen",
            taken_from: None,
            is_retry: false,
            arrivals: batch,
        };
        let rejected = view.apply(&batch).await.map_err(|error| LoadError::Database(error.to_string()))?;
        if let Some(first) = rejected.first() {
            return Err(LoadError::Refused {
                failures: rejected.len() as u64,
                replies: batch.arrivals.len() as u64,
                example: first.reason.clone(),
            });
        }
    }
    Ok(())
}

/// Into one list, out of the other; who stopped, out of both.
fn raw_piece(arrivals: &[Arrival]) -> Piece {
    let mut piece = Piece::default();
    for Arrival { entry, .. } in arrivals {
        let user = entry.passkey.map_or_else(String::new, |passkey| passkey.to_string());
        let torrent = entry.info_hash.to_string();
        let (seed, leech) = (format!("raw:user:seed:{user}"), format!("raw:user:leech:{user}"));
        let (into, out_of) = if entry.is_complete() { (&seed, &leech) } else { (&leech, &seed) };
        match entry {
            TrafficEntry { event: AnnounceEvent::Stopped, .. } => push(&mut piece, &["ZREM", into, &torrent]),
            _ => push(&mut piece, &["ZADD", into, &entry.at.0.to_string(), &torrent]),
        }
        push(&mut piece, &["ZREM", out_of, &torrent]);
    }
    piece
}

fn push(piece: &mut Piece, words: &[&str]) {
    piece.push(words.iter().map(|word| word.as_bytes()));
}

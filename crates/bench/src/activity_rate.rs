//! Entries per second into the activity view on Redis, against raw pipelined `ZADD` and `ZREM` of the same entries.
//!
//! The raw side handles neither two clients of one user nor late entries; its bytes are encoded before the timer
//! starts. Both sides use the same server and the same number of users.

use std::sync::Arc;

use domain::{AnnounceEvent, Seconds};
use journal::{Batch, DeliveredEntry, Lane, TrafficEntry, View};
use keyspace::{BaseNames, KeyNames, Mode, Redis, RedisSettings};
use testkit::RedisServer;
use views::{Activity, ActivitySettings};

use crate::error::BenchError;
use crate::installed::need_redis;
use crate::journal_append::new_runtime;
use crate::process::Cores;
use crate::progress::Stage;
use crate::rate_comparison::{LapWatch, RateComparison};
use crate::raw_redis::{Piece, RawRedis};
use crate::traffic::{Traffic, TrafficKind};

/// Entries in a batch: as many as a consumer reads at a time.
const BATCH: usize = 1_000;

#[derive(Clone, Copy, Debug)]
pub struct ActivityPlan {
    pub cores: Cores,
    pub rounds: u32,
    /// Clients; all of them announce in every round.
    pub clients: u32,
}

/// Measures entries of one kind.
pub fn measure(plan: &ActivityPlan, kind: TrafficKind) -> Result<RateComparison, BenchError> {
    need_redis()?;
    let name = match kind {
        TrafficKind::Steady => "activity, heartbeats",
        TrafficKind::Changing => "activity, every entry a change",
    };
    let server = plan.cores.on_server(RedisServer::start)?;
    let traffic = Traffic::new(plan.clients, kind);
    let clock = traffic.clock();
    let runtime = new_runtime()?;
    let activity = runtime.block_on(async {
        let redis = Redis::connect(RedisSettings::from_url(&server.url())?).await?;
        let keys = KeyNames::new(&BaseNames::default(), Mode::Single)?;
        Ok(Activity::on_redis(redis, keys, ActivitySettings::default(), Arc::new(clock.clone())))
    });
    let activity =
        activity.map_err(|disconnect: keyspace::RedisError| BenchError::Database(disconnect.to_string()))?;
    let mut raw = RawRedis::connect(server.port())?;
    let mut stage = Stage::begin(name, u64::from(plan.rounds));
    let mut comparison = RateComparison::new(name);
    // The first lap is a warm-up.
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
            comparison.add(arrivals.len(), product, watch.stop()?);
        }
        clock.advance(Seconds(1));
        stage.at(u64::from(lap));
    }
    stage.end(&comparison.summary());
    Ok(comparison)
}

/// Applies entries to a view in batches. A refused entry is an error.
pub(crate) async fn apply(view: &dyn View, arrivals: &[DeliveredEntry]) -> Result<(), BenchError> {
    for batch in arrivals.chunks(BATCH) {
        let batch = Batch {
            lane: Lane::Traffic,
            consumer: "loadgen",
            taken_from: None,
            is_retry: false,
            arrivals: batch,
        };
        let rejected = view.apply(&batch).await.map_err(|error| BenchError::Database(error.to_string()))?;
        if let Some(first) = rejected.first() {
            return Err(BenchError::Refused {
                failures: rejected.len() as u64,
                replies: batch.arrivals.len() as u64,
                example: first.reason.clone(),
            });
        }
    }
    Ok(())
}

/// Adds to one list and removes from the other; `stopped` removes from both.
fn raw_piece(arrivals: &[DeliveredEntry]) -> Piece {
    let mut piece = Piece::default();
    for DeliveredEntry { entry, .. } in arrivals {
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

//! Takes over the pending entries of dead consumers (J4) and refreshes the pause state.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tracing::warn;

use super::intake::{BatchEnd, Intake};
use super::{ProcessName, Shared};
use crate::error::JournalError;
use crate::port::{ConsumerInfo, Lane};

/// Interval of the pause check.
const ROUND: Duration = Duration::from_millis(500);
/// Interval of the dead-consumer check, in rounds.
const DEAD_CHECK_EVERY: u32 = 4;

/// Runs until stopped.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut intake = Intake::new(Arc::clone(&shared), Lane::Traffic, "takeover".to_owned());
    for round in 0_u32.. {
        // While the journal is unavailable the pause state stays as it is.
        let _ = shared.pause.refresh(&*shared.journal, shared.view.name(), &shared.process).await;
        let is_time = round.is_multiple_of(DEAD_CHECK_EVERY) && !shared.is_idle();
        if is_time && take_over_dead(&shared, &mut intake).await == BatchEnd::Stopped {
            return;
        }
        if shared.sleep(ROUND).await {
            return;
        }
    }
}

async fn take_over_dead(shared: &Shared, intake: &mut Intake) -> BatchEnd {
    if intake.may_have_unreceived() {
        // First the entries that it took over itself and whose reply was lost.
        let own_name = intake.name().to_owned();
        match take_over_all(shared, intake, &own_name).await {
            Ok(BatchEnd::Done) => {}
            Ok(ended) => return ended,
            // Retried in the next round.
            Err(_) => return BatchEnd::Done,
        }
    }
    let Ok(dead) = find_dead(shared, Lane::Traffic).await else { return BatchEnd::Done };
    for name in dead {
        match take_over_all(shared, intake, &name).await {
            Ok(BatchEnd::Done) => delete_consumer(shared, Lane::Traffic, &name).await,
            Ok(ended) => return ended,
            Err(_) => return BatchEnd::Done,
        }
    }
    BatchEnd::Done
}

async fn take_over_all(shared: &Shared, intake: &mut Intake, from: &str) -> Result<BatchEnd, JournalError> {
    let batch_max = shared.settings.borrow().batch_max;
    let _busy = shared.busy();
    loop {
        let entries = intake.take_over(from, batch_max).await?;
        if entries.is_empty() {
            return Ok(BatchEnd::Done);
        }
        shared.counters.taken_over.fetch_add(entries.len() as u64, Ordering::Relaxed);
        let ended = intake.process(&entries, Some(from)).await;
        if ended != BatchEnd::Done {
            return Ok(ended);
        }
    }
}

/// The dead consumers of a lane, fenced.
pub(super) async fn find_dead(shared: &Shared, lane: Lane) -> Result<Vec<String>, JournalError> {
    let consumers = shared.journal.consumers(lane, &shared.group()).await?;
    let dead_after = shared.settings.borrow().dead_after;
    if lane == Lane::Traffic {
        record_foreign(shared, &consumers, dead_after);
    }
    let mut dead = Vec::new();
    for ConsumerInfo { name, pending, .. } in
        consumers.iter().filter(|consumer| is_dead(shared, consumer, dead_after))
    {
        if *pending > 0 {
            let view = shared.view.name();
            if let Err(error) = shared.view.fence(name).await {
                if let Some(left_out) = shared.log.unfenced.admit(shared.clock.now()) {
                    warn!(view, reason = %error, lines_left_out = left_out, "dead consumer cannot be fenced yet");
                }
                continue;
            }
            warn!(view, consumer = name, pending, "taking over the entries of a dead consumer");
        }
        dead.push(name.clone());
    }
    Ok(dead)
}

/// A consumer of another program in our group removes entries from the view: logged when it appears.
fn record_foreign(shared: &Shared, consumers: &[ConsumerInfo], dead_after: Duration) {
    let foreign: Vec<&str> = foreign_consumers(consumers, dead_after).collect();
    let count = foreign.len() as u64;
    if count > shared.counters.foreign_consumers.swap(count, Ordering::Relaxed) {
        warn!(
            view = shared.view.name(),
            group = shared.group(),
            consumers = foreign.join(", "),
            "another program reads in this view's group: entries that it receives are missing from the view; \
             give it a group of its own"
        );
    }
}

/// The live consumers of a group that belong to another program.
pub fn foreign_consumers(consumers: &[ConsumerInfo], dead_after: Duration) -> impl Iterator<Item = &str> {
    let live = consumers.iter().filter(move |consumer| consumer.idle < dead_after);
    live.map(|consumer| consumer.name.as_str()).filter(|name| ProcessName::of_consumer(name).is_none())
}

/// Deletes a consumer without pending entries; failures are retried in the next round.
pub(super) async fn delete_consumer(shared: &Shared, lane: Lane, consumer: &str) {
    if let Err(error) = shared.view.forget(consumer).await {
        warn!(view = shared.view.name(), reason = %error, "dead consumer cannot be deleted yet");
        return;
    }
    if shared.journal.delete_consumer(lane, &shared.group(), consumer).await.is_ok() {
        shared.former_names.lock().remove(consumer);
    }
}

fn is_dead(shared: &Shared, consumer: &ConsumerInfo, dead_after: Duration) -> bool {
    let is_former_self =
        shared.process.was_ours(&consumer.name) || shared.former_names.lock().contains(&consumer.name);
    is_former_self || !shared.process.is_ours(&consumer.name) && consumer.idle >= dead_after
}

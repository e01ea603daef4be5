//! Reads new entries, batch by batch.

use std::sync::Arc;
use std::time::Duration;

use tracing::warn;

use super::Shared;
use super::intake::{BatchEnd, Intake};
use crate::error::JournalError;
use crate::port::Lane;
use crate::rate_limiter::RateLimiter;
use domain::Backoff;

/// Pause after a small batch. A batch has costs of its own: with the pause, a steady flow is applied in larger ones.
const REST: Duration = Duration::from_millis(20);

/// Reads until stopped, or until there are to be fewer readers than this one's number.
pub(super) async fn run(shared: Arc<Shared>, number: usize, spawned: usize) {
    let mut intake = Intake::new(Arc::clone(&shared), Lane::Traffic, format!("reader-{spawned}"));
    let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));
    let mut stop = shared.stop.clone();
    while !shared.is_stopping() {
        let settings = shared.settings.borrow().clone();
        if number >= settings.consumers.max(1) {
            break;
        }
        if shared.is_idle() {
            if intake.sleep_while_paused().await {
                break;
            }
            continue;
        }
        let busy = shared.busy();
        let count = RateLimiter::batch_max(settings.batch_max, settings.entries_per_s_max);
        let reading = intake.read(count, settings.read_wait);
        // What is delivered during shutdown stays pending and is taken over after the next start.
        let read = tokio::select! {
            biased;
            read = reading => read,
            _ = stop.wait_for(|stopped| *stopped) => break,
        };
        match read {
            Ok(entries) => {
                backoff.reset();
                if intake.process(&entries, None).await == BatchEnd::Stopped {
                    break;
                }
                drop(busy);
                let is_small = !entries.is_empty() && entries.len() < count / 2;
                if is_small && shared.sleep(REST).await {
                    break;
                }
            }
            Err(JournalError::NoGroup { group }) => {
                drop(busy);
                warn!(
                    view = shared.view.name(),
                    group, "consumer group does not exist any more; creating it"
                );
                shared.prepare_groups().await;
            }
            Err(error) => {
                drop(busy);
                if let Some(left_out) = shared.log.unreadable.admit(shared.clock.now()) {
                    let view = shared.view.name();
                    warn!(view, reason = %error, lines_left_out = left_out, "journal cannot be read");
                }
                if intake.wait(backoff.next_delay()).await {
                    break;
                }
            }
        }
    }
}

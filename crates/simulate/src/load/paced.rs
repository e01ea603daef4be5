//! An open loop: announces at a given rate, whatever the server does.

use std::time::Duration;

use domain::clock::Stopwatch;

use super::http::HttpClient;
use super::{LoadResult, Schedule, ScheduledAnnounce};
use crate::error::SimulationError;

/// The longest sleep while an announce is due soon.
const NAP: Duration = Duration::from_millis(1);
/// Announces sent between two looks at the replies.
const BURST_MAX: u64 = 256;

/// The outcome of a run at a given rate.
#[derive(Clone, Debug, Default)]
pub struct PacedResult {
    pub seen: LoadResult,
    pub sent: u64,
    /// From the moment that an announce was due until its reply; an announce that found no free connection was late.
    pub latencies: Vec<Duration>,
    /// The accepted announces.
    pub accepted: Vec<ScheduledAnnounce>,
}

impl HttpClient {
    /// Sends announces at this rate for this long, each over a free connection, then waits for what is in flight. Replies
    /// that do not come at all are missing in the result.
    pub fn run_paced(
        &mut self,
        schedule: &mut Schedule,
        per_s: f64,
        length: Duration,
    ) -> Result<PacedResult, SimulationError> {
        let mut result = PacedResult::default();
        let mut free: Vec<usize> = (0..self.connections.len()).collect();
        let mut asked: Vec<Option<(Duration, ScheduledAnnounce)>> = vec![None; self.connections.len()];
        let total = (per_s * length.as_secs_f64()) as u64;
        let watch = Stopwatch::start();
        let mut last_reply = Duration::ZERO;
        while result.seen.replies < total {
            let now = watch.elapsed();
            let due = ((now.as_secs_f64() * per_s) as u64).min(total).min(result.sent + BURST_MAX);
            while result.sent < due {
                let Some(number) = free.pop() else { break };
                let scheduled = schedule.next_announce();
                let due_at = Duration::from_secs_f64(result.sent as f64 / per_s);
                asked[number] = Some((due_at, scheduled));
                self.connections[number].send(&self.requests, scheduled, &result.seen)?;
                result.sent += 1;
            }
            self.look(NAP)?;
            let now = watch.elapsed();
            for event in &self.events {
                let number = event.token().0;
                let connection = &mut self.connections[number];
                let failures = result.seen.failures;
                let answered = connection.receive(&mut result.seen)?;
                connection.flush(&result.seen)?;
                let Some((due_at, scheduled)) = asked[number].take_if(|_| answered > 0) else { continue };
                last_reply = now;
                result.latencies.push(now.saturating_sub(due_at));
                if result.seen.failures == failures {
                    result.accepted.push(scheduled);
                }
                free.push(number);
            }
            if now > last_reply.max(length) + Duration::from_secs(super::SILENCE_S_MAX) {
                break;
            }
        }
        result.seen.elapsed = watch.elapsed();
        Ok(result)
    }
}

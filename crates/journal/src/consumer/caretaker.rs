//! Takes over what dead consumers left behind (J4), and looks whether the view is paused.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tracing::{info, warn};

use super::Shared;
use super::intake::{Ended, Intake};
use super::letters::Desk;
use crate::port::{ConsumerInfo, Lane};

/// How often pauses are looked for.
const ROUND: Duration = Duration::from_millis(500);
/// How often the dead are looked for, in rounds.
const BURIAL_EVERY: u32 = 4;

/// Looks after the group until told to stop.
pub(super) async fn run(shared: Arc<Shared>) {
    let intake = |lane, role: &str| Intake::new(Arc::clone(&shared), lane, role.to_owned());
    let mut heirs = [
        Heir::OfEntries(intake(Lane::Traffic, "heir")),
        Heir::OfLetters(Desk(intake(Lane::Dead, "letters-heir"))),
    ];
    for round in 0_u32.. {
        look_for_pause(&shared).await;
        if round % BURIAL_EVERY == 0 && !shared.is_paused() {
            for heir in &mut heirs {
                if heir.inherit(&shared).await == Ended::Stopped {
                    return;
                }
            }
        }
        if shared.sleep(ROUND).await {
            return;
        }
    }
}

/// Looks whether the view is paused.
pub(super) async fn look_for_pause(shared: &Shared) {
    // A journal that is away changes nothing: the view stays as it is.
    let Ok(paused) = shared.journal.paused().await else { return };
    let is_paused = paused.contains(shared.view.name());
    if shared.is_paused.swap(is_paused, Ordering::AcqRel) != is_paused {
        info!(view = shared.view.name(), is_paused, "pause");
    }
}

/// Takes over what dead consumers of a lane left behind.
enum Heir {
    OfEntries(Intake),
    OfLetters(Desk),
}

impl Heir {
    fn intake(&mut self) -> &mut Intake {
        match self {
            Heir::OfEntries(intake) => intake,
            Heir::OfLetters(desk) => &mut desk.0,
        }
    }

    /// Takes over from every dead consumer.
    async fn inherit(&mut self, shared: &Shared) -> Ended {
        let (lane, group) = (self.intake().lane, shared.group());
        let Ok(consumers) = shared.journal.consumers(lane, &group).await else {
            return Ended::Done;
        };
        if self.intake().may_have_lost() {
            // First what it took over itself and never received.
            let own_name = self.intake().name().to_owned();
            if let ended @ (Ended::Stopped | Ended::Fenced) = self.take_over_all(shared, &own_name).await {
                return ended;
            }
        }
        let dead_after = shared.settings.borrow().dead_after;
        let dead = consumers.iter().filter(|consumer| is_dead(shared, consumer, dead_after));
        for ConsumerInfo { name, pending, .. } in dead {
            if *pending > 0 {
                if let Err(error) = shared.view.fence(name).await {
                    warn!(view = shared.view.name(), reason = %error, "a dead consumer cannot be fenced yet");
                    return Ended::Done;
                }
                warn!(
                    view = shared.view.name(),
                    consumer = name,
                    pending,
                    "taking over from a dead consumer"
                );
            }
            match self.take_over_all(shared, name).await {
                Ended::Done => forget(shared, lane, &group, name).await,
                ended => return ended,
            }
        }
        Ended::Done
    }

    async fn take_over_all(&mut self, shared: &Shared, from: &str) -> Ended {
        let batch_max = shared.settings.borrow().batch_max;
        loop {
            // What is not answered is tried again the next time.
            let Ok(entries) = self.intake().take_over(from, batch_max).await else { return Ended::Done };
            if entries.is_empty() {
                return Ended::Done;
            }
            shared.counters.taken_over.fetch_add(entries.len() as u64, Ordering::Relaxed);
            let ended = match self {
                Heir::OfEntries(intake) => intake.take_in(&entries, Some(from)).await,
                Heir::OfLetters(desk) => desk.answer(&entries).await,
            };
            if ended != Ended::Done {
                return ended;
            }
        }
    }
}

/// Forgets a consumer of which nothing is pending; whatever fails is done the next time.
async fn forget(shared: &Shared, lane: Lane, group: &str, consumer: &str) {
    if let Err(error) = shared.view.forget(consumer).await {
        warn!(view = shared.view.name(), reason = %error, "a dead consumer cannot be forgotten yet");
        return;
    }
    let _ = shared.journal.forget_consumer(lane, group, consumer).await;
}

fn is_dead(shared: &Shared, consumer: &ConsumerInfo, dead_after: Duration) -> bool {
    let is_former_self = shared.process.was_ours(&consumer.name);
    is_former_self || !shared.process.is_ours(&consumer.name) && consumer.idle >= dead_after
}

//! Publishes who changed, at once, and who gave a sign of life, now and then (P13).
//!
//! # Guarantees
//!
//! - One batch at a time, of a thousand at the most; what is marked meanwhile goes with the next one, at once.
//! - A part is read when it is sent, so several changes are one.
//! - What was not done, or may not have been, is done again.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::UserId;
use domain::clock::Stopwatch;
use presence::{Cause, Moment, Part};
use register::{Change, Published, Update};

use super::book::{Book, Mark, after, is_in_background};
use super::{Sharing, SharingSettings};
use crate::hub::Hub;
use crate::hub::shard::{Outside, Shard};

/// Updates in one batch (P13).
const BATCH_MAX: usize = 1_000;
/// How often signs of life are looked for (P13).
const LOOK: Duration = Duration::from_secs(1);
/// After a failure.
const PAUSE: Duration = Duration::from_millis(200);
/// Who is active gave a sign of life within this time.
const ACTIVE_MS: u64 = 60_000;
/// Whose sessions were not heard yet since this gateway's standing was lost is looked at again after this.
const UNHEARD: Duration = Duration::from_secs(2);
/// So long before what was told runs out, every look is the last.
const LAST_LOOKS: Duration = Duration::from_secs(5);
/// How long the last words at the end may take.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Somebody who is being published.
struct Taken {
    update: Update,
    /// Whether it is only a new sign of life.
    is_refresh: bool,
}

/// The task.
pub(crate) async fn run(hub: Arc<Hub>) {
    let Some(sharing) = &hub.outside.sharing else { return };
    loop {
        tokio::select! {
            () = sharing.marked.notified() => {}
            () = tokio::time::sleep(LOOK) => {}
        }
        if !hub.flush(sharing).await {
            tokio::time::sleep(PAUSE).await;
            sharing.marked.notify_one();
        }
    }
}

impl Hub {
    /// What was marked before the end is told, if that can be done soon.
    pub(crate) async fn flush_last(&self, sharing: &Sharing) {
        for shard in self.shards() {
            if let Some(book) = &mut shard.lock().book {
                book.put_all_back();
            }
        }
        if tokio::time::timeout(LAST_WORDS, self.flush(sharing)).await != Ok(true) {
            tracing::warn!("the last changes of presence could not be told to other gateways");
        }
    }

    /// Publishes everything that is to be. Whether all of it was.
    async fn flush(&self, sharing: &Sharing) -> bool {
        loop {
            let batch = self.take_batch(sharing);
            if batch.is_empty() {
                return true;
            }
            let stopwatch = Stopwatch::start();
            let name = sharing.register.node();
            let updates: Vec<Update> = batch.iter().map(|taken| taken.update.clone()).collect();
            let answers = sharing.register.publish(&updates).await;
            let counters = &self.outside.counters.sharing;
            counters.flushes.increment();
            counters.flush_seconds.record(stopwatch.elapsed());
            let refreshes = batch.iter().filter(|taken| taken.is_refresh).count();
            counters.refreshes.add(refreshes as u64);
            // Who was refused under the name before is not refused under this one.
            let is_refused = answers.contains(&Ok(Published::Fenced)) && sharing.register.node() == name;
            if is_refused {
                sharing.is_refused.store(true, Ordering::Release);
                sharing.refused.notify_one();
            }
            let mut all_done = true;
            for (taken, answer) in batch.into_iter().zip(answers) {
                all_done &= self.settle_published(sharing, taken, answer.ok());
            }
            if sharing.register.node() != name {
                // This was published under the name before, whose parts go.
                self.tell_all_again();
            }
            counters.marked.set(self.shards().map(|shard| shard.lock().marked()).sum());
            if !all_done {
                counters.flush_failures.increment();
                return false;
            }
        }
    }

    fn take_batch(&self, sharing: &Sharing) -> Vec<Taken> {
        let now = self.now();
        let mut batch = Vec::new();
        for shard in self.shards_from(&sharing.turn) {
            if batch.len() >= BATCH_MAX {
                break;
            }
            shard.lock().take_updates(now, sharing, &mut batch);
        }
        batch
    }

    /// What became of an update. Whether it was done.
    fn settle_published(&self, sharing: &Sharing, taken: Taken, answer: Option<Published>) -> bool {
        let now = self.now();
        let user = taken.update.user;
        let mut shard = self.shard(user);
        let Some(book) = &mut shard.book else { return true };
        let (outcome, is_unknown) = match answer {
            Some(Published::Changed(outcome)) => (Some(outcome), false),
            Some(Published::Unchanged { .. }) => (None, false),
            Some(Published::Unknown) => (None, true),
            Some(Published::Fenced) | None => {
                book.put_back(user);
                if taken.is_refresh {
                    book.refresh.put(user, after(now, LOOK));
                }
                return false;
            }
        };
        let (mark, was_told) = (book.land(user), book.is_told(user));
        match &taken.update.change {
            Change::Put(part) => {
                let look_at = after(now, refresh_in(now, part, &sharing.settings));
                book.told(user, Some(part.last_sign), look_at);
            }
            Change::Drop { .. } | Change::Behind => book.untold(user),
        }
        let after = match outcome {
            Some(mut outcome) => {
                if outcome.is_first && was_told {
                    // Redis lost its data, and they were here all the while: nobody came, and nothing changed.
                    (outcome.arrived, outcome.from) = (false, outcome.to);
                }
                let cause = mark.map_or((Cause::Heartbeat, None), |mark| (mark.cause, mark.device));
                self.outside.keep_outcome(&outcome, cause);
                // Sessions without a connection are nobody's in `people`, and are asked about all the same.
                if shard.roster.has_part(user) {
                    shard.begin_asking(now, user);
                }
                shard.hear(now, outcome.record, &self.outside)
            }
            None => {
                if is_unknown {
                    shard.keep_unknown(
                        now,
                        user,
                        mark.filter(|mark| was_told || mark.ends_pending()),
                        &self.outside,
                    );
                }
                Default::default()
            }
        };
        shard.end_word(now, user);
        drop(shard);
        self.finish(after);
        true
    }
}

impl Shard {
    /// Somebody is to be published.
    pub(crate) fn mark(&mut self, user: UserId, mark: Mark, outside: &Outside) {
        let (Some(book), Some(sharing)) = (&mut self.book, &outside.sharing) else { return };
        book.mark(user, mark);
        sharing.marked.notify_one();
    }

    /// How many are marked and not published yet.
    pub(crate) fn marked(&self) -> usize {
        self.book.as_ref().map_or(0, |book| book.marked())
    }

    fn take_updates(&mut self, now: Moment, sharing: &Sharing, batch: &mut Vec<Taken>) {
        let Some(mut book) = self.book.take() else { return };
        let since = sharing.heard_since();
        for user in book.take_marked(BATCH_MAX.saturating_sub(batch.len())) {
            let part = self.roster.part(user, since);
            if part.is_none() && self.roster.has_part(user) {
                // They were not heard since; that is looked for, and nothing is said until then.
                book.await_sign(user);
                book.told(user, None, after(now, UNHEARD));
                continue;
            }
            batch.push(Taken { update: self.update(now, user, part, &book), is_refresh: false });
        }
        while batch.len() < BATCH_MAX
            && let Some(user) = book.refresh.take_due(now)
        {
            let told = book.told.get(&user).copied().flatten();
            match self.roster.part(user, since) {
                Some(part) if told.is_none_or(|sign| part.last_sign > sign) => {
                    book.resume(user);
                    batch.push(Taken { update: self.update(now, user, Some(part), &book), is_refresh: true });
                }
                Some(part) => book.refresh.put(user, after(now, refresh_in(now, &part, &sharing.settings))),
                None if self.roster.has_part(user) => book.refresh.put(user, after(now, UNHEARD)),
                // Who went was marked, and is published by that.
                None => {}
            }
        }
        self.book = Some(book);
    }

    fn update(&self, now: Moment, user: UserId, part: Option<Part>, book: &Book) -> Update {
        let declared = book.in_flight(user).and_then(|mark| mark.declared);
        let kept = self.roster.remembered(user);
        let last_alive = self.roster.last_alive(user).unwrap_or_default();
        let believed = kept.as_ref().and_then(|kept| kept.declaration.clone());
        Update {
            user,
            change: part.map_or(Change::Drop { last_alive }, Change::Put),
            declaration: declared.map(|_| believed.clone()),
            declared_ago: Duration::from_millis(declared.map_or(0, |at| now.0.saturating_sub(at.0))),
            known: book.known.get(&user).map_or(0, |known| known.version),
            believed,
            floor: kept.as_ref().map_or((0, 0), |kept| (kept.public_version, kept.own_version)),
            last_seen: kept.and_then(|kept| kept.last_seen),
        }
    }

    /// The register does not know somebody who has gone: they were only remembered from before a restart, or it lost its
    /// data while they went. `mark` says why they went, if anybody knows that they were here.
    fn keep_unknown(&mut self, now: Moment, user: UserId, mark: Option<Mark>, outside: &Outside) {
        let Some(kept) = self.roster.remembered(user).filter(|kept| !kept.here) else { return };
        if let Some(mark) = mark {
            outside.record(now, user, people::OccurrenceKind::Left, (mark.cause, mark.device));
        }
        outside.keeper.remember(kept);
    }
}

/// When to look for a new sign of life: tiers by activity, and well before what was told runs out.
fn refresh_in(now: Moment, part: &Part, settings: &SharingSettings) -> Duration {
    let silent_ms = now.0.saturating_sub(u64::from(part.last_sign.0) * 1000);
    let tier = if is_in_background(part) {
        settings.refresh_background
    } else if silent_ms <= ACTIVE_MS {
        settings.refresh_active
    } else {
        settings.refresh_quiet
    };
    let patience = Duration::from_secs(u64::from(part.gone_in.0));
    // Where devices are given up after seconds, tiers made for 90 s would let everybody lapse.
    let tier = tier.min(patience / 4);
    // A sign of life at the last moment must be told before what was told runs out, so then it is looked often.
    let left = patience.saturating_sub(Duration::from_millis(silent_ms) + LAST_LOOKS);
    left.clamp(tier.min(LOOK), tier)
}

#[cfg(test)]
mod tests {
    use domain::{Seconds, UnixTime};
    use presence::{AppState, DeviceId, PartDevice, Platform};

    use super::*;

    /// Seconds until the next look at somebody who was silent for so long.
    fn next_look(silent_s: u64, gone_in: u32) -> f64 {
        let device = PartDevice {
            id: DeviceId::new("a").unwrap(),
            platform: Platform::Web,
            app: AppState::Foreground,
            online: true,
            said: None,
        };
        let part = Part { devices: vec![device], last_sign: UnixTime(1_000), gone_in: Seconds(gone_in) };
        refresh_in(Moment((1_000 + silent_s) * 1000), &part, &SharingSettings::default()).as_secs_f64()
    }

    #[test]
    fn p7_a_sign_of_life_at_the_last_moment_is_found_in_time() {
        assert_eq!(next_look(35, 90), 10.0);
        assert_eq!(next_look(61, 90), 22.5);
        assert_eq!(next_look(65, 90), 20.0);
        for silent_s in 84..=200 {
            assert_eq!(next_look(silent_s, 90), 1.0);
        }
        assert_eq!(next_look(1, 3), 0.75);
    }
}

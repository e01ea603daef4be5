//! Asks the register about those who are watched here: before they are shown, and then in turn.
//!
//! # Guarantees
//!
//! - Who connects sees the true state of their friends (P4), wherever those are; if the register does not answer in time,
//!   what is known, and what it answers later.
//! - Everybody with sessions elsewhere is asked about before what is known of them is too old; if there is no answer,
//!   they are believed no longer than that.
//! - Who is not watched here any more, and has no session, is not asked about any more.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::UserId;
use presence::Moment;

use super::Sharing;
use super::book::after;
use crate::hub::Hub;
use crate::hub::shard::Shard;

/// People asked about at once.
const BATCH_MAX: usize = 1_000;
/// How often it is looked who is to be asked about.
const LOOK: Duration = Duration::from_millis(100);
/// Who could not be asked about is asked about again after this.
const RETRY: Duration = Duration::from_secs(2);
/// Only a step back of the clock by more than this is one: it is also read out of order.
const STEP_MS_MIN: u64 = 2_000;
/// When everybody is to be asked about or published again, so many a second.
const PACE: u64 = 5_000;

/// When it is the turn of the next one.
fn in_turn(now: Moment, place: &mut u64) -> Moment {
    *place += 1;
    Moment(now.0 + *place * 1000 / PACE)
}

/// The task that asks in turn.
pub(crate) async fn run(hub: Arc<Hub>) {
    let Some(sharing) = &hub.outside.sharing else { return };
    loop {
        hub.follow_clock(sharing);
        let asked = hub.ask_in_turn(sharing).await;
        if asked < BATCH_MAX {
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl Hub {
    /// Those of these people of whom it was not asked yet. They are to be asked about ([`Hub::learn`]) before they are
    /// shown. Nobody, where there are no other gateways.
    pub(crate) fn unlearned(&self, users: impl IntoIterator<Item = UserId>) -> Vec<(UserId, u64)> {
        let mut unlearned = Vec::new();
        if self.outside.sharing.is_none() {
            return unlearned;
        }
        let now = self.now();
        for user in users {
            if self.shard(user).begin_asking(now, user) {
                unlearned.push((user, 0));
            }
        }
        unlearned.sort_unstable();
        unlearned.dedup();
        unlearned
    }

    /// Asks about people who are about to be shown, and waits a little for the answers.
    pub(crate) async fn learn(&self, users: Vec<(UserId, u64)>) {
        let Some(sharing) = self.outside.sharing.as_ref().filter(|_| !users.is_empty()) else { return };
        // Nobody waits for what is known not to answer.
        let asking = tokio::time::timeout(sharing.settings.patience, self.ask_register(sharing, &users));
        if sharing.is_away() || !asking.await.unwrap_or(false) {
            self.outside.counters.sharing.unanswered.increment();
        }
    }

    /// If the clock stepped back, all plans go back with it. The roster sees to its own.
    pub(crate) fn follow_clock(&self, sharing: &Sharing) {
        let now_ms = self.now().0;
        let by_ms = sharing.latest_ms.swap(now_ms, Ordering::Relaxed).saturating_sub(now_ms);
        if by_ms < STEP_MS_MIN {
            return;
        }
        tracing::warn!(by_ms, "the clock went back; what is planned goes back with it");
        sharing.step_back(by_ms);
        for shard in self.shards() {
            if let Some(book) = &mut shard.lock().book {
                book.step_back(by_ms);
            }
        }
    }

    /// Asks about those whose turn it is. How many they were.
    async fn ask_in_turn(&self, sharing: &Sharing) -> usize {
        let now = self.now();
        let mut users = Vec::new();
        for shard in self.shards_from(&sharing.turn) {
            shard.lock().take_asked(now, BATCH_MAX, &mut users);
        }
        if users.is_empty() {
            return 0;
        }
        self.outside.counters.sharing.asked_again.add(users.len() as u64);
        if sharing.is_away() {
            self.go_on_without(&users);
        } else {
            self.ask_register(sharing, &users).await;
        }
        let known = self.shards().map(|shard| shard.lock().known()).sum();
        self.outside.counters.sharing.known.set(known);
        users.len()
    }

    /// Asks, and takes in the answers. Whether there was one for everybody.
    async fn ask_register(&self, sharing: &Sharing, users: &[(UserId, u64)]) -> bool {
        let mut all_answered = true;
        for chunk in users.chunks(BATCH_MAX) {
            let answers = sharing.register.watch(chunk).await;
            for ((user, version), answer) in chunk.iter().zip(answers) {
                match answer {
                    Ok(watched) => {
                        let now = self.now();
                        let after = self.shard(*user).answer(now, *user, watched, &self.outside);
                        self.finish(after);
                    }
                    Err(error) => {
                        tracing::debug!(%error, "the register does not answer; it is asked again");
                        all_answered = false;
                        self.go_on_without(&[(*user, *version)]);
                    }
                }
            }
        }
        all_answered
    }

    /// There is no answer about these people: what is too old is not believed any more.
    fn go_on_without(&self, users: &[(UserId, u64)]) {
        for (user, _) in users {
            let now = self.now();
            let mut shard = self.shard(*user);
            let after = shard.let_lapse(now, *user, &self.outside);
            shard.retry_asking(now, *user);
            drop(shard);
            self.finish(after);
        }
    }

    /// Something may have been missed: everybody is asked about again, so many a second. Who is due earlier stays so, or
    /// what is known of them would be believed for too long.
    pub(crate) fn ask_all_again(&self) {
        let now = self.now();
        let mut place = 0;
        for shard in self.shards() {
            if let Some(book) = &mut shard.lock().book {
                book.ask_all_again(|| in_turn(now, &mut place));
            }
        }
    }

    /// What was published may be lost: everybody who is here is published again, so many a second. Who is due earlier
    /// stays so, or what others know of them would run out.
    pub(super) fn tell_all_again(&self) {
        let now = self.now();
        let mut place = 0;
        for shard in self.shards() {
            if let Some(book) = &mut shard.lock().book {
                for user in book.told.keys().copied().collect::<Vec<UserId>>() {
                    book.tell_again(user, in_turn(now, &mut place));
                }
            }
        }
    }

    /// At which other gateways somebody is, as far as it is known here.
    pub fn nodes_of(&self, user: UserId) -> Vec<register::NodeName> {
        self.shard(user).book.as_ref().map(|book| book.nodes(user)).unwrap_or_default()
    }
}

impl Shard {
    /// Takes out those whose turn it is to be asked about, with what is known. Lets those go whom nobody wants to know of.
    fn take_asked(&mut self, now: Moment, limit: usize, users: &mut Vec<(UserId, u64)>) {
        let Some(mut book) = self.book.take() else { return };
        while users.len() < limit
            && let Some(user) = book.asking.take_due(now)
        {
            let is_wanted = self.people.contains_key(&user) || self.roster.has_part(user);
            match book.known.get_mut(&user) {
                Some(known) if is_wanted => {
                    known.is_missed = false;
                    users.push((user, if known.is_doubtful { 0 } else { known.version }));
                    // If the answer gets lost, it is asked again.
                    book.asking.put(user, after(now, RETRY * 5));
                }
                _ => {
                    book.stop_asking(user);
                    self.roster.forget(user);
                }
            }
        }
        self.book = Some(book);
    }

    /// Somebody is to be asked about from now on. Whether they were not.
    pub(crate) fn begin_asking(&mut self, now: Moment, user: UserId) -> bool {
        let is_known = self.knows(user);
        let Some(book) = &mut self.book else { return false };
        // What was answered about somebody who was forgotten since is forgotten too.
        if !is_known {
            book.stop_asking(user);
        }
        book.begin_asking(user, now)
    }

    /// Somebody is not watched any more and has no connection.
    pub(crate) fn stop_asking(&mut self, user: UserId) {
        if let Some(book) = &mut self.book
            && !self.roster.has_part(user)
        {
            book.stop_asking(user);
        }
    }

    fn known(&self) -> usize {
        self.book.as_ref().map_or(0, |book| book.known.len())
    }

    fn retry_asking(&mut self, now: Moment, user: UserId) {
        let Some(book) = &mut self.book else { return };
        let Some(known) = book.known.get(&user) else { return };
        let at = known.first_until().map_or(after(now, RETRY), |until| until.min(after(now, RETRY)));
        book.asking.put(user, at);
    }

    /// Whether what is known here of somebody holds for all gateways.
    pub(crate) fn is_current(&self, user: UserId) -> bool {
        let is_known = self.knows(user);
        is_known && self.book.as_ref().is_none_or(|book| book.is_current(user) || self.roster.has_part(user))
    }
}

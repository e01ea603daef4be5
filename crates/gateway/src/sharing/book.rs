//! What a shard has to tell others, and what it was told by them.
//!
//! # Guarantees
//!
//! - Somebody who is marked stays marked until the register has answered: marks are taken out to be published, and put
//!   back if that fails. What was marked meanwhile is kept beside.
//! - Bounded by the people in memory: a mark is one for each, however often they change.
//! - Who is due is found without going through all (P13).

use std::collections::BTreeSet;
use std::time::Duration;

use domain::{UnixTime, UserId};
use hashbrown::{HashMap, HashSet};
use presence::{Cause, DeviceId, Moment, Part, PartDevice};
use register::NodeName;

pub(super) type Map<T> = HashMap<UserId, T, foldhash::fast::RandomState>;

/// Who is due, in the order of time.
#[derive(Default)]
pub(super) struct Agenda {
    order: BTreeSet<(u64, UserId)>,
    at: Map<u64>,
}

impl Agenda {
    /// Puts somebody in, in place of when they were due before.
    pub(super) fn put(&mut self, user: UserId, at: Moment) {
        if let Some(before) = self.at.insert(user, at.0) {
            self.order.remove(&(before, user));
        }
        self.order.insert((at.0, user));
    }

    /// Puts somebody in, unless they are due earlier.
    pub(super) fn bring_forward(&mut self, user: UserId, at: Moment) {
        if self.at.get(&user).is_none_or(|before| at.0 < *before) {
            self.put(user, at);
        }
    }

    pub(super) fn remove(&mut self, user: UserId) {
        if let Some(before) = self.at.remove(&user) {
            self.order.remove(&(before, user));
        }
    }

    /// The clock stepped back by so much: what is due in a while stays due in a while.
    fn step_back(&mut self, by_ms: u64) {
        self.at.values_mut().for_each(|at| *at = at.saturating_sub(by_ms));
        self.order = self.at.iter().map(|(user, at)| (*at, *user)).collect();
    }

    /// Takes out one who is due.
    pub(super) fn take_due(&mut self, now: Moment) -> Option<UserId> {
        let (at, user) = *self.order.first()?;
        if at > now.0 {
            return None;
        }
        self.remove(user);
        Some(user)
    }
}

/// Why somebody is to be published.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(crate) cause: Cause,
    pub(crate) device: Option<DeviceId>,
    /// When something was declared or taken back.
    pub(crate) declared: Option<Moment>,
}

impl Mark {
    /// Whether who was remembered from before a restart did not come back.
    pub(super) fn ends_pending(&self) -> bool {
        self.cause == Cause::PendingOver
    }
}

/// What another gateway says of somebody.
pub(super) struct Remote {
    pub(super) node: NodeName,
    pub(super) devices: Vec<PartDevice>,
    pub(super) last_sign: UnixTime,
    /// It may be believed until then.
    pub(super) until: Moment,
}

/// Somebody about whom the register is asked.
#[derive(Default)]
pub(super) struct Known {
    /// The version of the record that was taken in last.
    pub(super) version: u64,
    /// The version of what others see, in the same record.
    pub(super) public_version: u64,
    /// The register has answered.
    pub(super) is_answered: bool,
    /// The register may have lost its data, and versions may have begun anew below this one: the next answer counts,
    /// whatever its version.
    pub(super) is_doubtful: bool,
    /// Something may have been missed since they were last asked about: an answer that is on its way may be too old.
    pub(super) is_missed: bool,
    /// What was declared here was believed instead of what the record said that was taken in last.
    pub(super) is_overruled: bool,
    pub(super) remotes: Vec<Remote>,
}

impl Known {
    /// When the first word of another gateway is too old to be believed.
    pub(super) fn first_until(&self) -> Option<Moment> {
        self.remotes.iter().map(|remote| remote.until).min()
    }
}

/// What a shard has to tell, and what it was told.
#[derive(Default)]
pub(crate) struct Book {
    marks: Map<Mark>,
    /// What is being published right now.
    in_flight: Map<Mark>,
    /// Whose sessions must be heard before anything is published of them.
    unheard: Map<Mark>,
    /// The last sign of life that was published of who has sessions here. None: to be published in any case.
    pub(super) told: Map<Option<UnixTime>>,
    /// When to look whether there is a newer one.
    pub(super) refresh: Agenda,
    pub(super) known: Map<Known>,
    /// When to ask about them again.
    pub(super) asking: Agenda,
    /// Who has sessions here and elsewhere: one gateway counts them.
    doubles: HashSet<UserId, foldhash::fast::RandomState>,
}

impl Book {
    /// Somebody is to be published. The last cause counts.
    pub(crate) fn mark(&mut self, user: UserId, mark: Mark) {
        let declared = mark.declared.or(self.marks.get(&user).and_then(|before| before.declared));
        self.marks.insert(user, Mark { declared, ..mark });
    }

    /// What could not be published is to be published again. What was marked meanwhile is newer.
    pub(super) fn put_back(&mut self, user: UserId) {
        let Some(mark) = self.in_flight.remove(&user) else { return };
        match self.marks.get_mut(&user) {
            Some(newer) => newer.declared = newer.declared.or(mark.declared),
            None => drop(self.marks.insert(user, mark)),
        }
    }

    /// Takes out some who are marked, to be published.
    pub(crate) fn take_marked(&mut self, limit: usize) -> Vec<UserId> {
        let users: Vec<UserId> = self.marks.keys().copied().take(limit).collect();
        for user in &users {
            if let Some(mark) = self.marks.remove(user) {
                self.in_flight.insert(*user, mark);
            }
        }
        users
    }

    /// Nothing is published of somebody until they are heard.
    pub(super) fn await_sign(&mut self, user: UserId) {
        if let Some(mark) = self.in_flight.remove(&user) {
            self.unheard.insert(user, mark);
        }
    }

    /// Somebody was heard: what was marked is published now.
    pub(super) fn resume(&mut self, user: UserId) {
        if let Some(mark) = self.unheard.remove(&user) {
            self.in_flight.insert(user, mark);
        }
    }

    pub(super) fn in_flight(&self, user: UserId) -> Option<&Mark> {
        self.in_flight.get(&user)
    }

    /// It was published.
    pub(crate) fn land(&mut self, user: UserId) -> Option<Mark> {
        self.in_flight.remove(&user)
    }

    /// Whether something was declared here that the register has not answered to yet.
    pub(super) fn has_word(&self, user: UserId) -> bool {
        let is_word = |marks: &Map<Mark>| marks.get(&user).is_some_and(|mark| mark.declared.is_some());
        is_word(&self.marks) || is_word(&self.in_flight) || is_word(&self.unheard)
    }

    pub(super) fn marked(&self) -> usize {
        self.marks.len() + self.in_flight.len()
    }

    /// Everything that was being published when the task ended.
    pub(super) fn put_all_back(&mut self) {
        let users: Vec<UserId> = self.in_flight.keys().copied().collect();
        for user in users {
            self.put_back(user);
        }
    }

    /// The clock stepped back by so much: nobody is told or asked later because of it, and nothing is believed longer.
    pub(super) fn step_back(&mut self, by_ms: u64) {
        self.refresh.step_back(by_ms);
        self.asking.step_back(by_ms);
        // Signs of life are told by the clock as it goes now, and a new one must be later than the last.
        let by_s = u32::try_from(by_ms.div_ceil(1000)).unwrap_or(u32::MAX);
        for sign in self.told.values_mut().flatten() {
            *sign = UnixTime(sign.0.saturating_sub(by_s));
        }
        for remote in self.known.values_mut().flat_map(|known| &mut known.remotes) {
            remote.until = Moment(remote.until.0.saturating_sub(by_ms));
        }
    }

    /// Whether somebody is, or was a moment ago, published by this gateway.
    pub(crate) fn is_told(&self, user: UserId) -> bool {
        self.told.contains_key(&user)
    }

    /// What was published of somebody, and when to look again.
    pub(super) fn told(&mut self, user: UserId, sign: Option<UnixTime>, look_at: Moment) {
        self.told.insert(user, sign);
        self.refresh.put(user, look_at);
        self.sort_out(user);
    }

    /// Somebody who has sessions here is to be published in any case, at the latest then.
    pub(super) fn tell_again(&mut self, user: UserId, at: Moment) {
        self.told.insert(user, None);
        self.refresh.bring_forward(user, at);
        self.sort_out(user);
    }

    /// Whether something of somebody is to be published, or is just being published, because of a change.
    pub(super) fn is_marked(&self, user: UserId) -> bool {
        [&self.marks, &self.in_flight, &self.unheard].iter().any(|marks| marks.contains_key(&user))
    }

    /// Notes whether somebody has sessions here and elsewhere.
    pub(super) fn sort_out(&mut self, user: UserId) {
        let is_elsewhere = self.known.get(&user).is_some_and(|known| !known.remotes.is_empty());
        match is_elsewhere && self.told.contains_key(&user) {
            true => _ = self.doubles.insert(user),
            false => _ = self.doubles.remove(&user),
        }
    }

    /// Those who are here and elsewhere, and whom another gateway counts: the first by its name.
    pub(super) fn counted_elsewhere(&self, own: &NodeName) -> impl Iterator<Item = UserId> {
        let is_theirs = |user: &&UserId| {
            let known = self.known.get(*user);
            known.is_some_and(|known| known.remotes.iter().any(|remote| remote.node < *own))
        };
        self.doubles.iter().filter(is_theirs).copied()
    }

    /// Nothing is published of somebody any more.
    pub(super) fn untold(&mut self, user: UserId) {
        self.told.remove(&user);
        self.unheard.remove(&user);
        self.refresh.remove(user);
        self.doubles.remove(&user);
    }

    /// The register is asked about somebody from now on. Whether it is not already.
    pub(super) fn begin_asking(&mut self, user: UserId, now: Moment) -> bool {
        let known = self.known.entry(user).or_default();
        if known.is_answered {
            return false;
        }
        // Whoever begins asks; this is for when that fails.
        self.asking.put(user, after(now, Duration::from_secs(1)));
        true
    }

    pub(super) fn stop_asking(&mut self, user: UserId) {
        self.known.remove(&user);
        self.asking.remove(user);
        self.doubles.remove(&user);
    }

    /// Something may have been missed of everybody: each is asked about again, at the latest when it is their turn.
    pub(super) fn ask_all_again(&mut self, mut turn: impl FnMut() -> Moment) {
        for (user, known) in &mut self.known {
            known.is_missed = true;
            known.is_doubtful = true;
            self.asking.bring_forward(*user, turn());
        }
    }

    /// When somebody is asked about next.
    pub(super) fn ask_at(&mut self, user: UserId, at: Moment) {
        match self.known.get(&user) {
            Some(known) if known.is_missed => self.asking.bring_forward(user, at),
            Some(_) => self.asking.put(user, at),
            None => {}
        }
    }

    /// Whether what is known of somebody is up to date.
    pub(crate) fn is_current(&self, user: UserId) -> bool {
        self.known.get(&user).is_some_and(|known| known.is_answered)
    }

    /// At which other gateways somebody is.
    pub(crate) fn nodes(&self, user: UserId) -> Vec<NodeName> {
        let remotes = self.known.get(&user).map(|known| known.remotes.as_slice()).unwrap_or_default();
        remotes.iter().map(|remote| remote.node.clone()).collect()
    }
}

/// So much later.
pub(super) fn after(now: Moment, length: Duration) -> Moment {
    Moment(now.0.saturating_add(u64::try_from(length.as_millis()).unwrap_or(u64::MAX)))
}

/// Whether all devices of a part are in the background.
pub(super) fn is_in_background(part: &Part) -> bool {
    part.devices.iter().all(|device| device.app != presence::AppState::Foreground)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(number: u64) -> UserId {
        UserId::new(number).unwrap()
    }

    fn mark(cause: Cause, declared: bool) -> Mark {
        Mark { cause, device: None, declared: declared.then_some(Moment(3)) }
    }

    #[test]
    fn what_is_marked_while_it_is_published_is_published_again() {
        let mut book = Book::default();
        book.mark(user(1), mark(Cause::Declared, true));
        book.mark(user(1), mark(Cause::AppState, false));
        assert_eq!(book.take_marked(10), [user(1)]);
        assert!(book.has_word(user(1)) && book.take_marked(10).is_empty());
        book.mark(user(1), mark(Cause::Close, false));
        book.put_back(user(1));
        assert_eq!((book.marked(), book.take_marked(10)), (1, vec![user(1)]));
        let landed = book.land(user(1)).unwrap();
        assert_eq!((landed.cause, landed.declared), (Cause::Close, Some(Moment(3))));
        assert_eq!(book.marked(), 0);
    }

    #[test]
    fn who_is_due_is_never_put_off_by_being_brought_forward() {
        let mut agenda = Agenda::default();
        agenda.put(user(1), Moment(5));
        agenda.put(user(2), Moment(9));
        for who in 1..=3 {
            agenda.bring_forward(user(who), Moment(7));
        }
        assert_eq!(agenda.take_due(Moment(5)), Some(user(1)));
        assert_eq!((agenda.take_due(Moment(7)), agenda.take_due(Moment(7))), (Some(user(2)), Some(user(3))));
    }

    #[test]
    fn who_is_due_in_a_second_is_so_after_the_clock_stepped_back() {
        let mut book = Book::default();
        book.told(user(1), Some(UnixTime(3_600)), Moment(3_601_000));
        book.asking.put(user(2), Moment(3_602_000));
        book.step_back(3_600_000);
        assert_eq!(book.told[&user(1)], Some(UnixTime(0)), "or no later sign of life would be told");
        assert_eq!(book.refresh.take_due(Moment(999)), None);
        assert_eq!(book.refresh.take_due(Moment(1_000)), Some(user(1)));
        assert_eq!(book.asking.take_due(Moment(1_999)), None);
        assert_eq!(book.asking.take_due(Moment(2_000)), Some(user(2)));
        assert_eq!(
            (book.refresh.take_due(Moment(u64::MAX)), book.asking.take_due(Moment(u64::MAX))),
            (None, None)
        );
    }

    /// A gap is told while a question is on its way: the answer may be from before it.
    #[test]
    fn an_answer_from_before_a_gap_does_not_put_off_the_question_after_it() {
        let mut book = Book::default();
        book.begin_asking(user(1), Moment(0));
        book.ask_at(user(1), Moment(5_000));
        book.ask_all_again(|| Moment(100));
        book.ask_at(user(1), Moment(60_000));
        assert_eq!(book.asking.take_due(Moment(100)), Some(user(1)));
        book.known.get_mut(&user(1)).unwrap().is_missed = false;
        book.ask_at(user(1), Moment(60_000));
        assert_eq!(book.asking.take_due(Moment(59_999)), None);
    }

    #[test]
    fn an_agenda_has_everybody_once() {
        let mut agenda = Agenda::default();
        agenda.put(user(1), Moment(5));
        agenda.put(user(2), Moment(6));
        agenda.put(user(1), Moment(7));
        assert_eq!(agenda.take_due(Moment(5)), None);
        assert_eq!(agenda.take_due(Moment(9)), Some(user(2)));
        assert_eq!((agenda.take_due(Moment(9)), agenda.take_due(Moment(9))), (Some(user(1)), None));
    }
}

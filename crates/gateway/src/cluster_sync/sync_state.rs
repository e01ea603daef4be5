//! Per shard: users to publish, users to read, and what is known of other gateways.
//!
//! # Guarantees
//!
//! - A change of a user is kept until the store has answered to it ([`Unpublished`]).
//! - Bounded by the users in memory: one entry for each user, however often they change.
//! - Due users are found without a full pass (P13).

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use crate::cluster::NodeName;
use domain::{UnixTime, UserId};
use hashbrown::hash_map::Entry;
use hashbrown::{HashMap, HashSet};
use presence::{Cause, DeviceId, NodeDevice, NodeEntry, WallTime};

pub(super) type Map<T> = HashMap<UserId, T, foldhash::fast::RandomState>;

/// Users by the time they are due.
#[derive(Default)]
pub(super) struct Schedule {
    order: BTreeSet<(u64, UserId)>,
    at: Map<u64>,
}

impl Schedule {
    /// Replaces the user's previous time.
    pub(super) fn put(&mut self, user: UserId, at: WallTime) {
        if let Some(before) = self.at.insert(user, at.0) {
            self.order.remove(&(before, user));
        }
        self.order.insert((at.0, user));
    }

    /// Unless the user is due earlier.
    pub(super) fn bring_forward(&mut self, user: UserId, at: WallTime) {
        if self.at.get(&user).is_none_or(|before| at.0 < *before) {
            self.put(user, at);
        }
    }

    pub(super) fn remove(&mut self, user: UserId) {
        if let Some(before) = self.at.remove(&user) {
            self.order.remove(&(before, user));
        }
    }

    /// The clock stepped back by `by_ms`: remaining times stay the same.
    fn step_back(&mut self, by_ms: u64) {
        self.at.values_mut().for_each(|at| *at = at.saturating_sub(by_ms));
        self.order = self.at.iter().map(|(user, at)| (*at, *user)).collect();
    }

    pub(super) fn take_due(&mut self, now: WallTime) -> Option<UserId> {
        let (at, user) = *self.order.first()?;
        if at > now.0 {
            return None;
        }
        self.remove(user);
        Some(user)
    }
}

/// Why a user is to be published.
#[derive(Clone, Debug)]
pub(crate) struct DirtyReason {
    pub(crate) cause: Cause,
    pub(crate) device: Option<DeviceId>,
    /// When something was declared or taken back.
    pub(crate) declared: Option<WallTime>,
}

impl DirtyReason {
    /// The user was restored after a restart and did not reconnect in time.
    pub(super) fn ends_pending(&self) -> bool {
        self.cause == Cause::PendingOver
    }

    /// The later cause counts; a declaration is not forgotten.
    fn following(self, before: &DirtyReason) -> DirtyReason {
        DirtyReason { declared: self.declared.or(before.declared), ..self }
    }
}

/// A change of a user that the store has not answered to.
enum Unpublished {
    /// It waits, and its user is in `SyncState::dirty`.
    Dirty(DirtyReason),
    /// It is being published. A later change waits for that.
    InFlight { mark: DirtyReason, newer: Option<DirtyReason> },
    /// It is published after activity of the user's sessions.
    AwaitingSign(DirtyReason),
}

impl Unpublished {
    fn has_declaration(&self) -> bool {
        match self {
            Unpublished::Dirty(mark) | Unpublished::AwaitingSign(mark) => mark.declared.is_some(),
            Unpublished::InFlight { mark, newer } => {
                mark.declared.is_some() || newer.as_ref().is_some_and(|newer| newer.declared.is_some())
            }
        }
    }
}

/// Another gateway's entry of a user.
pub(super) struct RemoteEntry {
    pub(super) node: NodeName,
    pub(super) devices: Vec<NodeDevice>,
    pub(super) last_activity: UnixTime,
    pub(super) valid_until: WallTime,
}

/// What is known of a watched user's record.
#[derive(Default)]
pub(super) struct KnownRecord {
    /// The version of the record that was taken in last.
    pub(super) version: u64,
    /// Version of the public view of the same record.
    pub(super) public_version: u64,
    pub(super) is_loaded: bool,
    /// Redis may have lost its data, and versions may have restarted: the next record is applied whatever its
    /// version.
    pub(super) accepts_any_version: bool,
    /// Changes may have been missed since the last read began: its reply may be too old.
    pub(super) may_be_stale: bool,
    /// The local declaration was kept instead of the one in the last record.
    pub(super) is_overridden: bool,
    pub(super) remotes: Vec<RemoteEntry>,
}

impl KnownRecord {
    /// When the first remote entry expires.
    pub(super) fn first_expiry(&self) -> Option<WallTime> {
        self.remotes.iter().map(|remote| remote.valid_until).min()
    }
}

#[derive(Default)]
pub(crate) struct SyncState {
    unpublished: Map<Unpublished>,
    /// The users in state [`Unpublished::Dirty`], each once.
    dirty: VecDeque<UserId>,
    /// Last published activity of users with sessions here. None: publish in any case.
    pub(super) published: Map<Option<UnixTime>>,
    /// When to check for newer activity.
    pub(super) refresh: Schedule,
    pub(super) known: Map<KnownRecord>,
    /// When to read the record again.
    pub(super) checks: Schedule,
    /// Users with local and remote sessions: one gateway counts them.
    also_remote: HashSet<UserId, foldhash::fast::RandomState>,
}

impl SyncState {
    pub(crate) fn mark_dirty(&mut self, user: UserId, mark: DirtyReason) {
        match self.unpublished.entry(user) {
            Entry::Vacant(free) => _ = free.insert(Unpublished::Dirty(mark)),
            Entry::Occupied(mut known) => match known.get_mut() {
                Unpublished::Dirty(before) => return *before = mark.following(before),
                Unpublished::InFlight { newer, .. } => {
                    return *newer = Some(match newer {
                        Some(before) => mark.following(before),
                        None => mark,
                    });
                }
                Unpublished::AwaitingSign(before) => {
                    let mark = mark.following(before);
                    known.insert(Unpublished::Dirty(mark));
                }
            },
        }
        self.dirty.push_back(user);
    }

    /// Marks a user dirty again after a failed publish.
    pub(super) fn put_back(&mut self, user: UserId) {
        let Some((mark, newer)) = self.take_in_flight(user) else { return };
        let mark = match newer {
            Some(newer) => newer.following(&mark),
            None => mark,
        };
        self.mark_dirty(user, mark);
    }

    /// Takes up to `limit` dirty users, which are in flight from now on.
    pub(crate) fn take_dirty(&mut self, limit: usize) -> Vec<UserId> {
        let users: Vec<UserId> = self.dirty.drain(..limit.min(self.dirty.len())).collect();
        for user in &users {
            if let Some(Unpublished::Dirty(mark)) = self.unpublished.remove(user) {
                self.unpublished.insert(*user, Unpublished::InFlight { mark, newer: None });
            }
        }
        users
    }

    /// Holds a user in flight back until there is activity.
    pub(super) fn wait_for_activity(&mut self, user: UserId) {
        if let Some((mark, _)) = self.take_in_flight(user) {
            self.unpublished.insert(user, Unpublished::AwaitingSign(mark));
        }
    }

    /// There was activity: the user is published now.
    pub(super) fn resume(&mut self, user: UserId) {
        if let Some(state) = self.unpublished.get_mut(&user)
            && let Unpublished::AwaitingSign(mark) = state
        {
            *state = Unpublished::InFlight { mark: mark.clone(), newer: None };
        }
    }

    /// When the change in flight declared something.
    pub(super) fn declared_in_flight(&self, user: UserId) -> Option<WallTime> {
        match self.unpublished.get(&user)? {
            Unpublished::InFlight { mark, .. } => mark.declared,
            Unpublished::Dirty(_) | Unpublished::AwaitingSign(_) => None,
        }
    }

    /// The store has answered. Returns why the user was published; none for a refresh.
    pub(crate) fn finish_publish(&mut self, user: UserId) -> Option<DirtyReason> {
        let (mark, newer) = self.take_in_flight(user)?;
        if let Some(newer) = newer {
            self.mark_dirty(user, newer);
        }
        Some(mark)
    }

    fn take_in_flight(&mut self, user: UserId) -> Option<(DirtyReason, Option<DirtyReason>)> {
        match self.unpublished.remove(&user)? {
            Unpublished::InFlight { mark, newer } => Some((mark, newer)),
            other => {
                self.unpublished.insert(user, other);
                None
            }
        }
    }

    /// Whether something was declared here that the store has not answered to yet.
    pub(super) fn has_unconfirmed_declaration(&self, user: UserId) -> bool {
        self.unpublished.get(&user).is_some_and(Unpublished::has_declaration)
    }

    /// Users that wait to be published.
    pub(crate) fn dirty_count(&self) -> usize {
        self.dirty.len()
    }

    /// Users with a change that the store has not answered to.
    pub(crate) fn unpublished_count(&self) -> usize {
        self.unpublished.len()
    }

    /// Everything that was being published when the task ended.
    pub(super) fn put_back_all(&mut self) {
        for user in self.unpublished.keys().copied().collect::<Vec<UserId>>() {
            self.put_back(user);
        }
    }

    /// The clock stepped back by `by_ms`: nothing is published or read later because of it, and no entry is valid
    /// longer.
    pub(super) fn step_back(&mut self, by_ms: u64) {
        self.refresh.step_back(by_ms);
        self.checks.step_back(by_ms);
        // Activity times follow the clock as it is now, and a new one must be later than the last.
        let by_s = u32::try_from(by_ms.div_ceil(1000)).unwrap_or(u32::MAX);
        for sign in self.published.values_mut().flatten() {
            *sign = UnixTime(sign.0.saturating_sub(by_s));
        }
        for remote in self.known.values_mut().flat_map(|known| &mut known.remotes) {
            remote.valid_until = WallTime(remote.valid_until.0.saturating_sub(by_ms));
        }
    }

    /// Whether this gateway has an entry of the user, or removed it a moment ago.
    pub(crate) fn is_published(&self, user: UserId) -> bool {
        self.published.contains_key(&user)
    }

    /// Records the published activity, and when to check again.
    pub(super) fn set_published(&mut self, user: UserId, sign: Option<UnixTime>, check_at: WallTime) {
        self.published.insert(user, sign);
        self.refresh.put(user, check_at);
        self.update_also_remote(user);
    }

    /// Publishes a user with local sessions in any case, by `at` at the latest.
    pub(super) fn republish_by(&mut self, user: UserId, at: WallTime) {
        self.published.insert(user, None);
        self.refresh.bring_forward(user, at);
        self.update_also_remote(user);
    }

    /// Whether a change of the user waits to be published, or is being published.
    pub(super) fn is_dirty(&self, user: UserId) -> bool {
        self.unpublished.contains_key(&user)
    }

    pub(super) fn update_also_remote(&mut self, user: UserId) {
        let is_elsewhere = self.known.get(&user).is_some_and(|known| !known.remotes.is_empty());
        match is_elsewhere && self.published.contains_key(&user) {
            true => _ = self.also_remote.insert(user),
            false => _ = self.also_remote.remove(&user),
        }
    }

    /// Users with local and remote sessions that another gateway counts: the first by name.
    pub(super) fn counted_by_others(&self, own: &NodeName) -> impl Iterator<Item = UserId> {
        let is_theirs = |user: &&UserId| {
            let known = self.known.get(*user);
            known.is_some_and(|known| known.remotes.iter().any(|remote| remote.node < *own))
        };
        self.also_remote.iter().filter(is_theirs).copied()
    }

    pub(super) fn forget_published(&mut self, user: UserId) {
        self.published.remove(&user);
        if matches!(self.unpublished.get(&user), Some(Unpublished::AwaitingSign(_))) {
            self.unpublished.remove(&user);
        }
        self.refresh.remove(user);
        self.also_remote.remove(&user);
    }

    /// Returns whether the record is still to be read.
    pub(super) fn start_watching(&mut self, user: UserId, now: WallTime) -> bool {
        let known = self.known.entry(user).or_default();
        if known.is_loaded {
            return false;
        }
        // In case the caller's read fails.
        self.checks.put(user, after(now, Duration::from_secs(1)));
        true
    }

    pub(super) fn stop_watching(&mut self, user: UserId) {
        self.known.remove(&user);
        self.checks.remove(user);
        self.also_remote.remove(&user);
    }

    /// Changes may have been missed: every record is read again, at its paced time at the latest.
    pub(super) fn recheck_all(&mut self, mut turn: impl FnMut() -> WallTime) {
        for (user, known) in &mut self.known {
            known.may_be_stale = true;
            known.accepts_any_version = true;
            self.checks.bring_forward(*user, turn());
        }
    }

    /// Schedules the next read.
    pub(super) fn check_at(&mut self, user: UserId, at: WallTime) {
        match self.known.get(&user) {
            Some(known) if known.may_be_stale => self.checks.bring_forward(user, at),
            Some(_) => self.checks.put(user, at),
            None => {}
        }
    }

    /// Whether the record has been read.
    pub(crate) fn is_current(&self, user: UserId) -> bool {
        self.known.get(&user).is_some_and(|known| known.is_loaded)
    }
}

pub(super) fn after(now: WallTime, length: Duration) -> WallTime {
    WallTime(now.0.saturating_add(u64::try_from(length.as_millis()).unwrap_or(u64::MAX)))
}

pub(super) fn is_in_background(part: &NodeEntry) -> bool {
    part.devices.iter().all(|device| device.app != presence::AppState::Foreground)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(number: u64) -> UserId {
        UserId::new(number).unwrap()
    }

    fn mark(cause: Cause, declared: bool) -> DirtyReason {
        DirtyReason { cause, device: None, declared: declared.then_some(WallTime(3)) }
    }

    #[test]
    fn a_user_marked_during_a_publish_is_published_again() {
        let mut sync_state = SyncState::default();
        sync_state.mark_dirty(user(1), mark(Cause::Declared, true));
        sync_state.mark_dirty(user(1), mark(Cause::AppState, false));
        assert_eq!(sync_state.take_dirty(10), [user(1)]);
        assert!(sync_state.has_unconfirmed_declaration(user(1)) && sync_state.take_dirty(10).is_empty());
        sync_state.mark_dirty(user(1), mark(Cause::Close, false));
        sync_state.put_back(user(1));
        assert_eq!((sync_state.dirty_count(), sync_state.take_dirty(10)), (1, vec![user(1)]));
        let landed = sync_state.finish_publish(user(1)).unwrap();
        assert_eq!((landed.cause, landed.declared), (Cause::Close, Some(WallTime(3))));
        assert_eq!(sync_state.dirty_count(), 0);
    }

    #[test]
    fn bringing_a_user_forward_never_postpones_them() {
        let mut schedule = Schedule::default();
        schedule.put(user(1), WallTime(5));
        schedule.put(user(2), WallTime(9));
        for number in 1..=3 {
            schedule.bring_forward(user(number), WallTime(7));
        }
        assert_eq!(schedule.take_due(WallTime(5)), Some(user(1)));
        assert_eq!(
            (schedule.take_due(WallTime(7)), schedule.take_due(WallTime(7))),
            (Some(user(2)), Some(user(3)))
        );
    }

    #[test]
    fn remaining_times_stay_the_same_after_the_clock_stepped_back() {
        let mut sync_state = SyncState::default();
        sync_state.set_published(user(1), Some(UnixTime(3_600)), WallTime(3_601_000));
        sync_state.checks.put(user(2), WallTime(3_602_000));
        sync_state.step_back(3_600_000);
        assert_eq!(
            sync_state.published[&user(1)],
            Some(UnixTime(0)),
            "or no later activity would be published"
        );
        assert_eq!(sync_state.refresh.take_due(WallTime(999)), None);
        assert_eq!(sync_state.refresh.take_due(WallTime(1_000)), Some(user(1)));
        assert_eq!(sync_state.checks.take_due(WallTime(1_999)), None);
        assert_eq!(sync_state.checks.take_due(WallTime(2_000)), Some(user(2)));
        assert_eq!(
            (sync_state.refresh.take_due(WallTime(u64::MAX)), sync_state.checks.take_due(WallTime(u64::MAX))),
            (None, None)
        );
    }

    /// A gap occurs while a read is in flight: its reply may be older than the gap.
    #[test]
    fn a_reply_from_before_a_gap_does_not_postpone_the_read_after_it() {
        let mut sync_state = SyncState::default();
        sync_state.start_watching(user(1), WallTime(0));
        sync_state.check_at(user(1), WallTime(5_000));
        sync_state.recheck_all(|| WallTime(100));
        sync_state.check_at(user(1), WallTime(60_000));
        assert_eq!(sync_state.checks.take_due(WallTime(100)), Some(user(1)));
        sync_state.known.get_mut(&user(1)).unwrap().may_be_stale = false;
        sync_state.check_at(user(1), WallTime(60_000));
        assert_eq!(sync_state.checks.take_due(WallTime(59_999)), None);
    }

    #[test]
    fn a_schedule_has_each_user_once() {
        let mut schedule = Schedule::default();
        schedule.put(user(1), WallTime(5));
        schedule.put(user(2), WallTime(6));
        schedule.put(user(1), WallTime(7));
        assert_eq!(schedule.take_due(WallTime(5)), None);
        assert_eq!(schedule.take_due(WallTime(9)), Some(user(2)));
        assert_eq!((schedule.take_due(WallTime(9)), schedule.take_due(WallTime(9))), (Some(user(1)), None));
    }
}

//! The last presence events of this gateway, for operators.
//!
//! # Guarantees
//!
//! - The last 500 are kept, in order. Adding one takes a short lock.
//! - Events of invisible users are shown as other users see them: a user who becomes invisible left, one who becomes
//!   visible joined. Neither device nor cause distinguishes them from real departures and arrivals, nor does a
//!   restart reveal who was invisible.
//!
//! # Deliberately absent
//!
//! Events of other gateways. The history: that is in the database.

use domain::named;
use std::collections::VecDeque;

use domain::UserId;
use parking_lot::Mutex;
use presence::{Cause, Platform, Status};

pub const KEPT_MAX: usize = 500;

/// A change of a user's own status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecentEvent {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    pub user: UserId,
    /// Follows from the two statuses.
    pub event: EventKind,
    pub from: Status,
    pub to: Status,
    /// None if unknown.
    pub platform: Option<Platform>,
    pub cause: Cause,
}

named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum EventKind {
        Joined = "joined",
        Left = "left",
        Status = "status",
    }
}

impl EventKind {
    fn of(from: Status, to: Status) -> EventKind {
        match (from, to) {
            (Status::Offline, _) => EventKind::Joined,
            (_, Status::Offline) => EventKind::Left,
            _ => EventKind::Status,
        }
    }
}

impl RecentEvent {
    pub fn new(at_ms: u64, user: UserId, (from, to): (Status, Status), cause: Cause) -> RecentEvent {
        RecentEvent { at_ms, user, event: EventKind::of(from, to), from, to, platform: None, cause }
    }

    /// The event as other users see it; none if it is not visible to them.
    pub fn public(&self) -> Option<RecentEvent> {
        // A pending user may have been invisible before: not distinguished.
        let shown = |status: Status| match status {
            Status::Pending => Status::Offline,
            status => status.to_others(),
        };
        let (from, to) = (shown(self.from), shown(self.to));
        if from == to {
            return None;
        }
        let event = EventKind::of(from, to);
        // Real arrivals have a device and one of several causes; both are replaced, or they would distinguish them.
        let (platform, cause) = match event {
            EventKind::Joined => (None, Cause::Connect),
            EventKind::Left => (None, Cause::Close),
            EventKind::Status => (self.platform, self.cause),
        };
        Some(RecentEvent { event, from, to, platform, cause, ..*self })
    }
}

#[derive(Default)]
pub(crate) struct RecentEvents(Mutex<VecDeque<RecentEvent>>);

impl RecentEvents {
    pub(crate) fn add(&self, recent: RecentEvent) {
        let mut kept = self.0.lock();
        if kept.len() == KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back(recent);
    }

    /// Newest first.
    pub(crate) fn newest(&self, limit: usize, with_hidden: bool) -> Vec<RecentEvent> {
        let kept = self.0.lock();
        let shown = |one: &RecentEvent| if with_hidden { Some(*one) } else { one.public() };
        kept.iter().rev().filter_map(shown).take(limit).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recent(number: u64, from: Status, to: Status) -> RecentEvent {
        let user = UserId::new(number).unwrap();
        RecentEvent {
            platform: Some(Platform::Web),
            ..RecentEvent::new(number, user, (from, to), Cause::Declared)
        }
    }

    #[test]
    fn the_newest_500_are_kept() {
        let events = RecentEvents::default();
        for number in 1..=1_003 {
            events.add(recent(number, Status::Offline, Status::Online));
        }
        assert_eq!(events.newest(2_000, true).len(), KEPT_MAX);
        let newest: Vec<u64> = events.newest(2, true).iter().map(|event| event.at_ms).collect();
        assert_eq!(newest, [1_003, 1_002]);
    }

    #[test]
    fn p1_becoming_invisible_looks_like_leaving() {
        let seen =
            |from, to| recent(7, from, to).public().map(|one| (one.event, one.from, one.to, one.cause));
        assert_eq!(
            seen(Status::Online, Status::Invisible),
            Some((EventKind::Left, Status::Online, Status::Offline, Cause::Close))
        );
        assert_eq!(
            seen(Status::Invisible, Status::Busy),
            Some((EventKind::Joined, Status::Offline, Status::Busy, Cause::Connect))
        );
        // Identical to a real arrival and a real departure.
        for cause in Cause::ALL {
            let public = |from, to| RecentEvent { cause, ..recent(7, from, to) }.public();
            assert_eq!(public(Status::Invisible, Status::Busy), public(Status::Offline, Status::Busy));
            assert_eq!(public(Status::Online, Status::Invisible), public(Status::Online, Status::Offline));
            assert_eq!(public(Status::Pending, Status::Away), public(Status::Offline, Status::Away));
        }
        let shown = |from, to| recent(7, from, to).public().map(|one| (one.platform, one.cause));
        assert_eq!(shown(Status::Invisible, Status::Busy), Some((None, Cause::Connect)));
        assert_eq!(shown(Status::Offline, Status::Busy), Some((None, Cause::Connect)));
        for (from, to) in [
            (Status::Offline, Status::Invisible),
            (Status::Invisible, Status::Offline),
            (Status::Pending, Status::Invisible),
            (Status::Pending, Status::Offline),
        ] {
            assert_eq!(seen(from, to), None, "{from:?} {to:?}");
        }
        let away = recent(7, Status::Online, Status::Away);
        assert_eq!(away.public(), Some(away));
    }
}

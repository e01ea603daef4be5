//! What happened to people lately, for operators who look on.
//!
//! # Guarantees
//!
//! - The last 500 are kept, in the order in which they were told. To keep one takes a short lock, and nothing is asked.
//! - Who hides is told of to those who may know. To others it looks as it looks to everybody: who hides has left, who shows
//!   themselves again has come. Neither device nor cause gives them away: to those others, every coming and every going
//!   looks the same. Nor does it show who was hidden before a restart.
//!
//! # Deliberately absent
//!
//! What happens at other gateways. The history: that is in the database, and says more.

use std::collections::VecDeque;

use domain::UserId;
use parking_lot::Mutex;
use presence::{Cause, Platform, Status};
use serde::{Serialize, Serializer};

/// Occurrences that are kept.
pub const KEPT_MAX: usize = 500;

/// Something that happened to a person: they came, went, or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Happening {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// To whom.
    #[serde(serialize_with = "as_number")]
    pub user: UserId,
    /// What it was, which follows from the two statuses.
    pub event: Event,
    /// Their status before.
    #[serde(serialize_with = "status_name")]
    pub from: Status,
    /// Their status after.
    #[serde(serialize_with = "status_name")]
    pub to: Status,
    /// On what kind of device, where that is known.
    #[serde(serialize_with = "platform_name")]
    pub platform: Option<Platform>,
    /// Why.
    #[serde(serialize_with = "cause_name")]
    pub cause: Cause,
}

/// What kind of thing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The first device came.
    Joined,
    /// The last device went.
    Left,
    /// Another status.
    Status,
}

impl Event {
    /// Its name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Event::Joined => "joined",
            Event::Left => "left",
            Event::Status => "status",
        }
    }

    fn of(from: Status, to: Status) -> Event {
        match (from, to) {
            (Status::Offline, _) => Event::Joined,
            (_, Status::Offline) => Event::Left,
            _ => Event::Status,
        }
    }
}

fn as_number<S: Serializer>(user: &UserId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(user.get())
}

fn status_name<S: Serializer>(status: &Status, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(status.name())
}

fn platform_name<S: Serializer>(platform: &Option<Platform>, serializer: S) -> Result<S::Ok, S::Error> {
    platform.map(Platform::name).serialize(serializer)
}

fn cause_name<S: Serializer>(cause: &Cause, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(cause.name())
}

impl Happening {
    /// A change of somebody's own status.
    pub fn new(at_ms: u64, user: UserId, (from, to): (Status, Status), cause: Cause) -> Happening {
        Happening { at_ms, user, event: Event::of(from, to), from, to, platform: None, cause }
    }

    /// On this kind of device.
    pub fn on(mut self, platform: Option<Platform>) -> Happening {
        self.platform = platform;
        self
    }

    /// The same, as it looks to those who must not know who hides; none if it does not show.
    pub fn seen(&self) -> Option<Happening> {
        // Who is pending may have been hidden before: that is not told apart.
        let shown = |status: Status| match status {
            Status::Pending => Status::Offline,
            status => status.to_others(),
        };
        let (from, to) = (shown(self.from), shown(self.to));
        if from == to {
            return None;
        }
        let event = Event::of(from, to);
        // Who truly comes has a device and one of several causes; what is told of one and not of the other tells them
        // apart.
        let (platform, cause) = match event {
            Event::Joined => (None, Cause::Connect),
            Event::Left => (None, Cause::Close),
            Event::Status => (self.platform, self.cause),
        };
        Some(Happening { event, from, to, platform, cause, ..*self })
    }
}

/// The last of what happened.
#[derive(Default)]
pub(crate) struct Occurrences(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    ring: VecDeque<Happening>,
    /// How many came since they were last taken.
    fresh: u64,
}

/// What happened since it was last asked.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Fresh {
    /// The newest, in their order.
    pub(crate) happenings: Vec<Happening>,
    /// How many more there were.
    pub(crate) left_out: u64,
}

impl Occurrences {
    /// Keeps one.
    pub(crate) fn add(&self, happening: Happening) {
        let mut kept = self.0.lock();
        if kept.ring.len() == KEPT_MAX {
            kept.ring.pop_front();
        }
        kept.ring.push_back(happening);
        kept.fresh += 1;
    }

    /// The last of them, the newest first.
    pub(crate) fn newest(&self, limit: usize, with_hidden: bool) -> Vec<Happening> {
        let kept = self.0.lock();
        let shown = |one: &Happening| if with_hidden { Some(*one) } else { one.seen() };
        kept.ring.iter().rev().filter_map(shown).take(limit).collect()
    }

    /// What came since this was last called: the newest, and how many more.
    pub(crate) fn take_fresh(&self, max: usize) -> Fresh {
        let mut kept = self.0.lock();
        let fresh = std::mem::take(&mut kept.fresh);
        let count = usize::try_from(fresh).unwrap_or(usize::MAX).min(max).min(kept.ring.len());
        let happenings: Vec<Happening> = kept.ring.range(kept.ring.len() - count..).copied().collect();
        Fresh { happenings, left_out: fresh - count as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn happening(number: u64, from: Status, to: Status) -> Happening {
        let user = UserId::new(number).unwrap();
        Happening::new(number, user, (from, to), Cause::Declared).on(Some(Platform::Web))
    }

    #[test]
    fn the_newest_are_kept_and_what_is_left_out_is_counted() {
        let occurrences = Occurrences::default();
        assert_eq!(occurrences.take_fresh(50), Fresh::default());
        for number in 1..=3 {
            occurrences.add(happening(number, Status::Offline, Status::Online));
        }
        let fresh = occurrences.take_fresh(2);
        let times: Vec<u64> = fresh.happenings.iter().map(|one| one.at_ms).collect();
        assert_eq!((times, fresh.left_out), (vec![2, 3], 1));
        assert_eq!(occurrences.take_fresh(2), Fresh::default(), "once each");
        for number in 4..=1_003 {
            occurrences.add(happening(number, Status::Offline, Status::Online));
        }
        assert_eq!(occurrences.newest(2_000, true).len(), KEPT_MAX);
        assert_eq!(occurrences.newest(1, true)[0].at_ms, 1_003);
        assert_eq!(occurrences.take_fresh(50).left_out, 950);
    }

    #[test]
    fn p1_who_hides_leaves_and_nothing_gives_them_away() {
        let seen =
            |from, to| happening(7, from, to).seen().map(|one| (one.event, one.from, one.to, one.cause));
        assert_eq!(
            seen(Status::Online, Status::Invisible),
            Some((Event::Left, Status::Online, Status::Offline, Cause::Close))
        );
        assert_eq!(
            seen(Status::Invisible, Status::Busy),
            Some((Event::Joined, Status::Offline, Status::Busy, Cause::Connect))
        );
        // Word for word as somebody who truly comes, and truly goes.
        for cause in Cause::ALL {
            let told = |from, to| Happening { cause, ..happening(7, from, to) }.seen();
            assert_eq!(told(Status::Invisible, Status::Busy), told(Status::Offline, Status::Busy));
            assert_eq!(told(Status::Online, Status::Invisible), told(Status::Online, Status::Offline));
            assert_eq!(told(Status::Pending, Status::Away), told(Status::Offline, Status::Away));
        }
        let shown = |from, to| happening(7, from, to).seen().map(|one| (one.platform, one.cause));
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
        let away = happening(7, Status::Online, Status::Away);
        assert_eq!(away.seen(), Some(away));
    }

    #[test]
    fn it_is_written_as_the_api_has_it() {
        let joined = happening(7, Status::Offline, Status::Online);
        let expected = r#"{"at_ms":7,"user":7,"event":"joined","from":"offline","to":"online","platform":"web","cause":"declared"}"#;
        assert_eq!(serde_json::to_string(&joined).unwrap(), expected);
        assert_eq!(joined.event.name(), "joined");
    }
}

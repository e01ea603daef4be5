//! Who is typing, to whom.
//!
//! # Guarantees
//!
//! - The same person typing to the same target is passed on once in half of `typing_s`, however often it is said.
//! - It ends by itself after `typing_s`, when the person says so, leaves, hides, or changes who may see them. Exactly
//!   those are told of the end who were told of the beginning.
//! - What is kept is bounded; beyond that nothing is passed on, and the client is told to come later.
//!
//! # Deliberately absent
//!
//! Who may know: the caller says who receives it.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use domain::UserId;
use hashbrown::HashMap;
use parking_lot::Mutex;
use presence::Moment;
use register::{Message, NodeName};

use crate::between::{Errand, Relay};
use crate::counters::GatewayCounters;
use crate::feed;
use crate::outbox::Outbox;
use crate::protocol::Frame;
use crate::rooms::guest::Word;
use crate::rooms::{Recipient, RoomName};

/// What may be going on at once.
const ACTIVE_MAX: usize = 100_000;

/// Where somebody types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Person(UserId),
    /// A room, by its channel.
    Room(RoomName),
}

/// Somebody types.
struct Active {
    number: u64,
    target: Target,
    until: Moment,
    delivered: Moment,
    told: Vec<(UserId, Weak<Outbox>)>,
    /// The other gateways of a room that were told; none if it was another gateway that said it.
    nodes: Option<Vec<NodeName>>,
}

#[derive(Default)]
struct State {
    by_person: HashMap<UserId, Vec<Active>, foldhash::fast::RandomState>,
    /// When each ends: its time and number, and whose it is.
    deadlines: BTreeMap<(Moment, u64), UserId>,
    next_number: u64,
}

/// Everybody who types.
pub(crate) struct Typing {
    state: Mutex<State>,
    counters: Arc<GatewayCounters>,
    /// Other gateways; none if there are none.
    relay: Option<Arc<Relay>>,
}

/// Somebody says that they type.
pub(crate) struct Said {
    pub(crate) from: UserId,
    pub(crate) target: Target,
    pub(crate) now: Moment,
    /// For how long, unless it is said again.
    pub(crate) lasts: Duration,
    /// The other gateways with somebody in the room; none if it was another gateway that said it.
    pub(crate) nodes: Option<Vec<NodeName>>,
}

/// What becomes of something said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admitted {
    /// It is to be passed on.
    PassOn,
    /// It was said a moment ago.
    TooSoon,
    /// Too much is going on.
    Full,
}

impl Typing {
    pub(crate) fn new(counters: Arc<GatewayCounters>, relay: Option<Arc<Relay>>) -> Typing {
        Typing { state: Mutex::default(), counters, relay }
    }

    /// Somebody says that they type. Whether it is to be passed on, with [`Typing::begin`].
    pub(crate) fn admit(&self, from: UserId, target: &Target, now: Moment, lasts: Duration) -> Admitted {
        let mut state = self.state.lock();
        let State { by_person, deadlines, .. } = &mut *state;
        let active =
            by_person.get_mut(&from).and_then(|all| all.iter_mut().find(|one| one.target == *target));
        match active {
            Some(active) if now.0.saturating_sub(active.delivered.0) < millis(lasts) / 2 => {
                deadlines.remove(&(active.until, active.number));
                active.until = Moment(now.0 + millis(lasts));
                deadlines.insert((active.until, active.number), from);
                self.counters.hub.typing_throttled.increment();
                Admitted::TooSoon
            }
            None if deadlines.len() >= ACTIVE_MAX => Admitted::Full,
            _ => Admitted::PassOn,
        }
    }

    /// Passes it on.
    pub(crate) fn begin(&self, words: Said, recipients: Vec<Recipient>) {
        let Said { from, target, now, lasts, nodes } = words;
        if let (Some(relay), Some(nodes)) = (&self.relay, &nodes) {
            relay.say(errand(from, &target, nodes, true));
        }
        let mut state = self.state.lock();
        let until = Moment(now.0 + millis(lasts));
        let before = state.take(from, |one| one.target == target);
        for one in before {
            let is_told_again = |told: &Weak<Outbox>| {
                recipients.iter().any(|(_, outbox)| Arc::as_ptr(outbox) == told.as_ptr())
            };
            self.push(
                one.told.iter().filter(|(_, outbox)| !is_told_again(outbox)),
                &said(from, &target, false),
            );
        }
        let told: Vec<(UserId, Weak<Outbox>)> =
            recipients.iter().map(|(viewer, outbox)| (*viewer, Arc::downgrade(outbox))).collect();
        self.push(told.iter(), &said(from, &target, true));
        let number = state.next_number;
        state.next_number += 1;
        state.deadlines.insert((until, number), from);
        let active = Active { number, target, until, delivered: now, told, nodes };
        state.by_person.entry(from).or_default().push(active);
    }

    /// Somebody no longer types there.
    pub(crate) fn end(&self, from: UserId, target: &Target) {
        self.end_those(from, Moment(0), |one| one.target == *target);
    }

    /// Somebody no longer types anywhere.
    pub(crate) fn silence(&self, from: UserId) {
        self.end_those(from, Moment(0), |_| true);
    }

    /// Ends what has lasted long enough.
    pub(crate) fn expire(&self, now: Moment) {
        loop {
            let from = match self.state.lock().deadlines.first_entry() {
                Some(first) if first.key().0 <= now => first.remove(),
                _ => return,
            };
            self.end_those(from, now, |one| one.until <= now);
        }
    }

    fn end_those(&self, from: UserId, now: Moment, which: impl Fn(&Active) -> bool) {
        let mut state = self.state.lock();
        for ended in state.take(from, which) {
            self.push(ended.told.iter(), &said(from, &ended.target, false));
            // What has lasted long enough ends by itself everywhere.
            if let (Some(relay), Some(nodes)) = (&self.relay, &ended.nodes)
                && ended.until > now
            {
                relay.say(errand(from, &ended.target, nodes, false));
            }
        }
    }

    fn push<'a>(&self, told: impl Iterator<Item = &'a (UserId, Weak<Outbox>)>, data: &str) {
        for (viewer, outbox) in told {
            let Some(outbox) = outbox.upgrade() else { continue };
            outbox.push(Frame::publication(&feed::channel(*viewer), data));
            self.counters.hub.typing.increment();
        }
    }
}

/// What other gateways are told: wherever the person is, or wherever somebody is in the room.
fn errand(from: UserId, target: &Target, nodes: &[NodeName], on: bool) -> Errand {
    match target {
        Target::Person(to) => Errand::WhereverIs(*to, Message::Typing { from, to: *to, on }),
        Target::Room(room) => {
            let body = Word::Typing { from: from.get(), on }.to_text();
            Errand::At(nodes.to_vec(), Message::Room { room: (&**room).into(), body: body.into() })
        }
    }
}

/// What is told, made once for everybody.
fn said(from: UserId, target: &Target, on: bool) -> String {
    let room = match target {
        Target::Person(_) => String::new(),
        Target::Room(channel) => {
            let name = channel.strip_prefix("room:").unwrap_or(channel);
            format!(r#","room":{}"#, serde_json::Value::from(name))
        }
    };
    format!(r#"{{"type":"typing","from":"{from}","on":{on}{room}}}"#)
}

impl State {
    /// Takes out what somebody does that fits.
    fn take(&mut self, from: UserId, which: impl Fn(&Active) -> bool) -> Vec<Active> {
        let Some(all) = self.by_person.get_mut(&from) else { return Vec::new() };
        let taken: Vec<Active> = all.extract_if(.., |one| which(one)).collect();
        if all.is_empty() {
            self.by_person.remove(&from);
        }
        for one in &taken {
            self.deadlines.remove(&(one.until, one.number));
        }
        taken
    }
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

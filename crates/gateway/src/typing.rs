//! Typing notifications.
//!
//! # Guarantees
//!
//! - Typing of the same user to the same target is sent once in half of `typing_s`, however often it is repeated.
//! - It ends after `typing_s`, or when the user ends it, disconnects, becomes invisible, or changes privacy. Exactly
//!   the recipients of the start receive the end.
//! - State is bounded; beyond that nothing is sent, and the client gets a temporary error.
//!
//! # Deliberately absent
//!
//! Visibility: the caller passes the recipients.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::cluster::{GatewayMessage, NodeName};
use domain::UserId;
use hashbrown::HashMap;
use parking_lot::Mutex;
use presence::WallTime;

use crate::counters::GatewayCounters;
use crate::feed;
use crate::gateway_messages::{MessageSender, OutgoingMessage};
use crate::outbox::Outbox;
use crate::protocol::Frame;
use crate::rooms::remote_member::RoomMessage;
use crate::rooms::{Recipient, RoomName};

/// Typing users at once.
const ACTIVE_MAX: usize = 100_000;

/// Connections notified of typing in a room. In a larger room, none is.
pub(crate) const TYPING_RECIPIENTS_MAX: usize = 500;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    User(UserId),
    /// A room, by its channel.
    Room(RoomName),
}

struct Active {
    number: u64,
    target: Target,
    until: WallTime,
    delivered: WallTime,
    notified: Vec<(UserId, Weak<Outbox>)>,
    /// Other gateways of the room that were notified; none if it was received from another gateway.
    nodes: Option<Vec<NodeName>>,
}

#[derive(Default)]
struct State {
    by_user: HashMap<UserId, Vec<Active>, foldhash::fast::RandomState>,
    /// By end time and number.
    deadlines: BTreeMap<(WallTime, u64), UserId>,
    next_number: u64,
}

pub(crate) struct Typing {
    state: Mutex<State>,
    counters: Arc<GatewayCounters>,
    /// None without a cluster.
    sender: Option<Arc<MessageSender>>,
}

pub(crate) struct TypingStarted {
    pub(crate) from: UserId,
    pub(crate) target: Target,
    pub(crate) now: WallTime,
    /// Duration unless repeated.
    pub(crate) lasts: Duration,
    /// Other gateways with members in the room; none if it was received from another gateway.
    pub(crate) nodes: Option<Vec<NodeName>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It is to be passed on.
    PassOn,
    /// Within the throttle interval.
    TooSoon,
    /// Too many users are typing.
    Full,
}

impl Typing {
    pub(crate) fn new(counters: Arc<GatewayCounters>, sender: Option<Arc<MessageSender>>) -> Typing {
        Typing { state: Mutex::default(), counters, sender }
    }

    /// Whether to send it, with [`Typing::begin`].
    pub(crate) fn admit(&self, from: UserId, target: &Target, now: WallTime, lasts: Duration) -> Admission {
        let mut state = self.state.lock();
        let State { by_user, deadlines, .. } = &mut *state;
        let active = by_user.get_mut(&from).and_then(|all| all.iter_mut().find(|one| one.target == *target));
        match active {
            Some(active) if now.0.saturating_sub(active.delivered.0) < millis(lasts) / 2 => {
                deadlines.remove(&(active.until, active.number));
                active.until = WallTime(now.0 + millis(lasts));
                deadlines.insert((active.until, active.number), from);
                self.counters.hub.typing_throttled.increment();
                Admission::TooSoon
            }
            None if deadlines.len() >= ACTIVE_MAX => Admission::Full,
            _ => Admission::PassOn,
        }
    }

    pub(crate) fn begin(&self, started: TypingStarted, recipients: Vec<Recipient>) {
        let TypingStarted { from, target, now, lasts, nodes } = started;
        if let (Some(sender), Some(nodes)) = (&self.sender, &nodes) {
            sender.send(typing_message(from, &target, nodes, true));
        }
        let mut state = self.state.lock();
        let until = WallTime(now.0 + millis(lasts));
        let before = state.take(from, |one| one.target == target);
        for one in before {
            let is_told_again = |notified: &Weak<Outbox>| {
                recipients.iter().any(|(_, outbox)| Arc::as_ptr(outbox) == notified.as_ptr())
            };
            self.push(
                one.notified.iter().filter(|(_, outbox)| !is_told_again(outbox)),
                &typing_json(from, &target, false, now),
            );
        }
        let notified: Vec<(UserId, Weak<Outbox>)> =
            recipients.iter().map(|(viewer, outbox)| (*viewer, Arc::downgrade(outbox))).collect();
        self.push(notified.iter(), &typing_json(from, &target, true, now));
        let number = state.next_number;
        state.next_number += 1;
        state.deadlines.insert((until, number), from);
        let active = Active { number, target, until, delivered: now, notified, nodes };
        state.by_user.entry(from).or_default().push(active);
    }

    pub(crate) fn end(&self, from: UserId, target: &Target, now: WallTime) {
        self.end_matching(from, now, |one| one.target == *target);
    }

    /// Ends typing to all targets.
    pub(crate) fn end_all(&self, from: UserId, now: WallTime) {
        self.end_matching(from, now, |_| true);
    }

    pub(crate) fn expire(&self, now: WallTime) {
        loop {
            let from = match self.state.lock().deadlines.first_entry() {
                Some(first) if first.key().0 <= now => first.remove(),
                _ => return,
            };
            self.end_matching(from, now, |one| one.until <= now);
        }
    }

    fn end_matching(&self, from: UserId, now: WallTime, which: impl Fn(&Active) -> bool) {
        let mut state = self.state.lock();
        for ended in state.take(from, which) {
            self.push(ended.notified.iter(), &typing_json(from, &ended.target, false, now));
            // Expiry needs no message: other gateways expire it as well.
            if let (Some(sender), Some(nodes)) = (&self.sender, &ended.nodes)
                && ended.until > now
            {
                sender.send(typing_message(from, &ended.target, nodes, false));
            }
        }
    }

    fn push<'a>(&self, notified: impl Iterator<Item = &'a (UserId, Weak<Outbox>)>, data: &str) {
        for (viewer, outbox) in notified {
            let Some(outbox) = outbox.upgrade() else { continue };
            outbox.push(Frame::publication(&feed::channel(*viewer), data));
            self.counters.hub.typing.increment();
        }
    }
}

/// To the gateways of the user, or of the room.
fn typing_message(from: UserId, target: &Target, nodes: &[NodeName], on: bool) -> OutgoingMessage {
    match target {
        Target::User(to) => OutgoingMessage::ToUser(*to, GatewayMessage::Typing { from, to: *to, on }),
        Target::Room(room) => {
            let body = RoomMessage::Typing { from: from.get(), on }.to_text();
            OutgoingMessage::ToNodes(
                nodes.to_vec(),
                GatewayMessage::Room { room: (&**room).into(), body: body.into() },
            )
        }
    }
}

/// Encoded once for all recipients.
fn typing_json(from: UserId, target: &Target, on: bool, at: WallTime) -> String {
    let room = match target {
        Target::User(_) => String::new(),
        Target::Room(channel) => {
            let name = channel.strip_prefix("room:").unwrap_or(channel);
            format!(r#","room":{}"#, serde_json::Value::from(name))
        }
    };
    format!(r#"{{"type":"typing","from":"{from}","on":{on}{room},"at_ms":{}}}"#, at.0)
}

impl State {
    fn take(&mut self, from: UserId, which: impl Fn(&Active) -> bool) -> Vec<Active> {
        let Some(all) = self.by_user.get_mut(&from) else { return Vec::new() };
        let taken: Vec<Active> = all.extract_if(.., |one| which(one)).collect();
        if all.is_empty() {
            self.by_user.remove(&from);
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

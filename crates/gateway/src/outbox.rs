//! What waits to be written to one connection.
//!
//! Anybody puts something in, from any thread, and never waits; the one session takes it out and writes it.
//!
//! # Guarantees
//!
//! - Nothing goes out before the answer to `connect`, and no change before the snapshot.
//! - Of the statuses of one person that wait, the one with the highest version is kept. So a slow client is behind by
//!   a bounded amount, and what it reads in the end is the present state.
//! - What waits is bounded ([`ConnectionSettings::outbox_bytes_max`]): a client that is behind by more is closed as
//!   slow, and all of it is let go. The snapshot alone is as long as there are friends, which are bounded elsewhere.
//! - When nothing waits, nothing is held.
//!
//! # Deliberately absent
//!
//! The clock and the socket: when what may wait is written is for the session to say. Versions that were written
//! before: whoever puts changes in does so in the order of their versions, one person at a time.

use std::sync::Arc;
use std::task::{Context, Waker};

use domain::UserId;
use parking_lot::Mutex;
use wire::websocket::{write_close, write_ping, write_text};

use crate::counters::GatewayCounters;
use crate::hub::ConnRef;
use crate::protocol::{CloseCode, Frame};
use crate::settings::ConnectionSettings;

mod feed;
mod operator;

use feed::Feed;
use operator::Onlooking;

/// A person in a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedUser {
    /// Who.
    pub id: UserId,
    /// The version of what is shown. Zero is for who may not be seen, and takes the place of any other.
    pub version: u64,
    /// The person as a JSON object, made once for each change and shared.
    pub json: Arc<str>,
}

/// What waits to be written to one connection.
pub struct Outbox {
    waiting: Mutex<Waiting>,
    bytes_max: usize,
    counters: Arc<GatewayCounters>,
}

#[derive(Default)]
struct Waiting {
    waker: Option<Waker>,
    /// The session is writing as fast as the client reads: only what changes that matters to it.
    is_blocked: bool,
    /// Whose connection it is, once it has its answer to `connect`.
    conn: Option<ConnRef>,
    /// Answers, in their order.
    replies: Vec<Frame>,
    /// What is told without being asked, in its order.
    pushes: Vec<Frame>,
    feed: Feed,
    /// What is told to an operator, if it is one's, from the answer to `connect` on.
    onlooking: Option<Box<Onlooking>>,
    /// Of replies and pushes.
    frame_bytes: usize,
    /// Of these, the longest reply: nobody is slow because what they asked for is long.
    free_bytes: usize,
    ping: bool,
    probe: bool,
    /// Whether that probe is one on which somebody's presence depends.
    probe_matters: bool,
    /// A probe was asked for while another had not been written yet.
    probe_failed: bool,
    close: Option<CloseCode>,
}

/// What there is to do for a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    /// Something is to be written now.
    pub now: bool,
    /// Changes wait, at least one of which is urgent.
    pub urgent: bool,
    /// Changes wait.
    pub changes: bool,
    /// A probe could not be written before the next one was asked for.
    pub probe_failed: bool,
    /// The connection is to be closed, once what is to be written now is written.
    pub close: Option<CloseCode>,
}

/// What was taken to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// A ping is among it.
    pub ping: bool,
    /// Changes, or the snapshot, are among it.
    pub feed: bool,
    /// There is more to be written at once.
    pub more: bool,
}

impl Outbox {
    /// An empty one.
    pub fn new(settings: &ConnectionSettings, counters: Arc<GatewayCounters>) -> Arc<Outbox> {
        Arc::new(Outbox { waiting: Mutex::default(), bytes_max: settings.outbox_bytes_max, counters })
    }

    /// An answer to a command. Goes out at once.
    pub fn reply(&self, frame: Frame) {
        self.add(|waiting| {
            waiting.free_bytes = waiting.free_bytes.max(frame.as_bytes().len());
            waiting.frame_bytes += frame.as_bytes().len();
            waiting.replies.push(frame);
            true
        });
    }

    /// Something that is told without being asked, in a room or about typing. Goes out at once.
    pub fn push(&self, frame: Frame) {
        self.add(|waiting| {
            waiting.frame_bytes += frame.as_bytes().len();
            waiting.pushes.push(frame);
            waiting.is_open()
        });
    }

    /// Everybody in the feed as they are now, the person themselves first. Changes that were put in before are held
    /// back until now; those that are newer than the snapshot follow it.
    pub fn snapshot(&self, users: impl Iterator<Item = FeedUser>) {
        let users: Vec<FeedUser> = users.collect();
        self.add(|waiting| {
            waiting.feed.begin(users);
            waiting.is_open()
        });
    }

    /// A person as they are now. Replaces what waits of them, unless that is newer. An urgent change goes out at once,
    /// unless the feed was written to within the last `batch_ms`; others wait for the end of such a time.
    pub fn change(&self, user: FeedUser, urgent: bool) {
        self.add(|waiting| {
            let before = waiting.feed.urgency();
            if !waiting.feed.change(user, urgent) {
                self.counters.sessions.changes_coalesced.increment();
            }
            waiting.is_open() && waiting.feed.urgency() > before
        });
    }

    /// A person is no longer shown.
    pub fn remove(&self, user: UserId) {
        self.add(|waiting| {
            let before = waiting.feed.urgency();
            waiting.feed.remove(user);
            waiting.is_open() && waiting.feed.urgency() > before
        });
    }

    /// A person is shown again, in an answer: if their removal still waits, it does not take place.
    pub(crate) fn show_again(&self, user: FeedUser) {
        self.add(|waiting| {
            waiting.feed.show_again(user);
            false
        });
    }

    /// The protocol's own ping. Goes out at once.
    pub fn ping(&self) {
        self.add(|waiting| {
            waiting.ping = true;
            true
        });
    }

    /// A ping of the WebSocket, which is answered without the page's script. Goes out at once.
    pub fn probe(&self) {
        let mut waiting = self.waiting.lock();
        waiting.probe_failed |= waiting.probe_matters;
        (waiting.probe, waiting.probe_matters) = (true, true);
        // Also a session that cannot write wants to know that it is asked for the second time.
        wake(waiting);
    }

    /// Likewise, but only to know: nothing follows if it cannot be written.
    pub(crate) fn sample(&self) {
        self.add(|waiting| {
            waiting.probe = true;
            true
        });
    }

    /// The end. Answers that wait are still written; all else is let go. The first reason given counts.
    pub fn close(&self, code: CloseCode) {
        let mut waiting = self.waiting.lock();
        if waiting.close.is_none() {
            waiting.end(code);
            wake(waiting);
        }
    }

    /// Whether it is to be closed.
    pub fn is_closing(&self) -> bool {
        self.waiting.lock().close.is_some()
    }

    /// Lets everything out, beginning with the answer to `connect`.
    pub(crate) fn open(&self, conn: ConnRef, reply: Frame) {
        // Also of a connection that is closing already: it must be known whose it was.
        self.waiting.lock().conn = Some(conn);
        self.add(|waiting| {
            waiting.frame_bytes += reply.as_bytes().len();
            waiting.replies.insert(0, reply);
            true
        });
    }

    /// Whose connection it is, once it has its answer to `connect`.
    pub(crate) fn conn(&self) -> Option<ConnRef> {
        self.waiting.lock().conn
    }

    /// What there is to do. The task is woken when there is more; while it is blocked, only by what it must know then.
    pub(crate) fn look(&self, context: &Context<'_>, is_blocked: bool) -> Waits {
        let mut waiting = self.waiting.lock();
        waiting.is_blocked = is_blocked;
        let probe_failed = std::mem::take(&mut waiting.probe_failed);
        match &mut waiting.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        let is_open = waiting.is_open() && waiting.close.is_none();
        Waits {
            now: !waiting.replies.is_empty()
                || waiting.ping
                || waiting.probe
                || (is_open && waiting.has_news()),
            urgent: is_open && waiting.feed.urgency() > 1,
            changes: is_open && waiting.feed.urgency() > 0,
            probe_failed,
            close: waiting.close,
        }
    }

    /// Takes what is to be written now, and changes as well if `with_changes`; at most one long message at a time.
    pub(crate) fn take(&self, out: &mut Vec<u8>, with_changes: bool) -> Taken {
        let mut waiting = self.waiting.lock();
        let waiting = &mut *waiting;
        let counters = &self.counters.sessions;
        let mut taken = Taken::default();
        let mut frames = waiting.replies.len();
        let pushes = if waiting.is_open() { std::mem::take(&mut waiting.pushes) } else { Vec::new() };
        frames += pushes.len();
        for frame in std::mem::take(&mut waiting.replies).iter().chain(&pushes) {
            waiting.frame_bytes -= frame.as_bytes().len();
            out.extend_from_slice(frame.as_bytes());
        }
        waiting.free_bytes = 0;
        if std::mem::take(&mut waiting.ping) {
            write_text(out, "{}");
            counters.pings.increment();
            taken.ping = true;
            frames += 1;
        }
        if std::mem::take(&mut waiting.probe) {
            waiting.probe_matters = false;
            write_ping(out, &[]);
            counters.probes.increment();
        }
        if let Some(onlooking) = &mut waiting.onlooking {
            frames += onlooking.write(out);
        }
        if let Some(conn) = waiting.conn
            && (waiting.feed.has_snapshot() || (with_changes && waiting.feed.urgency() > 0))
        {
            let written = waiting.feed.write(conn.user, out);
            counters.changes_written.add(written as u64);
            taken.feed = true;
            frames += 1;
            taken.more = waiting.feed.has_snapshot() || (with_changes && waiting.feed.urgency() > 0);
        }
        counters.frames_written.add(frames as u64);
        taken
    }

    /// Puts something in and wakes the session if it should know.
    fn add(&self, put: impl FnOnce(&mut Waiting) -> bool) {
        let mut waiting = self.waiting.lock();
        if waiting.close.is_some() {
            return;
        }
        let matters = put(&mut waiting);
        if waiting.frame_bytes - waiting.free_bytes + waiting.feed.bytes() > self.bytes_max {
            waiting.end(CloseCode::Slow);
            wake(waiting);
        } else if matters && !waiting.is_blocked {
            wake(waiting);
        }
    }
}

impl Waiting {
    fn is_open(&self) -> bool {
        self.conn.is_some() || self.onlooking.is_some()
    }

    /// Whether something waits that is told at once.
    fn has_news(&self) -> bool {
        let has_more = self.onlooking.as_ref().is_some_and(|onlooking| onlooking.has_any());
        !self.pushes.is_empty() || self.feed.has_snapshot() || has_more
    }

    fn end(&mut self, code: CloseCode) {
        self.close = Some(code);
        self.pushes = Vec::new();
        self.feed = Feed::default();
        if let Some(onlooking) = &mut self.onlooking {
            onlooking.clear();
        }
        (self.ping, self.probe, self.probe_matters) = (false, false, false);
        if code == CloseCode::Slow {
            self.replies = Vec::new();
        }
        self.free_bytes = 0;
        self.frame_bytes = self.replies.iter().map(|frame| frame.as_bytes().len()).sum();
    }
}

/// Wakes the session after the lock was let go.
fn wake(mut waiting: parking_lot::MutexGuard<'_, Waiting>) {
    let waker = waiting.waker.take();
    drop(waiting);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Adds the frame that ends a connection.
pub(crate) fn write_goodbye(out: &mut Vec<u8>, code: CloseCode) {
    write_close(out, code.code(), code.reason());
}

#[cfg(test)]
mod tests;

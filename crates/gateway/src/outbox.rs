//! Frames and statuses that wait to be written to one connection.
//!
//! Producers on any thread add without waiting; the session takes and writes.
//!
//! # Guarantees
//!
//! - Nothing is written before the reply to `connect`, and no change before the snapshot.
//! - Of several waiting statuses of one user, the one with the highest version is kept. So a slow client lags by a
//!   bounded amount, and in the end reads the current state.
//! - Waiting bytes are bounded ([`ConnectionSettings::outbox_bytes_max`]): a client that exceeds them is closed as
//!   slow, and its outbox freed. The snapshot is not counted: friends are bounded elsewhere.
//! - An empty outbox holds no memory.
//!
//! # Deliberately absent
//!
//! The clock and the socket: the session decides when changes are written. Versions that were written before:
//! producers add the changes of one user in the order of their versions.

use std::sync::Arc;
use std::task::{Context, Waker};

use domain::UserId;
use parking_lot::Mutex;
use presence::WallTime;
use wire::websocket::{write_close, write_ping, write_text};

use crate::counters::GatewayCounters;
use crate::hub::ConnRef;
use crate::protocol::{CloseCode, Frame};
use crate::settings::ConnectionSettings;

mod feed;

use feed::Feed;

/// A user in a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedUser {
    pub id: UserId,
    /// Zero means not visible to this viewer, and replaces any other version.
    pub version: u64,
    /// JSON object, encoded once per change and shared.
    pub json: Arc<str>,
}

pub struct Outbox {
    waiting: Mutex<Pending>,
    bytes_max: usize,
    counters: Arc<GatewayCounters>,
}

#[derive(Default)]
struct Pending {
    waker: Option<Waker>,
    /// The client does not read: only urgent events wake the session.
    is_blocked: bool,
    /// Set by the reply to `connect`.
    conn: Option<ConnRef>,
    replies: Vec<Frame>,
    /// Unsolicited frames, in order.
    pushes: Vec<Frame>,
    feed: Feed,
    frame_bytes: usize,
    /// The longest reply does not count: a client is not slow because it asked for much.
    free_bytes: usize,
    ping: bool,
    probe: bool,
    /// A failure of this probe counts for presence.
    probe_matters: bool,
    /// A probe was requested while the previous one was not written yet.
    probe_failed: bool,
    close: Option<CloseCode>,
}

/// What the session has to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutboxState {
    /// Something is to be written now.
    pub now: bool,
    /// Changes wait, at least one of which is urgent.
    pub urgent: bool,
    pub changes: bool,
    /// A probe was not written before the next one was requested.
    pub probe_failed: bool,
    /// Close the connection after the current frames are written.
    pub close: Option<CloseCode>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// A ping is among it.
    pub ping: bool,
    /// Changes, or the snapshot, are among it.
    pub feed: bool,
    /// More can be written at once.
    pub more: bool,
}

impl Outbox {
    pub fn new(settings: &ConnectionSettings, counters: Arc<GatewayCounters>) -> Arc<Outbox> {
        Arc::new(Outbox { waiting: Mutex::default(), bytes_max: settings.outbox_bytes_max, counters })
    }

    /// Reply to a command. Written at once.
    pub fn reply(&self, frame: Frame) {
        self.add(|waiting| {
            waiting.free_bytes = waiting.free_bytes.max(frame.as_bytes().len());
            waiting.frame_bytes += frame.as_bytes().len();
            waiting.replies.push(frame);
            true
        });
    }

    /// Unsolicited frame of a room or about typing. Written at once.
    pub fn push(&self, frame: Frame) {
        self.add(|waiting| {
            waiting.frame_bytes += frame.as_bytes().len();
            waiting.pushes.push(frame);
            waiting.is_open()
        });
    }

    /// The current state of all users in the feed, the user's own first. Changes added before are held back; those
    /// newer than the snapshot follow it.
    pub fn snapshot(&self, users: impl Iterator<Item = FeedUser>) {
        let users: Vec<FeedUser> = users.collect();
        self.add(|waiting| {
            waiting.feed.begin(users);
            waiting.is_open()
        });
    }

    /// The user's state since `at` (P18). Replaces a waiting older one. Urgent changes are written at once; others
    /// wait for up to `batch_ms`.
    pub fn change(&self, user: FeedUser, urgent: bool, at: WallTime) {
        self.add(|waiting| {
            let before = waiting.feed.urgency();
            if !waiting.feed.change(user, urgent, at) {
                self.counters.sessions.changes_coalesced.increment();
            }
            waiting.is_open() && waiting.feed.urgency() > before
        });
    }

    /// The user is no longer in the feed since `at`.
    pub fn remove(&self, user: UserId, at: WallTime) {
        self.add(|waiting| {
            let before = waiting.feed.urgency();
            waiting.feed.remove(user, at);
            waiting.is_open() && waiting.feed.urgency() > before
        });
    }

    /// The user is shown again, by a reply: a waiting removal is cancelled.
    pub(crate) fn show_again(&self, user: FeedUser) {
        self.add(|waiting| {
            waiting.feed.show_again(user);
            false
        });
    }

    /// Ping of the Centrifuge protocol. Written at once.
    pub fn ping(&self) {
        self.add(|waiting| {
            waiting.ping = true;
            true
        });
    }

    /// Ping frame of the WebSocket, which is answered without the page's script. Written at once.
    pub fn probe(&self) {
        let mut waiting = self.waiting.lock();
        waiting.probe_failed |= waiting.probe_matters;
        (waiting.probe, waiting.probe_matters) = (true, true);
        // A blocked session must be woken by the second probe as well.
        wake(waiting);
    }

    /// Likewise for the sampler: a failure has no effect on presence.
    pub fn sample(&self) {
        self.add(|waiting| {
            waiting.probe = true;
            true
        });
    }

    /// Closes the connection. Waiting replies are still written, the rest is dropped. The first reason counts.
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

    /// Releases all frames, the reply to `connect` first.
    pub fn open(&self, conn: ConnRef, reply: Frame) {
        // Also if the connection is closing: the session needs the user.
        self.waiting.lock().conn = Some(conn);
        self.add(|waiting| {
            waiting.frame_bytes += reply.as_bytes().len();
            waiting.replies.insert(0, reply);
            true
        });
    }

    /// Set by the reply to `connect`.
    pub(crate) fn conn(&self) -> Option<ConnRef> {
        self.waiting.lock().conn
    }

    /// What the session has to do. The task is woken when there is more; while it is blocked, only by urgent events.
    pub fn poll_state(&self, context: &Context<'_>, is_blocked: bool) -> OutboxState {
        let mut waiting = self.waiting.lock();
        waiting.is_blocked = is_blocked;
        let probe_failed = std::mem::take(&mut waiting.probe_failed);
        match &mut waiting.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        let is_open = waiting.is_open() && waiting.close.is_none();
        OutboxState {
            now: !waiting.replies.is_empty()
                || waiting.ping
                || waiting.probe
                || (is_open && waiting.has_pushes()),
            urgent: is_open && waiting.feed.urgency() > 1,
            changes: is_open && waiting.feed.urgency() > 0,
            probe_failed,
            close: waiting.close,
        }
    }

    /// Takes frames to write now, and changes if `with_changes`; at most one long message at a time.
    pub fn take(&self, out: &mut Vec<u8>, with_changes: bool) -> Taken {
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

    /// Adds to the outbox and wakes the session if needed.
    fn add(&self, put: impl FnOnce(&mut Pending) -> bool) {
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

impl Pending {
    fn is_open(&self) -> bool {
        self.conn.is_some()
    }

    /// Whether something is to be written at once.
    fn has_pushes(&self) -> bool {
        !self.pushes.is_empty() || self.feed.has_snapshot()
    }

    fn end(&mut self, code: CloseCode) {
        self.close = Some(code);
        self.pushes = Vec::new();
        self.feed = Feed::default();
        (self.ping, self.probe, self.probe_matters) = (false, false, false);
        if code == CloseCode::Slow {
            self.replies = Vec::new();
        }
        self.free_bytes = 0;
        self.frame_bytes = self.replies.iter().map(|frame| frame.as_bytes().len()).sum();
    }
}

/// Wakes the session after the lock is released.
fn wake(mut waiting: parking_lot::MutexGuard<'_, Pending>) {
    let waker = waiting.waker.take();
    drop(waiting);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Adds the close frame.
pub(crate) fn write_close_frame(out: &mut Vec<u8>, code: CloseCode) {
    write_close(out, code.code(), code.reason());
}

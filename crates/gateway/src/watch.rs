//! Watchers: the one task that reads friends and privacy, and applies changes of them.
//!
//! # Guarantees
//!
//! - Users who connect at the same time are read together: a storm of reconnects costs a few queries, not one each.
//!   Clients that gave up are not read; if reads are slow, batches become smaller.
//! - Reads and changes are applied one after the other. A change is announced after its commit, so what was applied
//!   before it is corrected by it, and what is read after it contains it.
//! - A change that cannot be applied, because the database does not answer, is retried until it is.
//! - Connecting clients do not wait for a long list of changes: batches alternate.
//! - A connection that ends while it connects leaves no watch behind.
//!
//! # Layout
//!
//! - `connect`: connects users
//! - `visibility`: applies what one user may see of another
//! - `apply`: applies changes of friendships and privacy
//!
//! # Deliberately absent
//!
//! A cache of the database: a known friendship is the watch itself.

mod apply;
mod connect;
mod visibility;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use domain::UserId;
use friends::{FriendsChange, FriendsError};
use presence::Hello;
use tokio::sync::{mpsc, oneshot};

use crate::hub::{CommandError, ConnRef, ConnectRefusal, Hub, Identity};
use crate::outbox::{FeedUser, Outbox};
use apply::Unapplied;
pub(crate) use connect::PendingConnection;

/// Requests taken together, while the database keeps up; after a failure fewer, but not fewer than the second.
const BATCH_MAX: usize = 500;
const BATCH_MIN: usize = 16;
/// Requests that may wait; further ones wait for a place.
pub(crate) const WAITING_MAX: usize = 4_096;
/// `track` requests in one batch, each of which is a query: connects come first.
const TRACKS_MAX: usize = 20;
/// Waiting `track` requests; further ones get a temporary error.
const TRACKS_WAITING_MAX: usize = 4_096;
/// Less than the 5 seconds after which published SDKs give up and retry.
const READ_TIMEOUT: Duration = Duration::from_secs(4);
/// Delay after a failed change.
const RETRY: Duration = Duration::from_secs(1);

/// The newly tracked users that are visible.
pub(crate) type Tracked = Result<Vec<FeedUser>, CommandError>;

pub(crate) enum Request {
    Connect(Box<Connect>),
    /// `users` is sorted, without duplicates and without the user's own id.
    Track {
        conn: ConnRef,
        users: Vec<UserId>,
        reply: oneshot::Sender<Tracked>,
    },
    Untrack {
        conn: ConnRef,
        users: Vec<UserId>,
        reply: oneshot::Sender<()>,
    },
    /// Loads the last known state of a user into memory.
    Load {
        user: UserId,
        reply: oneshot::Sender<Result<(), ConnectRefusal>>,
    },
    Changed {
        changes: Vec<FriendsChange>,
        reply: Option<oneshot::Sender<Result<(), CommandError>>>,
    },
}

pub(crate) struct Connect {
    pub(crate) identity: Identity,
    pub(crate) hello: Hello,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) reply: oneshot::Sender<Result<PendingConnection, ConnectRefusal>>,
}

/// May be dropped at any await: callers then get the error that the server stops.
pub(crate) async fn run(hub: Arc<Hub>, mut requests: mpsc::Receiver<Request>) {
    let mut batch = Vec::new();
    let mut unapplied = Unapplied::default();
    let mut waiting: Vec<Waiting> = Vec::new();
    let mut tracking: VecDeque<Tracking> = VecDeque::new();
    let mut has_failed = false;
    let mut batch_max = BATCH_MAX;
    loop {
        tokio::select! {
            biased;
            count = requests.recv_many(&mut batch, batch_max) => if count == 0 { return },
            () = std::future::ready(()), if !tracking.is_empty() => {}
            () = std::future::ready(()), if !unapplied.is_empty() && !has_failed => {}
            () = tokio::time::sleep(RETRY), if has_failed => {}
        }
        let mut work = Work::default();
        for request in batch.drain(..) {
            work.add(request, &mut unapplied);
        }
        waiting.append(&mut work.changed);
        let applied = hub.apply(&mut unapplied).await;
        has_failed = applied.is_err();
        let is_over =
            |one: &mut Waiting| has_failed || !one.changes.iter().any(|change| unapplied.holds(change));
        for one in waiting.extract_if(.., is_over) {
            // The caller may be gone.
            let _ = one.reply.send(applied);
        }
        batch_max = match hub.connect_all(work.connects).await {
            Ok(()) => (batch_max * 2).min(BATCH_MAX),
            Err(_) => (batch_max / 2).max(BATCH_MIN),
        };
        hub.load_all(work.loads).await;
        tracking.extend(work.tracking);
        hub.track_some(&mut tracking).await;
    }
}

/// In the order of the requests.
enum Tracking {
    Begin { conn: ConnRef, users: Vec<UserId>, reply: oneshot::Sender<Tracked> },
    End { conn: ConnRef, users: Vec<UserId>, reply: oneshot::Sender<()> },
}

impl Hub {
    /// Handles some requests, and refuses those beyond the bound.
    async fn track_some(&self, tracking: &mut VecDeque<Tracking>) {
        for one in tracking.drain(tracking.len().min(TRACKS_WAITING_MAX)..) {
            match one {
                Tracking::Begin { reply, .. } => {
                    self.context.counters.hub.load_failures.increment();
                    let _ = reply.send(Err(CommandError::TooManyRequests));
                }
                Tracking::End { conn, users, reply } => {
                    self.untrack_now(conn, &users);
                    let _ = reply.send(());
                }
            }
        }
        let mut begun = 0;
        while begun < TRACKS_MAX
            && let Some(one) = tracking.pop_front()
        {
            match one {
                Tracking::Begin { conn, users, reply } => {
                    begun += 1;
                    let _ = reply.send(self.track_now(conn, users).await);
                }
                Tracking::End { conn, users, reply } => {
                    self.untrack_now(conn, &users);
                    let _ = reply.send(());
                }
            }
        }
    }
}

#[derive(Default)]
struct Work {
    connects: Vec<Connect>,
    tracking: Vec<Tracking>,
    loads: Vec<(UserId, oneshot::Sender<Result<(), ConnectRefusal>>)>,
    changed: Vec<Waiting>,
}

/// A caller that waits until changes are applied.
struct Waiting {
    changes: Vec<FriendsChange>,
    reply: oneshot::Sender<Result<(), CommandError>>,
}

impl Work {
    fn add(&mut self, request: Request, unapplied: &mut Unapplied) {
        match request {
            Request::Connect(connect) => self.connects.push(*connect),
            Request::Track { conn, users, reply } => {
                self.tracking.push(Tracking::Begin { conn, users, reply })
            }
            Request::Untrack { conn, users, reply } => {
                self.tracking.push(Tracking::End { conn, users, reply })
            }
            Request::Load { user, reply } => self.loads.push((user, reply)),
            Request::Changed { changes, reply } => {
                unapplied.add(&changes);
                self.changed.extend(reply.map(|reply| Waiting { changes, reply }));
            }
        }
    }
}

/// Waits for the database with a time limit.
async fn in_time<T>(read: impl Future<Output = Result<T, FriendsError>>) -> Option<T> {
    match tokio::time::timeout(READ_TIMEOUT, read).await {
        Ok(Ok(value)) => Some(value),
        Ok(Err(error)) => {
            tracing::warn!(%error, "cannot read friends and privacy");
            None
        }
        Err(_) => {
            tracing::warn!(limit_s = READ_TIMEOUT.as_secs(), "reading friends and privacy timed out");
            None
        }
    }
}

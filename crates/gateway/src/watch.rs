//! Who watches whom: the one task that reads friends and privacy, and applies changes of them.
//!
//! # Guarantees
//!
//! - Those who connect at the same time are read together: a storm of reconnects costs a few queries, not one each.
//!   Who has given up waiting is not read; if reading takes too long, fewer are read together.
//! - Reading and applying happen one after the other. A change is announced after it was committed, so whatever is put
//!   in place before a change is put right by it, and whatever is read after it knows it already.
//! - A change that cannot be applied, since the database cannot be asked, is tried again until it is.
//! - Who connects does not wait for a long list of changes: some are applied, some people are read, and so on.
//! - A connection that ends while it is given its friends leaves no watch behind.
//!
//! # Layout
//!
//! - `seat`: somebody connects
//! - `settle`: what one person may see of others, put in place
//! - `apply`: from changes of friendships and privacy to what follows from them
//!
//! # Deliberately absent
//!
//! A cache of the database: what is known of a friendship is the watch itself.

mod apply;
mod seat;
mod settle;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use domain::UserId;
use people::{PeopleChange, PeopleError};
use presence::Hello;
use tokio::sync::{mpsc, oneshot};

use crate::hub::{CommandError, ConnRef, Hub, Identity, Refusal};
use crate::outbox::{FeedUser, Outbox};
use apply::Unapplied;
pub(crate) use seat::Seat;

/// Requests taken together, while the database keeps up; after a failure fewer, but not fewer than the second.
const BATCH_MAX: usize = 500;
const BATCH_MIN: usize = 16;
/// Requests that may wait; further ones wait for a place.
pub(crate) const WAITING_MAX: usize = 4_096;
/// Requests to track that are done in one go, each of which is a query: who connects comes first.
const TRACKS_MAX: usize = 20;
/// Requests to track that may wait; further ones are told to come later.
const TRACKS_WAITING_MAX: usize = 4_096;
/// How long the database may take: less than the 5 seconds after which published SDKs give up and ask again.
const READ_TIMEOUT: Duration = Duration::from_secs(4);
/// What could not be applied is tried again after this.
const RETRY: Duration = Duration::from_secs(1);

/// Those of whom something may be seen, of those who are tracked from now on.
pub(crate) type Tracked = Result<Vec<FeedUser>, CommandError>;

/// What the task is asked to do.
pub(crate) enum Request {
    /// Somebody connects.
    Connect(Box<Connect>),
    /// A connection tracks these people, sorted, each once, without the person themselves.
    Track { conn: ConnRef, users: Vec<UserId>, reply: oneshot::Sender<Tracked> },
    /// A connection no longer tracks these people.
    Untrack { conn: ConnRef, users: Vec<UserId>, reply: oneshot::Sender<()> },
    /// What was last known of somebody is needed in memory.
    Recall { user: UserId, reply: oneshot::Sender<Result<(), Refusal>> },
    /// Something was changed.
    Changed { changes: Vec<PeopleChange>, reply: Option<oneshot::Sender<Result<(), CommandError>>> },
}

/// Somebody who connects.
pub(crate) struct Connect {
    pub(crate) identity: Identity,
    pub(crate) hello: Hello,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) reply: oneshot::Sender<Result<Seat, Refusal>>,
}

/// The task. It may be dropped at any point where it waits: those whose requests it has are told that the server stops.
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
            // Who asked may have gone.
            let _ = one.reply.send(applied);
        }
        batch_max = match hub.seat_all(work.connects).await {
            Ok(()) => (batch_max * 2).min(BATCH_MAX),
            Err(_) => (batch_max / 2).max(BATCH_MIN),
        };
        hub.recall_all(work.recalls).await;
        tracking.extend(work.tracking);
        hub.track_some(&mut tracking).await;
    }
}

/// Whom a connection tracks from now on, or no longer. Done in the order in which it was asked for.
enum Tracking {
    Begin { conn: ConnRef, users: Vec<UserId>, reply: oneshot::Sender<Tracked> },
    End { conn: ConnRef, users: Vec<UserId>, reply: oneshot::Sender<()> },
}

impl Hub {
    /// Does some of what waits, and refuses what is too much.
    async fn track_some(&self, tracking: &mut VecDeque<Tracking>) {
        for one in tracking.drain(tracking.len().min(TRACKS_WAITING_MAX)..) {
            match one {
                Tracking::Begin { reply, .. } => {
                    self.outside.counters.hub.load_failures.increment();
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

/// A batch, by kind.
#[derive(Default)]
struct Work {
    connects: Vec<Connect>,
    tracking: Vec<Tracking>,
    recalls: Vec<(UserId, oneshot::Sender<Result<(), Refusal>>)>,
    changed: Vec<Waiting>,
}

/// Somebody who waits until changes are applied.
struct Waiting {
    changes: Vec<PeopleChange>,
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
            Request::Recall { user, reply } => self.recalls.push((user, reply)),
            Request::Changed { changes, reply } => {
                unapplied.add(&changes);
                self.changed.extend(reply.map(|reply| Waiting { changes, reply }));
            }
        }
    }
}

/// Waits for the database, but not for ever.
async fn in_time<T>(read: impl Future<Output = Result<T, PeopleError>>) -> Option<T> {
    match tokio::time::timeout(READ_TIMEOUT, read).await {
        Ok(Ok(value)) => Some(value),
        Ok(Err(error)) => {
            tracing::warn!(%error, "friends and privacy cannot be read");
            None
        }
        Err(_) => {
            tracing::warn!(limit_s = READ_TIMEOUT.as_secs(), "friends and privacy cannot be read in time");
            None
        }
    }
}

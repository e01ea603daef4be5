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
//! - this file: [`WatchRequests`], through which others ask; [`WatchTask`], the task
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
use friends::{FriendStore, FriendsChange, FriendsError};
use presence::Hello;
use tokio::sync::{mpsc, oneshot};

use crate::cluster_sync::ClusterSync;
use crate::hub::users::Users;
use crate::hub::{CommandError, ConnRef, ConnectAccepted, ConnectRefusal, Identity};
use crate::outbox::{FeedUser, Outbox};
use apply::Unapplied;
use connect::PendingConnection;

/// Requests taken together, while the database keeps up; after a failure fewer, but not fewer than the second.
const BATCH_MAX: usize = 500;
const BATCH_MIN: usize = 16;
/// Requests that may wait; further ones wait for a place.
const WAITING_MAX: usize = 4_096;
/// `track` requests in one batch, each of which is a query: connects come first.
const TRACKS_MAX: usize = 20;
/// Waiting `track` requests; further ones get a temporary error.
const TRACKS_WAITING_MAX: usize = 4_096;
/// Less than the 5 seconds after which published SDKs give up and retry.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(4);
/// Delay after a failed change.
const RETRY: Duration = Duration::from_secs(1);

/// The newly tracked users that are visible.
pub(crate) type Tracked = Result<Vec<FeedUser>, CommandError>;

enum Request {
    Connect(Box<Connect>),
    Tracking(Tracking),
    Load(UserId, oneshot::Sender<Result<(), ConnectRefusal>>),
    Changed(Vec<FriendsChange>, Option<oneshot::Sender<Result<(), CommandError>>>),
}

/// Done in the order of the requests.
enum Tracking {
    Begin(ConnRef, Vec<UserId>, oneshot::Sender<Tracked>),
    End(ConnRef, Vec<UserId>, oneshot::Sender<()>),
}

struct Connect {
    identity: Identity,
    hello: Hello,
    outbox: Arc<Outbox>,
    reply: oneshot::Sender<Result<PendingConnection, ConnectRefusal>>,
}

/// Requests to the task. The error is that the server stops.
#[derive(Clone)]
pub(crate) struct WatchRequests(mpsc::Sender<Request>);

/// The server stops.
pub(crate) struct Stopped;

impl From<Stopped> for CommandError {
    fn from(_: Stopped) -> Self {
        CommandError::Internal
    }
}

impl WatchRequests {
    pub(crate) fn channel() -> (WatchRequests, WaitingRequests) {
        let (requests, waiting) = mpsc::channel(WAITING_MAX);
        (WatchRequests(requests), WaitingRequests(waiting))
    }

    async fn ask<T>(&self, request: impl FnOnce(oneshot::Sender<T>) -> Request) -> Result<T, Stopped> {
        let (reply, answer) = oneshot::channel();
        self.0.send(request(reply)).await.map_err(|_| Stopped)?;
        answer.await.map_err(|_| Stopped)
    }

    /// If this future is dropped before it is done, nothing stays.
    pub(crate) async fn connect(
        &self,
        identity: Identity,
        hello: Hello,
        outbox: Arc<Outbox>,
    ) -> Result<ConnectAccepted, ConnectRefusal> {
        let connect = |reply| Request::Connect(Box::new(Connect { identity, hello, outbox, reply }));
        let pending = self.ask(connect).await.map_err(|Stopped| ConnectRefusal::Stopping)??;
        pending.take().ok_or(ConnectRefusal::Unavailable)
    }

    /// `users` is sorted, without duplicates and without the user's own id.
    pub(crate) async fn track(&self, conn: ConnRef, users: Vec<UserId>) -> Tracked {
        self.ask(|reply| Request::Tracking(Tracking::Begin(conn, users, reply))).await?
    }

    pub(crate) async fn untrack(&self, conn: ConnRef, users: Vec<UserId>) -> Result<(), Stopped> {
        self.ask(|reply| Request::Tracking(Tracking::End(conn, users, reply))).await
    }

    /// Loads the last known state of a user into memory.
    pub(crate) async fn load(&self, user: UserId) -> Result<(), ConnectRefusal> {
        self.ask(|reply| Request::Load(user, reply)).await.map_err(|Stopped| ConnectRefusal::Stopping)?
    }

    /// Applies changes of friendships or privacy.
    pub(crate) async fn changed(&self, changes: Vec<FriendsChange>) -> Result<(), CommandError> {
        self.ask(|reply| Request::Changed(changes, Some(reply))).await?
    }

    /// Likewise, without waiting for it.
    pub(crate) async fn announce(&self, changes: Vec<FriendsChange>) -> Result<(), Stopped> {
        self.0.send(Request::Changed(changes, None)).await.map_err(|_| Stopped)
    }
}

pub(crate) struct WaitingRequests(mpsc::Receiver<Request>);

pub(crate) struct WatchTask {
    pub(crate) users: Arc<Users>,
    pub(crate) friend_store: FriendStore,
    /// None without a cluster.
    pub(crate) sync: Option<Arc<ClusterSync>>,
}

impl WatchTask {
    /// May be dropped at any await: callers then get the error that the server stops.
    pub(crate) async fn run(self, WaitingRequests(mut requests): WaitingRequests) {
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
            let applied = self.apply(&mut unapplied).await;
            has_failed = applied.is_err();
            let is_over =
                |one: &mut Waiting| has_failed || !one.changes.iter().any(|change| unapplied.holds(change));
            for one in waiting.extract_if(.., is_over) {
                // The caller may be gone.
                let _ = one.reply.send(applied);
            }
            batch_max = match self.connect_all(work.connects).await {
                Ok(()) => (batch_max * 2).min(BATCH_MAX),
                Err(_) => (batch_max / 2).max(BATCH_MIN),
            };
            self.load_all(work.loads).await;
            tracking.extend(work.tracking);
            self.track_some(&mut tracking).await;
        }
    }
}

impl WatchTask {
    /// Users that are about to be shown, and whose records are to be read before. Empty without a cluster.
    fn unread(&self, users: impl IntoIterator<Item = UserId>) -> Vec<(UserId, u64)> {
        self.sync.as_ref().map(|sync| sync.records.unread(users)).unwrap_or_default()
    }

    async fn load_records(&self, unread: Vec<(UserId, u64)>) {
        if let Some(sync) = self.sync.as_ref().filter(|_| !unread.is_empty()) {
            sync.records.load(&unread).await;
        }
    }

    /// Handles some requests, and refuses those beyond the bound.
    async fn track_some(&self, tracking: &mut VecDeque<Tracking>) {
        for one in tracking.drain(tracking.len().min(TRACKS_WAITING_MAX)..) {
            match one {
                Tracking::Begin(.., reply) => {
                    self.users.context.counters.hub.load_failures.increment();
                    let _ = reply.send(Err(CommandError::TooManyRequests));
                }
                Tracking::End(conn, users, reply) => self.end_tracking(conn, &users, reply),
            }
        }
        let mut begun = 0;
        while begun < TRACKS_MAX
            && let Some(one) = tracking.pop_front()
        {
            match one {
                Tracking::Begin(conn, users, reply) => {
                    begun += 1;
                    let _ = reply.send(self.track_now(conn, users).await);
                }
                Tracking::End(conn, users, reply) => self.end_tracking(conn, &users, reply),
            }
        }
    }

    fn end_tracking(&self, conn: ConnRef, users: &[UserId], reply: oneshot::Sender<()>) {
        self.untrack_now(conn, users);
        let _ = reply.send(());
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
            Request::Tracking(tracking) => self.tracking.push(tracking),
            Request::Load(user, reply) => self.loads.push((user, reply)),
            Request::Changed(changes, reply) => {
                unapplied.add(&changes);
                self.changed.extend(reply.map(|reply| Waiting { changes, reply }));
            }
        }
    }
}

/// Waits for the database with a time limit: later requests of the same connection, or of all, wait meanwhile.
pub(crate) async fn in_time<T>(
    work: impl Future<Output = Result<T, FriendsError>>,
) -> Result<T, CommandError> {
    match tokio::time::timeout(DATABASE_TIMEOUT, work).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(FriendsError::TooManyNever { .. })) => Err(CommandError::LimitExceeded),
        Ok(Err(error)) => {
            tracing::warn!(%error, "cannot read or write friends and privacy");
            Err(CommandError::Internal)
        }
        Err(_) => {
            tracing::warn!(
                limit_s = DATABASE_TIMEOUT.as_secs(),
                "reading or writing friends and privacy timed out"
            );
            Err(CommandError::Internal)
        }
    }
}

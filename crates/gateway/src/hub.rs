//! The hub: all users with sessions at this gateway, and their watchers.
//!
//! # Guarantees
//!
//! - Users are spread over shards, each behind one short lock. No two shards are locked at once, and no lock is held
//!   across an await.
//! - Changes of a user are put into the watchers' outboxes under the lock of that user's shard. So every watcher
//!   receives the changes of one user in order, and none after the watch has ended or the user became invisible to
//!   them.
//! - A client that connects receives every friend once (the snapshot) and then every later change: the watch begins
//!   and the state is read in one step.
//! - Friends and privacy are read, and changes of them applied, by one task ([`crate::watch`]): what was read before
//!   a change is never applied after it.
//! - During shutdown, closing a connection no longer marks its user offline: after the restart those users are
//!   pending (P11).
//!
//! # Deliberately absent
//!
//! Sockets, frames and tokens (the session's), the rules of presence (`presence`), SQL (`friends`).
//!
//! # Layout
//!
//! - `shard`, `user`: a part of the users, behind one lock; what is kept of each
//! - `connection_table`: connection numbers
//! - `lifecycle`: start, tick, shutdown, and the tasks
//! - `admin`, `online_users`: queries and actions of the site
//! - `sampler`: estimates how many connections are dead

mod admin;
pub(crate) mod connection_table;
mod lifecycle;
mod online_users;
mod sampler;
pub(crate) mod shard;
pub(crate) mod user;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::cluster::ClusterStore;
use arc_swap::ArcSwap;
use domain::clock::Clock;
use domain::{UnixTime, UserId};
use friends::{ChangeFeed, FriendStore};
use keyspace::Redis;
use parking_lot::{Mutex, MutexGuard};
use presence::{CloseKind, ConnId, Hello, Input, Moment, Policy};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use crate::accounts::IsDisabled;
use crate::cluster_sync::SyncSettings;
use crate::leader_lease::LeaderLease;
use crate::outbox::Outbox;
use crate::protocol::ClientInfo;
use crate::rooms::{self, Entrant, RoomName, Rooms};
use crate::settings::UserLimits;
use crate::traffic::TrafficCounts;
use crate::typing::Typing;
use crate::watch::{Connect, Request};
use sampler::Sampler;
use shard::{AfterUnlock, Shard, ShardContext};
use user::client_name;

pub use admin::OnlineCount;
pub use lifecycle::{HubError, HubParts};
pub use online_users::{OnlineFilter, OnlinePage, OnlineUser};

/// Locks over which users are spread.
const SHARDS: usize = 64;

/// Locks that serialise changes of one user's privacy settings.
pub(crate) const PRIVACY_LOCKS: usize = 64;

#[derive(Clone, Debug)]
pub struct HubSettings {
    /// Times after which a silent device is away, and offline.
    pub policy: Policy,
    pub limits: UserLimits,
    /// Joins and leaves of rooms are batched for this long.
    pub batch: Duration,
    /// Intervals of the cluster sync.
    pub sync: SyncSettings,
}

impl Default for HubSettings {
    fn default() -> Self {
        HubSettings {
            policy: Policy::default(),
            limits: UserLimits::default(),
            batch: Duration::from_millis(100),
            sync: SyncSettings::default(),
        }
    }
}

/// The claims of a connect token.
#[derive(Clone, Debug)]
pub struct Identity {
    pub user: UserId,
    /// Expiry of the token, if it has one.
    pub expires_at: Option<UnixTime>,
    /// The claim `info`; shown to users in the same room.
    pub info: Option<Arc<RawValue>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnRef {
    pub user: UserId,
    pub conn: ConnId,
}

/// The reply to a successful connect.
#[derive(Clone, Debug)]
pub struct ConnectAccepted {
    /// The connection, for everything that follows.
    pub conn: ConnRef,
    /// Its name on the wire.
    pub client: String,
    /// The channel of their personal feed.
    pub feed: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectRefusal {
    /// The database does not answer: error 100, temporary.
    #[error("internal error")]
    Unavailable,
    /// The user has the maximum number of devices: disconnect 3504.
    #[error("too many devices")]
    TooManyDevices,
    /// The server stops: disconnect 3001.
    #[error("shutdown")]
    Stopping,
    /// The tracker has disabled the user: disconnect 3507.
    #[error("user disabled")]
    Disabled,
}

/// Errors of the Centrifuge protocol. The texts are sent to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// A failure of this server; the same may work later.
    #[error("internal error")]
    Internal,
    #[error("permission denied")]
    PermissionDenied,
    #[error("method not found")]
    MethodNotFound,
    /// More than is allowed; nothing was changed.
    #[error("limit exceeded")]
    LimitExceeded,
    #[error("bad request: {0}")]
    BadRequest(&'static str),
    #[error("not available")]
    NotAvailable,
    #[error("too many requests")]
    TooManyRequests,
}

impl CommandError {
    /// Its number in the Centrifuge protocol.
    pub const fn code(self) -> u32 {
        match self {
            CommandError::Internal => 100,
            CommandError::PermissionDenied => 103,
            CommandError::MethodNotFound => 104,
            CommandError::LimitExceeded => 106,
            CommandError::BadRequest(_) => 107,
            CommandError::NotAvailable => 108,
            CommandError::TooManyRequests => 111,
        }
    }

    /// Whether the same may work later.
    pub const fn is_temporary(self) -> bool {
        matches!(self, CommandError::Internal | CommandError::TooManyRequests)
    }
}

pub struct Hub {
    shards: Box<[Mutex<Shard>]>,
    pub(crate) context: ShardContext,
    pub(crate) friend_store: FriendStore,
    clock: Arc<dyn Clock>,
    pub(crate) settings: ArcSwap<HubSettings>,
    pub(crate) rooms: Rooms,
    pub(crate) typing: Typing,
    /// Held while a user's privacy settings are read, changed and written.
    pub(crate) privacy_locks: [tokio::sync::Mutex<()>; PRIVACY_LOCKS],
    sampler: Sampler,
    /// Held by the gateway that prunes the history.
    pruning: LeaderLease,
    /// None without a cluster.
    redis: Option<Redis>,
    traffic: Arc<dyn TrafficCounts>,
    pub(crate) is_disabled: IsDisabled,
    requests: mpsc::Sender<Request>,
    /// Taken when the tasks are started.
    not_started: Mutex<Option<(mpsc::Receiver<Request>, ChangeFeed)>>,
    /// Set during shutdown: closing a connection no longer marks its user offline.
    stopping: AtomicBool,
    /// Ends the tasks.
    stop: watch::Sender<bool>,
    tasks: Mutex<JoinSet<()>>,
}

impl Hub {
    /// Connects a user. The snapshot is in the outbox when this returns; the session writes the reply first.
    ///
    /// Each success must be followed by one [`Hub::closed`]. If this future is dropped before it is done, nothing
    /// stays.
    pub async fn connect(
        self: &Arc<Self>,
        identity: Identity,
        hello: Hello,
        outbox: Arc<Outbox>,
    ) -> Result<ConnectAccepted, ConnectRefusal> {
        if self.is_stopping() {
            return Err(ConnectRefusal::Stopping);
        }
        if self.is_disabled(identity.user) {
            return Err(ConnectRefusal::Disabled);
        }
        let (reply, answer) = oneshot::channel();
        let connect = Box::new(Connect { identity, hello, outbox, reply });
        self.requests.send(Request::Connect(connect)).await.map_err(|_| ConnectRefusal::Stopping)?;
        let pending = answer.await.map_err(|_| ConnectRefusal::Stopping)??;
        pending.take().ok_or(ConnectRefusal::Unavailable)
    }

    /// The client sent something: a heartbeat.
    pub fn record_activity(&self, conn: ConnRef) {
        self.apply_input(conn.user, Input::Message { conn: conn.conn });
    }

    /// A ping control frame was answered.
    pub fn probe_answered(&self, conn: ConnRef) {
        self.sampler.answered(conn.conn);
        self.apply_input(conn.user, Input::ProbeAnswered { conn: conn.conn });
    }

    /// A ping control frame could not be written.
    pub fn probe_failed(&self, conn: ConnRef) {
        self.apply_input(conn.user, Input::ProbeFailed { conn: conn.conn });
    }

    pub async fn rpc(
        &self,
        conn: ConnRef,
        method: &str,
        data: impl Into<Option<&RawValue>>,
    ) -> Result<Box<RawValue>, CommandError> {
        self.command(conn, method, data.into()).await
    }

    /// Enters a room. `room` is the whole channel, `room:<name>`; whether a token is needed was checked before.
    pub async fn subscribe(&self, conn: ConnRef, room: &str) -> Result<(), CommandError> {
        if !rooms::is_room(room) {
            return Err(CommandError::BadRequest("a room is \"room:\" and 1 to 64 visible characters"));
        }
        let rooms_max = self.settings.load().limits.rooms_max as usize;
        let name: RoomName = room.into();
        let entrant = {
            let mut shard = self.shard(conn.user);
            let entry = shard.users.get_mut(&conn.user).ok_or(CommandError::NotAvailable)?;
            let visibility = entry.connected.as_ref().map(|connected| connected.visibility.clone());
            let connection = entry.connection_mut(conn.conn).ok_or(CommandError::NotAvailable)?;
            let details = &mut connection.details;
            if details.rooms.contains(&name) {
                return Ok(());
            }
            if details.rooms.len() >= rooms_max {
                return Err(CommandError::LimitExceeded);
            }
            details.rooms.push(name.clone());
            let client = client_name(details.client).into();
            let info = ClientInfo { client, user: conn.user, info: details.info.clone() };
            let visibility = visibility.ok_or(CommandError::NotAvailable)?;
            Entrant { info, conn: conn.conn, outbox: connection.outbox.clone(), visibility }
        };
        self.rooms.enter(&name, entrant);
        self.sync_room(conn, &name);
        Ok(())
    }

    /// Applies what changed between reading the user and entering the room.
    fn sync_room(&self, conn: ConnRef, name: &RoomName) {
        let (visibility, is_there) = {
            let shard = self.shard(conn.user);
            let entry = shard.users.get(&conn.user);
            let connection = entry.and_then(|entry| entry.connection(conn.conn));
            let is_there = connection.is_some_and(|connection| connection.details.rooms.contains(name));
            (
                entry
                    .and_then(|entry| entry.connected.as_ref())
                    .map(|connected| connected.visibility.clone()),
                is_there,
            )
        };
        if let Some(visibility) = visibility {
            self.rooms.update_visibility(name, conn.user, &visibility);
        }
        if !is_there {
            self.rooms.leave(name, conn.user, conn.conn);
        }
    }

    /// Leaves a room. Not an error if the connection is not in it.
    pub async fn unsubscribe(&self, conn: ConnRef, room: &str) -> Result<(), CommandError> {
        let left = {
            let mut shard = self.shard(conn.user);
            let entry = shard.users.get_mut(&conn.user);
            entry.and_then(|entry| entry.connection_mut(conn.conn)).and_then(|connection| {
                let place = connection.details.rooms.iter().position(|name| **name == *room)?;
                Some(connection.details.rooms.swap_remove(place))
            })
        };
        if let Some(name) = left {
            self.rooms.leave(&name, conn.user, conn.conn);
        }
        Ok(())
    }

    /// The result of `presence`. Only for members of the room.
    pub async fn presence(&self, conn: ConnRef, room: &str) -> Result<Box<RawValue>, CommandError> {
        let name = self.room_of(conn, room)?;
        raw(ClientInfo::presence(&self.rooms.presence(&name, conn.user)))
    }

    /// The result of `presence_stats`. Only for members of the room.
    pub async fn presence_stats(&self, conn: ConnRef, room: &str) -> Result<Box<RawValue>, CommandError> {
        let name = self.room_of(conn, room)?;
        raw(self.rooms.stats(&name, conn.user).to_json())
    }

    pub fn closed(&self, conn: ConnRef, how: CloseKind) {
        let ended = {
            let mut shard = self.shard(conn.user);
            let mut after = AfterUnlock::default();
            let is_there =
                shard.users.get(&conn.user).is_some_and(|entry| entry.connection(conn.conn).is_some());
            // The remaining devices of the user are notified; the closed one is removed first.
            let dropped = shard.drop_connection(conn, &self.context);
            if is_there && !self.is_stopping() {
                let input = Input::Closed { conn: conn.conn, how };
                after = shard.input(self.now(), conn.user, input, &self.context).unwrap_or_default();
            }
            drop(shard);
            self.finish(after);
            dropped
        };
        let Some((connection, friends)) = ended else { return };
        for watched in friends.iter().chain(&connection.details.tracked) {
            self.end_watch(*watched, conn.conn);
        }
        for room in &connection.details.rooms {
            self.rooms.leave(room, conn.user, conn.conn);
        }
        let is_gone = {
            let shard = self.shard(conn.user);
            shard.users.get(&conn.user).is_none_or(|entry| entry.connected.is_none())
        };
        if is_gone {
            self.typing.end_all(conn.user, self.now());
        }
        self.context.table.write().release(conn);
    }
}

impl Hub {
    pub(crate) fn now(&self) -> Moment {
        Moment(self.clock.now_ms())
    }

    pub(crate) fn requests(&self) -> &mpsc::Sender<Request> {
        &self.requests
    }

    /// None without a cluster.
    pub(crate) fn cluster_store(&self) -> Option<&Arc<ClusterStore>> {
        self.context.sync.as_ref().map(|sync| &sync.store)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Locks the user's shard. Must not be called while another shard is locked.
    pub(crate) fn shard(&self, user: UserId) -> MutexGuard<'_, Shard> {
        // Ids are sequential: the lowest bits spread them best.
        self.shards[user.get() as usize % SHARDS].lock()
    }

    /// Every shard, to be locked one after the other.
    pub(crate) fn shards(&self) -> impl Iterator<Item = &Mutex<Shard>> {
        self.shards.iter()
    }

    /// Likewise, beginning with another one each time.
    pub(crate) fn shards_from(&self, turn: &AtomicUsize) -> impl Iterator<Item = &Mutex<Shard>> {
        let first = turn.fetch_add(1, Ordering::Relaxed) % SHARDS;
        self.shards[first..].iter().chain(&self.shards[..first])
    }

    /// For inputs that cannot be refused.
    pub(crate) fn apply_input(&self, user: UserId, input: Input) {
        let now = self.now();
        let after = self.shard(user).input(now, user, input, &self.context);
        self.finish(after.unwrap_or_default());
    }

    /// Does what must be done after the lock was released.
    pub(crate) fn finish(&self, after: AfterUnlock) {
        for (user, visibility, rooms) in after.visibility {
            for room in &rooms {
                self.rooms.update_visibility(room, user, &visibility);
            }
            // The users notified of the typing may not be those who can see the user now.
            self.typing.end_all(user, self.now());
        }
    }

    /// A room that this connection is in.
    pub(crate) fn room_of(&self, conn: ConnRef, room: &str) -> Result<RoomName, CommandError> {
        let shard = self.shard(conn.user);
        let connection = shard.users.get(&conn.user).and_then(|entry| entry.connection(conn.conn));
        let rooms = connection.map(|connection| connection.details.rooms.as_slice()).unwrap_or_default();
        rooms.iter().find(|name| ***name == *room).cloned().ok_or(CommandError::PermissionDenied)
    }
}

pub(crate) fn raw(json: String) -> Result<Box<RawValue>, CommandError> {
    RawValue::from_string(json).map_err(|_| CommandError::Internal)
}

#[cfg(test)]
mod tests;

//! The hub: all users with sessions at this gateway, their watchers, and the tasks that serve them.
//!
//! A hub composes parts, each with its own state:
//!
//! - [`Users`]: users in memory, in shards behind locks (`shard`, `user`, `connection_table`)
//! - [`WatchRequests`] to the watch task, which reads friends and privacy (`crate::watch`)
//! - [`ClusterSync`], with a cluster (`crate::cluster_sync`)
//! - [`Commands`] of clients, [`Admin`] for the site (`admin`, `online_users`)
//! - `sampler`: estimates how many connections are dead; `history`: shortens the history; `tasks`: the tasks
//! - `lifecycle`: start, catching up with a previous process, shutdown
//!
//! # Guarantees
//!
//! - A client that connects receives every friend once (the snapshot) and then every later change: the watch begins
//!   and the state is read in one step.
//! - Friends and privacy are read, and changes of them applied, by one task ([`crate::watch`]): what was read before
//!   a change is never applied after it.
//!
//! # Deliberately absent
//!
//! Sockets, frames and tokens (the session's), the rules of presence (`presence`), SQL (`friends`).

mod admin;
pub(crate) mod connection_table;
mod history;
mod inspect;
mod lifecycle;
mod online_users;
mod sampler;
pub(crate) mod shard;
mod tasks;
pub(crate) mod user;
pub(crate) mod users;

use std::sync::Arc;
use std::time::Duration;

use domain::{UnixTime, UserId};
use friends::{FriendStore, FriendsChange};
use parking_lot::Mutex;
use presence::{CloseKind, ConnId, DeviceId, Hello, Input, Policy};
use serde_json::value::RawValue;

use crate::cluster::GatewayMessage;
use crate::cluster_sync::{ClusterSync, SyncSettings};
use crate::commands::Commands;
use crate::gateway_messages::{MessageSender, OutgoingMessage};
use crate::outbox::Outbox;
use crate::settings::UserLimits;
use crate::watch::WatchRequests;
use lifecycle::NotStarted;
use sampler::Sampler;
use tasks::Tasks;

pub use crate::protocol::CommandError;
pub use admin::{Admin, OnlineCount};
#[doc(hidden)]
pub use inspect::HubSizes;
pub use lifecycle::{HubError, HubParts};
pub use online_users::{OnlineFilter, OnlinePage, OnlineUser};
pub use users::{IsDisabled, Users};

/// Attempts to load a user for one heartbeat. Users stay in memory for a minute, so one is enough.
const LOADS_MAX: usize = 3;

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

pub struct Hub {
    pub users: Arc<Users>,
    pub admin: Admin,
    pub commands: Commands,
    friend_store: FriendStore,
    watch: WatchRequests,
    /// None without a cluster.
    sync: Option<Arc<ClusterSync>>,
    /// None without a cluster.
    sender: Option<Arc<MessageSender>>,
    sampler: Arc<Sampler>,
    tasks: Tasks,
    /// Taken when the tasks are started.
    not_started: Mutex<Option<NotStarted>>,
}

impl Hub {
    /// Connects a user. The snapshot is in the outbox when this returns; the session writes the reply first.
    ///
    /// Each success must be followed by one [`Hub::closed`]. If this future is dropped before it is done, nothing
    /// stays.
    pub async fn connect(
        &self,
        identity: Identity,
        hello: Hello,
        outbox: Arc<Outbox>,
    ) -> Result<ConnectAccepted, ConnectRefusal> {
        if self.users.is_stopping() {
            return Err(ConnectRefusal::Stopping);
        }
        if self.users.is_disabled(identity.user) {
            return Err(ConnectRefusal::Disabled);
        }
        self.watch.connect(identity, hello, outbox).await
    }

    /// The client sent something: a heartbeat.
    pub fn record_activity(&self, conn: ConnRef) {
        self.users.apply_input(conn.user, Input::Message { conn: conn.conn });
    }

    /// A ping control frame was answered.
    pub fn probe_answered(&self, conn: ConnRef) {
        self.sampler.answered(conn.conn);
        self.users.apply_input(conn.user, Input::ProbeAnswered { conn: conn.conn });
    }

    /// A ping control frame could not be written.
    pub fn probe_failed(&self, conn: ConnRef) {
        self.users.apply_input(conn.user, Input::ProbeFailed { conn: conn.conn });
    }

    pub fn closed(&self, conn: ConnRef, how: CloseKind) {
        self.users.closed(conn, how);
    }

    /// A heartbeat over HTTP, of a device that holds no connection.
    pub async fn http_heartbeat(&self, user: UserId, hello: Hello) -> Result<(), HubError> {
        let users = &self.users;
        if users.is_stopping() {
            return Err(HubError::Unavailable);
        }
        users.context.counters.hub.http_heartbeats.increment();
        let mut hello = Some(hello);
        for _ in 0..LOADS_MAX {
            // In one step: a user dropped in between would restart with versions that were used already.
            let applied = users.change(user, |shard, now| {
                if users.is_disabled(user) {
                    return Some(Err(HubError::Disabled));
                }
                let hello = hello.take_if(|_| shard.knows(user))?;
                Some(shard.input(now, user, Input::Heartbeat { hello }).map_err(HubError::from))
            });
            if let Some(applied) = applied {
                return applied;
            }
            self.watch.load(user).await.map_err(|_| HubError::Unavailable)?;
        }
        Err(HubError::Unavailable)
    }

    /// The end of such a device's session.
    pub fn http_goodbye(&self, user: UserId, device: DeviceId) {
        if self.users.is_stopping() {
            return;
        }
        // Its heartbeats may have come to several gateways.
        if let Some(sender) = &self.sender {
            let message = GatewayMessage::Goodbye { user, device: device.clone() };
            sender.send(OutgoingMessage::ToUser(user, message));
        }
        self.users.apply_input(user, Input::Goodbye { device });
    }

    /// Applies changes of friendships or privacy at once, without waiting for the change feed.
    pub async fn friends_changed(&self, changes: Vec<FriendsChange>) -> Result<(), CommandError> {
        self.watch.changed(changes).await
    }

    /// Probes a sample of connections and waits for the answers.
    pub async fn sample(&self) {
        self.sampler.sample().await;
    }
}

//! Keeps the hub and the cluster in sync: publishes local changes, and applies the changes of other gateways.
//!
//! # Guarantees
//!
//! - Local first: a change of a session here is shown here at once. Nothing on that path waits for Redis, and a
//!   heartbeat costs neither a round trip nor memory.
//! - A user that changed is marked dirty, and published from the presence table as it is then: marks are merged, and
//!   none is lost. A publish that failed, or may have failed, is repeated.
//! - History, webhooks and the saved presence follow from the changes that the store reports: each change once, by
//!   the gateway that made it.
//! - A remote session is shown no longer than its gateway's last entry is valid: the record is read again in time, or
//!   the user becomes pending.
//! - Without Redis these tasks do not run and nothing is allocated.
//!
//! # Layout
//!
//! - this file: [`ClusterSync`], the whole, with the task that reads the inbox; [`SyncContext`], what all parts share
//! - [`ShardSync`]: a part of each shard, behind its lock. `sync_state`: what is to be published, and what is known of
//!   other gateways; `dirty`: marks users that changed; `receive`: applies a record
//! - `publisher`: publishes dirty users; `record_change`: what follows from a published change
//! - `watch`: reads the records of users that are watched here, before they are shown and then periodically; and of
//!   other users, once
//! - `contact`: whether Redis answers; `lease`: renews this gateway's lease, and rejoins after it was lost
//! - `reaper`: removes the sessions of dead gateways; `online_count`: users online at all gateways
//!
//! # Deliberately absent
//!
//! Redis: that is [`crate::cluster`]. Any order between users.

mod contact;
mod dirty;
mod lease;
mod online_count;
mod publisher;
mod reaper;
mod receive;
mod record_change;
mod sync_state;
mod watch;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use presence::WallTime;
use tokio::sync::Notify;

use crate::cluster::{ClusterStore, InboxEvent, NodeName, Record};
use crate::counters::GatewayCounters;
use crate::gateway_messages;
use crate::hub::users::Users;
use contact::Contact;
pub(crate) use dirty::MarkDirty;
use publisher::Publisher;
pub(crate) use sync_state::DirtyReason;
use sync_state::SyncState;
pub(crate) use watch::RecordReader;

/// Time limit of leaving the cluster.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);

/// Intervals of publishing and reading. The defaults are those of the requirements (P13).
#[derive(Clone, Copy, Debug)]
pub struct SyncSettings {
    /// Refresh interval of users active within the last minute, if there was new activity.
    pub refresh_active: Duration,
    /// Refresh interval of other users, and of users with background devices only.
    pub refresh_quiet: Duration,
    /// Longest interval between reads of users with remote sessions.
    pub check_present: Duration,
    pub check_absent: Duration,
    /// How long a connecting client waits for the records of its friends.
    pub read_timeout: Duration,
    /// Interval of the lease renewal.
    pub renew: Duration,
    /// Interval of the dead-gateway check.
    pub reap: Duration,
}

impl Default for SyncSettings {
    fn default() -> Self {
        SyncSettings {
            refresh_active: Duration::from_secs(10),
            refresh_quiet: Duration::from_secs(30),
            check_present: Duration::from_secs(60),
            check_absent: Duration::from_secs(150),
            read_timeout: Duration::from_secs(2),
            renew: Duration::from_secs(2),
            reap: Duration::from_millis(500),
        }
    }
}

/// What all parts share.
pub(crate) struct SyncContext {
    pub(crate) store: Arc<ClusterStore>,
    settings: SyncSettings,
    counters: Arc<GatewayCounters>,
    contact: Contact,
    dirty_added: Notify,
    /// Names under which this process has written. Entries under them are not remote.
    own_names: RwLock<Vec<NodeName>>,
    /// Only sessions active since then are published; zero for all. Milliseconds.
    signs_since_ms: AtomicU64,
}

/// The part of a shard, behind its lock.
pub(crate) struct ShardSync {
    pub(crate) state: SyncState,
    context: Arc<SyncContext>,
}

/// The tasks that publish and read.
pub(crate) struct ClusterSync {
    users: Arc<Users>,
    pub(crate) context: Arc<SyncContext>,
    pub(crate) records: RecordReader,
    publisher: Publisher,
}

impl SyncContext {
    pub(crate) fn new(
        store: Arc<ClusterStore>,
        settings: SyncSettings,
        counters: Arc<GatewayCounters>,
        now: WallTime,
    ) -> Arc<SyncContext> {
        Arc::new(SyncContext {
            own_names: RwLock::new(vec![store.node()]),
            store,
            settings,
            counters,
            contact: Contact::since(now),
            dirty_added: Notify::new(),
            signs_since_ms: AtomicU64::new(0),
        })
    }

    /// Whether this process wrote under that name.
    fn is_own(&self, node: &NodeName) -> bool {
        // A new name is in use before the task that made it knows.
        self.own_names.read().contains(node) || *node == self.store.node()
    }

    fn signs_since(&self) -> Option<WallTime> {
        Some(WallTime(self.signs_since_ms.load(Ordering::Acquire))).filter(|since| since.0 > 0)
    }

    /// The clock stepped back by `by_ms`.
    fn step_back(&self, by_ms: u64) {
        contact::step_back(&self.signs_since_ms, by_ms);
        self.contact.step_back(by_ms);
    }
}

impl ShardSync {
    pub(crate) fn new(context: Arc<SyncContext>) -> ShardSync {
        ShardSync { state: SyncState::default(), context }
    }
}

impl ClusterSync {
    pub(crate) fn new(users: Arc<Users>, context: Arc<SyncContext>) -> Arc<ClusterSync> {
        let publisher =
            Publisher { users: users.clone(), context: context.clone(), next_shard: AtomicUsize::new(0) };
        let records = RecordReader {
            clock_ms: AtomicU64::new(users.now().0),
            users: users.clone(),
            context: context.clone(),
            next_shard: AtomicUsize::new(0),
        };
        Arc::new(ClusterSync { users, context, records, publisher })
    }

    pub(crate) fn tasks(self: &Arc<Self>) -> [Pin<Box<dyn Future<Output = ()> + Send>>; 5] {
        let [one, two, three, four, five] = std::array::from_fn(|_| self.clone());
        [
            Box::pin(async move { one.publisher.run().await }),
            Box::pin(async move { two.records.run().await }),
            Box::pin(async move { three.read_inbox().await }),
            Box::pin(async move { four.renew_lease().await }),
            Box::pin(async move { five.reap().await }),
        ]
    }

    pub(crate) fn store(&self) -> &Arc<ClusterStore> {
        &self.context.store
    }

    async fn read_inbox(&self) {
        let mut inbox = self.context.store.inbox();
        loop {
            match inbox.next().await {
                InboxEvent::Record(record) => self.apply_record(*record),
                InboxEvent::Message(message) => gateway_messages::receive(&self.users, message),
                InboxEvent::Gap => self.receive_gap(),
            }
        }
    }

    fn apply_record(&self, record: Record) {
        self.users.change(record.user, |shard, now| {
            shard.sync(now, |sync, roster, effects| sync.apply_record(now, record, roster, effects))
        });
    }

    /// Entries of the inbox may have been missed: records are read again, and entries of rooms compared.
    pub(crate) fn receive_gap(&self) {
        self.context.counters.sync.gaps.increment();
        self.records.recheck_all();
        self.users.rooms.compare_all();
    }

    /// Publishes the last changes, then leaves the cluster: users that were online here are pending (P11), unless
    /// they have reconnected to another gateway.
    pub(crate) async fn leave(&self) {
        self.publisher.final_flush().await;
        match tokio::time::timeout(LEAVE_TIMEOUT, self.context.store.leave()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "cannot leave the cluster; other gateways will declare this one dead")
            }
            Err(_) => {
                tracing::warn!("leaving the cluster timed out; other gateways will declare this one dead")
            }
        }
    }
}

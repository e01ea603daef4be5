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
//! - `sync_state`: per shard, what is to be published and what is known of other gateways; behind the lock of the
//!   shard
//! - `dirty`: marks users that changed; `publisher`: publishes them; `record_change`: what follows from a published
//!   change
//! - `watch`: reads the records of users that are watched here, before they are shown and then periodically
//! - `receive`: applies a record; `inbox`: the task that reads the inbox
//! - `lease`: renews this gateway's lease, and rejoins after it was lost
//! - `reaper`: removes the sessions of dead gateways
//! - `lookup`: reads users that are not watched here; `online_count`: users online at all gateways
//!
//! # Deliberately absent
//!
//! Redis: that is [`crate::cluster`]. Any order between users.

mod dirty;
mod inbox;
mod lease;
mod lookup;
mod online_count;
mod publisher;
mod reaper;
mod receive;
mod record_change;
mod sync_state;
mod watch;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::cluster::{ClusterStore, NodeName};
use parking_lot::RwLock;
use presence::Moment;
use tokio::sync::Notify;

use crate::hub::Hub;

pub(crate) use dirty::MarkDirty;
#[cfg(test)]
pub(crate) use sync_state::DirtyReason;
pub(crate) use sync_state::SyncState;

/// Intervals of publishing and reading. The defaults are those of the requirements (P13).
#[derive(Clone, Copy, Debug)]
pub struct SyncSettings {
    /// Refresh interval of users with a sign of life within the last minute, if there was a new one.
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

/// State of the sync that all shards share.
pub(crate) struct ClusterSync {
    pub(crate) store: Arc<ClusterStore>,
    settings: SyncSettings,
    /// Index of the shard that the next round starts with.
    next_shard: AtomicUsize,
    dirty_added: Notify,
    /// The store fenced a write: membership is lost, whatever the list of nodes says.
    fenced: Notify,
    is_fenced: AtomicBool,
    /// Names under which this process has written. Entries under them are not remote.
    own_names: RwLock<Vec<NodeName>>,
    /// Only sessions that gave a sign of life since are published; zero for all. Milliseconds.
    signs_since_ms: AtomicU64,
    /// When the store last answered that all is well. Milliseconds.
    contact_at_ms: AtomicU64,
    /// Last contact before an outage so long that others may have declared this gateway dead; zero for none.
    /// Milliseconds.
    outage_at_ms: AtomicU64,
    is_unreachable: AtomicBool,
    /// Last reading of the clock. Milliseconds.
    clock_ms: AtomicU64,
}

pub(crate) fn tasks(hub: &Arc<Hub>) -> Vec<Pin<Box<dyn Future<Output = ()> + Send>>> {
    if hub.context.sync.is_none() {
        return Vec::new();
    }
    vec![
        Box::pin(publisher::run(hub.clone())),
        Box::pin(watch::run(hub.clone())),
        Box::pin(inbox::run(hub.clone())),
        Box::pin(lease::run(hub.clone())),
        Box::pin(reaper::run(hub.clone())),
    ]
}

impl ClusterSync {
    pub(crate) fn new(store: Arc<ClusterStore>, settings: SyncSettings, now: Moment) -> ClusterSync {
        let own_names = RwLock::new(vec![store.node()]);
        ClusterSync {
            store,
            settings,
            next_shard: AtomicUsize::new(0),
            dirty_added: Notify::new(),
            fenced: Notify::new(),
            is_fenced: AtomicBool::new(false),
            own_names,
            signs_since_ms: AtomicU64::new(0),
            contact_at_ms: AtomicU64::new(now.0),
            outage_at_ms: AtomicU64::new(0),
            is_unreachable: AtomicBool::new(false),
            clock_ms: AtomicU64::new(now.0),
        }
    }

    /// Whether this process wrote under that name.
    fn is_own(&self, node: &NodeName) -> bool {
        // A new name is in use before the task that made it knows.
        self.own_names.read().contains(node) || *node == self.store.node()
    }

    fn signs_since(&self) -> Option<Moment> {
        Some(Moment(self.signs_since_ms.load(Ordering::Acquire))).filter(|since| since.0 > 0)
    }

    /// When the store last answered.
    pub(crate) fn contact_at(&self) -> Moment {
        Moment(self.contact_at_ms.load(Ordering::Relaxed))
    }

    /// The clock stepped back by `by_ms`.
    fn step_back(&self, by_ms: u64) {
        for at in [&self.signs_since_ms, &self.contact_at_ms, &self.outage_at_ms] {
            // Zero is for never.
            let earlier = |at: u64| (at > 0).then(|| at.saturating_sub(by_ms).max(1));
            let _ = at.fetch_update(Ordering::AcqRel, Ordering::Acquire, earlier);
        }
    }

    /// Whether the store does not answer.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.is_unreachable.load(Ordering::Relaxed)
    }
}

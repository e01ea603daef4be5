//! Renews this gateway's lease, and rejoins after it was lost.
//!
//! # Guarantees
//!
//! - A gateway that was declared dead does not write under its old name. It rejoins, and publishes only sessions with
//!   a sign of life since it was last known to be alive: the others may have moved to another gateway.
//! - After an outage of Redis all users are published and read again: its records may be old, or lost.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::cluster::RedisError;
use presence::Moment;

use super::ClusterSync;
use crate::hub::Hub;

const RENEWALS_PER_LEASE: u128 = 5;

pub(crate) async fn run(hub: Arc<Hub>) {
    let Some(sync) = &hub.context.sync else { return };
    loop {
        hub.renew(sync).await;
        let every = sync.settings.renew;
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            () = sync.fenced.notified() => {}
        }
    }
}

impl Hub {
    async fn renew(&self, sync: &ClusterSync) {
        let before = self.now();
        let renewed = sync.store.renew(&self.lease_info()).await;
        match renewed {
            Ok(membership) if membership.is_member => {
                self.store_reachable(sync, before);
                self.receive_nodes(&membership.nodes);
                // After a failover the list of nodes may not know that this one was declared dead.
                if sync.is_fenced.load(Ordering::Acquire) {
                    self.rejoin_cluster(sync, Moment(sync.outage_at_ms.load(Ordering::Relaxed))).await;
                }
            }
            Ok(_) => self.rejoin_cluster(sync, sync.contact_at()).await,
            Err(error) => self.store_unreachable(sync, &error),
        }
    }

    fn store_reachable(&self, sync: &ClusterSync, at: Moment) {
        let before_ms = sync.contact_at_ms.swap(at.0, Ordering::Relaxed);
        if u128::from(at.0.saturating_sub(before_ms)) > sync.settings.renew.as_millis() * RENEWALS_PER_LEASE {
            sync.outage_at_ms.store(before_ms, Ordering::Relaxed);
        }
        if sync.is_unreachable.swap(false, Ordering::Relaxed) {
            tracing::info!("redis reachable again; publishing and reading all users again");
            self.republish_all();
            self.recheck_all();
        }
    }

    fn store_unreachable(&self, sync: &ClusterSync, error: &RedisError) {
        if !sync.is_unreachable.swap(true, Ordering::Relaxed) {
            self.context.counters.sync.outages.increment();
            tracing::warn!(%error, "redis unreachable; presence is local to this gateway until it returns");
        }
    }

    /// This gateway was declared dead and rejoins.
    async fn rejoin_cluster(&self, sync: &ClusterSync, lost_at: Moment) {
        // Publishing goes on meanwhile: under the new name only sessions with a sign of life since then.
        sync.signs_since_ms.fetch_max(lost_at.0, Ordering::AcqRel);
        if let Err(error) = sync.store.rejoin().await {
            return self.store_unreachable(sync, &error);
        }
        tracing::warn!("this gateway was declared dead and has rejoined the cluster");
        self.context.counters.sync.rejoins.increment();
        sync.is_fenced.store(false, Ordering::Release);
        sync.own_names.write().push(sync.store.node());
        sync.is_unreachable.store(false, Ordering::Relaxed);
        sync.contact_at_ms.store(self.now().0, Ordering::Relaxed);
        self.republish_all();
        self.recheck_all();
        sync.dirty_added.notify_one();
    }

    /// Whether no other gateway had a lease when this one joined. False if unknown.
    pub(crate) async fn was_alone(&self, sync: &ClusterSync) -> bool {
        match sync.store.renew(&self.lease_info()).await {
            Ok(membership) => membership.was_alone,
            Err(error) => {
                self.store_unreachable(sync, &error);
                false
            }
        }
    }
}

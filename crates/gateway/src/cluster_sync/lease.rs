//! Renews this gateway's lease, and rejoins after it was lost.
//!
//! # Guarantees
//!
//! - A gateway that was declared dead does not write under its old name. It rejoins, and publishes only sessions with
//!   activity since it was last known to be alive: the others may have moved to another gateway.
//! - After an outage of Redis all users are published and read again: its records may be old, or lost.

use std::sync::atomic::Ordering;

use presence::WallTime;

use super::ClusterSync;
use crate::cluster::RedisError;

impl ClusterSync {
    pub(super) async fn renew_lease(&self) {
        loop {
            self.renew().await;
            tokio::select! {
                () = tokio::time::sleep(self.context.settings.renew) => {}
                () = self.context.contact.fenced() => {}
            }
        }
    }

    async fn renew(&self) {
        let (before, contact) = (self.users.now(), &self.context.contact);
        match self.context.store.renew(&self.lease_info()).await {
            Ok(membership) if membership.is_member => {
                if contact.regain(before, self.context.settings.renew) {
                    tracing::info!("redis reachable again; publishing and reading all users again");
                    self.publisher.republish_all();
                    self.records.recheck_all();
                }
                self.users.rooms.set_alive_nodes(&membership.nodes);
                // After a failover the list of nodes may not know that this one was declared dead.
                if contact.is_fenced() {
                    self.rejoin(contact.outage_at()).await;
                }
            }
            Ok(_) => self.rejoin(contact.at()).await,
            Err(error) => self.unreachable(&error),
        }
    }

    fn unreachable(&self, error: &RedisError) {
        if self.context.contact.lose() {
            self.context.counters.sync.outages.increment();
            tracing::warn!(%error, "redis unreachable; presence is local to this gateway until it returns");
        }
    }

    /// This gateway was declared dead and rejoins.
    async fn rejoin(&self, lost_at: WallTime) {
        let context = &self.context;
        // Publishing goes on meanwhile: under the new name only sessions with activity since then.
        context.signs_since_ms.fetch_max(lost_at.0, Ordering::AcqRel);
        if let Err(error) = context.store.rejoin().await {
            return self.unreachable(&error);
        }
        tracing::warn!("this gateway was declared dead and has rejoined the cluster");
        context.counters.sync.rejoins.increment();
        context.own_names.write().push(context.store.node());
        context.contact.rejoined(self.users.now());
        self.publisher.republish_all();
        self.records.recheck_all();
        context.dirty_added.notify_one();
    }

    /// Whether no other gateway had a lease when this one joined. False if unknown.
    pub(crate) async fn was_alone(&self) -> bool {
        match self.context.store.renew(&self.lease_info()).await {
            Ok(membership) => membership.was_alone,
            Err(error) => {
                self.unreachable(&error);
                false
            }
        }
    }

    /// Whether Redis does not answer.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.context.contact.is_lost()
    }

    /// Seconds since the last successful contact with Redis.
    pub(crate) fn since_contact_s(&self) -> u64 {
        self.users.now().0.saturating_sub(self.context.contact.at().0) / 1000
    }
}

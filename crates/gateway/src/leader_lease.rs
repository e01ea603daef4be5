//! Leader lease: of several gateways on one database, one sends webhooks, and one prunes the history.
//!
//! # Guarantees
//!
//! - Without a cluster the lease is always held, at no cost.
//! - Otherwise it is a lease in Redis with one holder. It is released at shutdown; after a crash it expires.
//! - While Redis is unreachable the lease is not acquired, and a holder loses it before another gateway can acquire
//!   it.
//!
//! # Deliberately absent
//!
//! A guarantee that work begun under the lease ends within it: that work must tolerate being done twice.

use std::time::Duration;

use keyspace::{Lease, Redis};
use tokio::sync::watch;

/// Renewals per length of the lease.
const RENEWALS: u32 = 5;

/// A lease for work that one gateway does at a time.
#[derive(Debug, Default)]
pub struct LeaderLease {
    /// None without a cluster.
    lease: Option<Lease>,
}

impl LeaderLease {
    /// The lease of a gateway without a cluster.
    pub fn always_held() -> LeaderLease {
        LeaderLease::default()
    }

    /// `holder` must be unique to this process.
    pub fn shared(redis: Redis, key: &str, holder: &str, length: Duration) -> LeaderLease {
        LeaderLease { lease: Some(Lease::new(redis, key.to_owned(), holder.to_owned(), length)) }
    }

    pub fn is_unshared(&self) -> bool {
        self.lease.is_none()
    }

    /// False once it may have expired.
    pub fn is_held(&self) -> bool {
        self.lease.as_ref().is_none_or(Lease::is_held)
    }

    /// Interval at which to renew it.
    pub(crate) fn renewal(&self) -> Duration {
        // Never lost.
        self.lease.as_ref().map_or(Duration::from_secs(3600), |lease| lease.length() / RENEWALS)
    }

    /// Acquires or renews it. True if it is held.
    pub async fn take(&self) -> bool {
        let Some(lease) = &self.lease else { return true };
        match lease.take().await {
            Ok(is_held) => is_held,
            Err(error) => {
                tracing::debug!(%error, "cannot acquire or renew the leader lease");
                lease.is_held()
            }
        }
    }

    pub async fn release(&self) {
        let Some(lease) = &self.lease else { return };
        if let Err(error) = lease.release().await {
            tracing::debug!(%error, "cannot release the leader lease; it will expire");
        }
    }

    /// Waits until it is held; false if stopped before.
    pub(crate) async fn wait(&self, stopped: &mut watch::Receiver<bool>) -> bool {
        loop {
            tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => return false,
                is_held = self.take() => {
                    if is_held {
                        return true;
                    }
                }
            }
            tokio::select! {
                _ = stopped.wait_for(|stopped| *stopped) => return false,
                () = tokio::time::sleep(self.renewal()) => {}
            }
        }
    }
}

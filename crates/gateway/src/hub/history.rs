//! Shortens the history, at one gateway of a cluster.

use std::sync::Arc;
use std::time::Duration;

use friends::FriendStore;

use super::users::Users;
use crate::leader_lease::LeaderLease;

/// How often the history is shortened, and by how much in one step.
const PRUNE: Duration = Duration::from_secs(60);
const PRUNE_ROWS: u32 = 5_000;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

pub(super) struct HistoryPruner {
    pub(super) users: Arc<Users>,
    pub(super) friend_store: FriendStore,
    /// Held by the gateway that prunes.
    pub(super) lease: LeaderLease,
}

impl HistoryPruner {
    pub(super) async fn run(self) {
        loop {
            tokio::time::sleep(PRUNE).await;
            if self.lease.take().await {
                self.prune().await;
            }
        }
    }

    async fn prune(&self) {
        let days = u64::from(self.users.settings.limits.history_days);
        let before_ms = self.users.now().0.saturating_sub(days * DAY_MS);
        loop {
            match self.friend_store.prune_history(before_ms, PRUNE_ROWS).await {
                Ok(pruned) if pruned >= PRUNE_ROWS.into() => {}
                Ok(_) => return,
                Err(error) => {
                    return tracing::warn!(%error, "cannot prune the presence history; retrying");
                }
            }
        }
    }
}

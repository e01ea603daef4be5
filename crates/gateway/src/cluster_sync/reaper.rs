//! The task that reaps this gateway's share of dead gateways' sessions (P15).

use presence::{Cause, Status};

use super::ClusterSync;
use super::record_change::save_change;
use crate::cluster::RecordChange;

const STEP_MAX: usize = 1_000;

impl ClusterSync {
    pub(super) async fn reap(&self) {
        let store = &self.context.store;
        loop {
            match store.reap(STEP_MAX).await {
                Ok(outcomes) => outcomes.into_iter().for_each(|(_, outcome)| self.apply_reaped(outcome)),
                Err(error) => {
                    tracing::debug!(%error, "cannot reap sessions of dead gateways; retrying");
                }
            }
            if !store.has_more() {
                tokio::time::sleep(self.context.settings.reap).await;
            }
        }
    }

    fn apply_reaped(&self, outcome: RecordChange) {
        let cause = match (outcome.from, outcome.to) {
            (_, Status::Pending) => Cause::Restart,
            (Status::Pending, _) => Cause::PendingOver,
            _ => Cause::Silence,
        };
        save_change(&self.users.context, &outcome, (cause, None));
        self.apply_record(outcome.record);
    }
}

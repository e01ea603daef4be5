//! Clears up after gateways that died (P15): the task that does this node's share of it.

use std::sync::Arc;

use presence::{Cause, Status};
use register::Outcome;

use crate::hub::Hub;

/// People in one step.
const STEP_MAX: usize = 1_000;

/// The task.
pub(crate) async fn run(hub: Arc<Hub>) {
    let Some(sharing) = &hub.outside.sharing else { return };
    loop {
        match sharing.register.reap(STEP_MAX).await {
            Ok(outcomes) => outcomes.into_iter().for_each(|(_, outcome)| hub.keep_reaped(outcome)),
            Err(error) => {
                tracing::debug!(%error, "gateways that died cannot be cleared up after; it is tried again");
            }
        }
        if !sharing.register.is_behind() {
            tokio::time::sleep(sharing.settings.reap).await;
        }
    }
}

impl Hub {
    fn keep_reaped(&self, outcome: Outcome) {
        let now = self.now();
        let cause = match (outcome.from, outcome.to) {
            (_, Status::Pending) => Cause::Restart,
            (Status::Pending, _) => Cause::PendingOver,
            _ => Cause::Silence,
        };
        self.outside.keep_outcome(&outcome, (cause, None));
        let user = outcome.record.user;
        let after = self.shard(user).hear(now, outcome.record, &self.outside);
        self.finish(after);
    }
}

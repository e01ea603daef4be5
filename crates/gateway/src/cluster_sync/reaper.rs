//! The task that reaps this gateway's share of dead gateways' sessions (P15).

use std::sync::Arc;

use crate::cluster::RecordChange;
use presence::{Cause, Status};

use crate::hub::Hub;

const STEP_MAX: usize = 1_000;

pub(crate) async fn run(hub: Arc<Hub>) {
    let Some(sync) = &hub.context.sync else { return };
    loop {
        match sync.store.reap(STEP_MAX).await {
            Ok(outcomes) => outcomes.into_iter().for_each(|(_, outcome)| hub.apply_reaped(outcome)),
            Err(error) => {
                tracing::debug!(%error, "cannot reap sessions of dead gateways; retrying");
            }
        }
        if !sync.store.has_more() {
            tokio::time::sleep(sync.settings.reap).await;
        }
    }
}

impl Hub {
    fn apply_reaped(&self, outcome: RecordChange) {
        let now = self.now();
        let cause = match (outcome.from, outcome.to) {
            (_, Status::Pending) => Cause::Restart,
            (Status::Pending, _) => Cause::PendingOver,
            _ => Cause::Silence,
        };
        self.context.save_change(&outcome, (cause, None));
        let user = outcome.record.user;
        let after = self.shard(user).apply_record(now, outcome.record, &self.context);
        self.finish(after);
    }
}

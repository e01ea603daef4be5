//! Risk events of the ledger, written to the journal.

use std::sync::Arc;

use domain::RiskEvent;
use journal::Queue;
use journal::risk::RiskThrottle;
use ledger::RiskSink;

/// Puts risk events into the queue that the tracker uses too.
pub struct QueuedRisks {
    queue: Arc<Queue>,
    throttle: RiskThrottle,
}

impl QueuedRisks {
    pub fn new(queue: Arc<Queue>) -> Self {
        QueuedRisks { queue, throttle: RiskThrottle::default() }
    }
}

impl RiskSink for QueuedRisks {
    fn report(&self, risk: &RiskEvent) {
        if let Some(unreported) = self.throttle.admit(risk.user, risk.kind, risk.at) {
            self.queue.report(&RiskEvent { unreported, ..*risk });
        }
    }
}

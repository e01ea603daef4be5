//! What the ledger asks of the rest of the process: who is who, and where to report what nobody can believe.

use std::sync::Arc;

use access::Gate;
use domain::{InfoHash, Passkey, RiskEvent, TorrentId, UserId};
use journal::Queue;
use journal::risk::RiskThrottle;
use ledger::{Directory, RiskSink};

/// The gate knows everybody (L1).
pub struct GateDirectory(pub Arc<Gate>);

impl Directory for GateDirectory {
    fn user_of(&self, passkey: &Passkey) -> Option<UserId> {
        self.0.user_of(passkey)
    }

    fn torrent_of(&self, info_hash: &InfoHash) -> Option<TorrentId> {
        self.0.torrent_of(info_hash)
    }
}

/// Puts the ledger's risk events into the queue that also takes the tracker's.
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

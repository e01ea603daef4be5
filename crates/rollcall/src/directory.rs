//! What the ledger asks of the rest of the process: who is who, and where to report what nobody can believe.

use std::sync::Arc;

use access::Gate;
use domain::{InfoHash, Passkey, RateCeiling, RiskEvent, Seconds, TorrentId, UserId};
use journal::Queue;
use journal::risk::RiskThrottle;
use ledger::{Directory, RiskRecord, RiskSink};

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

/// Risks that the ledger finds go the same way as those that the tracker finds.
pub struct QueuedRisks {
    queue: Arc<Queue>,
    ceiling: RateCeiling,
    throttle: RiskThrottle,
}

impl QueuedRisks {
    /// Into this queue.
    pub fn new(queue: Arc<Queue>, ceiling: RateCeiling) -> Self {
        QueuedRisks { queue, ceiling, throttle: RiskThrottle::default() }
    }
}

impl RiskSink for QueuedRisks {
    fn report(&self, record: &RiskRecord) {
        let Some(unreported) = self.throttle.admit(record.user, record.at) else {
            return;
        };
        let bytes = |amount: u128| u64::try_from(amount).unwrap_or(u64::MAX);
        self.queue.report(&RiskEvent {
            user: record.user,
            torrent: Some(record.torrent),
            info_hash: record.info_hash,
            peer_id: record.peer_id,
            ip: record.ip,
            at: record.at,
            elapsed: Seconds(0),
            uploaded_claimed: bytes(record.uploaded_seen),
            downloaded_claimed: bytes(record.downloaded_seen),
            uploaded_credited: bytes(record.uploaded_credited),
            downloaded_credited: bytes(record.downloaded_credited),
            ceiling: self.ceiling,
            unreported,
        });
    }
}

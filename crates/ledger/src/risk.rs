//! Reporting of risk events (J8).

use domain::RiskEvent;

/// Receives risk events after the figures are committed; must not block.
pub trait RiskSink: Send + Sync {
    /// `unreported` is zero: throttling belongs to the sink.
    fn report(&self, risk: &RiskEvent);
}

/// Writes each event to the log.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogRisks;

impl RiskSink for LogRisks {
    fn report(&self, risk: &RiskEvent) {
        tracing::warn!(
            kind = risk.kind.name(),
            user = risk.user.get(),
            torrent = risk.torrent.map(|torrent| torrent.get()),
            peer_id = %risk.peer_id,
            ip = %risk.ip,
            dt = risk.elapsed.0,
            du_claimed = risk.uploaded_claimed,
            du_credited = risk.uploaded_credited,
            dd_claimed = risk.downloaded_claimed,
            dd_credited = risk.downloaded_credited,
            "risk"
        );
    }
}

//! What was claimed and not credited (J8).

use std::net::IpAddr;

use domain::{InfoHash, PeerId, TorrentId, UnixTime, UserId};

/// A claim beyond the ceiling: what was seen, and what was credited of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RiskRecord {
    /// Who claimed it.
    pub user: UserId,
    /// On which torrent.
    pub torrent: TorrentId,
    /// The torrent's infohash.
    pub info_hash: InfoHash,
    /// The client.
    pub peer_id: PeerId,
    /// Where it is.
    pub ip: IpAddr,
    /// When.
    pub at: UnixTime,
    /// Bytes uploaded, as claimed.
    pub uploaded_seen: u128,
    /// Bytes uploaded, as credited.
    pub uploaded_credited: u128,
    /// Bytes downloaded, as claimed.
    pub downloaded_seen: u128,
    /// Bytes downloaded, as credited.
    pub downloaded_credited: u128,
}

/// Takes what was not credited. Called after the figures are stored, with few records or none; must not wait.
pub trait RiskSink: Send + Sync {
    /// Takes one record.
    fn report(&self, record: &RiskRecord);
}

/// Writes each record to the log.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogRisks;

impl RiskSink for LogRisks {
    fn report(&self, record: &RiskRecord) {
        tracing::warn!(
            user = record.user.get(),
            torrent = record.torrent.get(),
            peer_id = %record.peer_id,
            ip = %record.ip,
            uploaded_seen = record.uploaded_seen,
            uploaded_credited = record.uploaded_credited,
            downloaded_seen = record.downloaded_seen,
            downloaded_credited = record.downloaded_credited,
            "more was claimed than the ceiling allows"
        );
    }
}

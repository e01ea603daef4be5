//! The risk event: an announce, or a series of them, that looks like cheating (J8).

use std::net::IpAddr;

use crate::ids::{InfoHash, PeerId, TorrentId, UserId};
use crate::rate::RateCeiling;
use crate::time::{Seconds, UnixTime};

/// Why a risk event is reported. The amounts that belong to each kind are fields of [`RiskEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RiskKind {
    /// One client claims more than `limits.peer_rate_max_mbit_per_s`. The excess is not credited.
    ClientRate,
    /// All clients of one user together claim more than `limits.user_rate_max_mbit_per_s`. The excess is not credited.
    UserRate,
    /// Upload claimed while the swarm had no leecher of another user since the client's last announce.
    UploadWithoutLeechers,
    /// Upload claimed after a `stopped`, or only by `stopped`. It is not credited.
    UploadAfterStop,
    /// The upload credited on a torrent exceeds the download credited on it.
    UploadAheadOfDownload,
    /// `left` fell by more than `downloaded` grew.
    LeftWithoutDownload,
    /// `completed` of a user who downloaded too little of the torrent.
    CompletedWithoutDownload,
    /// One address announces for many users; `count` is how many.
    SharedAddress,
    /// One user announces a torrent under many peer ids; `count` is how many within an hour.
    ManyPeerIds,
}

impl RiskKind {
    pub const ALL: [RiskKind; 9] = [
        RiskKind::ClientRate,
        RiskKind::UserRate,
        RiskKind::UploadWithoutLeechers,
        RiskKind::UploadAfterStop,
        RiskKind::UploadAheadOfDownload,
        RiskKind::LeftWithoutDownload,
        RiskKind::CompletedWithoutDownload,
        RiskKind::SharedAddress,
        RiskKind::ManyPeerIds,
    ];

    /// The name used in the journal, the API and the dashboard.
    pub const fn name(self) -> &'static str {
        match self {
            RiskKind::ClientRate => "client_rate",
            RiskKind::UserRate => "user_rate",
            RiskKind::UploadWithoutLeechers => "upload_without_leechers",
            RiskKind::UploadAfterStop => "upload_after_stop",
            RiskKind::UploadAheadOfDownload => "upload_ahead_of_download",
            RiskKind::LeftWithoutDownload => "left_without_download",
            RiskKind::CompletedWithoutDownload => "completed_without_download",
            RiskKind::SharedAddress => "shared_address",
            RiskKind::ManyPeerIds => "many_peer_ids",
        }
    }

    pub fn from_name(name: &str) -> Option<RiskKind> {
        RiskKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// One reported risk, with the amounts it is based on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RiskEvent {
    pub kind: RiskKind,
    pub user: UserId,
    /// None for an expired peer whose torrent is no longer known.
    pub torrent: Option<TorrentId>,
    pub info_hash: InfoHash,
    pub peer_id: PeerId,
    pub ip: IpAddr,
    pub at: UnixTime,
    /// The time for which the bytes were claimed.
    pub elapsed: Seconds,
    pub uploaded_claimed: u64,
    pub downloaded_claimed: u64,
    pub uploaded_credited: u64,
    pub downloaded_credited: u64,
    /// The limit in force, for [`RiskKind::ClientRate`] and [`RiskKind::UserRate`].
    pub ceiling: RateCeiling,
    /// Number of users or peer ids, for the kinds that count them; otherwise zero.
    pub count: u64,
    /// Events of this user and kind that were not reported since the last report.
    pub unreported: u32,
}

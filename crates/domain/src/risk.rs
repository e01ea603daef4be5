//! The risk event: an announce, or a series of them, that looks like cheating (J8).

use crate::named;
use std::net::IpAddr;

use crate::ids::{InfoHash, PeerId, TorrentId, UserId};
use crate::rate::RateCeiling;
use crate::time::{Seconds, UnixTime};

named! {
    /// Why a risk event is reported. The amounts that belong to each kind are fields of [`RiskEvent`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum RiskKind {
        /// One client claims more than `limits.peer_rate_max_mbit_per_s`. The excess is not credited.
        ClientRate = "client_rate",
        /// All clients of one user together claim more than `limits.user_rate_max_mbit_per_s`. The excess is not credited.
        UserRate = "user_rate",
        /// Upload claimed while the swarm had no leecher of another user since the client's last announce.
        UploadWithoutLeechers = "upload_without_leechers",
        /// Upload claimed after a `stopped`, or only by `stopped`. It is not credited.
        UploadAfterStop = "upload_after_stop",
        /// The upload credited on a torrent exceeds the download credited on it.
        UploadAheadOfDownload = "upload_ahead_of_download",
        /// `left` fell by more than `downloaded` grew.
        LeftWithoutDownload = "left_without_download",
        /// `completed` of a user who downloaded too little of the torrent.
        CompletedWithoutDownload = "completed_without_download",
        /// One address announces for many users; `count` is how many.
        SharedAddress = "shared_address",
        /// One user announces a torrent under many peer ids; `count` is how many within an hour.
        ManyPeerIds = "many_peer_ids",
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

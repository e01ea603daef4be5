//! What an announce is granted, and its result. The announce itself is [`domain::Announce`].

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use domain::{ClientKey, InfoHash, PeerId, RateCeiling, Seconds, SessionId, UnixTime, UserId, counted};

use crate::leech_counts::SlotLimits;

/// Upper bound of the configured number.
pub const WANTED_MAX: usize = 200;

/// Upper bound of the configured number.
pub const CLIENTS_PER_USER_MAX: usize = 16;

/// What the tracker grants to an admitted announce.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    pub user: UserId,
    /// Peers to return, at most [`WANTED_MAX`].
    pub wanted: usize,
    pub slots: SlotLimits,
    pub rules: Rules,
}

/// May change at run time.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// A peer without an announce for this long expires: interval + grace (T3).
    pub silence_max: Seconds,
    /// Earlier announces get no peers.
    pub min_interval: Seconds,
    /// Clients of one user on one torrent.
    pub clients_per_user_max: u8,
    /// The highest plausible growth of counters (J8).
    pub ceiling: RateCeiling,
    /// Peer ids of a user on one torrent within an hour; zero means no limit.
    pub peer_ids_per_hour_max: u8,
    /// Whether upload is credited that was claimed while no other user leeched.
    pub credit_upload_without_leechers: bool,
}

/// Growth of a client's counters since its last announce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    pub uploaded: u64,
    pub downloaded: u64,
}

/// Result of an announce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// After the announce.
    pub counts: SwarmCounts,
    /// Bytes uploaded since the last announce of this session.
    pub uploaded_delta: u64,
    /// Bytes downloaded since the last announce of this session.
    pub downloaded_delta: u64,
    /// Time since the last announce of this session, zero for the first.
    pub since_last: Seconds,
    pub session: SessionId,
    /// The key that the session's client is derived from: the first that it sent.
    pub key: ClientKey,
    /// Whether the announce came before the min interval; it was credited, but got no peers.
    pub too_soon: bool,
    /// Whether this announce completed the download, with or without the event. False for a repeated `completed`, for a
    /// client that was never a leecher, and for one that downloaded nothing while its user seeds already.
    pub completed: bool,
    /// The claim, if it is more than was credited (J8).
    pub implausible: Option<Claim>,
    /// Upload claimed although no other user leeched since the last announce.
    pub upload_without_leechers: u64,
    /// The part of it that is not credited.
    pub uncredited_upload: u64,
    /// Peer ids that the user has used on this torrent within the hour, if this announce has a new one.
    pub peer_ids: u8,
    /// Whether the user's budget of peer lists for new peers is used up; the announce got none.
    pub list_withheld: bool,
    /// A `stopped` of a peer that was not in the swarm.
    pub unknown_stop: bool,
}

impl Outcome {
    /// Of an announce that moved nothing.
    pub(crate) fn of(counts: SwarmCounts, session: SessionId, key: ClientKey) -> Self {
        Outcome {
            counts,
            uploaded_delta: 0,
            downloaded_delta: 0,
            since_last: Seconds(0),
            session,
            key,
            too_soon: false,
            completed: false,
            implausible: None,
            upload_without_leechers: 0,
            uncredited_upload: 0,
            peer_ids: 0,
            list_withheld: false,
            unknown_stop: false,
        }
    }
}

/// Why an announce of an admitted user on an admitted torrent is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnnounceError {
    #[error("you already run {} on this torrent, which is the limit; stop one of them first", counted(*limit, "client"))]
    TooManyClients { limit: u8 },
    #[error("{}", too_many_leeches(*limit))]
    TooManyLeeches { limit: u32 },
    #[error("{}", torrent_full(*limit))]
    TorrentFull { limit: u32 },
    #[error("you used {} on this torrent within an hour, more than the limit; try again later", counted(*count, "peer id"))]
    TooManyPeerIds { count: u8 },
    /// No capacity for another peer or torrent.
    #[error("the tracker has no room for more peers; try again later")]
    NoRoom,
}

fn too_many_leeches(limit: u32) -> String {
    match limit {
        0 => {
            "you may not download torrents at the moment, only seed: see your account on the site".to_owned()
        }
        1 => "you already download a torrent, and one at a time is your limit; finish or stop it first"
            .to_owned(),
        _ => format!(
            "you already download {limit} torrents at once, which is your limit; finish or stop one of them first"
        ),
    }
}

fn torrent_full(limit: u32) -> String {
    match limit {
        0 => "this torrent cannot be downloaded at the moment: see its page on the site".to_owned(),
        _ => format!(
            "as many peers download this torrent as may at once ({limit}); your client will try again later"
        ),
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwarmCounts {
    pub seeders: u32,
    pub leechers: u32,
    /// Users who completed the torrent.
    pub snatches: u32,
}

/// Compact addresses as sent. Reused by the caller, so that a reply allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct PeerLists {
    /// Six bytes per peer (BEP 23).
    pub v4: Vec<u8>,
    /// Eighteen bytes per peer (BEP 7).
    pub v6: Vec<u8>,
}

impl PeerLists {
    pub fn clear(&mut self) {
        self.v4.clear();
        self.v6.clear();
    }
}

/// A peer that left a swarm without a `stopped`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    pub info_hash: InfoHash,
    pub user: UserId,
    pub peer_id: PeerId,
    /// Its last address; `0.0.0.0:0` if it never had a usable one.
    pub address: SocketAddr,
    pub uploaded: u64,
    pub downloaded: u64,
    pub seeder: bool,
    pub last_announce: UnixTime,
    pub session: SessionId,
    pub key: ClientKey,
    /// Its allowed silence, if longer than the default; else zero.
    pub silence_max: Seconds,
}

/// The address of an unreachable peer.
pub(crate) const NO_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

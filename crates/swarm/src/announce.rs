//! What goes into an announce and what comes out.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use domain::{
    AnnounceEvent, ClientKey, InfoHash, PeerId, RateCeiling, Seconds, SessionId, UnixTime, UserId, counted,
};

use crate::leech_counts::SlotLimits;

/// The most peers one announce can be given, whatever the configuration says.
pub const WANTED_MAX: usize = 200;

/// The most clients a user can run on one torrent, whatever the configuration says.
pub const CLIENTS_PER_USER_MAX: usize = 16;

/// Which addresses the requester can be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Families {
    /// Both: an HTTP reply has room for `peers` and `peers6`.
    Both,
    /// IPv4 only: the reply to a UDP packet that came over IPv4.
    V4,
    /// IPv6 only: the reply to a UDP packet that came over IPv6.
    V6,
}

/// An announce that was let in.
#[derive(Clone, Copy, Debug)]
pub struct Announce {
    /// The torrent.
    pub info_hash: InfoHash,
    /// Whose announce it is.
    pub user: UserId,
    /// Which client.
    pub peer_id: PeerId,
    /// The client's key.
    pub key: ClientKey,
    /// Where the client is. A mapped IPv4 address has been unmapped.
    pub ip: IpAddr,
    /// Where it listens.
    pub port: u16,
    /// Its running total of bytes uploaded.
    pub uploaded: u64,
    /// Its running total of bytes downloaded.
    pub downloaded: u64,
    /// What it still wants; none if it did not say.
    pub left: Option<u64>,
    /// Why it announces.
    pub event: AnnounceEvent,
    /// How many peers it wants, at most [`WANTED_MAX`].
    pub wanted: usize,
    /// Which addresses it can be given.
    pub families: Families,
    /// How many may leech at once.
    pub slots: SlotLimits,
    /// When.
    pub now: UnixTime,
}

impl Announce {
    /// Whether the client has everything (L3).
    pub(crate) fn is_seeder(&self) -> bool {
        self.left == Some(0) || self.event == AnnounceEvent::Completed
    }
}

/// The rules that announces are judged by; they may change while the server runs.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// A peer that is silent this long is gone: interval + grace (T3).
    pub silence_max: Seconds,
    /// Announces sooner than this after the last one get no peers.
    pub min_interval: Seconds,
    /// How many clients a user may run on one torrent.
    pub clients_per_user_max: u8,
    /// The highest rate at which counters are believed to grow (J8).
    pub ceiling: RateCeiling,
    /// How many peer ids a user may use on one torrent within an hour; zero means any number.
    pub peer_ids_per_hour_max: u8,
    /// Whether upload is credited that was claimed while no other user leeched.
    pub credit_upload_without_leechers: bool,
}

/// What a client's counters claim it moved since its last announce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Bytes uploaded.
    pub uploaded: u64,
    /// Bytes downloaded.
    pub downloaded: u64,
}

/// What an announce led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The swarm after the announce.
    pub counts: SwarmCounts,
    /// Bytes uploaded since the last announce of this session.
    pub uploaded_delta: u64,
    /// Bytes downloaded since the last announce of this session.
    pub downloaded_delta: u64,
    /// Time since the last announce of this session, zero for the first.
    pub since_last: Seconds,
    /// The session.
    pub session: SessionId,
    /// The key that the session's client is derived from: the first that it sent, should it send several.
    pub key: ClientKey,
    /// Whether the client came back sooner than it may; it was credited, but got no peers.
    pub too_soon: bool,
    /// Whether this announce completed the download, whether or not it says so; a repeated `completed` does not, nor that
    /// of a client that was never remote leeching, or that downloaded nothing and whose user
    /// seeds already.
    pub completed: bool,
    /// What the counters claimed, where that is more than was credited (J8).
    pub implausible: Option<Claim>,
    /// Upload that was claimed although no other user leeched since the last announce; zero if there is nothing to
    /// remark.
    pub upload_without_leechers: u64,
    /// How much of that is not credited.
    pub uncredited_upload: u64,
    /// How many peer ids the user has used on this torrent within the hour, where this announce brought a new one.
    pub peer_ids: u8,
    /// Whether the user has used up the peer lists for new peers; the announce got none.
    pub list_withheld: bool,
    /// Whether it is a `stopped` of a peer that was not in the swarm.
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

/// Why an announce cannot be taken, though the user and the torrent are fine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnnounceError {
    /// The user runs as many clients on this torrent as allowed.
    #[error("you already run {} on this torrent, which is the limit; stop one of them first", counted(*limit, "client"))]
    TooManyClients {
        /// How many are allowed.
        limit: u8,
    },
    /// The user leeches as many torrents as allowed.
    #[error("{}", too_many_leeches(*limit))]
    TooManyLeeches {
        /// How many are allowed.
        limit: u32,
    },
    /// As many peers leech this torrent as allowed.
    #[error("{}", torrent_full(*limit))]
    TorrentFull {
        /// How many are allowed.
        limit: u32,
    },
    /// The user has used too many peer ids on this torrent within an hour.
    #[error("you used {} on this torrent within an hour, more than the limit; try again later", counted(*count, "peer id"))]
    TooManyPeerIds {
        /// How many.
        count: u8,
    },
    /// There is no place for another peer or torrent.
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
        0 => "nobody may download this torrent at the moment: see its page on the site".to_owned(),
        _ => format!(
            "as many peers download this torrent as may at once ({limit}); your client will try again later"
        ),
    }
}

/// How many peers a swarm has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwarmCounts {
    /// Peers that have everything.
    pub seeders: u32,
    /// Peers that do not.
    pub leechers: u32,
    /// How many users completed the torrent.
    pub snatches: u32,
}

/// Compact addresses, as they go onto the wire. Kept and reused by the caller, so that answering allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct PeerLists {
    /// Six bytes a peer (BEP 23).
    pub v4: Vec<u8>,
    /// Eighteen bytes a peer (BEP 7).
    pub v6: Vec<u8>,
}

impl PeerLists {
    /// Empties both lists.
    pub fn clear(&mut self) {
        self.v4.clear();
        self.v6.clear();
    }
}

/// A peer that left a swarm without saying so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The torrent.
    pub info_hash: InfoHash,
    /// Whose peer it was.
    pub user: UserId,
    /// Which client.
    pub peer_id: PeerId,
    /// Where it was last; `0.0.0.0:0` if it never had an address that could be handed out.
    pub address: SocketAddr,
    /// Its last totals.
    pub uploaded: u64,
    /// Its last totals.
    pub downloaded: u64,
    /// Whether it had everything.
    pub seeder: bool,
    /// When it last announced.
    pub last_announce: UnixTime,
    /// Its session.
    pub session: SessionId,
    /// Its key.
    pub key: ClientKey,
    /// How long it could be silent, if that was longer than usual; else zero.
    pub silence_max: Seconds,
}

/// The address of a peer that cannot be reached.
pub(crate) const NO_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

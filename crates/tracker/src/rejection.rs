//! The one type whose text a client is told. Everything else that goes wrong is logged, not told.

use access::Refusal;
use swarm::AnnounceError;
use wire::http::{QueryError, RetryIn};
use wire::udp::PacketError;

/// Why a request is not answered with what it asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The query or path cannot be read.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The packet cannot be read.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// Nobody is named.
    #[error("no passkey: use the announce URL that your site gives you, with the passkey in it")]
    NoPasskey,
    /// Nobody is named over UDP, where most clients never say.
    #[error(
        "no passkey: your client does not send the URL's path over UDP (BEP 41); use the http:// announce URL"
    )]
    NoPasskeyOverUdp,
    /// Who is named may not do this.
    #[error(transparent)]
    Access(#[from] Refusal),
    /// The swarm does not take it.
    #[error(transparent)]
    Swarm(#[from] AnnounceError),
    /// UDP scrapes carry no passkey; only addresses that announced are answered.
    #[error("announce first: scrapes over UDP are answered to addresses with an accepted announce")]
    ScrapeBeforeAnnounce,
    /// There is no room to write the announce down, so it is not taken.
    #[error("the tracker cannot write announces down at the moment; your client will try again")]
    JournalFull,
    /// The announce was taken, but is not stored yet. What it said is not lost; sent again, it counts once.
    #[error("the tracker could not store your announce in time; your client will try again")]
    NotStoredInTime,
    /// The user announces too often, from wherever.
    #[error("too many announces of your account; your client will try again")]
    TooManyAnnounces,
    /// The address asks too often.
    #[error("too many requests from your address; slow down")]
    Flood,
}

impl Rejection {
    /// The name under which it is counted.
    pub fn label(&self) -> &'static str {
        match self {
            Rejection::Query(error) => error.label(),
            Rejection::Packet(error) => error.label(),
            Rejection::NoPasskey | Rejection::NoPasskeyOverUdp => "no_passkey",
            Rejection::Access(refusal) => refusal.label(),
            Rejection::Swarm(AnnounceError::TooManyClients { .. }) => "too_many_clients",
            Rejection::Swarm(AnnounceError::TooManyLeeches { .. }) => "too_many_leeches",
            Rejection::Swarm(AnnounceError::TorrentFull { .. }) => "torrent_full",
            Rejection::Swarm(AnnounceError::TooManyPeerIds { .. }) => "too_many_peer_ids",
            Rejection::Swarm(AnnounceError::NoRoom) => "no_room",
            Rejection::JournalFull => "journal_full",
            Rejection::NotStoredInTime => "not_stored_in_time",
            Rejection::ScrapeBeforeAnnounce => "scrape_before_announce",
            Rejection::TooManyAnnounces => "too_many_announces",
            Rejection::Flood => "flood",
        }
    }

    /// When to try again (BEP 31). A passkey or torrent may be registered in a minute; a forbidden client stays forbidden.
    pub fn retry_in(&self) -> Option<RetryIn> {
        match self {
            Rejection::Query(_) | Rejection::Packet(_) => None,
            Rejection::NoPasskey | Rejection::NoPasskeyOverUdp => Some(RetryIn::Never),
            Rejection::Access(Refusal::ClientNotAllowed) => Some(RetryIn::Never),
            Rejection::Access(
                Refusal::UnknownPasskey | Refusal::CannotCheck | Refusal::CannotCheckTorrent,
            ) => Some(RetryIn::Minutes(1)),
            // Another port may be chosen at any moment.
            Rejection::Access(Refusal::PortBanned) => Some(RetryIn::Minutes(5)),
            Rejection::Access(Refusal::UnknownTorrent) => Some(RetryIn::Minutes(5)),
            Rejection::Access(_) => Some(RetryIn::Minutes(30)),
            Rejection::Swarm(AnnounceError::TooManyPeerIds { .. }) => Some(RetryIn::Minutes(60)),
            Rejection::Swarm(_) => Some(RetryIn::Minutes(10)),
            Rejection::ScrapeBeforeAnnounce
            | Rejection::TooManyAnnounces
            | Rejection::Flood
            | Rejection::JournalFull
            | Rejection::NotStoredInTime => Some(RetryIn::Minutes(1)),
        }
    }
}

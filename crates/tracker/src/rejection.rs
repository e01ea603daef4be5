//! The only type whose text is sent to clients. Internal errors are logged instead.

use access::Refusal;
use swarm::AnnounceError;
use wire::http::{QueryError, RetryIn};
use wire::udp::PacketError;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Packet(#[from] PacketError),
    #[error("no passkey: use the announce URL that your site gives you, with the passkey in it")]
    NoPasskey,
    /// Most clients send no path over UDP.
    #[error(
        "no passkey: your client does not send the URL's path over UDP (BEP 41); use the http:// announce URL"
    )]
    NoPasskeyOverUdp,
    #[error(transparent)]
    Access(#[from] Refusal),
    #[error(transparent)]
    Swarm(#[from] AnnounceError),
    /// UDP scrapes carry no passkey; only addresses that announced are answered.
    #[error("announce first: scrapes over UDP are answered to addresses with an accepted announce")]
    ScrapeBeforeAnnounce,
    /// The queue into the journal is full, so the announce is refused before anything changes.
    #[error("the tracker cannot store announces at the moment; your client will try again")]
    JournalFull,
    /// The announce was accepted, but not stored within the timeout. It is not lost; repeated, it counts once.
    #[error("the tracker could not store your announce in time; your client will try again")]
    NotStoredInTime,
    #[error("too many announces of your account; your client will try again")]
    TooManyAnnounces,
    #[error("too many requests from your address; slow down")]
    Flood,
}

impl Rejection {
    /// Label of the refusal counter.
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

    /// `retry in` (BEP 31). A passkey or torrent may be registered in a minute; a forbidden client stays forbidden.
    pub fn retry_in(&self) -> Option<RetryIn> {
        match self {
            Rejection::Query(_) | Rejection::Packet(_) => None,
            Rejection::NoPasskey | Rejection::NoPasskeyOverUdp => Some(RetryIn::Never),
            Rejection::Access(Refusal::ClientNotAllowed) => Some(RetryIn::Never),
            Rejection::Access(
                Refusal::UnknownPasskey | Refusal::CannotCheck | Refusal::CannotCheckTorrent,
            ) => Some(RetryIn::Minutes(1)),
            // The user may choose another port at any time.
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

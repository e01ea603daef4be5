//! Why a request is refused: the only type whose text is sent to clients. Internal errors are logged instead.

use net::proxy::ForwardedError;
use swarm::AnnounceError;
use wire::http::{QueryError, RetryIn};
use wire::udp::PacketError;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("only GET is supported")]
    Method,
    #[error("requests must not have a body")]
    Body,
    #[error(transparent)]
    Forwarded(#[from] ForwardedError),
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// Most clients send no path over UDP.
    #[error(
        "no passkey: your client does not send the URL's path over UDP (BEP 41); use the http:// announce URL"
    )]
    NoPasskeyOverUdp,
    #[error(transparent)]
    Access(#[from] access::Refusal),
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

impl Refusal {
    /// Whether an unknown passkey is to be verified ([`crate::Tracker::verify_passkey`]); then the request is processed
    /// again.
    pub fn needs_verification(&self) -> bool {
        matches!(self, Refusal::Access(access::Refusal::NotVerified))
    }

    /// Label of the refusal counter.
    pub fn label(&self) -> &'static str {
        match self {
            Refusal::Query(error) => error.label(),
            Refusal::Packet(error) => error.label(),
            Refusal::Method => "method",
            Refusal::Body => "body",
            Refusal::Forwarded(_) => "bad_forwarded_address",
            Refusal::NoPasskeyOverUdp => "no_passkey",
            Refusal::Access(refusal) => refusal.label(),
            Refusal::Swarm(AnnounceError::TooManyClients { .. }) => "too_many_clients",
            Refusal::Swarm(AnnounceError::TooManyLeeches { .. }) => "too_many_leeches",
            Refusal::Swarm(AnnounceError::TorrentFull { .. }) => "torrent_full",
            Refusal::Swarm(AnnounceError::TooManyPeerIds { .. }) => "too_many_peer_ids",
            Refusal::Swarm(AnnounceError::NoRoom) => "no_room",
            Refusal::JournalFull => "journal_full",
            Refusal::NotStoredInTime => "not_stored_in_time",
            Refusal::ScrapeBeforeAnnounce => "scrape_before_announce",
            Refusal::TooManyAnnounces => "too_many_announces",
            Refusal::Flood => "flood",
        }
    }

    /// `retry in` (BEP 31). A passkey or torrent may be registered in a minute; a forbidden client stays forbidden.
    pub fn retry_in(&self) -> Option<RetryIn> {
        match self {
            Refusal::Query(QueryError::NoPasskey) | Refusal::NoPasskeyOverUdp => Some(RetryIn::Never),
            Refusal::Method
            | Refusal::Body
            | Refusal::Forwarded(_)
            | Refusal::Query(_)
            | Refusal::Packet(_) => None,
            Refusal::Access(access::Refusal::ClientNotAllowed) => Some(RetryIn::Never),
            Refusal::Access(
                access::Refusal::UnknownPasskey
                | access::Refusal::CannotCheck
                | access::Refusal::NotVerified
                | access::Refusal::CannotCheckTorrent,
            ) => Some(RetryIn::Minutes(1)),
            // The user may choose another port at any time.
            Refusal::Access(access::Refusal::PortBanned) => Some(RetryIn::Minutes(5)),
            Refusal::Access(access::Refusal::UnknownTorrent) => Some(RetryIn::Minutes(5)),
            Refusal::Access(_) => Some(RetryIn::Minutes(30)),
            Refusal::Swarm(AnnounceError::TooManyPeerIds { .. }) => Some(RetryIn::Minutes(60)),
            Refusal::Swarm(_) => Some(RetryIn::Minutes(10)),
            Refusal::ScrapeBeforeAnnounce
            | Refusal::TooManyAnnounces
            | Refusal::Flood
            | Refusal::JournalFull
            | Refusal::NotStoredInTime => Some(RetryIn::Minutes(1)),
        }
    }
}

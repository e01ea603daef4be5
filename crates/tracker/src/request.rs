//! Input and output of the announce pipeline.

use std::net::IpAddr;

use domain::{AnnounceEvent, ClientKey, InfoHash, Passkey, PeerId, Seconds};
use swarm::{Families, SwarmCounts};

use crate::traffic::UnrecordedEvent;

/// A parsed announce, not yet checked.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub passkey: Passkey,
    pub info_hash: InfoHash,
    pub peer_id: PeerId,
    pub key: ClientKey,
    /// The client's address; behind a trusted proxy, the forwarded one.
    pub ip: IpAddr,
    pub port: u16,
    /// Total since the client's `started`, in bytes.
    pub uploaded: u64,
    /// Total since the client's `started`, in bytes.
    pub downloaded: u64,
    /// Bytes left to download.
    pub left: Option<u64>,
    pub event: AnnounceEvent,
    pub numwant: Option<u32>,
    /// Address families that the reply has room for.
    pub families: Families,
}

/// The reply to an accepted announce, without the peers.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    pub counts: SwarmCounts,
    pub interval: Seconds,
    pub min_interval: Seconds,
    /// `warning message` of the reply.
    pub warning: Option<&'static str>,
}

pub struct Accepted<'t> {
    pub answer: Answer,
    /// None for a `stopped` that changed nothing.
    pub unrecorded: Option<UnrecordedEvent<'t>>,
}

//! What goes into the pipeline, and what comes out.

use std::net::IpAddr;

use domain::{AnnounceEvent, ClientKey, InfoHash, Passkey, PeerId, Seconds};
use swarm::{Families, SwarmCounts};

use crate::traffic::Unwritten;

/// An announce as a listener heard it, before anyone has judged it.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Who says so.
    pub passkey: Passkey,
    /// The torrent.
    pub info_hash: InfoHash,
    /// The client.
    pub peer_id: PeerId,
    /// Its key.
    pub key: ClientKey,
    /// Where it is: behind proxies, what these say.
    pub ip: IpAddr,
    /// Where it listens.
    pub port: u16,
    /// Its running total.
    pub uploaded: u64,
    /// Its running total.
    pub downloaded: u64,
    /// What it still wants.
    pub left: Option<u64>,
    /// Why it announces.
    pub event: AnnounceEvent,
    /// How many peers it asks for.
    pub numwant: Option<u32>,
    /// Which addresses the reply has room for.
    pub families: Families,
}

/// What an accepted announce is told, besides the peers.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// The swarm.
    pub counts: SwarmCounts,
    /// When to come back.
    pub interval: Seconds,
    /// When to come back at the soonest.
    pub min_interval: Seconds,
    /// A word of warning.
    pub warning: Option<&'static str>,
}

/// An accepted announce.
pub struct Accepted<'t> {
    /// What the client is told.
    pub answer: Answer,
    /// What has to be written down; none for a goodbye that changed nothing.
    pub unwritten: Option<Unwritten<'t>>,
}

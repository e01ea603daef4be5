//! An announce, from the wire to the journal.

use std::net::IpAddr;

use crate::event::AnnounceEvent;
use crate::ids::{ClientKey, InfoHash, Passkey, PeerId};
use crate::time::UnixTime;

/// The address families of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Families {
    /// HTTP: `peers` and `peers6`.
    Both,
    /// The reply to a UDP packet over IPv4.
    V4,
    /// The reply to a UDP packet over IPv6.
    V6,
}

/// An announce as a client sent it, over any protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announce {
    /// None if the request has none.
    pub passkey: Option<Passkey>,
    /// Of a v2 hash of 32 bytes, the first 20. Once admitted, the torrent's primary infohash.
    pub info_hash: InfoHash,
    pub peer_id: PeerId,
    pub key: ClientKey,
    /// The client's address; behind a trusted proxy, the forwarded one. A mapped IPv4 address is unmapped.
    pub ip: IpAddr,
    /// May be zero.
    pub port: u16,
    /// Running total of bytes uploaded since `started`; zero if missing.
    pub uploaded: u64,
    /// Running total of bytes downloaded since `started`; zero if missing.
    pub downloaded: u64,
    /// Bytes left to download; none if missing or negative.
    pub left: Option<u64>,
    /// Unknown events are plain announces.
    pub event: AnnounceEvent,
    /// None if missing, negative or not a number.
    pub numwant: Option<u32>,
    pub families: Families,
    /// When it was received, in steady time.
    pub now: UnixTime,
}

impl Announce {
    /// Whether the client has everything (L3).
    pub fn is_seeder(&self) -> bool {
        self.left == Some(0) || self.event == AnnounceEvent::Completed
    }
}

//! Bytes to values and back. Pure: no I/O, no clock, no state.
//!
//! # Layout
//!
//! - [`http`]: the target and query of an announce or scrape, and the bencoded replies
//! - [`udp`]: the packets of BEP 15 with the options of BEP 41
//! - [`metainfo`]: the parts of a `.torrent` file that a tracker needs
//! - [`websocket`]: frames of RFC 6455, the server's side
//! - [`bencode`]: the strict reader and the small writer beneath them
//!
//! No input panics or allocates without bound. What a client is told about bad input is the
//! `Display` of the error; what a counter calls it is the error's `label`.
//!
//! Deliberately absent: what is admitted and what is plausible. A port of zero, a foreign `ip=` or a `numwant` of four
//! billion are values here; the tracker decides about them.
//!
//! # Choices
//!
//! The request line and query are parsed here in one pass, because some clients send raw bytes that a general HTTP
//! parser refuses. The WebSocket codec is ours because a library's buffers would take a quarter of a session's memory
//! budget; the library is the other side of its tests. Every parser is fuzzed (`make fuzz`).

pub mod bencode;
pub mod http;
pub mod metainfo;
pub mod udp;
pub mod websocket;

use domain::InfoHash;

/// How many torrents one scrape may ask about: as many as BEP 15 lets into a packet. Those behind are left out.
pub const MAX_SCRAPE_HASHES: usize = 74;

/// What a scrape tells about one torrent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrapeEntry {
    pub info_hash: InfoHash,
    /// Peers that have all of it.
    pub complete: u32,
    /// How often it has been downloaded to the end.
    pub downloaded: u32,
    /// Peers that still want some of it.
    pub incomplete: u32,
}

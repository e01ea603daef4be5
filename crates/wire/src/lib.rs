//! Bytes to values and back. Pure: no I/O, no clock, no state.
//!
//! # Layout
//!
//! - [`http`]: the target and query of an announce or scrape, and the bencoded replies
//! - [`udp`]: the packets of BEP 15 with the options of BEP 41
//! - [`metainfo`]: the parts of a `.torrent` file that a tracker needs
//! - [`websocket`]: frames of RFC 6455, server side
//! - [`bencode`]: a strict reader and a small writer
//!
//! No input panics or allocates without bound. The `Display` of an error is sent to the client; its `label` is used for
//! counters.
//!
//! Deliberately absent: admission and plausibility. A port of zero, a foreign `ip=` or a `numwant` of four billion are
//! valid values here; the tracker decides about them.
//!
//! # Choices
//!
//! The request line and query are parsed here in one pass, because some clients send raw bytes that a general HTTP
//! parser refuses. The WebSocket codec is ours because a library's buffers would take a quarter of a session's memory
//! budget; tests compare it with a library. Every parser is fuzzed (`make fuzz`).

pub mod bencode;
pub mod http;
pub mod metainfo;
pub mod udp;
pub mod websocket;

use domain::InfoHash;

/// Torrents per scrape: as many as BEP 15 allows in a packet. Further ones are ignored.
pub const MAX_SCRAPE_HASHES: usize = 74;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrapeEntry {
    pub info_hash: InfoHash,
    /// Seeders.
    pub complete: u32,
    /// Completions.
    pub downloaded: u32,
    /// Leechers.
    pub incomplete: u32,
}

//! The UDP tracker protocol (BEP 15) with its options (BEP 41): requests in, replies out.
//!
//! All numbers are big-endian. Requests borrow from the packet. Whether a connection id is genuine is the tracker's
//! business; an error tells which one the packet carried, so that only genuine ones are answered.

mod error;
mod reply;
mod request;

pub use crate::{MAX_SCRAPE_HASHES, ScrapeEntry};
pub use error::PacketError;
pub use reply::{write_announce_reply, write_connect_reply, write_error, write_scrape_reply};
pub use request::{
    AnnounceRequest, CONNECT_MAGIC, MAX_URL_DATA_BYTES, Request, ScrapeRequest, parse_request,
};

/// The tracker's proof that a client receives at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionId(pub u64);

/// The client's number for one question and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TransactionId(pub u32);

/// What every request but `connect` begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    pub connection: ConnectionId,
    /// Which answer belongs to it.
    pub transaction: TransactionId,
}

//! The UDP tracker protocol (BEP 15) with its options (BEP 41): requests in, replies out.
//!
//! All numbers are big-endian. Requests borrow from the packet. The tracker verifies connection ids; an error contains
//! the id of the packet, so that only packets with a valid one get a reply.

mod error;
mod reply;
mod request;

pub use crate::{MAX_SCRAPE_HASHES, ScrapeEntry};
pub use error::PacketError;
pub use reply::{write_announce_reply, write_connect_reply, write_error, write_scrape_reply};
pub use request::{
    AnnounceRequest, CONNECT_MAGIC, MAX_URL_DATA_BYTES, Request, ScrapeRequest, parse_request,
};

/// Issued by the tracker; shows that a client receives at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionId(pub u64);

/// The client's number for a request and its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TransactionId(pub u32);

/// The start of every request except `connect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    pub connection: ConnectionId,
    pub transaction: TransactionId,
}

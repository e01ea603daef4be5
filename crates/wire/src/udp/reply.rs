//! Replies. Each is appended to a buffer that the caller reuses.

use domain::Seconds;

use super::{ConnectionId, TransactionId};
use crate::ScrapeEntry;

const ACTION_CONNECT: u32 = 0;
const ACTION_ANNOUNCE: u32 = 1;
const ACTION_SCRAPE: u32 = 2;
const ACTION_ERROR: u32 = 3;

/// Appends the reply to a `connect`: 16 bytes, as long as the request.
pub fn write_connect_reply(out: &mut Vec<u8>, transaction: TransactionId, connection: ConnectionId) {
    push_header(out, ACTION_CONNECT, transaction);
    out.extend_from_slice(&connection.0.to_be_bytes());
}

/// Appends the reply to an announce. `peers` are compact, of the address family of the packet: 6 or 18 bytes each.
pub fn write_announce_reply(
    out: &mut Vec<u8>,
    transaction: TransactionId,
    interval: Seconds,
    leechers: u32,
    seeders: u32,
    peers: &[u8],
) {
    push_header(out, ACTION_ANNOUNCE, transaction);
    push_count(out, interval.0);
    push_count(out, leechers);
    push_count(out, seeders);
    out.extend_from_slice(peers);
}

/// Appends the reply to a scrape. The entries are in the order of the request and contain no hashes.
pub fn write_scrape_reply(
    out: &mut Vec<u8>,
    transaction: TransactionId,
    entries: impl IntoIterator<Item = ScrapeEntry>,
) {
    push_header(out, ACTION_SCRAPE, transaction);
    for entry in entries {
        push_count(out, entry.complete);
        push_count(out, entry.downloaded);
        push_count(out, entry.incomplete);
    }
}

pub fn write_error(out: &mut Vec<u8>, transaction: TransactionId, message: &str) {
    push_header(out, ACTION_ERROR, transaction);
    out.extend_from_slice(message.as_bytes());
}

fn push_header(out: &mut Vec<u8>, action: u32, transaction: TransactionId) {
    out.extend_from_slice(&action.to_be_bytes());
    out.extend_from_slice(&transaction.0.to_be_bytes());
}

/// Counts are signed on the wire: larger ones are capped.
fn push_count(out: &mut Vec<u8>, count: u32) {
    out.extend_from_slice(&count.min(i32::MAX.cast_unsigned()).to_be_bytes());
}

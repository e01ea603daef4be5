//! Errors in a packet.

use super::{ConnectionId, Header, MAX_URL_DATA_BYTES, TransactionId};

/// Why a packet is refused. `Display` is sent to the client, if anything is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// Shorter than the header of any request.
    #[error("packet is too short")]
    NoHeader,
    /// A `connect` without the magic number.
    #[error("connect without the protocol id")]
    WrongMagic { transaction: TransactionId },
    /// Not an action of BEP 15.
    #[error("unknown action")]
    UnknownAction { header: Header },
    /// An announce that ends before its port.
    #[error("announce is too short")]
    ShortAnnounce { header: Header },
    /// An option (BEP 41) that is longer than the packet.
    #[error("option is truncated")]
    TruncatedOption { header: Header },
    /// A path and query (BEP 41) longer than [`MAX_URL_DATA_BYTES`].
    #[error("URL is longer than {MAX_URL_DATA_BYTES} bytes")]
    UrlTooLong { header: Header },
    /// The list is empty, or its length is not a multiple of 20.
    #[error("scrape must list one or more info hashes of 20 bytes")]
    BadHashList { header: Header },
}

impl PacketError {
    fn header(&self) -> Option<Header> {
        match *self {
            PacketError::NoHeader | PacketError::WrongMagic { .. } => None,
            PacketError::UnknownAction { header }
            | PacketError::ShortAnnounce { header }
            | PacketError::TruncatedOption { header }
            | PacketError::UrlTooLong { header }
            | PacketError::BadHashList { header } => Some(header),
        }
    }

    /// None if the packet is too short to contain it.
    pub fn transaction(&self) -> Option<TransactionId> {
        match *self {
            PacketError::WrongMagic { transaction } => Some(transaction),
            _ => self.header().map(|header| header.transaction),
        }
    }

    /// Reply only if it is present and valid.
    pub fn connection(&self) -> Option<ConnectionId> {
        self.header().map(|header| header.connection)
    }

    /// Label for a counter.
    pub const fn label(&self) -> &'static str {
        match self {
            PacketError::NoHeader => "no_header",
            PacketError::WrongMagic { .. } => "wrong_magic",
            PacketError::UnknownAction { .. } => "unknown_action",
            PacketError::ShortAnnounce { .. } => "short_announce",
            PacketError::TruncatedOption { .. } => "truncated_option",
            PacketError::UrlTooLong { .. } => "url_too_long",
            PacketError::BadHashList { .. } => "bad_hash_list",
        }
    }
}

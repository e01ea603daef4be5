//! What can be wrong with a packet.

use super::{ConnectionId, Header, MAX_URL_DATA_BYTES, TransactionId};

/// Why a packet is refused. `Display` is what the client is told, if it is told anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// Shorter than the header of any request.
    #[error("packet is too short")]
    NoHeader,
    /// A `connect` without the magic number: another protocol, or noise.
    #[error("connect without the protocol id")]
    WrongMagic {
        /// Which answer would belong to it.
        transaction: TransactionId,
    },
    /// An action that is none of BEP 15.
    #[error("unknown action")]
    UnknownAction { header: Header },
    /// An announce that ends before its port.
    #[error("announce is too short")]
    ShortAnnounce { header: Header },
    /// An option (BEP 41) that is longer than the packet.
    #[error("option is cut off")]
    TruncatedOption { header: Header },
    /// A path and query (BEP 41) longer than [`MAX_URL_DATA_BYTES`].
    #[error("URL is longer than {MAX_URL_DATA_BYTES} bytes")]
    UrlTooLong { header: Header },
    /// A scrape of nothing, or of something that is no whole number of hashes.
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

    /// Which answer belongs to the packet, where it got that far.
    pub fn transaction(&self) -> Option<TransactionId> {
        match *self {
            PacketError::WrongMagic { transaction } => Some(transaction),
            _ => self.header().map(|header| header.transaction),
        }
    }

    /// The connection id the packet carried. Answer only if there is one and it is genuine.
    pub fn connection(&self) -> Option<ConnectionId> {
        self.header().map(|header| header.connection)
    }

    /// The name of the cause, for a counter.
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

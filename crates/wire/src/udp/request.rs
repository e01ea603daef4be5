//! Requests: connect, announce, scrape.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use domain::{Announce, AnnounceEvent, ClientKey, Families, InfoHash, Passkey, PeerId, UnixTime};

use super::{ConnectionId, Header, PacketError, TransactionId};
use crate::MAX_SCRAPE_HASHES;
use crate::http::{QueryError, parse_target};

/// The first eight bytes of a `connect`.
pub const CONNECT_MAGIC: u64 = 0x0417_2710_1980;
/// Maximum length of path and query (BEP 41), all options together.
pub const MAX_URL_DATA_BYTES: usize = 1024;

const ANNOUNCE_BYTES: usize = 98;

const ACTION_CONNECT: u32 = 0;
const ACTION_ANNOUNCE: u32 = 1;
const ACTION_SCRAPE: u32 = 2;

const OPTION_END: u8 = 0;
const OPTION_NOP: u8 = 1;
const OPTION_URL_DATA: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    Connect { transaction: TransactionId },
    Announce(AnnounceRequest<'a>),
    Scrape(ScrapeRequest<'a>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnnounceRequest<'a> {
    pub connection: ConnectionId,
    pub transaction: TransactionId,
    fixed: &'a [u8; ANNOUNCE_BYTES],
    url: UrlData<'a>,
}

impl<'a> AnnounceRequest<'a> {
    /// The announce of the sender `ip`, without the passkey. The claimed address is ignored: there are no trusted proxies
    /// over UDP.
    pub fn announce(&self, ip: IpAddr, now: UnixTime) -> Announce {
        Announce {
            passkey: None,
            info_hash: InfoHash(self.field(16)),
            peer_id: PeerId(self.field(36)),
            downloaded: u64::from_be_bytes(self.field(56)),
            left: Some(u64::from_be_bytes(self.field(64))),
            uploaded: u64::from_be_bytes(self.field(72)),
            event: event_from_number(u32::from_be_bytes(self.field(80))),
            key: ClientKey(u32::from_be_bytes(self.field(88))),
            numwant: u32::try_from(i32::from_be_bytes(self.field(92))).ok(),
            port: u16::from_be_bytes(self.field(96)),
            ip,
            families: if ip.is_ipv6() { Families::V6 } else { Families::V4 },
            now,
        }
    }

    #[inline]
    fn field<const N: usize>(&self, at: usize) -> [u8; N] {
        *self.fixed[at..].first_chunk().expect("every field is within the fixed part")
    }

    /// The path and query of the announce URL (BEP 41), joined from all its options; empty if there are none.
    /// At most [`MAX_URL_DATA_BYTES`].
    pub fn url_data(&self) -> Cow<'a, [u8]> {
        self.url.join()
    }

    /// The passkey in [`AnnounceRequest::url_data`], in any form that HTTP supports.
    pub fn passkey(&self) -> Result<Option<Passkey>, QueryError> {
        match &*self.url_data() {
            b"" | b"/" => Ok(None),
            url => parse_target(url)?.any_passkey(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrapeRequest<'a> {
    pub connection: ConnectionId,
    pub transaction: TransactionId,
    hashes: &'a [[u8; 20]],
}

impl<'a> ScrapeRequest<'a> {
    /// In the order of the packet, at least one and at most [`MAX_SCRAPE_HASHES`]; the rest is ignored.
    pub fn info_hashes(&self) -> impl ExactSizeIterator<Item = InfoHash> + use<'a> {
        self.hashes.iter().take(MAX_SCRAPE_HASHES).map(|hash| InfoHash(*hash))
    }
}

pub fn parse_request(packet: &[u8]) -> Result<Request<'_>, PacketError> {
    let mut fields = Fields { rest: packet };
    let (Some(connection), Some(action), Some(transaction)) =
        (fields.read_u64(), fields.read_u32(), fields.read_u32())
    else {
        return Err(PacketError::NoHeader);
    };
    let transaction = TransactionId(transaction);
    let header = Header { connection: ConnectionId(connection), transaction };
    match action {
        ACTION_CONNECT if connection == CONNECT_MAGIC => Ok(Request::Connect { transaction }),
        ACTION_CONNECT => Err(PacketError::WrongMagic { transaction }),
        ACTION_ANNOUNCE => parse_announce(packet, header).map(Request::Announce),
        ACTION_SCRAPE => parse_scrape(fields.rest, header).map(Request::Scrape),
        _ => Err(PacketError::UnknownAction { header }),
    }
}

fn parse_announce(packet: &[u8], header: Header) -> Result<AnnounceRequest<'_>, PacketError> {
    let (fixed, options) =
        packet.split_first_chunk::<ANNOUNCE_BYTES>().ok_or(PacketError::ShortAnnounce { header })?;
    let url = UrlData::from_options(options, header)?;
    Ok(AnnounceRequest { connection: header.connection, transaction: header.transaction, fixed, url })
}

fn event_from_number(number: u32) -> AnnounceEvent {
    match number {
        1 => AnnounceEvent::Completed,
        2 => AnnounceEvent::Started,
        3 => AnnounceEvent::Stopped,
        _ => AnnounceEvent::None,
    }
}

fn parse_scrape(list: &[u8], header: Header) -> Result<ScrapeRequest<'_>, PacketError> {
    let (hashes, remainder) = list.as_chunks::<20>();
    if hashes.is_empty() || !remainder.is_empty() {
        return Err(PacketError::BadHashList { header });
    }
    Ok(ScrapeRequest { connection: header.connection, transaction: header.transaction, hashes })
}

/// Reads fixed-size fields from the front of a packet.
struct Fields<'a> {
    rest: &'a [u8],
}

impl Fields<'_> {
    #[inline]
    fn read<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*field)
    }

    #[inline]
    fn read_u32(&mut self) -> Option<u32> {
        self.read().map(u32::from_be_bytes)
    }

    #[inline]
    fn read_u64(&mut self) -> Option<u64> {
        self.read().map(u64::from_be_bytes)
    }
}

/// The URLData options of an announce, checked. Nearly all clients send none or one.
#[derive(Clone, Copy, PartialEq, Eq)]
struct UrlData<'a> {
    options: &'a [u8],
    first: &'a [u8],
    total_bytes: usize,
}

impl fmt::Debug for UrlData<'_> {
    /// Shows only the length: the URL contains a passkey.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.total_bytes)
    }
}

impl<'a> UrlData<'a> {
    fn from_options(options: &'a [u8], header: Header) -> Result<Self, PacketError> {
        let mut url = UrlData { options, first: &[], total_bytes: 0 };
        for part in url_parts(options) {
            let part = part.map_err(|CutOff| PacketError::TruncatedOption { header })?;
            if url.first.is_empty() {
                url.first = part;
            }
            url.total_bytes += part.len();
        }
        if url.total_bytes > MAX_URL_DATA_BYTES {
            return Err(PacketError::UrlTooLong { header });
        }
        Ok(url)
    }

    fn join(&self) -> Cow<'a, [u8]> {
        if self.total_bytes == self.first.len() {
            return Cow::Borrowed(self.first);
        }
        let mut joined = Vec::with_capacity(self.total_bytes);
        url_parts(self.options).flatten().for_each(|part| joined.extend_from_slice(part));
        Cow::Owned(joined)
    }
}

/// An option longer than the packet.
struct CutOff;

/// The contents of the URLData options, up to the end of the options or of the packet.
fn url_parts(options: &[u8]) -> impl Iterator<Item = Result<&[u8], CutOff>> {
    let mut rest = options;
    std::iter::from_fn(move || {
        loop {
            match rest {
                [] | [OPTION_END, ..] => return None,
                [OPTION_NOP, behind @ ..] => rest = behind,
                [kind, length, behind @ ..] if usize::from(*length) <= behind.len() => {
                    let content;
                    (content, rest) = behind.split_at(usize::from(*length));
                    if *kind == OPTION_URL_DATA {
                        return Some(Ok(content));
                    }
                }
                _ => {
                    rest = &[];
                    return Some(Err(CutOff));
                }
            }
        }
    })
}

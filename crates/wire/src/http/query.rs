//! The queries of announces and scrapes.
//!
//! A query is split at `&`, then each part at its first `=`; of a repeated parameter the first counts (a scrape uses
//! every `info_hash`). Unknown parameters are ignored.

use std::net::IpAddr;

use domain::{AnnounceEvent, ClientKey, InfoHash, Passkey, PeerId};

use super::error::QueryError;
use super::percent::{DecodeError, decode, decode_leniently, decode_passkey};
use crate::MAX_SCRAPE_HASHES;

/// Longer keys are distinguished by their first bytes.
const MAX_KEY_BYTES: usize = 128;
/// The longest text of an IPv6 address.
const MAX_IP_BYTES: usize = 45;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnnounceQuery {
    /// Of a v2 hash of 32 bytes, the first 20.
    pub info_hash: InfoHash,
    pub peer_id: PeerId,
    /// May be zero.
    pub port: u16,
    /// Bytes uploaded since `started`; zero if missing.
    pub uploaded: u64,
    /// Bytes downloaded since `started`; zero if missing.
    pub downloaded: u64,
    /// None if missing or negative.
    pub left: Option<u64>,
    /// Unknown events are plain announces.
    pub event: AnnounceEvent,
    /// None if missing, negative or not a number.
    pub numwant: Option<u32>,
    pub key: ClientKey,
    /// The claimed address; none if missing or invalid.
    pub ip: Option<IpAddr>,
    /// Set if it is a parameter.
    pub passkey: Option<Passkey>,
}

impl AnnounceQuery {
    /// Parses a query, without its `?`. One pass, no allocation.
    pub fn parse(query: &[u8]) -> Result<Self, QueryError> {
        let (mut info_hash, mut peer_id, mut port) = (None, None, None);
        let (mut uploaded, mut downloaded, mut left) = (None, None, None);
        let (mut event, mut numwant, mut key) = (None, None, None);
        let (mut ip, mut passkey) = (None, None);
        for (name, value) in pairs(query) {
            match name {
                b"info_hash" if info_hash.is_none() => info_hash = Some(parse_info_hash(value)?),
                b"peer_id" if peer_id.is_none() => peer_id = Some(parse_peer_id(value)?),
                b"port" if port.is_none() => port = parse_port(value)?,
                b"uploaded" if uploaded.is_none() => uploaded = parse_counter("uploaded", value)?,
                b"downloaded" if downloaded.is_none() => downloaded = parse_counter("downloaded", value)?,
                b"left" if left.is_none() => left = Some(parse_left(value)?),
                b"event" if event.is_none() => event = Some(AnnounceEvent::from_query(value)),
                b"numwant" if numwant.is_none() => numwant = Some(parse_numwant(value)),
                b"key" if key.is_none() => key = Some(parse_key(value)),
                b"ip" if ip.is_none() => ip = Some(parse_ip(value)),
                b"passkey" if passkey.is_none() => passkey = Some(decode_passkey(value)?),
                _ => {}
            }
        }
        Ok(AnnounceQuery {
            info_hash: info_hash.ok_or(QueryError::Missing { parameter: "info_hash" })?,
            peer_id: peer_id.ok_or(QueryError::Missing { parameter: "peer_id" })?,
            port: port.ok_or(QueryError::Missing { parameter: "port" })?,
            uploaded: uploaded.unwrap_or(0),
            downloaded: downloaded.unwrap_or(0),
            left: left.flatten(),
            event: event.unwrap_or_default(),
            numwant: numwant.flatten(),
            key: key.unwrap_or_default(),
            ip: ip.flatten(),
            passkey,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrapeQuery {
    /// In the order of the query, at least one and at most [`MAX_SCRAPE_HASHES`]; the rest is ignored.
    pub info_hashes: Vec<InfoHash>,
    /// Set if it is a parameter.
    pub passkey: Option<Passkey>,
}

impl ScrapeQuery {
    /// Parses a query, without its `?`. A scrape of all torrents is refused.
    pub fn parse(query: &[u8]) -> Result<Self, QueryError> {
        let mut info_hashes = Vec::new();
        let mut passkey = None;
        for (name, value) in pairs(query) {
            match name {
                b"info_hash" if info_hashes.len() < MAX_SCRAPE_HASHES => {
                    info_hashes.push(parse_info_hash(value)?)
                }
                b"passkey" if passkey.is_none() => passkey = Some(decode_passkey(value)?),
                _ => {}
            }
        }
        if info_hashes.is_empty() {
            return Err(QueryError::Missing { parameter: "info_hash" });
        }
        Ok(ScrapeQuery { info_hashes, passkey })
    }
}

/// The parameters of a query. A name without `=` has an empty value.
pub(super) fn pairs(query: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = query;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let name_end = rest.iter().position(|byte| matches!(byte, b'=' | b'&')).unwrap_or(rest.len());
        let (name, behind_name) = rest.split_at(name_end);
        let (value, behind) = match behind_name {
            [b'=', behind @ ..] => {
                behind.split_at(behind.iter().position(|byte| *byte == b'&').unwrap_or(behind.len()))
            }
            _ => (&[][..], behind_name),
        };
        rest = behind.get(1..).unwrap_or_default();
        Some((name, value))
    })
}

fn parse_info_hash(value: &[u8]) -> Result<InfoHash, QueryError> {
    let mut buffer = [0; 32];
    let bytes = decode_id("info_hash", value, &mut buffer)?;
    match bytes.first_chunk() {
        Some(hash) if bytes.len() == 20 || bytes.len() == 32 => Ok(InfoHash(*hash)),
        _ => Err(QueryError::WrongLength { parameter: "info_hash" }),
    }
}

fn parse_peer_id(value: &[u8]) -> Result<PeerId, QueryError> {
    let mut buffer = [0; 20];
    let bytes = decode_id("peer_id", value, &mut buffer)?;
    let id = bytes.try_into().map_err(|_| QueryError::WrongLength { parameter: "peer_id" })?;
    Ok(PeerId(id))
}

#[inline]
fn decode_id<'b>(parameter: &'static str, value: &[u8], into: &'b mut [u8]) -> Result<&'b [u8], QueryError> {
    decode(value, into).map_err(|error| match error {
        DecodeError::BadEscape => QueryError::BadEscape { parameter },
        DecodeError::TooLong => QueryError::WrongLength { parameter },
    })
}

enum NumberError {
    NotDigits,
    Overflow,
}

/// None for an empty text.
#[inline]
fn parse_decimal(text: &[u8]) -> Result<Option<u64>, NumberError> {
    let mut sum = 0_u64;
    let mut overflow = false;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(NumberError::NotDigits);
        }
        match sum.checked_mul(10).and_then(|tens| tens.checked_add(u64::from(digit))) {
            Some(next) => sum = next,
            None => overflow = true,
        }
    }
    match (overflow, text.is_empty()) {
        (true, _) => Err(NumberError::Overflow),
        (false, true) => Ok(None),
        (false, false) => Ok(Some(sum)),
    }
}

/// A running total. A wrong one would be credited, so it is refused.
fn parse_counter(parameter: &'static str, value: &[u8]) -> Result<Option<u64>, QueryError> {
    parse_decimal(value).map_err(|error| match error {
        NumberError::NotDigits => QueryError::NotANumber { parameter },
        NumberError::Overflow => QueryError::TooLarge { parameter },
    })
}

fn parse_port(value: &[u8]) -> Result<Option<u16>, QueryError> {
    let Some(number) = parse_counter("port", value)? else { return Ok(None) };
    u16::try_from(number).map(Some).map_err(|_| QueryError::TooLarge { parameter: "port" })
}

/// Clients without metadata (magnet links) send nothing, a negative number or an enormous one.
fn parse_left(value: &[u8]) -> Result<Option<u64>, QueryError> {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    match parse_decimal(digits) {
        Ok(_) | Err(NumberError::Overflow) if digits.len() < value.len() => Ok(None),
        Ok(number) => Ok(number),
        Err(NumberError::Overflow) => Ok(Some(u64::MAX)),
        Err(NumberError::NotDigits) => Err(QueryError::NotANumber { parameter: "left" }),
    }
}

fn parse_numwant(value: &[u8]) -> Option<u32> {
    match parse_decimal(value) {
        Ok(number) => number.map(|number| u32::try_from(number).unwrap_or(u32::MAX)),
        Err(NumberError::Overflow) => Some(u32::MAX),
        Err(NumberError::NotDigits) => None,
    }
}

fn parse_key(value: &[u8]) -> ClientKey {
    let mut buffer = [0; MAX_KEY_BYTES];
    ClientKey::from_http(decode_leniently(value, &mut buffer))
}

fn parse_ip(value: &[u8]) -> Option<IpAddr> {
    let mut buffer = [0; MAX_IP_BYTES];
    let text = decode(value, &mut buffer).ok()?;
    std::str::from_utf8(text).ok()?.parse().ok()
}

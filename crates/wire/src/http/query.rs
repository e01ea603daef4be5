//! The queries of announces and scrapes.
//!
//! A query is split at `&`, then each part at its first `=`; of a parameter given twice the first counts (a scrape
//! takes every `info_hash`). Unknown parameters, and in announces those without `=`, are skipped.

use std::net::IpAddr;

use domain::percent::{DecodeError, decode, decode_20, decode_leniently};
use domain::{Announce, AnnounceEvent, ClientKey, Families, InfoHash, Passkey, PeerId, UnixTime};

use super::error::QueryError;
use super::scan::{first_word, leading_number, position};
use super::target::{Target, decode_passkey};
use crate::MAX_SCRAPE_HASHES;

/// Longer keys are distinguished by their first bytes.
const MAX_KEY_BYTES: usize = 128;
/// The longest text of an IPv6 address.
const MAX_IP_BYTES: usize = 45;

/// Where a request comes from, and when it was received.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    pub ip: IpAddr,
    /// Whether the query's `ip` replaces the address: a trusted proxy sent it.
    pub trusts_ip: bool,
    /// Steady time.
    pub now: UnixTime,
}

/// Reads the query of an announce. One pass, no allocation. A passkey in the path takes precedence over one in the query.
// Inlined, so that the announce is built where the caller keeps it.
#[inline]
pub fn parse_announce(target: &Target<'_>, received: Received) -> Result<Announce, QueryError> {
    let mut announce = Announce {
        passkey: target.path_passkey()?,
        info_hash: InfoHash([0; 20]),
        peer_id: PeerId([0; 20]),
        port: 0,
        uploaded: 0,
        downloaded: 0,
        left: None,
        event: AnnounceEvent::None,
        numwant: None,
        key: ClientKey::NONE,
        ip: received.ip,
        families: Families::Both,
        now: received.now,
    };
    read_query(target.query, received.trusts_ip, &mut announce)?;
    Ok(announce)
}

fn read_query(query: &[u8], trusts_ip: bool, announce: &mut Announce) -> Result<(), QueryError> {
    let mut seen = Seen(0);
    let mut has_port = false;
    let mut rest = query;
    while let Some(first) = rest.first() {
        // By the first letter: the names of all parameters that clients send are told apart after one or two comparisons.
        rest = match first {
            b'i' if let Some(text) = seen.first(rest, b"info_hash=", Name::InfoHash) => {
                id(text, parse_info_hash, &mut announce.info_hash.0)?
            }
            b'p' if let Some(text) = seen.first(rest, b"peer_id=", Name::PeerId) => {
                id(text, parse_peer_id, &mut announce.peer_id.0)?
            }
            b'p' if let Some(text) = seen.first(rest, b"port=", Name::Port) => {
                let (value, behind) = number(text, |value| parse_counter("port", value))?;
                let port = u16::try_from(value.unwrap_or(0));
                announce.port = port.map_err(|_| QueryError::TooLarge { parameter: "port" })?;
                has_port = value.is_some();
                behind
            }
            b'u' if let Some(text) = seen.first(rest, b"uploaded=", Name::Uploaded) => {
                let (value, behind) = number(text, |value| parse_counter("uploaded", value))?;
                announce.uploaded = value.unwrap_or(0);
                behind
            }
            b'd' if let Some(text) = seen.first(rest, b"downloaded=", Name::Downloaded) => {
                let (value, behind) = number(text, |value| parse_counter("downloaded", value))?;
                announce.downloaded = value.unwrap_or(0);
                behind
            }
            b'l' if let Some(text) = seen.first(rest, b"left=", Name::Left) => {
                let (value, behind) = number(text, parse_left)?;
                announce.left = value;
                behind
            }
            b'n' if let Some(text) = seen.first(rest, b"numwant=", Name::Numwant) => {
                let (value, behind) = number(text, |value| Ok(parse_numwant(value)))?;
                announce.numwant = value.map(|number| u32::try_from(number).unwrap_or(u32::MAX));
                behind
            }
            b'k' if let Some(text) = seen.first(rest, b"key=", Name::Key) => {
                let (value, behind) = split_key(text);
                announce.key = value;
                behind
            }
            b'e' if let Some(text) = seen.first(rest, b"event=", Name::Event) => {
                let (value, behind) = split_value(text);
                announce.event = AnnounceEvent::from_query(value);
                behind
            }
            b'i' if let Some(text) = seen.first(rest, b"ip=", Name::Ip) => {
                let (value, behind) = split_value(text);
                if let Some(ip) = parse_ip(value).filter(|_| trusts_ip) {
                    announce.ip = ip.to_canonical();
                }
                behind
            }
            b'p' if let Some(text) = seen.first(rest, b"passkey=", Name::Passkey) => {
                let (value, behind) = split_value(text);
                if announce.passkey.is_none() {
                    announce.passkey = Some(decode_passkey(value)?);
                }
                behind
            }
            _ => split_value(rest).1,
        };
    }
    let missing = |parameter| Err(QueryError::Missing { parameter });
    match () {
        () if !seen.has(Name::InfoHash) => missing("info_hash"),
        () if !seen.has(Name::PeerId) => missing("peer_id"),
        () if !has_port => missing("port"),
        () => Ok(()),
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
                    info_hashes.push(InfoHash(parse_info_hash(value)?))
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

/// The parameters of an announce.
#[derive(Clone, Copy)]
enum Name {
    InfoHash,
    PeerId,
    Port,
    Uploaded,
    Downloaded,
    Left,
    Event,
    Numwant,
    Key,
    Ip,
    Passkey,
}

/// The parameters read so far.
struct Seen(u32);

impl Seen {
    fn has(&self, name: Name) -> bool {
        self.0 >> name as u32 & 1 == 1
    }

    /// What follows the name of a parameter, if the text begins with it and it was not there before.
    #[inline]
    fn first<'t, const N: usize>(
        &mut self,
        text: &'t [u8],
        prefix: &[u8; N],
        name: Name,
    ) -> Option<&'t [u8]> {
        let behind = text.strip_prefix(prefix)?;
        if self.has(name) {
            return None;
        }
        self.0 |= 1 << name as u32;
        Some(behind)
    }
}

/// A value up to the next `&`, and what follows that.
#[inline]
fn split_value(text: &[u8]) -> (&[u8], &[u8]) {
    let (value, behind) = text.split_at(position(text, b'&'));
    (value, behind.get(1..).unwrap_or_default())
}

/// What follows a value that ends here; none if it does not end here.
#[inline]
fn behind_value(text: &[u8]) -> Option<&[u8]> {
    match text {
        [] => Some(text),
        [b'&', behind @ ..] => Some(behind),
        _ => None,
    }
}

/// An id of twenty bytes, decoded without looking for its end first; returns what follows. Everything else is left to
/// `parse`.
#[inline]
fn id<'t>(
    text: &'t [u8],
    parse: impl Fn(&[u8]) -> Result<[u8; 20], QueryError>,
    into: &mut [u8; 20],
) -> Result<&'t [u8], QueryError> {
    if let Some(behind) = decode_20(text, into).and_then(behind_value) {
        return Ok(behind);
    }
    let (value, behind) = split_value(text);
    *into = parse(value)?;
    Ok(behind)
}

/// Up to 18 digits, read without looking for their end first. Everything else is left to `parse`.
#[inline]
fn number(
    text: &[u8],
    parse: impl Fn(&[u8]) -> Result<Option<u64>, QueryError>,
) -> Result<(Option<u64>, &[u8]), QueryError> {
    let word = first_word(text);
    let (mut sum, mut length) = leading_number(word);
    if matches!(length, 1..8)
        && (word >> (8 * length)) as u8 == b'&'
        && let Some(behind) = text.get(length + 1..)
    {
        return Ok((Some(sum), behind));
    }
    while let Some(digit) = text.get(length).map(|byte| byte.wrapping_sub(b'0'))
        && digit <= 9
        && length < DIGITS_WITHOUT_OVERFLOW
    {
        sum = sum * 10 + u64::from(digit);
        length += 1;
    }
    if length > 0
        && let Some(behind) = behind_value(&text[length..])
    {
        return Ok((Some(sum), behind));
    }
    let (value, behind) = split_value(text);
    Ok((parse(value)?, behind))
}

/// A key, and what follows it: mostly eight hexadecimal digits.
#[inline]
fn split_key(text: &[u8]) -> (ClientKey, &[u8]) {
    if let Some((digits, behind)) = text.split_first_chunk::<8>()
        && let Some(behind) = behind_value(behind)
        && let Some(key) = ClientKey::from_eight_digits(digits)
    {
        return (key, behind);
    }
    let (value, behind) = split_value(text);
    (parse_key(value), behind)
}

/// Of a v2 hash the first twenty bytes.
fn parse_info_hash(value: &[u8]) -> Result<[u8; 20], QueryError> {
    let mut buffer = [0; 32];
    let bytes = decode_id("info_hash", value, &mut buffer)?;
    match bytes.first_chunk() {
        Some(hash) if bytes.len() == 20 || bytes.len() == 32 => Ok(*hash),
        _ => Err(QueryError::WrongLength { parameter: "info_hash" }),
    }
}

fn parse_peer_id(value: &[u8]) -> Result<[u8; 20], QueryError> {
    let mut buffer = [0; 20];
    let bytes = decode_id("peer_id", value, &mut buffer)?;
    bytes.try_into().map_err(|_| QueryError::WrongLength { parameter: "peer_id" })
}

#[inline]
fn decode_id<'b>(parameter: &'static str, value: &[u8], into: &'b mut [u8]) -> Result<&'b [u8], QueryError> {
    decode(value, into).map_err(|error| match error {
        DecodeError::BadEscape => QueryError::BadEscape { parameter },
        DecodeError::TooLong => QueryError::WrongLength { parameter },
    })
}

/// As many digits always fit into a `u64`.
const DIGITS_WITHOUT_OVERFLOW: usize = 18;

/// Why a text is no `u64`.
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

/// Clients that do not know yet (magnet links) send nothing, a negative number or an enormous one.
fn parse_left(value: &[u8]) -> Result<Option<u64>, QueryError> {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    match parse_decimal(digits) {
        Ok(_) | Err(NumberError::Overflow) if digits.len() < value.len() => Ok(None),
        Ok(number) => Ok(number),
        Err(NumberError::Overflow) => Ok(Some(u64::MAX)),
        Err(NumberError::NotDigits) => Err(QueryError::NotANumber { parameter: "left" }),
    }
}

fn parse_numwant(value: &[u8]) -> Option<u64> {
    match parse_decimal(value) {
        Ok(number) => number,
        Err(NumberError::Overflow) => Some(u64::MAX),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Values as they come and as they never come: what is read without looking for its end first is what the plain
    /// parsers make of the value.
    #[test]
    fn numbers_and_ids_read_in_one_pass_are_those_of_the_plain_parsers() {
        let mut random = 7_u64;
        let mut draw = |bound: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as usize % bound
        };
        for alphabet in [&b"0123456789"[..], b"0123456789&", b"%41", b"%4f%00ab&", b"-09%&=xyz", b"0aF&"] {
            for _ in 0..20_000 {
                let length = draw(70);
                let text: Vec<u8> = (0..length).map(|_| alphabet[draw(alphabet.len())]).collect();
                let (value, behind) = split_value(&text);
                let plain = |parsed: Result<_, QueryError>| parsed.map(|number| (number, behind));
                let counter = |value: &[u8]| parse_counter("uploaded", value);
                assert_eq!(number(&text, counter), plain(counter(value)), "{text:?}");
                assert_eq!(number(&text, parse_left), plain(parse_left(value)), "{text:?}");
                assert_eq!(split_key(&text), (parse_key(value), behind), "{text:?}");
                for parse in [parse_info_hash, parse_peer_id] {
                    let mut bytes = [0; 20];
                    let read = id(&text, parse, &mut bytes).map(|behind| (bytes, behind));
                    assert_eq!(read, parse(value).map(|bytes| (bytes, behind)), "{text:?}");
                }
            }
        }
    }
}

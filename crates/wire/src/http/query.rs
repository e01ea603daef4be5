//! The queries of announces and scrapes.
//!
//! A query is split at `&`, then each part at its first `=`; of a parameter given twice the first counts (a scrape
//! takes every `info_hash`). Unknown parameters, and in announces those without `=`, are skipped.

use std::net::IpAddr;

use domain::percent::{DecodeError, decode, decode_20, decode_leniently};
use domain::{Announce, AnnounceEvent, ClientKey, Families, InfoHash, Passkey, PeerId, UnixTime};

use super::error::QueryError;
use super::scan::position;
use super::target::decode_passkey;
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

/// Parses the query of an announce, without its `?`. One pass, no allocation.
pub fn parse_announce(query: &[u8], received: Received) -> Result<Announce, QueryError> {
    let (mut info_hash, mut peer_id, mut port) = (None, None, None);
    let (mut uploaded, mut downloaded, mut left) = (None, None, None);
    let (mut event, mut numwant, mut key) = (None, None, None);
    let (mut ip, mut passkey) = (None, None);
    let mut rest = query;
    while let Some(first) = rest.first() {
        // By the first letter: the names of all parameters that clients send are told apart after one comparison.
        let known = match first {
            b'i' => {
                prefixed(rest, b"info_hash=", Name::InfoHash).or_else(|| prefixed(rest, b"ip=", Name::Ip))
            }
            b'p' => prefixed(rest, b"peer_id=", Name::PeerId)
                .or_else(|| prefixed(rest, b"port=", Name::Port))
                .or_else(|| prefixed(rest, b"passkey=", Name::Passkey)),
            b'u' => prefixed(rest, b"uploaded=", Name::Uploaded),
            b'd' => prefixed(rest, b"downloaded=", Name::Downloaded),
            b'l' => prefixed(rest, b"left=", Name::Left),
            b'e' => prefixed(rest, b"event=", Name::Event),
            b'n' => prefixed(rest, b"numwant=", Name::Numwant),
            b'k' => prefixed(rest, b"key=", Name::Key),
            _ => None,
        };
        let Some((name, text)) = known else {
            rest = behind_parameter(rest);
            continue;
        };
        rest = match name {
            Name::InfoHash if info_hash.is_none() => {
                let (value, behind) = id(text, parse_info_hash, InfoHash)?;
                info_hash = Some(value);
                behind
            }
            Name::PeerId if peer_id.is_none() => {
                let (value, behind) = id(text, parse_peer_id, PeerId)?;
                peer_id = Some(value);
                behind
            }
            Name::Port if port.is_none() => {
                let (value, behind) = number(text, |value| parse_counter("port", value))?;
                let value = value.map(u16::try_from).transpose();
                port = value.map_err(|_| QueryError::TooLarge { parameter: "port" })?;
                behind
            }
            Name::Uploaded if uploaded.is_none() => {
                let (value, behind) = number(text, |value| parse_counter("uploaded", value))?;
                uploaded = value;
                behind
            }
            Name::Downloaded if downloaded.is_none() => {
                let (value, behind) = number(text, |value| parse_counter("downloaded", value))?;
                downloaded = value;
                behind
            }
            Name::Left if left.is_none() => {
                let (value, behind) = number(text, parse_left)?;
                left = Some(value);
                behind
            }
            _ => {
                let (value, behind) = split_value(text);
                match name {
                    Name::Event if event.is_none() => event = Some(AnnounceEvent::from_query(value)),
                    Name::Numwant if numwant.is_none() => numwant = Some(parse_numwant(value)),
                    Name::Key if key.is_none() => key = Some(parse_key(value)),
                    Name::Ip if ip.is_none() => ip = Some(parse_ip(value)),
                    Name::Passkey if passkey.is_none() => passkey = Some(decode_passkey(value)?),
                    _ => {}
                }
                behind
            }
        };
    }
    let claimed_ip = ip.flatten().filter(|_| received.trusts_ip);
    Ok(Announce {
        passkey,
        info_hash: info_hash.ok_or(QueryError::Missing { parameter: "info_hash" })?,
        peer_id: peer_id.ok_or(QueryError::Missing { parameter: "peer_id" })?,
        port: port.ok_or(QueryError::Missing { parameter: "port" })?,
        uploaded: uploaded.unwrap_or(0),
        downloaded: downloaded.unwrap_or(0),
        left: left.flatten(),
        event: event.unwrap_or_default(),
        numwant: numwant.flatten(),
        key: key.unwrap_or_default(),
        ip: claimed_ip.map_or(received.ip, |ip: IpAddr| ip.to_canonical()),
        families: Families::Both,
        now: received.now,
    })
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

#[inline]
fn prefixed<'a, const N: usize>(text: &'a [u8], prefix: &[u8; N], name: Name) -> Option<(Name, &'a [u8])> {
    text.strip_prefix(prefix.as_slice()).map(|value| (name, value))
}

/// A value up to the next `&`, and what follows that.
#[inline]
fn split_value(text: &[u8]) -> (&[u8], &[u8]) {
    let (value, behind) = text.split_at(position(text, b'&'));
    (value, behind.get(1..).unwrap_or_default())
}

#[inline]
fn behind_parameter(text: &[u8]) -> &[u8] {
    split_value(text).1
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

/// An id of twenty bytes, decoded without looking for its end first. Everything else is left to `parse`.
#[inline]
fn id<T>(
    text: &[u8],
    parse: impl Fn(&[u8]) -> Result<T, QueryError>,
    of_bytes: impl Fn([u8; 20]) -> T,
) -> Result<(T, &[u8]), QueryError> {
    if let Some((bytes, length)) = decode_20(text)
        && let Some(behind) = behind_value(&text[length..])
    {
        return Ok((of_bytes(bytes), behind));
    }
    let (value, behind) = split_value(text);
    Ok((parse(value)?, behind))
}

/// Up to 18 digits, read without looking for their end first. Everything else is left to `parse`.
#[inline]
fn number(
    text: &[u8],
    parse: impl Fn(&[u8]) -> Result<Option<u64>, QueryError>,
) -> Result<(Option<u64>, &[u8]), QueryError> {
    let (mut sum, mut length) = (0_u64, 0);
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
        for alphabet in [&b"0123456789"[..], b"0123456789&", b"%41", b"%4f%00ab&", b"-09%&=xyz"] {
            for _ in 0..20_000 {
                let length = draw(70);
                let text: Vec<u8> = (0..length).map(|_| alphabet[draw(alphabet.len())]).collect();
                let (value, behind) = split_value(&text);
                let plain = |parsed: Result<_, QueryError>| parsed.map(|number| (number, behind));
                let counter = |value: &[u8]| parse_counter("uploaded", value);
                assert_eq!(number(&text, counter), plain(counter(value)), "{text:?}");
                assert_eq!(number(&text, parse_left), plain(parse_left(value)), "{text:?}");
                let hash = parse_info_hash(value).map(|hash| (hash, behind));
                assert_eq!(id(&text, parse_info_hash, InfoHash), hash, "{text:?}");
                let peer = parse_peer_id(value).map(|peer| (peer, behind));
                assert_eq!(id(&text, parse_peer_id, PeerId), peer, "{text:?}");
            }
        }
    }
}

//! The query of an announce, read in the plainest way: split at `&`, then at the first `=`, then each value by itself.

use domain::{Announce, AnnounceEvent, ClientKey, Families, InfoHash, Passkey, PeerId};
use wire::http::{QueryError, Received, Route, Target};

/// Longer keys are distinguished by their first bytes.
const MAX_KEY_BYTES: usize = 128;

/// A target without a passkey in its path.
pub fn target_of(query: &[u8]) -> Target<'_> {
    Target { route: Route::Announce, passkey: None, query }
}

/// Of a parameter given twice the first counts; unknown ones, and those without `=`, are skipped.
pub fn parse(query: &[u8], received: Received) -> Result<Announce, QueryError> {
    let mut values: Vec<(&str, &[u8])> = Vec::new();
    for part in query.split(|byte| *byte == b'&') {
        let Some(equals) = part.iter().position(|byte| *byte == b'=') else { continue };
        let Ok(name) = str::from_utf8(&part[..equals]) else { continue };
        if values.iter().all(|(known, _)| *known != name) {
            values.push((name, &part[equals + 1..]));
        }
    }
    let mut announce = Announce {
        passkey: None,
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
    for (name, value) in &values {
        match *name {
            "info_hash" => announce.info_hash = InfoHash(id("info_hash", value, &[20, 32])?),
            "peer_id" => announce.peer_id = PeerId(id("peer_id", value, &[20])?),
            "port" => {
                let port = counter("port", value)?.try_into();
                announce.port = port.map_err(|_| QueryError::TooLarge { parameter: "port" })?;
            }
            "uploaded" => announce.uploaded = counter("uploaded", value)?,
            "downloaded" => announce.downloaded = counter("downloaded", value)?,
            "left" => announce.left = left(value)?,
            "event" => {
                announce.event = str::from_utf8(value).ok().and_then(|e| e.parse().ok()).unwrap_or_default()
            }
            "numwant" => announce.numwant = number(value).map(|many| u32::try_from(many).unwrap_or(u32::MAX)),
            "key" => {
                let text = unescape(value, true).expect("lenient");
                announce.key = ClientKey::from_http(&text[..text.len().min(MAX_KEY_BYTES)]);
            }
            "ip" if received.trusts_ip => {
                let text = unescape(value, false).and_then(|text| String::from_utf8(text).ok());
                announce.ip = text.and_then(|text| text.parse().ok()).unwrap_or(announce.ip).to_canonical();
            }
            "passkey" => {
                let digits = unescape(value, false).ok_or(QueryError::NotAPasskey)?;
                let digits = str::from_utf8(&digits).map_err(|_| QueryError::NotAPasskey)?;
                announce.passkey = Some(digits.parse::<Passkey>().map_err(|_| QueryError::NotAPasskey)?);
            }
            _ => {}
        }
    }
    let has = |wanted: &str| values.iter().any(|(name, value)| *name == wanted && !value.is_empty());
    match ["info_hash", "peer_id", "port"].into_iter().find(|name| !has(name)) {
        Some(parameter) => Err(QueryError::Missing { parameter }),
        None => Ok(announce),
    }
}

/// A bad escape is none, or if `lenient` stands for itself.
fn unescape(value: &[u8], lenient: bool) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut at = 0;
    while at < value.len() {
        let digits = value.get(at + 1..at + 3).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let escaped = digits.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok());
        match (value[at], escaped) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                at += 3;
            }
            (b'%', None) if !lenient => return None,
            (byte, _) => {
                bytes.push(byte);
                at += 1;
            }
        }
    }
    Some(bytes)
}

/// An id that is too long is refused before what follows is read.
fn id(parameter: &'static str, value: &[u8], lengths: &[usize]) -> Result<[u8; 20], QueryError> {
    let longest = lengths.iter().max().copied().unwrap_or_default();
    let wrong_length = QueryError::WrongLength { parameter };
    let mut read = 0;
    let mut end = 0;
    while end < value.len() && read < longest {
        if unescape(value.get(end..end + 3).unwrap_or(&value[end..]), false).is_none() && value[end] == b'%' {
            return Err(QueryError::BadEscape { parameter });
        }
        end += if value[end] == b'%' { 3 } else { 1 };
        read += 1;
    }
    if end < value.len() {
        return Err(wrong_length);
    }
    let bytes = unescape(value, false).expect("checked above");
    match bytes.first_chunk() {
        Some(first) if lengths.contains(&bytes.len()) => Ok(*first),
        _ => Err(wrong_length),
    }
}

/// None if it is no number. Numbers beyond 128 bits are as large as any.
fn number(value: &[u8]) -> Option<u128> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    is_number.then(|| str::from_utf8(value).expect("digits").parse().unwrap_or(u128::MAX))
}

fn counter(parameter: &'static str, value: &[u8]) -> Result<u64, QueryError> {
    match number(value) {
        Some(number) => u64::try_from(number).map_err(|_| QueryError::TooLarge { parameter }),
        None if value.is_empty() => Ok(0),
        None => Err(QueryError::NotANumber { parameter }),
    }
}

fn left(value: &[u8]) -> Result<Option<u64>, QueryError> {
    let (is_negative, digits) = match value {
        [b'-', digits @ ..] => (true, digits),
        _ => (false, value),
    };
    match number(digits) {
        _ if digits.is_empty() => Ok(None),
        Some(_) if is_negative => Ok(None),
        Some(number) => Ok(Some(u64::try_from(number).unwrap_or(u64::MAX))),
        None => Err(QueryError::NotANumber { parameter: "left" }),
    }
}

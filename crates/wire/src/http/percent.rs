//! Percent-decoding into the caller's buffer, without allocation.
//!
//! `+` is a plus: announce queries are not forms, and peer ids contain literal plus signs.

use domain::Passkey;

use super::error::QueryError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecodeError {
    BadEscape,
    TooLong,
}

const NOT_HEX: u8 = 0xff;

/// The value of each ASCII hexadecimal digit. Ids are mostly escapes, so parsing spends most of its time here.
const HEX_VALUES: [u8; 256] = {
    let mut values = [NOT_HEX; 256];
    let mut value = 0;
    while value < 16 {
        values[b"0123456789abcdef"[value] as usize] = value as u8;
        values[b"0123456789ABCDEF"[value] as usize] = value as u8;
        value += 1;
    }
    values
};

/// The byte of an escape, given the text after the `%`.
#[inline]
fn escaped_byte(digits: &[u8]) -> Option<u8> {
    let [high, low, ..] = *digits else { return None };
    let (high, low) = (HEX_VALUES[usize::from(high)], HEX_VALUES[usize::from(low)]);
    (high != NOT_HEX && low != NOT_HEX).then_some(high << 4 | low)
}

/// Decodes the whole text, or fails if it does not fit into `into`.
#[inline]
pub(super) fn decode<'b>(text: &[u8], into: &'b mut [u8]) -> Result<&'b [u8], DecodeError> {
    let mut rest = text;
    let mut length = 0;
    while let [first, behind @ ..] = rest {
        let slot = into.get_mut(length).ok_or(DecodeError::TooLong)?;
        if *first == b'%' {
            *slot = escaped_byte(behind).ok_or(DecodeError::BadEscape)?;
            rest = &behind[2..];
        } else {
            *slot = *first;
            rest = behind;
        }
        length += 1;
    }
    Ok(&into[..length])
}

/// Decodes twenty bytes at the beginning of a value, and returns how long they are there. None if the value is shorter or
/// has a bad escape.
#[inline]
pub(super) fn decode_20(text: &[u8]) -> Option<([u8; 20], usize)> {
    let mut bytes = [0; 20];
    let mut bad = 0;
    let mut at = 0;
    for byte in &mut bytes {
        let first = *text.get(at)?;
        *byte = first;
        at += 1;
        if first == b'%' {
            let [high, low] = *text.get(at..at + 2)? else { return None };
            let (high, low) = (HEX_VALUES[usize::from(high)], HEX_VALUES[usize::from(low)]);
            bad |= high | low;
            *byte = high << 4 | (low & 0x0f);
            at += 2;
        } else if first == b'&' {
            return None;
        }
    }
    (bad <= 0x0f).then_some((bytes, at))
}

/// Decodes a text that is only compared, never shown: a bad escape stands for itself, what does not fit is left out.
pub(super) fn decode_leniently<'b>(text: &[u8], into: &'b mut [u8]) -> &'b [u8] {
    let mut rest = text;
    let mut length = 0;
    while let ([first, behind @ ..], Some(slot)) = (rest, into.get_mut(length)) {
        let escaped = if *first == b'%' { escaped_byte(behind) } else { None };
        *slot = escaped.unwrap_or(*first);
        rest = if escaped.is_some() { &behind[2..] } else { behind };
        length += 1;
    }
    &into[..length]
}

/// The passkey in a path segment or query value.
pub(super) fn decode_passkey(text: &[u8]) -> Result<Passkey, QueryError> {
    // No client escapes digits.
    if let Ok(passkey) = Passkey::from_ascii(text) {
        return Ok(passkey);
    }
    let mut buffer = [0; Passkey::MAX_DIGITS];
    let digits = decode(text, &mut buffer).map_err(|_| QueryError::NotAPasskey)?;
    Passkey::from_ascii(digits).map_err(|_| QueryError::NotAPasskey)
}

//! Percent-encoding (RFC 3986). Decoding writes into the caller's buffer, without allocation.
//!
//! `+` is a plus: announce queries are not forms, and peer ids contain literal plus signs.

use crate::hex::{NOT_A_DIGIT, VALUES};

/// Not the value of a byte.
const BAD: u16 = 0x100;
/// For every byte, its value as the second digit of an escape, or [`BAD`].
const LOW: [u16; 256] = digit_values(0);
/// Likewise as the first digit.
const HIGH: [u16; 256] = digit_values(4);

const fn digit_values(shift: u32) -> [u16; 256] {
    let mut values = [BAD; 256];
    let mut byte = 0;
    while byte < 256 {
        if VALUES[byte] != NOT_A_DIGIT {
            values[byte] = (VALUES[byte] as u16) << shift;
        }
        byte += 1;
    }
    values
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeError {
    BadEscape,
    TooLong,
}

/// Encodes everything but unreserved characters.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = Vec::with_capacity(3 * bytes.len());
    push(&mut text, bytes);
    String::from_utf8(text).expect("only ASCII is written")
}

/// Appends [`encode`]d bytes.
pub fn push(text: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            text.push(*byte);
        } else {
            text.extend_from_slice(&[b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
    }
}

/// The byte of an escape, given the text after the `%`.
#[inline]
fn escaped_byte(digits: &[u8]) -> Option<u8> {
    let [high, low, ..] = *digits else { return None };
    u8::try_from(HIGH[usize::from(high)] | LOW[usize::from(low)]).ok()
}

/// Decodes the whole text, or fails if it does not fit into `into`.
#[inline]
pub fn decode<'b>(text: &[u8], into: &'b mut [u8]) -> Result<&'b [u8], DecodeError> {
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

/// Decodes twenty bytes at the beginning of a value, and returns what follows them. None if the value is shorter or has
/// a bad escape.
#[inline]
pub fn decode_20<'t>(text: &'t [u8], into: &mut [u8; 20]) -> Option<&'t [u8]> {
    // Peer ids are mostly plain.
    let (plain, behind) = text.split_first_chunk::<20>()?;
    if !plain.iter().fold(false, |is_coded, byte| is_coded | (*byte == b'%') | (*byte == b'&')) {
        *into = *plain;
        return Some(behind);
    }
    let mut bad = 0;
    let mut rest = text;
    // In fours, so that the compiler unrolls the inner loop.
    for bytes in into.as_chunks_mut::<4>().0 {
        for byte in bytes {
            match rest {
                [b'%', high, low, behind @ ..] => {
                    let value = HIGH[usize::from(*high)] | LOW[usize::from(*low)];
                    bad |= value;
                    *byte = value as u8;
                    rest = behind;
                }
                [] | [b'%' | b'&', ..] => return None,
                [plain, behind @ ..] => {
                    *byte = *plain;
                    rest = behind;
                }
            }
        }
    }
    (bad < BAD).then_some(rest)
}

/// Decodes a text that is only compared, never shown: a bad escape stands for itself, what does not fit is left out.
pub fn decode_leniently<'b>(text: &[u8], into: &'b mut [u8]) -> &'b [u8] {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_encoded_and_decoded() {
        let bytes: Vec<u8> = (0..=255).collect();
        let text = encode(&bytes);
        assert!(text.starts_with("%00%01") && text.contains("-.%2F0123456789%3A") && text.contains("XYZ%5B"));
        assert_eq!(decode(text.as_bytes(), &mut [0; 256]), Ok(bytes.as_slice()));
        assert_eq!(decode(text.as_bytes(), &mut [0; 255]), Err(DecodeError::TooLong));
        for bad in ["%", "%1", "%g0", "%+1"] {
            assert_eq!(decode(bad.as_bytes(), &mut [0; 9]), Err(DecodeError::BadEscape), "{bad}");
        }
    }
}

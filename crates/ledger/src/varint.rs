//! Variable-length integers (LEB128), and the other parts of packed columns.

use domain::UnixTime;

pub(crate) fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// None if the bytes are malformed.
pub(crate) fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

pub(crate) fn push_time(bytes: &mut Vec<u8>, at: UnixTime) {
    push_number(bytes, at.0.into());
}

/// None if the bytes are malformed.
pub(crate) fn take_time(bytes: &mut &[u8]) -> Option<UnixTime> {
    u32::try_from(take_number(bytes)?).ok().map(UnixTime)
}

/// None if there are fewer.
pub(crate) fn take_bytes<'b>(bytes: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

/// Little-endian; none if there are fewer than eight bytes.
pub(crate) fn take_u64(bytes: &mut &[u8]) -> Option<u64> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*taken))
}

/// Zigzag encoding.
pub(crate) fn push_signed(bytes: &mut Vec<u8>, number: i128) {
    let folded = (number << 1 ^ number >> 127).cast_unsigned();
    push_number(bytes, folded as u64);
    push_number(bytes, (folded >> 64) as u64);
}

/// None if the bytes are malformed.
pub(crate) fn take_signed(bytes: &mut &[u8]) -> Option<i128> {
    let low = take_number(bytes)?;
    let folded = u128::from(low) | u128::from(take_number(bytes)?) << 64;
    Some(((folded >> 1) ^ (folded & 1).wrapping_neg()).cast_signed())
}

//! Reading a query eight bytes at a time.

const ONES: u64 = u64::from_le_bytes([1; 8]);
const LOW_BITS: u64 = ONES * 0x7f;

/// Position of the first `byte`; the length of the text if it has none.
#[inline]
pub(super) fn position(text: &[u8], byte: u8) -> usize {
    position_where(text, byte, 0)
}

/// Position of the first `/` or `?`, which differ in one bit; the length of the text if it has none.
#[inline]
pub(super) fn segment_end(text: &[u8]) -> usize {
    position_where(text, b'?', b'/' ^ b'?')
}

/// Position of the first byte that equals `byte` once the bits of `set` are set.
#[inline]
fn position_where(text: &[u8], byte: u8, set: u8) -> usize {
    let mut rest = text;
    while let Some((word, behind)) = rest.split_first_chunk::<8>() {
        let difference = (u64::from_le_bytes(*word) | (ONES * u64::from(set))) ^ (ONES * u64::from(byte));
        // The lowest high bit is that of the first zero; above it others may be set as well.
        let found = difference.wrapping_sub(ONES) & !difference & !LOW_BITS;
        if found != 0 {
            return text.len() - rest.len() + first_byte(found);
        }
        rest = behind;
    }
    text.len() - rest.len() + rest.iter().position(|other| other | set == byte).unwrap_or(rest.len())
}

#[inline]
fn first_byte(found: u64) -> usize {
    found.trailing_zeros() as usize / 8
}

/// The first eight bytes as a number, the first byte lowest; zeros after the end of the text.
#[inline]
pub(super) fn first_word(text: &[u8]) -> u64 {
    match text.first_chunk::<8>() {
        Some(word) => u64::from_le_bytes(*word),
        None => text.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// The decimal number at the beginning of a word, and how many digits it has: up to eight.
#[inline]
pub(super) fn leading_number(word: u64) -> (u64, usize) {
    let values = word ^ (ONES * u64::from(b'0'));
    // Carries into the high bit from 10 on; the high bit itself is set in bytes above 127.
    let not_digits = (((values & LOW_BITS) + ONES * (0x80 - 10)) | values) & !LOW_BITS;
    let count = if not_digits == 0 { 8 } else { first_byte(not_digits) };
    if count == 0 {
        return (0, 0);
    }
    // Zeros in front, as many as are missing to eight digits.
    let digits = values << (64 - 8 * count);
    // Digits are joined to pairs, these to fours, these to the number.
    let pairs = (digits.wrapping_mul(10 << 8 | 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100 << 16 | 1) >> 16) & 0x0000_ffff_0000_ffff;
    (fours.wrapping_mul(10_000 << 32 | 1) >> 32, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_numbers_are_those_of_the_standard_library() {
        let mut random = 3_u64;
        let mut draw = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            b"0123456789012345678901234567890123456789/:&a\xb5\xff"[(random >> 33) as usize % 46]
        };
        for length in 0..12 {
            for _ in 0..2000 {
                let text: Vec<u8> = (0..length).map(|_| draw()).collect();
                let count = text.iter().take(8).take_while(|byte| byte.is_ascii_digit()).count();
                let plain = str::from_utf8(&text[..count]).unwrap().parse().unwrap_or(0);
                assert_eq!(leading_number(first_word(&text)), (plain, count), "{text:?}");
            }
        }
    }

    #[test]
    fn positions_are_those_of_a_search_byte_by_byte() {
        let mut random = 1_u64;
        let mut draw = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            b"&='%<>\0\x80\xff\xa6/?\xaf\xbf"[(random >> 33) as usize % 14]
        };
        for length in 0..40 {
            for _ in 0..2000 {
                let text: Vec<u8> = (0..length).map(|_| draw()).collect();
                let naive = text.iter().position(|byte| *byte == b'&').unwrap_or(length);
                assert_eq!(position(&text, b'&'), naive, "{text:?}");
                let naive = text.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(length);
                assert_eq!(segment_end(&text), naive, "{text:?}");
            }
        }
    }
}

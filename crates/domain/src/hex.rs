//! Hexadecimal digits: written in lowercase, read in either case.

/// The value of one hexadecimal digit of either case.
pub(crate) const fn digit_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// The value of every byte as a hexadecimal digit; [`NOT_A_DIGIT`] for other bytes.
pub const VALUES: [u8; 256] = {
    let mut values = [NOT_A_DIGIT; 256];
    let mut byte = 0;
    while byte < 256 {
        if let Some(value) = digit_value(byte as u8) {
            values[byte] = value;
        }
        byte += 1;
    }
    values
};

/// Greater than any value.
pub const NOT_A_DIGIT: u8 = 0xff;

/// The value of one digit of either case, or a number above 15. Without a table, so that loops over it become vector
/// instructions.
#[inline]
const fn value_or_more(digit: u8) -> u8 {
    let decimal = digit.wrapping_sub(b'0');
    let letter = (digit | 0x20).wrapping_sub(b'a');
    let of_letter = if letter < 6 { letter + 10 } else { NOT_A_DIGIT };
    if decimal < 10 { decimal } else { of_letter }
}

/// Decodes `2 * N` digits of either case; none if one of them is not a digit.
#[inline]
pub(crate) fn decode_pairs<const N: usize>(digits: &[[u8; 2]; N]) -> Option<[u8; N]> {
    let mut values = [[0; 2]; N];
    let mut bad = 0;
    for (value, digit) in values.as_flattened_mut().iter_mut().zip(digits.as_flattened()) {
        *value = value_or_more(*digit);
        bad |= *value;
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(&values) {
        *byte = high << 4 | low;
    }
    (bad <= 0x0f).then_some(bytes)
}

/// The lowercase digit of a value below 16.
pub(crate) const fn digit(value: u8) -> u8 {
    b"0123456789abcdef"[(value & 0x0f) as usize]
}

pub(crate) fn decode_20(text: &[u8]) -> Option<[u8; 20]> {
    let text: &[u8; 40] = text.try_into().ok()?;
    let (mut bytes, mut bad) = ([0; 20], 0);
    for (byte, [high, low]) in bytes.iter_mut().zip(text.as_chunks().0) {
        let (high, low) = (VALUES[usize::from(*high)], VALUES[usize::from(*low)]);
        bad |= high | low;
        *byte = high << 4 | (low & 0x0f);
    }
    (bad <= 0x0f).then_some(bytes)
}

/// The two lowercase digits of every byte.
pub const PAIRS: [[u8; 2]; 256] = {
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [digit((byte >> 4) as u8), digit(byte as u8)];
        byte += 1;
    }
    pairs
};

pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    push(&mut text, bytes);
    text
}

/// Appends two digits per byte.
pub fn push(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        text.push(char::from(digit(byte >> 4)));
        text.push(char::from(digit(*byte)));
    }
}

/// None if there is anything but pairs of digits.
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some(digit_value(*high)? << 4 | digit_value(*low)?)).collect()
}

/// Encodes twenty bytes as forty lowercase digits.
pub(crate) fn encode_20(bytes: &[u8; 20]) -> [u8; 40] {
    let mut text = [0; 40];
    for (pair, byte) in text.as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
        *pair = PAIRS[usize::from(*byte)];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_decoded_as_one_by_one() {
        for byte in 0..=255 {
            for place in 0..4 {
                let mut digits = *b"0aF9";
                digits[place] = byte;
                let [high, low] = [[digits[0], digits[1]], [digits[2], digits[3]]];
                let plain = decode(&digits).and_then(|bytes| bytes.try_into().ok());
                assert_eq!(decode_pairs(&[high, low]), plain, "{}", digits.escape_ascii());
            }
        }
    }
}

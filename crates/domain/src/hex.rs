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

/// The lowercase digit of a value below 16.
pub(crate) const fn digit(value: u8) -> u8 {
    b"0123456789abcdef"[(value & 0x0f) as usize]
}

pub(crate) fn decode_20(text: &[u8]) -> Option<[u8; 20]> {
    if text.len() != 40 {
        return None;
    }
    let (mut bytes, mut bad) = ([0; 20], 0);
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        let (high, low) = (VALUES[usize::from(pair[0])], VALUES[usize::from(pair[1])]);
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

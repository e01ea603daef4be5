//! Writing: each function appends to a buffer that the caller reuses.

/// Appends a byte string: `4:spam`.
#[inline]
pub fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    push_decimal(out, bytes.len() as u64);
    out.push(b':');
    out.extend_from_slice(bytes);
}

#[inline]
pub fn push_integer(out: &mut Vec<u8>, number: u64) {
    out.push(b'i');
    push_decimal(out, number);
    out.push(b'e');
}

/// Appends the digits of a number. Twenty hold any `u64`.
#[inline]
pub fn push_decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[first..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    #[test]
    fn numbers_are_written_without_leading_zeros() {
        for number in [0, 1, 9, 10, 99, 100, 65_535, u64::from(u32::MAX), u64::MAX] {
            assert_eq!(written(|out| push_decimal(out, number)), number.to_string().as_bytes());
        }
        assert_eq!(written(|out| push_integer(out, 1800)), b"i1800e");
    }

    #[test]
    fn byte_strings_carry_their_length() {
        assert_eq!(written(|out| push_bytes(out, b"")), b"0:");
        assert_eq!(written(|out| push_bytes(out, &[0, 255, b':'])), b"3:\x00\xff:");
    }
}

//! The client side of RFC 6455: masked frames out, whole frames in.
//!
//! Deliberately absent: fragments and extensions. Our servers send neither; both are errors here.

/// Longer than the longest message of a feed: a snapshot of ten thousand friends.
const FRAME_BYTES_MAX: u64 = 16 << 20;

/// A frame that no server may send.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a frame of a server: {0}")]
pub struct BadFrame(pub String);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    Text,
    Binary,
    Close,
    Ping,
    Pong,
}

impl Opcode {
    const ALL: [(Opcode, u8); 5] =
        [(Opcode::Text, 1), (Opcode::Binary, 2), (Opcode::Close, 8), (Opcode::Ping, 9), (Opcode::Pong, 10)];

    fn number(self) -> u8 {
        Opcode::ALL.into_iter().find(|(opcode, _)| *opcode == self).map_or(0, |(_, number)| number)
    }

    fn from_number(wanted: u8) -> Option<Opcode> {
        Opcode::ALL.into_iter().find(|(_, number)| *number == wanted).map(|(opcode, _)| opcode)
    }
}

/// A frame from the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    pub opcode: Opcode,
    pub payload: &'a [u8],
    /// Header included.
    pub length: usize,
}

impl<'a> Frame<'a> {
    /// The frame at the beginning of `bytes`; none if it is incomplete.
    pub fn find(bytes: &'a [u8]) -> Result<Option<Frame<'a>>, BadFrame> {
        let [first, second, ..] = *bytes else { return Ok(None) };
        let Some(opcode) = Opcode::from_number(first & 0x0f).filter(|_| first & 0xf0 == 0x80) else {
            return Err(BadFrame(format!("a frame that begins with {first:#04x}")));
        };
        if second & 0x80 != 0 {
            return Err(BadFrame("a masked frame from a server".to_owned()));
        }
        let (head, payload_bytes) = match second {
            126 => match bytes.get(2..4) {
                Some(length) => (4, u64::from(length[0]) << 8 | u64::from(length[1])),
                None => return Ok(None),
            },
            127 => match bytes.get(2..10) {
                Some(length) => (10, length.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))),
                None => return Ok(None),
            },
            short => (2, u64::from(short)),
        };
        if payload_bytes > FRAME_BYTES_MAX {
            return Err(BadFrame(format!("a frame of {payload_bytes} bytes")));
        }
        let length = head + payload_bytes as usize;
        Ok(bytes.get(head..length).map(|payload| Frame { opcode, payload, length }))
    }

    pub fn close_code(&self) -> Option<u16> {
        let code = self.payload.first_chunk::<2>()?;
        Some(u16::from_be_bytes(*code))
    }
}

/// Appends an unfragmented, masked frame.
pub fn write(opcode: Opcode, payload: &[u8], mask: u32, out: &mut Vec<u8>) {
    out.reserve(14 + payload.len());
    out.push(0x80 | opcode.number());
    match payload.len() {
        short @ 0..=125 => out.push(0x80 | short as u8),
        medium @ 126..=0xffff => {
            out.push(0x80 | 126);
            out.extend_from_slice(&(medium as u16).to_be_bytes());
        }
        long => {
            out.push(0x80 | 127);
            out.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    let mask = mask.to_be_bytes();
    out.extend_from_slice(&mask);
    out.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame as a server sends it: without the mask.
    fn from_server(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
        let mut masked = Vec::new();
        write(opcode, payload, 0, &mut masked);
        let mask_at = masked.len() - payload.len() - 4;
        masked.drain(mask_at..mask_at + 4);
        masked[1] &= 0x7f;
        masked
    }

    #[test]
    fn frames_of_every_length_are_found_once_they_are_whole() {
        for length in [0, 1, 125, 126, 127, 65_535, 65_536, 100_000] {
            let payload = vec![b'x'; length];
            let bytes = from_server(Opcode::Text, &payload);
            let frame = Frame::find(&bytes).unwrap().unwrap();
            assert_eq!(
                (frame.opcode, frame.payload.len(), frame.length),
                (Opcode::Text, length, bytes.len())
            );
            for cut in [0, 1, 2, 3, bytes.len() - 1].into_iter().filter(|cut| *cut < bytes.len()) {
                assert_eq!(Frame::find(&bytes[..cut]).unwrap(), None, "{length} bytes cut at {cut}");
            }
        }
    }

    #[test]
    fn a_mask_hides_the_payload_and_is_undone_by_itself() {
        let mut out = Vec::new();
        write(Opcode::Pong, b"hello", 0x1234_5678, &mut out);
        assert_eq!(out[..6], [0x8a, 0x85, 0x12, 0x34, 0x56, 0x78]);
        let unmasked: Vec<u8> =
            out[6..].iter().zip([0x12, 0x34, 0x56, 0x78].iter().cycle()).map(|(a, b)| a ^ b).collect();
        assert_eq!(unmasked, b"hello");
    }

    #[test]
    fn what_no_server_may_send_is_an_error() {
        for bytes in [[0x01, 0].as_slice(), &[0xc1, 0], &[0x83, 0], &[0x81, 0x80]] {
            assert!(Frame::find(bytes).is_err(), "{bytes:?}");
        }
        assert!(Frame::find(&[0x81, 127, 255, 0, 0, 0, 0, 0, 0, 0]).is_err(), "longer than memory");
    }

    #[test]
    fn a_goodbye_has_a_code() {
        let bytes = from_server(Opcode::Close, &[0x0b, 0xc4, b's']);
        assert_eq!(Frame::find(&bytes).unwrap().unwrap().close_code(), Some(3012));
        let bytes = from_server(Opcode::Close, &[]);
        assert_eq!(Frame::find(&bytes).unwrap().unwrap().close_code(), None);
    }
}

//! WebSocket frames, byte by byte, as in RFC 6455.

use wire::websocket::{
    Decoder, Event, Violation, accept_key, write_close, write_ping, write_pong, write_text, write_text_head,
};

const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// A client frame.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        short @ 0..126 => bytes.push(0x80 | short as u8),
        medium @ 126..65_536 => {
            bytes.push(0x80 | 126);
            bytes.extend_from_slice(&(medium as u16).to_be_bytes());
        }
        long => {
            bytes.push(0x80 | 127);
            bytes.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(&MASK);
    bytes.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, key)| byte ^ key));
    bytes
}

/// Everything decoded from bytes in chunks of this size, and the violation at the end.
fn read_in_pieces(bytes: &[u8], size: usize, max: usize) -> (Vec<Event<'static>>, Option<Violation>) {
    let mut decoder = Decoder::new(max);
    let mut events = Vec::new();
    for piece in bytes.to_vec().chunks_mut(size) {
        let mut left = piece;
        loop {
            match decoder.read(&mut left) {
                Ok(Some(event)) => events.push(kept(event)),
                Ok(None) => break,
                Err(violation) => return (events, Some(violation)),
            }
        }
        assert!(left.is_empty());
    }
    (events, None)
}

fn kept(event: Event<'_>) -> Event<'static> {
    match event {
        Event::Text(text) => Event::Text(text.into_owned().into()),
        Event::Binary(bytes) => Event::Binary(bytes.into_owned().into()),
        Event::Ping(bytes) => Event::Ping(bytes.into_owned().into()),
        Event::Pong(bytes) => Event::Pong(bytes.into_owned().into()),
        Event::Close(code) => Event::Close(code),
    }
}

/// The same at once and byte by byte.
fn read(bytes: &[u8]) -> (Vec<Event<'static>>, Option<Violation>) {
    let whole = read_in_pieces(bytes, bytes.len().max(1), 1 << 20);
    for size in [1, 2, 3, 7, 4096] {
        assert_eq!(read_in_pieces(bytes, size, 1 << 20), whole, "in pieces of {size}");
    }
    whole
}

fn text(text: &str) -> Event<'static> {
    Event::Text(text.to_owned().into())
}

#[test]
fn the_masked_hello_of_the_rfc_is_read() {
    let bytes = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
    assert_eq!(read(&bytes), (vec![text("Hello")], None));
}

#[test]
fn a_message_in_one_chunk_is_borrowed_not_copied() {
    let mut bytes = frame(0x81, b"{\"id\":1}");
    let place = bytes.as_ptr() as usize + 6;
    let mut left = &mut bytes[..];
    let Ok(Some(Event::Text(std::borrow::Cow::Borrowed(text)))) = Decoder::new(64).read(&mut left) else {
        panic!();
    };
    assert_eq!((text, text.as_ptr() as usize), ("{\"id\":1}", place));
}

#[test]
fn fragments_make_one_message_and_control_frames_come_between_them() {
    let bytes = [
        frame(0x01, "häl".as_bytes().split_at(2).0),
        frame(0x89, b"are you there"),
        frame(0x00, "häl".as_bytes().split_at(2).1),
        frame(0x8a, b""),
        frame(0x80, b"lo"),
        frame(0x82, &[0xff, 0x00]),
    ]
    .concat();
    let expected = vec![
        Event::Ping(b"are you there".to_vec().into()),
        Event::Pong(Vec::new().into()),
        text("hällo"),
        Event::Binary(vec![0xff, 0x00].into()),
    ];
    assert_eq!(read(&bytes), (expected, None));
}

#[test]
fn messages_of_every_length_are_read() {
    for length in [0, 1, 125, 126, 127, 4095, 4096, 65_535, 65_536, 70_000] {
        let long = "x".repeat(length);
        assert_eq!(read(&frame(0x81, long.as_bytes())), (vec![text(&long)], None));
    }
}

#[test]
fn every_violation_has_its_close_code() {
    let unmasked = [0x81, 0x05, b'H', b'e', b'l', b'l', b'o'];
    let long_short = [&[0x81, 0x80 | 126, 0, 5][..], &MASK, &[0; 5]].concat();
    let long_medium = [&[0x81, 0x80 | 127, 0, 0, 0, 0, 0, 0, 0xff, 0xff][..], &MASK].concat();
    let beyond = [&[0x81, 0x80 | 127, 0x80, 0, 0, 0, 0, 0, 0, 0][..], &MASK].concat();
    let cases: Vec<(Vec<u8>, Violation, u16)> = vec![
        (frame(0xc1, b""), Violation::ReservedBit, 1002),
        (frame(0x91, b""), Violation::ReservedBit, 1002),
        (frame(0x83, b""), Violation::UnknownKind, 1002),
        (frame(0x8b, b""), Violation::UnknownKind, 1002),
        (unmasked.to_vec(), Violation::NotMasked, 1002),
        (frame(0x09, b""), Violation::BadControl, 1002),
        (frame(0x89, &[0; 126]), Violation::BadControl, 1002),
        (long_short, Violation::BadLength, 1002),
        (long_medium, Violation::BadLength, 1002),
        (beyond, Violation::BadLength, 1002),
        (frame(0x80, b"more of nothing"), Violation::BadOrder, 1002),
        ([frame(0x01, b"a"), frame(0x81, b"b")].concat(), Violation::BadOrder, 1002),
        ([frame(0x01, b"a"), frame(0x02, b"b")].concat(), Violation::BadOrder, 1002),
        (frame(0x88, &[3]), Violation::BadCloseCode, 1002),
        (frame(0x88, &999_u16.to_be_bytes()), Violation::BadCloseCode, 1002),
        (frame(0x88, &1005_u16.to_be_bytes()), Violation::BadCloseCode, 1002),
        (frame(0x88, &1006_u16.to_be_bytes()), Violation::BadCloseCode, 1002),
        (frame(0x88, &1015_u16.to_be_bytes()), Violation::BadCloseCode, 1002),
        (frame(0x88, &2999_u16.to_be_bytes()), Violation::BadCloseCode, 1002),
        (frame(0x88, &5000_u16.to_be_bytes()), Violation::BadCloseCode, 1002),
        (frame(0x88, &[0x03, 0xe8, 0xff]), Violation::NotUtf8, 1007),
        (frame(0x81, &[0xc3, 0x28]), Violation::NotUtf8, 1007),
        (frame(0x81, &[0xc3]), Violation::NotUtf8, 1007),
        ([frame(0x01, &[0xe2, 0x82]), frame(0x80, &[0x28])].concat(), Violation::NotUtf8, 1007),
        (frame(0x81, &[0xed, 0xa0, 0x80]), Violation::NotUtf8, 1007),
    ];
    for (bytes, violation, code) in cases {
        assert_eq!(read(&bytes), (Vec::new(), Some(violation)), "{bytes:02x?}");
        assert_eq!(violation.close_code(), code);
    }
    let after_close = [frame(0x88, &[]), frame(0x81, b"x")].concat();
    assert_eq!(read(&after_close), (vec![Event::Close(None)], Some(Violation::AfterClose)));
}

#[test]
fn invalid_utf8_is_refused_before_the_rest_arrives() {
    let bytes = frame(0x81, &[b'a', 0xff, b'b', b'c', b'd']);
    assert_eq!(read_in_pieces(&bytes[..8], 1, 64).1, Some(Violation::NotUtf8));
}

#[test]
fn a_message_that_is_too_long_is_refused_by_its_header() {
    let exact = frame(0x81, &[b'x'; 100]);
    assert_eq!(read_in_pieces(&exact, 1000, 100).1, None);
    for bytes in [frame(0x81, &[b'x'; 101]), frame(0x82, &[b'x'; 70_000])] {
        let head = bytes.len().min(14);
        assert_eq!(read_in_pieces(&bytes[..head], 1000, 100).1, Some(Violation::TooLong));
    }
    let fragments = [frame(0x01, &[b'x'; 60]), frame(0x00, &[b'x'; 40]), frame(0x80, b"x")].concat();
    assert_eq!(read_in_pieces(&fragments, 1000, 100).1, Some(Violation::TooLong));
    let huge = [&[0x81, 0x80 | 127, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff][..], &MASK].concat();
    assert_eq!(read_in_pieces(&huge, 1000, 100).1, Some(Violation::TooLong));
}

#[test]
fn every_code_that_may_be_sent_is_taken() {
    for code in [1000, 1001, 1002, 1003, 1007, 1011, 1012, 1014, 3000, 3999, 4999_u16] {
        let bytes = frame(0x88, &[&code.to_be_bytes()[..], b"bye"].concat());
        assert_eq!(read(&bytes), (vec![Event::Close(Some(code))], None));
    }
}

#[test]
fn frames_of_a_server_are_as_the_rfc_has_them() {
    let written = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Vec::new();
        write(&mut bytes);
        bytes
    };
    assert_eq!(written(&|out| write_text(out, "Hello")), b"\x81\x05Hello");
    assert_eq!(written(&|out| write_ping(out, b"Hello")), b"\x89\x05Hello");
    assert_eq!(written(&|out| write_pong(out, b"Hello")), b"\x8a\x05Hello");
    assert_eq!(written(&|out| write_close(out, 3001, "shutdown")), b"\x88\x0a\x0b\xb9shutdown");
    assert_eq!(written(&|out| write_close(out, 0, "nothing")), b"\x88\x00");
    assert_eq!(written(&|out| write_text_head(out, 126)), b"\x81\x7e\x00\x7e");
    assert_eq!(written(&|out| write_text_head(out, 65_536)), b"\x81\x7f\0\0\0\0\0\x01\0\0");
    let long = written(&|out| write_close(out, 1000, &"ä".repeat(100)));
    assert_eq!(long.len(), 2 + 2 + 122);
    assert!(std::str::from_utf8(&long[4..]).is_ok());
}

#[test]
fn the_handshake_of_the_rfc_is_answered() {
    let answer = accept_key(b"dGhlIHNhbXBsZSBub25jZQ==");
    assert_eq!(answer.as_deref(), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    for wrong in ["", "dGhlIHNhbXBsZSBub25jZQ=", "dGhlIHNhbXBsZSBub25jZR==", "dGhlIHNhbXBsZSBub25jZ!=="] {
        assert_eq!(accept_key(wrong.as_bytes()), None);
    }
    assert_eq!(accept_key(&[b'a'; 4096]), None);
}

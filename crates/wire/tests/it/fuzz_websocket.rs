//! Any bytes from a client: no panic, bounded messages, the same in chunks as at once.

use wire::websocket::{Decoder, Event, Violation, accept_key};

const MESSAGE_MAX: usize = 300;

/// Comparable text of what was decoded.
fn read(bytes: &[u8], size: usize) -> (Vec<String>, Option<Violation>) {
    let mut decoder = Decoder::new(MESSAGE_MAX);
    let mut events = Vec::new();
    for piece in bytes.to_vec().chunks_mut(size.max(1)) {
        let mut left = piece;
        loop {
            match decoder.read(&mut left) {
                Ok(Some(event)) => {
                    check(&event);
                    events.push(format!("{event:?}"));
                }
                Ok(None) => break,
                Err(violation) => {
                    assert!(matches!(violation.close_code(), 1002 | 1007 | 1009));
                    return (events, Some(violation));
                }
            }
        }
        assert!(left.is_empty());
    }
    (events, None)
}

fn check(event: &Event<'_>) {
    let (length, max) = match event {
        Event::Text(text) => (text.len(), MESSAGE_MAX),
        Event::Binary(bytes) => (bytes.len(), MESSAGE_MAX),
        Event::Ping(bytes) | Event::Pong(bytes) => (bytes.len(), 125),
        Event::Close(_) => (0, 0),
    };
    assert!(length <= max);
}

/// Short frames from any bytes, so that many are complete and masked.
fn as_frames(input: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for chunk in input.chunks(6) {
        let (first, payload) = chunk.split_at(1);
        bytes.push(first[0] & 0x8f);
        bytes.push(0x80 | payload.len() as u8);
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(payload);
    }
    bytes
}

#[test]
fn fuzz_websocket_frames() {
    bolero::check!().for_each(|input: &[u8]| {
        let _ = accept_key(input);
        for bytes in [input.to_vec(), as_frames(input)] {
            let whole = read(&bytes, bytes.len());
            assert_eq!(read(&bytes, 1), whole);
            assert_eq!(read(&bytes, 5), whole);
        }
    });
}

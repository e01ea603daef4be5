//! WebSocket frames against `tungstenite`: each side decodes what the other encodes, and whatever we accept from a
//! client it accepts as well.
//!
//! One deliberate difference: lengths in more bytes than needed, which it accepts and we refuse.

use std::io::{self, Read, Write};

use proptest::prelude::*;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Control, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{CloseFrame, Frame};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocket, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};
use wire::websocket::{Decoder, Event, write_close, write_ping, write_pong, write_text};

/// An in-memory socket.
#[derive(Default)]
struct Memory {
    incoming: io::Cursor<Vec<u8>>,
    written: Vec<u8>,
}

impl Read for Memory {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.incoming.read(buffer)? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.written.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn socket(role: Role, incoming: Vec<u8>) -> WebSocket<Memory> {
    let memory = Memory { incoming: io::Cursor::new(incoming), written: Vec::new() };
    let config =
        WebSocketConfig::default().max_message_size(Some(MESSAGE_MAX)).max_frame_size(Some(MESSAGE_MAX));
    WebSocket::from_raw_socket(memory, role, Some(config))
}

const MESSAGE_MAX: usize = 1 << 20;

/// All messages that tungstenite decodes from these bytes, until it is closed, refuses, or needs more.
fn read_by_them(role: Role, bytes: Vec<u8>) -> Vec<Message> {
    let mut socket = socket(role, bytes);
    let mut messages = Vec::new();
    loop {
        match socket.read() {
            Ok(message) => {
                let is_last = message.is_close();
                messages.push(message);
                if is_last {
                    return messages;
                }
            }
            Err(Error::WriteBufferFull(_)) => {}
            Err(_) => return messages,
        }
    }
}

/// All messages that we decode from these bytes, in chunks of this size, and whether there was a violation.
fn read_by_us(mut bytes: Vec<u8>, size: usize) -> (Vec<Message>, bool) {
    let mut decoder = Decoder::new(MESSAGE_MAX);
    let mut messages = Vec::new();
    for piece in bytes.chunks_mut(size) {
        let mut left = piece;
        loop {
            match decoder.read(&mut left) {
                Ok(None) => break,
                Err(_) => return (messages, true),
                Ok(Some(Event::Close(code))) => {
                    let frame =
                        code.map(|code| CloseFrame { code: CloseCode::from(code), reason: "".into() });
                    messages.push(Message::Close(frame));
                    return (messages, false);
                }
                Ok(Some(Event::Text(text))) => messages.push(Message::text(text.into_owned())),
                Ok(Some(Event::Binary(bytes))) => messages.push(Message::binary(bytes.into_owned())),
                Ok(Some(Event::Ping(bytes))) => messages.push(Message::Ping(bytes.into_owned().into())),
                Ok(Some(Event::Pong(bytes))) => messages.push(Message::Pong(bytes.into_owned().into())),
            }
        }
    }
    (messages, false)
}

/// Our decoder does not return close reasons.
fn without_reason(message: Message) -> Message {
    match message {
        Message::Close(Some(frame)) => {
            Message::Close(Some(CloseFrame { code: frame.code, reason: "".into() }))
        }
        other => other,
    }
}

fn any_message() -> impl Strategy<Value = Message> {
    prop_oneof![
        ".{0,300}".prop_map(Message::text),
        prop::collection::vec(any::<u8>(), 0..3000).prop_map(Message::binary),
        prop::collection::vec(any::<u8>(), 0..=125).prop_map(|bytes| Message::Ping(bytes.into())),
        prop::collection::vec(any::<u8>(), 0..=125).prop_map(|bytes| Message::Pong(bytes.into())),
    ]
}

/// A frame that is mostly valid.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let opcode = prop_oneof![
        8 => prop_oneof![
            Just(OpCode::Data(Data::Text)),
            Just(OpCode::Data(Data::Binary)),
            Just(OpCode::Data(Data::Continue)),
            Just(OpCode::Control(Control::Ping)),
            Just(OpCode::Control(Control::Pong)),
        ],
        1 => Just(OpCode::Control(Control::Close)),
        1 => Just(OpCode::Data(Data::Reserved(3))),
    ];
    let payload = prop_oneof![
        4 => ".{0,40}".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..200),
        1 => (900_u16..5100).prop_map(|code| code.to_be_bytes().to_vec()),
    ];
    let flags = (prop::bool::weighted(0.7), prop::bool::weighted(0.97), prop::bool::weighted(0.02));
    (opcode, payload, flags).prop_map(|(opcode, payload, (is_last, is_masked, is_reserved))| {
        let mut frame = Frame::message(payload, OpCode::Data(Data::Text), is_last);
        frame.header_mut().opcode = opcode;
        frame.header_mut().rsv1 = is_reserved;
        frame.header_mut().mask = is_masked.then_some([7, 99, 200, 1]);
        let mut bytes = Vec::new();
        frame.format(&mut bytes).unwrap();
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_they_write_we_read(messages in prop::collection::vec(any_message(), 0..8), size in 1..5000_usize) {
        let mut client = socket(Role::Client, Vec::new());
        for message in &messages {
            client.send(message.clone()).unwrap();
        }
        client.close(Some(CloseFrame { code: CloseCode::Away, reason: "bye".into() })).unwrap();
        let (read, is_wrong) = read_by_us(client.get_ref().written.clone(), size);
        prop_assert!(!is_wrong);
        let end = Message::Close(Some(CloseFrame { code: CloseCode::Away, reason: "".into() }));
        prop_assert_eq!(read, [messages, vec![end]].concat());
    }

    #[test]
    fn what_we_write_they_read(texts in prop::collection::vec(".{0,300}", 0..8), payload in prop::collection::vec(any::<u8>(), 0..=125), code in 3000..4000_u16) {
        let mut bytes = Vec::new();
        texts.iter().for_each(|text| write_text(&mut bytes, text));
        write_text(&mut bytes, &"x".repeat(70_000));
        write_ping(&mut bytes, &payload);
        write_pong(&mut bytes, &payload);
        write_close(&mut bytes, code, "reason");
        let mut expected: Vec<Message> = texts.into_iter().map(Message::text).collect();
        expected.push(Message::text("x".repeat(70_000)));
        expected.push(Message::Ping(payload.clone().into()));
        expected.push(Message::Pong(payload.into()));
        expected.push(Message::Close(Some(CloseFrame { code: CloseCode::from(code), reason: "reason".into() })));
        prop_assert_eq!(read_by_them(Role::Client, bytes), expected);
    }

    #[test]
    fn whatever_we_accept_they_accept(frames in prop::collection::vec(any_frame(), 0..12), size in 1..300_usize) {
        let bytes = frames.concat();
        let (ours, is_wrong) = read_by_us(bytes.clone(), size);
        let theirs: Vec<Message> = read_by_them(Role::Server, bytes).into_iter().map(without_reason).collect();
        if is_wrong {
            prop_assert!(theirs.len() >= ours.len());
            prop_assert_eq!(&theirs[..ours.len()], &ours[..]);
        } else {
            prop_assert_eq!(theirs, ours);
        }
    }
}

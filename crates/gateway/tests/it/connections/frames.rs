//! What is not a WebSocket, or not the protocol.

use std::time::Duration;

use futures_util::SinkExt;
use gateway::counters::{Ending, UpgradeRefusal};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio_tungstenite::tungstenite::Message;

use crate::connections::fixture::{Fixture, token};

#[tokio::test]
async fn a_ping_is_answered_with_what_it_brought() {
    let fixture = Fixture::start().await;
    let mut client = fixture.member(1).await;
    client.socket.send(Message::Ping("are you there".into())).await.unwrap();
    assert_eq!(client.hear().await, Message::Pong("are you there".into()));
}

#[tokio::test]
async fn frames_that_break_the_rfc_end_the_connection_with_the_code_it_names() {
    let fixture = Fixture::with(|settings| settings.connections.message_bytes_max = 2048).await;
    let too_long = [&[0x81, 0x80 | 126, 0x08, 0x01][..], &[0; 4]].concat();
    let cases: [(&[u8], u16); 6] = [
        (b"\x81\x02{}", 1002),
        (b"GET / HTTP/1.1\r\n\r\n", 1002),
        (b"\xc1\x80\0\0\0\0", 1002),
        (b"\x80\x80\0\0\0\0", 1002),
        (b"\x81\x81\0\0\0\0\xff", 1007),
        (&too_long, 1009),
    ];
    for (bytes, code) in cases {
        let mut client = fixture.open().await;
        client.socket.get_mut().write_all(bytes).await.unwrap();
        assert_eq!(client.closed().await.0, code, "{bytes:02x?}");
    }
    fixture.until("all are gone", || fixture.gateway.acceptor.open_count() == 0).await;
    assert_eq!(fixture.gateway.counters.sessions.ended.get(Ending::BadRequest), 6);
}

#[tokio::test]
async fn a_client_that_sends_a_long_message_to_its_end_still_gets_the_close_code() {
    let fixture = Fixture::with(|settings| settings.connections.message_bytes_max = 2048).await;
    let mut client = fixture.member(1).await;
    let length: u64 = 1 << 20;
    let head = [&[0x81, 0x80 | 127][..], &length.to_be_bytes(), &[0; 4]].concat();
    let stream = client.socket.get_mut();
    stream.write_all(&head).await.unwrap();
    // In pieces: a server that has closed meanwhile would refuse one of them.
    for piece in vec![b'x'; length as usize].chunks(1 << 16) {
        stream.write_all(piece).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(client.closed().await, (1009, "message too long".to_owned()));
    drop(client);
    fixture.until("it is gone", || fixture.gateway.acceptor.open_count() == 0).await;
}

#[tokio::test]
async fn what_is_not_the_protocol_ends_the_connection_for_good() {
    let fixture = Fixture::start().await;
    let connect = json!({"id": 1, "connect": {"token": token(1)}}).to_string();
    let cases = [
        vec!["nonsense".to_owned()],
        vec![String::new()],
        vec![connect.clone(), " \n".to_owned()],
        vec!["{\"id\":1".to_owned()],
        vec!["[]".to_owned()],
        vec!["{\"connect\":{}}".to_owned()],
        // Another command before `connect`.
        vec!["{\"id\":1,\"rpc\":{\"method\":\"status.get\"}}".to_owned()],
        vec!["{\"id\":1,\"dance\":{}}".to_owned()],
        vec![connect.clone(), connect.replace("\"id\":1", "\"id\":2")],
        vec![connect.clone(), "{}{}".to_owned()],
    ];
    for messages in cases {
        let mut client = fixture.open().await;
        for message in &messages {
            client.say(message.clone()).await;
        }
        assert_eq!(client.closed().await, (3501, "bad request".to_owned()), "{messages:?}");
    }
    let mut client = fixture.member(1).await;
    client.socket.send(Message::binary(b"{}".to_vec())).await.unwrap();
    assert_eq!(client.closed().await.0, 3501);
    // A client that closes in the same write still gets the close code.
    let mut client = fixture.member(1).await;
    client.socket.get_mut().write_all(b"\x82\x80\0\0\0\0\x88\x80\0\0\0\0").await.unwrap();
    assert_eq!(client.closed().await.0, 3501);
}

/// SDKs in protobuf mode reconnect for ever after a refused upgrade, and not after 3501.
#[tokio::test]
async fn a_client_with_an_unsupported_subprotocol_gets_the_reason() {
    let fixture = Fixture::start().await;
    for offered in ["", "centrifuge-json", "centrifuge-protobuf, centrifuge-json"] {
        let (mut client, chosen) = fixture.try_open_offering(offered).await.unwrap();
        assert_eq!(chosen.as_deref(), (!offered.is_empty()).then_some("centrifuge-json"));
        client.send(&json!({"id": 1, "connect": {"token": token(1)}})).await;
        assert!(client.reply(1).await["connect"]["client"].is_string(), "{offered}");
    }
    let (mut client, chosen) = fixture.try_open_offering("centrifuge-protobuf").await.unwrap();
    assert_eq!(chosen.as_deref(), Some("centrifuge-protobuf"), "or a client would not read the reason");
    let (code, reason) = client.closed().await;
    assert!(code == 3501 && reason.contains("centrifuge-json"), "{code} {reason}");
    assert!(fixture.try_open_offering("mqtt").await.is_err());
    assert_eq!(fixture.gateway.counters.accept.refused.get(UpgradeRefusal::Protocol), 2);
}

#[tokio::test]
async fn a_silent_client_is_closed_as_stale() {
    let fixture =
        Fixture::with(|settings| settings.connections.connect_timeout = Duration::from_millis(100)).await;
    let mut silent = fixture.open().await;
    let mut pinging = fixture.open().await;
    pinging.socket.send(Message::Ping("x".into())).await.unwrap();
    assert_eq!(silent.closed().await, (3502, "stale".to_owned()));
    assert_eq!(pinging.closed().await.0, 3502);
}

#[tokio::test]
async fn messages_come_in_fragments_and_in_pieces() {
    let fixture = Fixture::start().await;
    let mut client = fixture.open().await;
    let text = json!({"id": 1, "connect": {"token": token(1)}}).to_string();
    let (first, rest) = text.as_bytes().split_at(20);
    let frame = |head: u8, payload: &[u8]| {
        let length = (payload.len() as u16).to_be_bytes();
        match payload.len() {
            short @ 0..126 => [&[head, 0x80 | short as u8, 0, 0, 0, 0][..], payload].concat(),
            _ => [&[head, 0x80 | 126, length[0], length[1], 0, 0, 0, 0][..], payload].concat(),
        }
    };
    let bytes = [frame(0x01, first), frame(0x89, b"between"), frame(0x80, rest)].concat();
    for piece in bytes.chunks(7) {
        client.socket.get_mut().write_all(piece).await.unwrap();
        client.socket.get_mut().flush().await.unwrap();
    }
    assert_eq!(client.hear().await, Message::Pong("between".into()));
    assert!(client.reply(1).await["connect"]["client"].is_string());
}

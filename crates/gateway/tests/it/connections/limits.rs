//! Limits of one connection and of one address.

use std::time::Duration;

use futures_util::SinkExt;
use gateway::counters::{CommandRefusal, Ending, UpgradeRefusal};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio_tungstenite::tungstenite::Message;

use crate::connections::fixture::Fixture;

#[tokio::test]
async fn connections_are_limited_in_total_and_by_address_and_permits_are_returned() {
    let fixture = Fixture::with(|settings| settings.connections.connections_per_address_max = 2).await;
    let first = fixture.open().await;
    let _second = fixture.open().await;
    assert_eq!(fixture.try_open().await.err(), Some(403));
    let refused = &fixture.gateway.counters.accept.refused;
    assert_eq!(refused.get(UpgradeRefusal::AddressFull), 1);
    drop(first);
    fixture.until("a place is free", || fixture.gateway.acceptor.open_count() == 1).await;
    let _third = fixture.open().await;
    assert_eq!(fixture.gateway.counters.accept.open.get(), 2);
    let full = Fixture::with(|settings| settings.connections.connections_max = 1).await;
    let _only = full.open().await;
    assert_eq!(full.try_open().await.err(), Some(403));
    assert_eq!(full.gateway.counters.accept.refused.get(UpgradeRefusal::Full), 1);
}

#[tokio::test]
async fn too_many_commands_are_refused_and_far_too_many_end_the_connection() {
    let fixture = Fixture::with(|settings| settings.connections.commands_per_s = 1).await;
    let mut client = fixture.member(1).await;
    for id in 2..=60 {
        client.send(&json!({"id": id, "rpc": {"method": "devices.list"}})).await;
    }
    let mut codes = Vec::new();
    for id in 2..=10 {
        codes.push(client.reply(id).await["error"]["code"].as_u64());
    }
    assert_eq!(codes[..3], [None; 3]);
    assert!(codes[6..].iter().all(|code| *code == Some(111)), "{codes:?}");
    let refused = &fixture.gateway.counters.sessions.commands_refused;
    assert!(refused.get(CommandRefusal::TooMany) >= 4);
    assert_eq!(client.closed().await, (3013, "too many requests".to_owned()));
}

#[tokio::test]
async fn a_message_without_a_reply_gets_none_also_over_the_limit() {
    let fixture = Fixture::with(|settings| settings.connections.commands_per_s = 1).await;
    let mut client = fixture.member(1).await;
    for _ in 0..8 {
        client.send(&json!({"send": {"data": 1}})).await;
    }
    client.send(&json!({"id": 2, "rpc": {"method": "devices.list"}})).await;
    assert_eq!(client.next().await["id"], 2);
    assert!(fixture.gateway.counters.sessions.commands_refused.get(CommandRefusal::TooMany) >= 3);
}

#[tokio::test]
async fn a_flood_of_pongs_is_closed_as_well() {
    let fixture = Fixture::with(|settings| settings.connections.commands_per_s = 5).await;
    let mut client = fixture.member(1).await;
    for _ in 0..400 {
        if client.socket.send(Message::text("{}")).await.is_err() {
            break;
        }
    }
    assert_eq!(client.closed().await.0, 3013);
}

/// Sends pings without reading the pongs, until the server closes.
async fn never_read(fixture: &Fixture) -> crate::connections::fixture::Client {
    let mut client = fixture.member(1).await;
    let ping = [&[0x89, 0x80 | 125, 0, 0, 0, 0][..], &[b'x'; 125]].concat().repeat(500);
    fixture
        .until("the connection is given up", || {
            // The socket buffer is full: try later.
            let _ = client.socket.get_mut().try_write(&ping);
            fixture.connections() == 0
        })
        .await;
    client
}

#[tokio::test]
async fn a_client_with_too_much_waiting_is_disconnected_as_slow() {
    let fixture = Fixture::with(|settings| {
        settings.connections.commands_per_s = 1_000_000_000;
        settings.connections.outbox_bytes_max = 16 * 1024;
        settings.connections.write_timeout = Duration::from_secs(600);
    })
    .await;
    let mut client = never_read(&fixture).await;
    assert_eq!(fixture.gateway.counters.sessions.ended.get(Ending::Slow), 1);
    // A client that reads again in time gets the close code.
    assert_eq!(client.closed().await, (3008, "slow".to_owned()));
}

#[tokio::test]
async fn a_client_that_does_not_read_in_time_is_disconnected_as_slow() {
    let fixture = Fixture::with(|settings| {
        settings.connections.commands_per_s = 1_000_000_000;
        settings.connections.outbox_bytes_max = 1 << 30;
        settings.connections.write_timeout = Duration::from_millis(200);
    })
    .await;
    let mut client = never_read(&fixture).await;
    assert_eq!(fixture.gateway.counters.sessions.ended.get(Ending::Slow), 1);
    client.socket.get_mut().shutdown().await.unwrap();
    fixture.until("it is gone", || fixture.gateway.acceptor.open_count() == 0).await;
}

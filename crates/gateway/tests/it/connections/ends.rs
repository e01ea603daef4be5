//! How connections end, and what keeps them alive.

use std::time::Duration;

use database::Database;
use domain::{Seconds, UserId};
use futures_util::{SinkExt, StreamExt};
use gateway::counters::Ending;
use gateway::protocol::CloseCode;
use presence::Policy;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode as WireCode;

use crate::connections::fixture::{Fixture, now, token, token_until};

#[tokio::test]
async fn p5_a_goodbye_and_a_broken_connection_are_noticed_at_once() {
    let fixture = Fixture::start().await;
    let mut polite = fixture.member(1).await;
    let rude = fixture.member(2).await;
    assert_eq!(fixture.connections(), 2);
    let goodbye = CloseFrame { code: WireCode::Away, reason: "".into() };
    polite.socket.send(Message::Close(Some(goodbye.clone()))).await.unwrap();
    assert_eq!(polite.hear().await, Message::Close(Some(goodbye)));
    // The server closes first.
    assert!(polite.socket.next().await.is_none());
    fixture.until("the first has left", || fixture.connections() == 1).await;
    drop(rude);
    fixture.until("the second has left", || fixture.connections() == 0).await;
    let ended = &fixture.gateway.counters.sessions.ended;
    assert_eq!((ended.get(Ending::Clean), ended.get(Ending::Dropped), ended.total()), (1, 1, 2));
}

#[tokio::test]
async fn p5_signs_of_life_and_the_end_are_noticed_while_commands_wait_for_the_database() {
    let fixture = Fixture::start().await;
    let mut client = fixture.member(1).await;
    let busy = Database::Sqlite(fixture.database.clone()).begin().await.unwrap();
    for id in 2..=4 {
        let set = json!({"method": "privacy.set", "data": {"status": "nobody"}});
        client.send(&json!({"id": id, "rpc": set})).await;
        // One after the other: bytes of a single read would not have to wait.
        client.socket.send(Message::Ping("are you there".into())).await.unwrap();
        assert_eq!(client.hear().await, Message::Pong("are you there".into()), "no reply before it");
    }
    client.socket.close(None).await.unwrap();
    fixture.until("it has left", || fixture.connections() == 0).await;
    assert_eq!(fixture.gateway.counters.sessions.commands.get(), 1, "nothing but connect was done yet");
    drop(busy);
}

#[tokio::test]
async fn a_user_who_is_disabled_while_connecting_gets_no_connection() {
    let fixture = Fixture::start().await;
    let user = UserId::new(1).unwrap();
    let _other = fixture.member(2).await;
    let mut client = fixture.open().await;
    client.send(&json!({"id": 1, "connect": {"token": token(1)}})).await;
    fixture.disabled.lock().unwrap().insert(user);
    // In either order: it was refused, or it is open and is closed.
    fixture.gateway.hub.users.disconnect_disabled(user);
    assert_eq!(client.closed().await, (3507, "permission denied".to_owned()));
    let mut again = fixture.open().await;
    again.send(&json!({"id": 1, "connect": {"token": token(1)}})).await;
    assert_eq!(again.closed().await, (3507, "permission denied".to_owned()));
    fixture.until("one connection", || fixture.connections() == 1).await;
    assert_eq!(fixture.gateway.counters.sessions.ended.get(Ending::PermissionDenied), 2);
}

#[tokio::test]
async fn a_client_that_left_while_connecting_is_removed() {
    let fixture = Fixture::start().await;
    let text = |user: u64| {
        let connect = json!({"id": 1, "connect": {"token": token(user)}});
        let subscribe = json!({"id": 2, "subscribe": {"channel": "room:a"}});
        format!("{connect}\n{subscribe}")
    };
    for user in 1..=30 {
        let mut client = fixture.open().await;
        client.say(text(user)).await;
        if user % 2 == 0 {
            client.socket.close(None).await.unwrap();
        }
    }
    let is_empty = || fixture.gateway.acceptor.open_count() == 0 && fixture.connections() == 0;
    fixture.until("all have left", is_empty).await;
    let mut last = fixture.member(99).await;
    last.send(&json!({"id": 2, "subscribe": {"channel": "room:a"}})).await;
    assert!(last.reply(2).await["subscribe"].is_object());
    last.send(&json!({"id": 3, "presence_stats": {"channel": "room:a"}})).await;
    assert_eq!(last.reply(3).await["presence_stats"]["num_clients"], 1);
}

#[tokio::test]
async fn a_token_that_runs_out_ends_the_connection_unless_it_is_renewed() {
    let fixture = Fixture::with(|settings| settings.connections.expiry_grace = Seconds(0)).await;
    let soon = || token_until(1, now() + Seconds(2), None);
    let (mut forgetful, mut careful) = (fixture.open().await, fixture.open().await);
    for client in [&mut forgetful, &mut careful] {
        client.send(&json!({"id": 1, "connect": {"token": soon()}})).await;
        let ttl = client.next().await["connect"]["ttl"].as_u64().unwrap();
        assert!((1..=2).contains(&ttl));
    }
    careful.send(&json!({"id": 2, "refresh": {"token": token(1)}})).await;
    let refreshed = careful.reply(2).await;
    assert_eq!(refreshed["refresh"]["expires"], true);
    assert!(refreshed["refresh"]["ttl"].as_u64().unwrap() > 3000);
    assert_eq!(forgetful.closed().await, (3005, "connection expired".to_owned()));
    careful.send(&json!({"id": 3, "rpc": {"method": "devices.list"}})).await;
    assert!(careful.reply(3).await["rpc"].is_object());
    // The token of another user is final.
    careful.send(&json!({"id": 4, "refresh": {"token": token(2)}})).await;
    assert_eq!(careful.closed().await.0, 3500);
}

#[tokio::test]
async fn a_refresh_with_an_expired_token_closes_with_reconnect() {
    let fixture = Fixture::start().await;
    let mut client = fixture.member(1).await;
    client.send(&json!({"id": 2, "refresh": {"token": token_until(1, now() - Seconds(60), None)}})).await;
    // Below 3500, SDKs reconnect; an error would be final.
    assert_eq!(client.closed().await, (3005, "connection expired".to_owned()));
}

#[tokio::test]
async fn pings_go_out_and_the_delay_of_their_answers_is_measured() {
    let policy = Policy { ping: Seconds(1), ..Policy::default() };
    let fixture =
        Fixture::with_policy(policy, |settings| settings.connections.ping = Duration::from_secs(1)).await;
    let mut client = fixture.member(1).await;
    for _ in 0..2 {
        assert_eq!(client.next().await, json!({}));
    }
    client.say("{}").await;
    let sessions = &fixture.gateway.counters.sessions;
    fixture.until("the answer is measured", || sessions.ping_answers.snapshot().count() == 1).await;
    // From the first unanswered ping on; they are a second apart.
    assert!(sessions.ping_answers.snapshot().sum > Duration::from_millis(500));
    assert!(sessions.pings.get() >= 2);
}

#[tokio::test]
async fn all_connections_are_closed_with_reconnect_when_the_server_stops() {
    let fixture = Fixture::with(|settings| settings.connections.goodbye = Duration::from_millis(100)).await;
    let mut clients = Vec::new();
    for user in 1..=10 {
        clients.push(fixture.member(user).await);
    }
    let mut unconnected = fixture.open().await;
    let gateway = std::sync::Arc::clone(&fixture.gateway);
    let draining = tokio::spawn(async move { gateway.drain().await });
    for client in &mut clients {
        assert_eq!(client.closed().await, (3001, "shutdown".to_owned()));
    }
    assert_eq!(unconnected.closed().await.0, 3001);
    for client in clients.iter_mut().chain([&mut unconnected]) {
        while client.socket.next().await.is_some() {}
    }
    draining.await.unwrap();
    assert_eq!(fixture.gateway.acceptor.open_count(), 0);
    assert_eq!(fixture.try_open().await.err(), Some(403));
}

#[tokio::test]
async fn a_device_that_is_signed_out_does_not_come_back() {
    let fixture = Fixture::start().await;
    let mut client = fixture.open().await;
    client.send(&json!({"id": 1, "connect": {"token": token(1), "data": {"device": "old"}}})).await;
    assert!(client.reply(1).await["connect"].is_object());
    let mut other = fixture.member(1).await;
    other.send(&json!({"id": 2, "rpc": {"method": "devices.sign_out", "data": {"device": "old"}}})).await;
    assert!(other.reply(2).await["rpc"].is_object());
    assert_eq!(client.closed().await, (3503, "force disconnect".to_owned()));
}

#[test]
fn every_reason_is_one_that_sdks_understand() {
    for code in CloseCode::ALL {
        // Without a reason SDKs reconnect whatever the code; they parse a reason in JSON.
        assert!(
            !code.reason().is_empty() && serde_json::from_str::<serde_json::Value>(code.reason()).is_err()
        );
        assert!(matches!(code.code(), 1002 | 1007 | 1009 | 3000..=3999));
    }
}

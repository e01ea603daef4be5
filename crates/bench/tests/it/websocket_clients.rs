//! Clients against the bare WebSocket server, over real sockets: every client is connected, received and counted.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use bench::baseline;
use bench::process::free_address;
use simulate::websocket::protocol::{Protocol, tokens_signed_with};
use simulate::websocket::{ClientId, CloseReason, Event, WebSocketClients, WebSocketClientsPlan};

/// Long enough for a slow machine; the server's thread ends with the test's process.
const LIFETIME: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(20);
const MEMBERS: u64 = 300;

fn server() -> SocketAddr {
    let address = free_address().unwrap();
    std::thread::spawn(move || baseline::websocket::serve(address, LIFETIME));
    testkit::eventually("the server to listen", TIMEOUT, || std::net::TcpStream::connect(address).ok());
    address
}

fn clients_of(server: SocketAddr, members: u64) -> WebSocketClients {
    let mut clients =
        WebSocketClients::new(WebSocketClientsPlan { server, protocol: Protocol::Plain, opening_max: 64 })
            .unwrap();
    for user in 1..=members {
        let member = clients.join(user, 0);
        clients.open(member);
    }
    assert_eq!(clients.opening(), members as usize);
    let all_up =
        clients.poll_until(TIMEOUT, |clients| clients.up() == members as usize, &mut |_, _| {}).unwrap();
    assert!(all_up, "{} of {members} are up", clients.up());
    clients
}

#[test]
fn every_client_gets_replies_and_changes() {
    let mut clients = clients_of(server(), MEMBERS);
    let long = "x".repeat(70_000);
    for member in clients.members() {
        let text = if member.0 % 100 == 0 { long.clone() } else { format!("hello {}", member.0) };
        clients.send(member, &text).unwrap();
    }
    let mut answers = BTreeMap::new();
    let received = std::cell::Cell::new(0);
    clients
        .poll_until(TIMEOUT, |_| received.get() == MEMBERS, &mut |member, event| {
            if let Event::Message(text) = event {
                answers.insert(member, text.len());
                received.set(received.get() + 1);
            }
        })
        .unwrap();
    assert_eq!(answers.len(), MEMBERS as usize);
    assert_eq!((answers[&ClientId(0)], answers[&ClientId(7)]), (70_000, 7));

    received.set(0);
    clients.send(ClientId(5), "!all of you").unwrap();
    clients
        .poll_until(TIMEOUT, |_| received.get() == MEMBERS, &mut |_, event| {
            if let Event::Message(b"!all of you") = event {
                received.set(received.get() + 1);
            }
        })
        .unwrap();
    assert_eq!(received.get(), MEMBERS);
    assert_eq!(clients.counts().messages, 2 * MEMBERS);
}

#[test]
fn who_leaves_comes_back() {
    let mut clients = clients_of(server(), 20);
    for member in clients.members() {
        clients.close(member, member.0 % 2 == 0);
    }
    assert_eq!(clients.up(), 0);
    for member in clients.members().take(10) {
        clients.open(member);
        clients.open(member);
    }
    clients.open(ClientId(15));
    clients.close(ClientId(15), true);
    clients
        .poll_until(TIMEOUT, |clients| clients.up() == 10 && clients.opening() == 0, &mut |_, _| {})
        .unwrap();
    assert_eq!((clients.up(), clients.opening()), (10, 0), "each once, except the cancelled one");
}

#[test]
fn a_server_that_is_gone_is_told_and_no_error() {
    let server = free_address().unwrap();
    let mut clients =
        WebSocketClients::new(WebSocketClientsPlan { server, protocol: Protocol::Plain, opening_max: 64 })
            .unwrap();
    let member = clients.join(1, 0);
    clients.open(member);
    let mut endings = Vec::new();
    clients
        .poll_until(TIMEOUT, |clients| clients.opening() == 0, &mut |_, event| {
            if let Event::Down(ending) = event {
                endings.push(ending.clone());
            }
        })
        .unwrap();
    assert_eq!(endings, [CloseReason::Broken]);
}

#[test]
fn a_stranger_to_the_protocol_is_noticed() {
    let protocol = Protocol::Centrifuge(tokens_signed_with("0123456789abcdef0123456789abcdef"));
    let mut clients =
        WebSocketClients::new(WebSocketClientsPlan { server: server(), protocol, opening_max: 64 }).unwrap();
    let member = clients.join(1, 0);
    clients.open(member);
    // The echo of the connect command is no reply to it... but has its number, so it passes for one.
    clients.poll_until(TIMEOUT, |clients| clients.up() == 1, &mut |_, _| {}).unwrap();
    clients.send(member, "no JSON").unwrap();
    let noticed = clients.poll_for(TIMEOUT, &mut |_, _| {}).unwrap_err().to_string();
    assert!(noticed.contains("no JSON"), "{noticed}");
}

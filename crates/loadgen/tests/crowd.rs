//! A crowd against the bare WebSocket server, over real sockets: everybody is connected, heard and counted.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use loadgen::crowd::speech::{Speech, TokenKey};
use loadgen::crowd::{Crowd, CrowdPlan, Ending, Event, Member};
use loadgen::floor;
use loadgen::process::free_address;

/// Long enough for a slow machine; the server's thread ends with the test's process.
const LIFETIME: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(20);
const MEMBERS: u64 = 300;

fn server() -> SocketAddr {
    let address = free_address().unwrap();
    std::thread::spawn(move || floor::websocket::serve(address, LIFETIME));
    testkit::eventually("the server to listen", PATIENCE, || std::net::TcpStream::connect(address).ok());
    address
}

fn crowd_of(server: SocketAddr, members: u64) -> Crowd {
    let mut crowd = Crowd::new(CrowdPlan { server, speech: Speech::Plain, opening_max: 64 }).unwrap();
    for user in 0..members {
        let member = crowd.join(user, 0);
        crowd.open(member);
    }
    assert_eq!(crowd.on_their_way(), members as usize);
    let all_up = crowd.turn_until(PATIENCE, |crowd| crowd.up() == members as usize, &mut |_, _| {}).unwrap();
    assert!(all_up, "{} of {members} are up", crowd.up());
    crowd
}

#[test]
fn everybody_is_answered_and_everybody_is_told() {
    let mut crowd = crowd_of(server(), MEMBERS);
    let long = "x".repeat(70_000);
    for member in crowd.members() {
        let text = if member.0 % 100 == 0 { long.clone() } else { format!("hello {}", member.0) };
        crowd.send(member, &text).unwrap();
    }
    let mut answers = BTreeMap::new();
    let heard = std::cell::Cell::new(0);
    crowd
        .turn_until(PATIENCE, |_| heard.get() == MEMBERS, &mut |member, event| {
            if let Event::Message(text) = event {
                answers.insert(member, text.len());
                heard.set(heard.get() + 1);
            }
        })
        .unwrap();
    assert_eq!(answers.len(), MEMBERS as usize);
    assert_eq!((answers[&Member(0)], answers[&Member(7)]), (70_000, 7));

    heard.set(0);
    crowd.send(Member(5), "!all of you").unwrap();
    crowd
        .turn_until(PATIENCE, |_| heard.get() == MEMBERS, &mut |_, event| {
            if let Event::Message(b"!all of you") = event {
                heard.set(heard.get() + 1);
            }
        })
        .unwrap();
    assert_eq!(heard.get(), MEMBERS);
    assert_eq!(crowd.counts().messages, 2 * MEMBERS);
}

#[test]
fn who_leaves_comes_back() {
    let mut crowd = crowd_of(server(), 20);
    for member in crowd.members() {
        crowd.close(member, member.0 % 2 == 0);
    }
    assert_eq!(crowd.up(), 0);
    for member in crowd.members().take(10) {
        crowd.open(member);
        crowd.open(member);
    }
    crowd.open(Member(15));
    crowd.close(Member(15), true);
    crowd
        .turn_until(PATIENCE, |crowd| crowd.up() == 10 && crowd.on_their_way() == 0, &mut |_, _| {})
        .unwrap();
    assert_eq!(
        (crowd.up(), crowd.on_their_way()),
        (10, 0),
        "each once, and the one who thought better of it not"
    );
}

#[test]
fn a_server_that_is_gone_is_told_and_no_error() {
    let server = free_address().unwrap();
    let mut crowd = Crowd::new(CrowdPlan { server, speech: Speech::Plain, opening_max: 64 }).unwrap();
    let member = crowd.join(1, 0);
    crowd.open(member);
    let mut endings = Vec::new();
    crowd
        .turn_until(PATIENCE, |crowd| crowd.on_their_way() == 0, &mut |_, event| {
            if let Event::Down(ending) = event {
                endings.push(ending.clone());
            }
        })
        .unwrap();
    assert_eq!(endings, [Ending::Broken]);
}

#[test]
fn a_stranger_to_the_protocol_is_noticed() {
    let speech = Speech::Centrifuge(TokenKey::new("0123456789abcdef0123456789abcdef"));
    let mut crowd = Crowd::new(CrowdPlan { server: server(), speech, opening_max: 64 }).unwrap();
    let member = crowd.join(1, 0);
    crowd.open(member);
    // The echo of the connect command is no reply to it... but has its number, so it passes for one.
    crowd.turn_until(PATIENCE, |crowd| crowd.up() == 1, &mut |_, _| {}).unwrap();
    crowd.send(member, "no JSON").unwrap();
    let noticed = crowd.turn_for(PATIENCE, &mut |_, _| {}).unwrap_err().to_string();
    assert!(noticed.contains("no JSON"), "{noticed}");
}

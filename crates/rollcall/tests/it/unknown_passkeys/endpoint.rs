//! The verify endpoint: valid, failing and invalid replies.

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use domain::Passkey;
use socket2::{Domain, Socket, Type};
use testkit::{
    AnnounceReply, Behaviour, Family, RawHttp, RedisServer, RetryIn, Server, ServerBuilder, VerifyEndpoint,
    eventually,
};

use crate::unknown_passkeys::{
    PATIENCE, announce, builder, cannot_be_checked, is_unknown, leecher, on, refusal, start, stranger,
    wait_uploaded,
};

const KEY: &str = "0123456789abcdef";

fn asking(endpoint: &VerifyEndpoint, builder: ServerBuilder) -> ServerBuilder {
    let builder = builder
        .set("access.verify_url", format!("\"{}\"", endpoint.url()))
        .set("access.verify_api_key", format!("\"{KEY}\""));
    match endpoint.url().starts_with("https") {
        true => builder.set("access.verify_ca_file", format!("\"{}\"", endpoint.ca_file().display())),
        false => builder,
    }
}

#[test]
fn w4_the_endpoint_verifies_over_https_and_the_set_in_redis_is_updated() {
    let redis = RedisServer::start();
    let endpoint = VerifyEndpoint::tls(KEY);
    endpoint.accept_passkey_of(stranger(1), 4711);
    endpoint.accept_passkey(stranger(2));
    let (server, _) = start(asking(&endpoint, on(&redis)));
    let before = endpoint.calls();
    let first = server.announce(Family::V4, &stranger(1), &leecher(1).with_totals(0, 0, 9));
    assert_eq!(first.failure_reason, None);
    server.udp(Family::V4).announce(&leecher(2), &format!("/{}/announce", stranger(2))).unwrap();
    assert_eq!(endpoint.calls() - before, 2);
    for number in [1, 2] {
        eventually("the write-back", PATIENCE, || {
            let member = redis.cli(&["SISMEMBER", "pt:passkeys", &stranger(number).to_string()]);
            (member.trim() == "1").then_some(())
        });
    }
    server.announce(Family::V4, &stranger(1), &leecher(1).with_totals(123, 0, 9));
    wait_uploaded(&server, 4711, "123");
    assert_eq!(endpoint.calls() - before, 2, "remembered");
    assert_eq!(endpoint.unauthorised(), 0);
}

#[test]
fn w4_concurrent_announces_of_one_unknown_passkey_cause_one_call() {
    let endpoint = VerifyEndpoint::plain(KEY);
    endpoint.accept_passkey(stranger(1));
    let (server, _) = start(asking(&endpoint, builder()));
    endpoint.behave(Behaviour::Slow(Duration::from_millis(500)));
    let server = &server;
    std::thread::scope(|scope| {
        for client in 1..=50 {
            scope.spawn(move || assert_eq!(refusal(server, &stranger(1), client % 5), None));
        }
        for client in 51..=100 {
            scope.spawn(move || {
                let path = format!("/announce/{}", stranger(1));
                server.udp(Family::V6).announce(&leecher(client % 5), &path).unwrap();
            });
        }
    });
    assert_eq!(endpoint.calls_about(&stranger(1)), 1);
}

/// An announce from another address of this machine.
fn announce_from(source: u8, server: &Server, passkey: &Passkey) -> AnnounceReply {
    let address = server.addr(Family::V4);
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, source], 0)).into()).unwrap();
    socket.connect(&address.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut connection = RawHttp::over(stream, address);
    let target = leecher(source.into()).target(passkey);
    connection
        .send(format!("GET {target} HTTP/1.1\r\nHost: tracker\r\nConnection: close\r\n\r\n").as_bytes());
    AnnounceReply::decode(&connection.read_reply().body)
}

#[test]
fn w4_a_flood_of_random_passkeys_from_one_address_leaves_calls_to_newcomers_at_others() {
    let endpoint = VerifyEndpoint::plain(KEY);
    let builder = asking(&endpoint, builder()).set("limits.requests_per_address_per_s", 0);
    let (server, _) = start(builder);
    let newcomers = 3..=7;
    newcomers.clone().for_each(|number| endpoint.accept_passkey(stranger(number.into())));
    let is_over = AtomicBool::new(false);
    let (withheld, told) = mpsc::channel();
    std::thread::scope(|scope| {
        for lane in 1..=4 {
            let (server, is_over, withheld) = (&server, &is_over, withheld.clone());
            scope.spawn(move || {
                for number in
                    (lane * 100_000..(lane + 1) * 100_000).take_while(|_| !is_over.load(Ordering::Relaxed))
                {
                    let reply = announce_from(2, server, &stranger(number));
                    if reply.failure_reason.is_some_and(|reason| reason.contains("cannot be checked")) {
                        let _ = withheld.send(reply.retry_in);
                    }
                }
            });
        }
        let retry_in = told.recv_timeout(PATIENCE);
        let refused =
            newcomers.map(|number| announce_from(number, &server, &stranger(number.into())).failure_reason);
        let refused: Vec<_> = refused.collect();
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(retry_in, Ok(Some(RetryIn::Minutes(1))), "the flood is told to come back");
        assert_eq!(refused, vec![None; 5]);
    });
    let page = server.api(&["read"]).get("/metrics").reply.body;
    let page = String::from_utf8(page).unwrap();
    let over_share = "rollcall_access_verify_withheld_total{reason=\"over_address_budget\"}";
    assert!(page.lines().any(|line| line.starts_with(over_share) && !line.ends_with(" 0")), "{page}");
}

#[test]
fn w5_whatever_the_endpoint_does_wrong_is_never_a_no() {
    let endpoint = VerifyEndpoint::plain(KEY);
    endpoint.accept_passkey(stranger(1));
    let builder = asking(&endpoint, builder());
    let (server, watcher) = start(builder.set("access.verify_timeout_ms", 300));
    let failures = [
        Behaviour::Status(500),
        Behaviour::Body("garbage".to_owned()),
        Behaviour::Redirects,
        Behaviour::Huge,
        Behaviour::Closes,
        Behaviour::Slow(Duration::from_secs(2)),
    ];
    for (number, failure) in (100..).zip(failures) {
        // A success in between, so that the circuit breaker stays closed.
        endpoint.behave(Behaviour::Answers);
        endpoint.accept_passkey(stranger(number));
        eventually("the endpoint to be used again", PATIENCE, || {
            refusal(&server, &stranger(number), 3).is_none().then_some(())
        });
        endpoint.behave(failure.clone());
        let reply = announce(&server, &stranger(1), 1);
        let reason = reply.failure_reason.clone().unwrap_or_default();
        assert!(reason.contains("cannot be checked right now"), "{failure:?}: {reason}");
        assert_eq!(reply.retry_in, Some(RetryIn::Minutes(1)), "{failure:?}");
        assert_eq!(refusal(&server, &watcher, 2), None, "our own are let in");
    }
    let path = format!("/announce/{}", stranger(1));
    let answer = server.udp(Family::V4).try_announce(&leecher(1), &path, Duration::from_secs(3));
    assert!(answer.is_none(), "over UDP nothing is said, and clients ask again");
    endpoint.behave(Behaviour::Answers);
    // The circuit breaker may be open by now.
    eventually("the endpoint to be used again", PATIENCE, || {
        refusal(&server, &stranger(1), 1).is_none().then_some(())
    });
}

#[test]
fn w5_known_only_uses_the_whitelist_while_the_endpoint_fails() {
    let endpoint = VerifyEndpoint::plain(KEY);
    let (server, _) = start(asking(&endpoint, builder()));
    server.cli(&["passkey", "add", &stranger(1).to_string()]);
    drop(endpoint);
    for number in 2..=6 {
        assert!(cannot_be_checked(&server, &stranger(number), number as u32));
    }
    assert!(server.log().contains("circuit breaker open"), "{}", server.log());
    assert_eq!(refusal(&server, &stranger(1), 1), None);
}

#[test]
fn w5_refuse_refuses_unknown_passkeys_while_the_endpoint_fails() {
    let endpoint = VerifyEndpoint::plain(KEY);
    let builder = asking(&endpoint, builder()).set("access.on_verify_failure", "\"refuse\"");
    let (server, watcher) = start(builder);
    server.cli(&["passkey", "add", &stranger(1).to_string()]);
    assert_eq!(refusal(&server, &stranger(1), 1), None);
    endpoint.behave(Behaviour::Status(502));
    for number in 2..=7 {
        assert!(cannot_be_checked(&server, &stranger(number), number as u32));
    }
    assert!(cannot_be_checked(&server, &stranger(1), 1), "listed, and refused all the same");
    assert_eq!(refusal(&server, &watcher, 9), None);
    endpoint.behave(Behaviour::Answers);
    eventually("strangers to be let in again", PATIENCE, || {
        refusal(&server, &stranger(1), 1).is_none().then_some(())
    });
    assert!(is_unknown(&server, &stranger(2), 2));
}

#[test]
fn w4_a_no_is_asked_about_again_after_its_time() {
    let endpoint = VerifyEndpoint::plain(KEY);
    let (server, _) = start(asking(&endpoint, builder()));
    assert!(is_unknown(&server, &stranger(1), 1));
    endpoint.accept_passkey(stranger(1));
    eventually("the stranger to be let in", PATIENCE, || {
        refusal(&server, &stranger(1), 1).is_none().then_some(())
    });
}

#[test]
fn a_server_that_ends_does_not_wait_for_a_slow_endpoint() {
    let endpoint = VerifyEndpoint::plain(KEY);
    let (mut server, _) = start(asking(&endpoint, builder()).set("access.verify_timeout_ms", 2000));
    endpoint.behave(Behaviour::Slow(Duration::from_secs(60)));
    let before = endpoint.calls();
    let mut waiting = server.http(Family::V4);
    let target = leecher(1).target(&stranger(1));
    waiting.send(format!("GET {target} HTTP/1.1\r\nHost: tracker\r\n\r\n").as_bytes());
    eventually("the call", PATIENCE, || (endpoint.calls() > before).then_some(()));
    assert!(server.stop().success());
    let reply = waiting.read_reply();
    assert!(String::from_utf8_lossy(&reply.body).contains("cannot be checked right now"));
}

#[test]
fn an_endpoint_without_a_key_is_refused_at_the_start() {
    let endpoint = VerifyEndpoint::plain(KEY);
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.toml");
    std::fs::write(&config, format!("[access]\nverify_url = \"{}\"\n", endpoint.url())).unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_rollcall"))
        .args(["config", "check", "--config"])
        .arg(&config)
        .env_remove("TRACKER_API_KEY")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("access.verify_api_key"), "{said}");
}

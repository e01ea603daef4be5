//! Logs: each announce with its deltas, and no usable passkey.

use domain::AnnounceEvent::Started;
use domain::Passkey;
use serde_json::Value as Json;
use testkit::udp::announce_packet;
use testkit::{Announce, Family, Server, eventually};

use crate::serving::{PATIENCE, TORRENT, add_torrent, announce, builder, leecher};

/// Adds a user with a passkey that is recognised wherever it turns up.
fn add_user(server: &Server, id: &str, passkey: &str) -> Passkey {
    server.cli(&["user", "add", "--id", id, "--passkey", passkey]);
    let passkey: Passkey = passkey.parse().expect("a passkey");
    eventually("the user to be known", PATIENCE, || server.try_scrape(&passkey, &TORRENT).ok());
    passkey
}

/// The lines that were written about announces.
fn traffic(server: &Server) -> Vec<Json> {
    let log = server.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Json>(line).ok());
    lines.filter(|line| line["target"] == "traffic").collect()
}

#[test]
fn every_announce_is_written_with_what_it_moved_and_a_redacted_passkey() {
    let server = builder()
        .set("log.level", "\"info,traffic=debug\"")
        .set("tracker.min_announce_interval_s", 0)
        .start();
    let passkey = add_user(&server, "7", "c0ffee00c0ffee00c0ffee00c0ffee00");
    add_torrent(&server, &passkey);
    announce(&server, &passkey, &leecher(1).with_event(Started));
    announce(&server, &passkey, &leecher(1).with_totals(123_456, 654_321, 10));
    let path = format!("/{passkey}/announce");
    let over_udp = leecher(1).with_totals(123_457, 654_323, 8);
    server.udp(Family::V6).announce(&over_udp, &path).expect("it is accepted");
    eventually("three lines", PATIENCE, || (traffic(&server).len() == 3).then_some(()));
    let lines = traffic(&server);
    for (line, (event, up, down, af)) in lines.iter().zip([
        ("started", 0, 0, "IPv4"),
        ("none", 123_456, 654_321, "IPv4"),
        ("none", 123_457, 654_323, "IPv6"),
    ]) {
        assert_eq!((&line["passkey"], &line["user"]), (&Json::from("c0ff…"), &Json::from(7)), "{line}");
        assert_eq!((&line["event"], &line["af"]), (&Json::from(event), &Json::from(af)), "{line}");
        assert_eq!((&line["up"], &line["down"]), (&Json::from(up), &Json::from(down)), "{line}");
        assert_eq!(line["infohash"], TORRENT.to_string(), "{line}");
    }
    let moved: Vec<_> = lines.iter().map(|line| (line["du"].as_u64(), line["dd"].as_u64())).collect();
    assert_eq!(moved, [(Some(0), Some(0)), (Some(123_456), Some(654_321)), (Some(1), Some(2))]);
    assert!(!server.log().contains(&passkey.to_string()));
}

#[test]
fn without_being_asked_for_announces_are_not_written() {
    let mut server = builder().start();
    let passkey = add_user(&server, "7", "c0ffee00c0ffee00c0ffee00c0ffee00");
    add_torrent(&server, &passkey);
    announce(&server, &passkey, &leecher(1));
    server.stop();
    assert_eq!(traffic(&server).len(), 0);
    assert!(server.log().contains("\"announces_http\":1"), "but they are counted");
}

/// Sends everything that can be wrong with a passkey in it.
fn send_bad_requests(server: &Server, passkey: &str) {
    let query = leecher(1).query();
    let unknown = Announce { info_hash: domain::InfoHash([0x99; 20]), ..leecher(1) }.query();
    for request in [
        format!("GET /{passkey}/announce?{query} HTTP/1.1\r\n\r\n"),
        format!("GET /{passkey}/announce?{unknown} HTTP/1.1\r\n\r\n"),
        format!("GET /{passkey}/announce?info_hash=short HTTP/1.1\r\n\r\n"),
        format!("GET /{passkey}/nonsense HTTP/1.1\r\n\r\n"),
        format!("GET /{passkey}/{passkey}/announce?{query} HTTP/1.1\r\n\r\n"),
        format!("GET /{passkey}ff/announce?{query} HTTP/1.1\r\n\r\n"),
        format!("GET /announce?passkey={passkey}&passkey={passkey} HTTP/1.1\r\n\r\n"),
        format!("GET /scrape/{passkey}?info_hash=%4 HTTP/1.1\r\n\r\n"),
        format!("POST /{passkey}/announce HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"),
        format!("GET /{passkey}/announce HTTP/2.0\r\n\r\n"),
        format!("GET /{passkey}/announce\r\n\r\n"),
        format!("get /{passkey}/announce HTTP/1.1\r\n\r\n"),
        format!("GET /{passkey}/announce HTTP/1.1\r\nno colon {passkey}\r\n\r\n"),
        format!("GET /{passkey}/announce HTTP/1.1\r\nReferer: {}\r\n\r\n", passkey.repeat(1000)),
        passkey.to_owned(),
        // Cut off in the middle.
        format!("GET /{passkey}/announce HTTP/1.1\r\nReferer: {passkey}"),
    ] {
        let mut connection = server.http(Family::V4);
        connection.send(request.as_bytes());
        connection.finish_sending();
        connection.read_to_close();
    }
    let mut udp = server.udp(Family::V4);
    for path in [format!("/{passkey}/announce"), format!("/{passkey}/nonsense"), format!("/x/{passkey}/y")] {
        let _ = udp.announce(&Announce { info_hash: domain::InfoHash([0x99; 20]), ..leecher(1) }, &path);
        let connection = udp.connect();
        let mut cut_off = announce_packet(connection, 9, &leecher(1), &path);
        cut_off.truncate(cut_off.len() - 3);
        udp.exchange(&cut_off);
    }
}

/// The most talkative log there is, and every way to be refused.
#[test]
fn no_passkey_is_ever_written_in_full() {
    let mut server = builder().set("log.level", "\"trace\"").start();
    let known = "c0ffee00c0ffee00c0ffee00c0ffee00";
    let disabled = "d15ab1ed0d15ab1ed0d15ab1ed0d15ab";
    let strange = "0ddba11000ddba11000ddba11000ddba";
    let rotated = "5eed5eed5eed5eed5eed5eed5eed5eed";
    let passkey = add_user(&server, "7", known);
    add_user(&server, "8", disabled);
    add_torrent(&server, &passkey);
    announce(&server, &passkey, &leecher(1));
    server.cli(&["user", "disable", "8"]);
    for text in [known, disabled, strange, &known.to_uppercase()] {
        send_bad_requests(&server, text);
    }
    server.cli(&["passkey", "rotate", "--user", "7", "--passkey", rotated]);
    let rotated: Passkey = rotated.parse().expect("a passkey");
    eventually("the new passkey to work", PATIENCE, || server.try_scrape(&rotated, &TORRENT).ok());
    assert_eq!(server.stop().code(), Some(0));
    let log = server.log();
    assert!(
        log.contains("\"since start\"") && log.contains("unknown_passkey="),
        "refusals are counted: {log}"
    );
    for line in log.lines() {
        let lower_case = line.to_lowercase();
        for text in [known, disabled, strange, &rotated.to_string()] {
            // Half of a passkey is already too much.
            assert!(!lower_case.contains(&text[..16]), "a passkey in {line}");
        }
    }
}

/// How many more files a process may open, by the limit that is set.
fn limit_files(server: &Server, files: usize) {
    let limit = format!("--nofile={files}:");
    let set =
        std::process::Command::new("prlimit").args(["--pid", &server.pid().to_string(), &limit]).status();
    assert!(set.expect("prlimit is installed, with util-linux").success());
}

/// Connections that wait to be accepted for a moment, in vain.
fn knock(addresses: &[std::net::SocketAddr]) {
    use std::io::Read;
    for address in addresses {
        let mut stream = std::net::TcpStream::connect(address).expect("the kernel takes it");
        stream.set_read_timeout(Some(std::time::Duration::from_millis(300))).expect("a time limit");
        let _ = stream.read(&mut [0]);
    }
}

/// At the limit of open files each attempt to accept fails, twenty times a second and listener.
#[test]
fn connections_that_cannot_be_accepted_are_logged_once_a_minute() {
    let server = builder().set("site.metrics_open", true).start();
    let addresses = [server.addr(Family::V4), server.site_addr()];
    let failures = |name: &str| -> u64 {
        let page = testkit::http::get(server.site_addr(), "/metrics").body;
        let page = String::from_utf8(page).expect("text");
        let line = page.lines().find(|line| line.starts_with(name) && line.contains("accept_failed"));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).unwrap_or(0.0) as u64
    };
    eventually("many failures of both", PATIENCE, || {
        limit_files(&server, 10);
        knock(&addresses);
        limit_files(&server, 1024);
        let counted =
            ["rollcall_tracker_refused_total", "rollcall_site_connections_refused_total"].map(failures);
        (counted.iter().all(|count| *count >= 5)).then_some(())
    });
    let log = server.log();
    for listener in ["tracker", "site"] {
        let line = format!("\"accept failed; logged once a minute\",\"listener\":\"{listener}\"");
        assert_eq!(log.matches(&line).count(), 1, "{log}");
    }
}

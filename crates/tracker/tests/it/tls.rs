//! HTTPS with real handshakes: a certificate that is replaced while running, and what is not TLS.

use std::io::{Read, Write};
use std::net::TcpStream;

use net::{TlsError, TlsFiles};
use testkit::{AnnounceReply, RawHttp};
use tracker::StartError;
use tracker::settings::LiveSettings;

use crate::support::certificates::Authority;
use crate::support::*;

fn start_tls(files: TlsFiles) -> TestTracker {
    start_with(Options { tls: Some(files), ..Options::default() })
}

fn start_error(files: TlsFiles) -> StartError {
    match try_start(&settings_of(Options { tls: Some(files), ..Options::default() })) {
        Ok(_) => panic!("it starts with a certificate that is not usable"),
        Err(error) => error,
    }
}

#[test]
fn t1_announces_over_https_over_both_families() {
    let authority = Authority::new();
    let tracker = start_tls(authority.install().0);
    for (server, client) in [(tracker.https_v4(), 1), (tracker.https_v6(), 2)] {
        let mut connection = authority.connect(server);
        for _ in 0..2 {
            let reply = connection.get(&leecher(client).target(&passkey(client.into())));
            let reply = AnnounceReply::decode(&reply.body);
            assert_eq!((reply.failure_reason, reply.external_ip), (None, Some(server.ip())));
        }
        assert_eq!(tracker.last_event().ip, server.ip());
    }
    assert_eq!(tracker.scrape(&TORRENT).incomplete, 2);
}

#[test]
fn requests_over_https_may_be_pipelined_and_connections_end_properly() {
    let authority = Authority::new();
    let tracker = start_tls(authority.install().0);
    let mut connection = authority.connect(tracker.https_v4());
    let requests: String = (1..=9)
        .map(|client| format!("GET {} HTTP/1.1\r\n", leecher(client).target(&passkey(client.into()))))
        .map(
            |head| if head.contains("00000009") { head + "Connection: close\r\n\r\n" } else { head + "\r\n" },
        )
        .collect();
    for piece in requests.as_bytes().chunks(97) {
        connection.send(piece);
    }
    for _ in 1..=9 {
        assert_eq!(connection.read_reply().status(), 200);
    }
    assert!(connection.read_to_close().is_empty(), "closed by a word of TLS, not by cutting the line");
}

#[test]
fn a_replaced_certificate_is_shown_to_the_next_client_without_a_restart() {
    let authority = Authority::new();
    let (files, first) = authority.install();
    let tracker = start_tls(files);
    let mut earlier = authority.connect(tracker.https_v4());
    assert_eq!(authority.shown_by(tracker.https_v4()), first.certificate);
    let (_, second) = authority.install();
    tracker.running().reload(LiveSettings::default());
    assert_eq!(authority.shown_by(tracker.https_v4()), second.certificate);
    assert_eq!(authority.shown_by(tracker.https_v6()), second.certificate);
    let reply = earlier.get(&leecher(1).target(&passkey(1)));
    assert_eq!(reply.status(), 200, "open connections go on");
}

/// The tracker checks the files itself every few seconds.
#[test]
fn a_replaced_certificate_is_noticed() {
    let authority = Authority::new();
    let tracker = start_tls(authority.install().0);
    let (_, second) = authority.install();
    testkit::eventually("the new certificate", PATIENCE, || {
        (authority.shown_by(tracker.https_v4()) == second.certificate).then_some(())
    });
}

#[test]
fn a_certificate_replaced_within_the_same_tick_of_the_clock_is_noticed() {
    let authority = Authority::new();
    let (files, _) = authority.install();
    let tracker = start_tls(files.clone());
    let changed = std::fs::metadata(&files.certificates).unwrap().modified().unwrap();
    let (_, second) = authority.install();
    for path in [&files.certificates, &files.private_key] {
        std::fs::File::options().append(true).open(path).unwrap().set_modified(changed).unwrap();
    }
    tracker.running().reload(LiveSettings::default());
    assert_eq!(authority.shown_by(tracker.https_v4()), second.certificate);
}

#[test]
fn a_broken_new_certificate_leaves_the_old_one_in_place() {
    let authority = Authority::new();
    let (files, first) = authority.install();
    let tracker = start_tls(files.clone());
    let (other, another) = (authority.issue(), authority.issue());
    for (certificate, key) in [
        ("rubbish", first.key_pem.as_str()),
        ("", ""),
        (&other.certificate_pem, "-----BEGIN PRIVATE KEY-----\nrubbish\n-----END PRIVATE KEY-----\n"),
        (&other.certificate_pem, &another.key_pem),
    ] {
        authority.write(certificate, key);
        tracker.running().reload(LiveSettings::default());
        assert_eq!(authority.shown_by(tracker.https_v4()), first.certificate, "{certificate} {key}");
    }
    std::fs::remove_file(&files.private_key).unwrap();
    tracker.running().reload(LiveSettings::default());
    assert_eq!(authority.shown_by(tracker.https_v4()), first.certificate);
    authority.write(&other.certificate_pem, &other.key_pem);
    tracker.running().reload(LiveSettings::default());
    assert_eq!(authority.shown_by(tracker.https_v4()), other.certificate, "and a good one is taken up again");
}

#[test]
fn a_failed_tls_handshake_does_not_affect_other_clients() {
    let authority = Authority::new();
    let tracker = start_tls(authority.install().0);
    let server = tracker.https_v4();
    let stranger = Authority::new();
    assert!(stranger.try_handshake(TcpStream::connect(server).unwrap(), server).is_err());
    assert_eq!(authority.connect(server).get(&leecher(1).target(&passkey(1))).status(), 200);
}

#[test]
fn plain_http_at_the_tls_port_is_turned_away_and_counted() {
    let authority = Authority::new();
    let tracker = start_tls(authority.install().0);
    let mut connection = RawHttp::connect(tracker.https_v4());
    let target = leecher(1).target(&passkey(1));
    connection.send(format!("GET {target} HTTP/1.1\r\n\r\n").as_bytes());
    let said = connection.read_to_close();
    assert!(!said.starts_with(b"HTTP/"), "{said:?}");
    tracker.wait_refused("tls_handshake", 1);
    assert_eq!(tracker.events().len(), 0);
    assert_eq!(authority.connect(tracker.https_v4()).get(&target).status(), 200);
}

#[test]
fn tls_at_the_plain_port_is_refused_and_counted() {
    let authority = Authority::new();
    let tracker = start_tls(authority.install().0);
    let stream = TcpStream::connect(tracker.http_v4()).unwrap();
    assert!(authority.try_handshake(stream, tracker.http_v4()).is_err());
    tracker.wait_refused("bad_http", 1);
    tracker.announce(1, &leecher(1));
}

#[test]
fn a_handshake_that_is_never_finished_is_cut_off() {
    let authority = Authority::new();
    let mut options = Options { tls: Some(authority.install().0), ..Options::default() };
    options.live.limits.header_timeout = std::time::Duration::from_millis(200);
    let tracker = start_with(options);
    let mut hello = Vec::new();
    authority.client_of(tracker.https_v4()).write_tls(&mut hello).unwrap();
    for sent in [&b""[..], &hello[..hello.len() / 2], &hello] {
        let mut stream = TcpStream::connect(tracker.https_v4()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(sent).unwrap();
        let ended = stream.read_to_end(&mut Vec::new());
        assert!(
            ended.is_ok() || ended.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
        );
    }
    tracker.wait_refused("tls_handshake", 3);
}

#[test]
fn an_unusable_certificate_stops_the_start() {
    let authority = Authority::new();
    let (files, good) = authority.install();
    let missing = TlsFiles { private_key: "/nowhere/key.pem".into(), ..files.clone() };
    let error = start_error(missing);
    assert!(matches!(error, StartError::Tls(TlsError::Read { .. })), "{error:?}");
    assert!(error.to_string().contains("/nowhere/key.pem"), "{error}");

    let mismatched = authority.write(&good.certificate_pem, &authority.issue().key_pem);
    let error = start_error(mismatched);
    assert!(matches!(error, StartError::Tls(TlsError::Mismatch(_))), "{error:?}");
    assert!(error.to_string().contains("do not match"), "{error}");

    for (certificate, key, at_fault) in [
        ("rubbish", good.key_pem.as_str(), &files.certificates),
        (&good.certificate_pem, "rubbish", &files.private_key),
    ] {
        let error = start_error(authority.write(certificate, key));
        assert!(matches!(error, StartError::Tls(TlsError::Unusable { .. })), "{error:?}");
        assert!(error.to_string().contains(&at_fault.display().to_string()), "{error}");
    }
    let mut settings = settings_of(Options { tls: Some(files), ..Options::default() });
    settings.tls = None;
    let error = try_start(&settings).err().expect("there is no certificate");
    assert!(error.to_string().contains("tls_cert_file"), "{error}");
}

//! What real clients do, row by row of the field notes, through real sockets.

use domain::AnnounceEvent::{self, Completed, Started, Stopped};
use domain::{InfoHash, PeerId, TorrentId};
use testkit::{Announce, RawHttp};

use crate::support::*;

fn ports(reply: &testkit::AnnounceReply) -> Vec<u16> {
    let mut ports: Vec<u16> = reply.all_peers().iter().map(std::net::SocketAddr::port).collect();
    ports.sort_unstable();
    ports
}

fn target(query: &str) -> String {
    format!("/{}/announce?{query}", passkey(1))
}

#[test]
fn ids_come_raw_escaped_in_either_case_with_plus_and_equals() {
    let tracker = start();
    // Bytes that clients escape, escape in lower case, or do not escape at all.
    let hash = InfoHash(*b"+=a%\xff\x00~ B_1234567890");
    tracker.gate.put_torrent(TorrentId::new(3).unwrap(), hash, None, true);
    let as_sent = "+=a%25%fF%00~%20B_1234567890";
    let reply = tracker
        .get(&target(&format!("novalue&info_hash={as_sent}&peer_id=-XX=+-12345678901234&port=2000&left=1")));
    assert_eq!(reply.status(), 200, "{reply:?}");
    let event = tracker.last_event();
    assert_eq!((event.info_hash, event.peer_id), (hash, PeerId(*b"-XX=+-12345678901234")));
    // Raw bytes above ASCII in a request line.
    let mut raw =
        format!("GET {}", target("peer_id=-XX0001-123456789012&port=2000&info_hash=+=a%25")).into_bytes();
    raw.extend(b"\xff%00~%20B_1234567890 HTTP/1.1\r\n\r\n");
    let mut connection = tracker.connect();
    connection.send(&raw);
    assert_eq!(connection.read_reply().status(), 200);
    assert_eq!(tracker.last_event().info_hash, hash);
}

#[test]
fn ids_of_a_wrong_length_are_refused_and_change_nothing() {
    let tracker = start();
    let refused = tracker.refusal(&target("info_hash=short&peer_id=-XX0001-123456789012&port=2000&left=0"));
    assert!(refused.contains("info_hash"), "{refused}");
    let hash = domain::percent::encode(&TORRENT.0);
    let refused = tracker.refusal(&target(&format!("info_hash={hash}&peer_id=short&port=2000&left=0")));
    assert!(refused.contains("peer_id"), "{refused}");
    let refused =
        tracker.refusal(&target(&format!("info_hash={hash}%4&peer_id=-XX0001-123456789012&port=2000")));
    assert!(refused.contains("info_hash"), "{refused}");
    assert_eq!(tracker.scrape(&TORRENT), testkit::SwarmCounts::default());
    assert_eq!((tracker.refused("wrong_length"), tracker.refused("bad_escape")), (2, 1));
}

#[test]
fn t1_v2_hashes_of_32_bytes_are_truncated() {
    let tracker = start();
    let mut hash = TORRENT.0.to_vec();
    hash.extend([0x77; 12]);
    let query =
        format!("info_hash={}&peer_id=-XX0001-123456789012&port=2000&left=0", domain::percent::encode(&hash));
    assert_eq!(tracker.get(&target(&query)).status(), 200);
    assert_eq!(tracker.scrape(&TORRENT).complete, 1);
}

#[test]
fn paused_empty_and_unknown_events_are_regular_announces() {
    let tracker = start();
    for event in ["paused", "", "dancing"] {
        tracker.announce(1, &leecher(1).with_extra(&format!("&event={event}")));
        assert_eq!(tracker.last_event().event, AnnounceEvent::None);
    }
}

#[test]
fn l5_a_client_first_seen_with_nothing_left_cannot_complete() {
    let tracker = start();
    // WebTorrent sends both when it starts as a seeder.
    for client in 1..4 {
        tracker.announce(1, &seeder(client).with_event(Started));
        tracker.announce(1, &seeder(client).with_event(Completed));
        assert_eq!(tracker.last_event().event, AnnounceEvent::None);
        tracker.announce(1, &stopped(&seeder(client)));
    }
    tracker.announce(2, &seeder(9).with_event(Completed));
    let counts = tracker.scrape(&TORRENT);
    assert_eq!((counts.complete, counts.downloaded), (1, 0));
}

#[test]
fn l5_a_user_who_seeds_already_completes_by_downloading_only() {
    let tracker = start();
    tracker.announce(1, &seeder(1));
    tracker.announce(1, &leecher(2));
    tracker.announce(1, &seeder(2).with_event(Completed));
    assert_eq!(tracker.last_event().event, AnnounceEvent::None);
    assert_eq!(tracker.scrape(&TORRENT).downloaded, 0);
    tracker.announce(1, &leecher(3));
    tracker.announce(1, &seeder(3).with_totals(0, 1000, 0).with_event(Completed));
    assert_eq!(tracker.last_event().event, Completed);
}

#[test]
fn l5_a_leecher_with_nothing_left_has_completed_with_or_without_the_event() {
    let tracker = start();
    let events = || tracker.events().iter().map(|event| event.event).collect::<Vec<_>>();
    tracker.announce(1, &leecher(1));
    tracker.pass(1000);
    tracker.announce(1, &seeder(1));
    tracker.announce(1, &seeder(1).with_event(Completed));
    assert_eq!(events(), [AnnounceEvent::None, Completed, AnnounceEvent::None]);
    assert_eq!(tracker.scrape(&TORRENT).downloaded, 1);
}

/// aria2 with `--seed-time=0`: the time until then was spent leeching.
#[test]
fn l5_a_leecher_that_stops_with_nothing_left_has_completed_and_stopped() {
    let tracker = start();
    tracker.announce(1, &leecher(1).with_event(Started));
    tracker.pass(1000);
    tracker.announce(1, &stopped(&seeder(1).with_totals(7, 500, 0)));
    let [_, completed, stopped] = &tracker.events()[..] else { panic!("two entries for the last announce") };
    assert_eq!((completed.event, completed.downloaded_delta, completed.since_last.0), (Completed, 500, 1000));
    assert_eq!((stopped.event, stopped.downloaded_delta, stopped.since_last.0), (Stopped, 0, 0));
    let counts = tracker.scrape(&TORRENT);
    assert_eq!((counts.complete, counts.downloaded), (0, 1));
}

/// WebTorrent has reset its counters when it sends `stopped`.
#[test]
fn l4_the_time_until_a_stopped_with_cleared_counters_counts() {
    let tracker = start();
    tracker.announce(1, &seeder(1).with_event(Started).with_totals(500, 100, 0));
    tracker.pass(1000);
    tracker.announce(1, &stopped(&seeder(1).with_totals(0, 0, 0)));
    let event = tracker.last_event();
    assert_eq!((event.since_last.0, event.uploaded_delta), (1000, 0));
}

/// Regression: a tracker that was killed may have missed the start of another run. What its `stopped` adds to that run was
/// lost when the entry was written as a part of the run before.
#[test]
fn l6_a_stopped_with_lower_counters_belongs_to_another_run() {
    let tracker = start();
    tracker.announce(1, &seeder(1).with_event(Started).with_totals(500, 100, 0));
    let before = tracker.last_event().session;
    tracker.pass(1000);
    tracker.announce(1, &stopped(&seeder(1).with_totals(300, 0, 0)));
    let event = tracker.last_event();
    assert_ne!(event.session, before);
    assert_eq!((event.uploaded_delta, event.uploaded_total), (0, 300));
}

#[test]
fn numwant_is_defaulted_and_capped() {
    let tracker = start_live(|live| (live.numwant_default, live.numwant_max) = (3, 5));
    for client in 10..30 {
        let user = 1 + u64::from(client % 5);
        tracker.announce(user, &leecher(client));
    }
    let count = |numwant| {
        tracker.pass(1000);
        let reply = tracker.announce(9, &Announce { numwant, ..leecher(1) });
        reply.peers.expect("peers are always there").len()
    };
    assert_eq!(count(None), 3);
    assert_eq!(count(Some(-1)), 3);
    assert_eq!(count(Some(0)), 0);
    assert_eq!(count(Some(4)), 4);
    assert_eq!(count(Some(1_000_000)), 5);
}

#[test]
fn the_key_links_addresses_and_peer_ids_of_one_client() {
    let tracker = start();
    let client = Announce { key: Some(0xfeed), uploaded: 100, ..leecher(1) };
    tracker.announce(1, &client);
    tracker.pass(1800);
    let renamed = Announce { peer_id: PeerId(*b"-TR3000-newnamenew12"), uploaded: 150, ..client };
    assert_eq!(tracker.announce(1, &renamed).incomplete, Some(1));
    assert_eq!(tracker.last_event().uploaded_delta, 50);
    // Over UDP the same key is four raw bytes.
    tracker.pass(1800);
    let mut udp = tracker.udp_v4();
    let path = format!("/{}/announce", passkey(1));
    let renamed_again = Announce { peer_id: PeerId(*b"-TR3000-thirdname123"), uploaded: 175, ..renamed };
    assert_eq!(udp.announce(&renamed_again, &path).unwrap().leechers, 1);
    assert_eq!(tracker.last_event().uploaded_delta, 25);
}

#[test]
fn ip_is_ignored_unless_a_trusted_proxy_sends_it() {
    let tracker = start();
    let elsewhere = leecher(1).with_extra("&ip=192.0.2.7");
    let reply = tracker.announce(1, &elsewhere);
    assert_eq!(reply.external_ip, Some("127.0.0.1".parse().unwrap()));
    let behind_proxy = start_live(|live| live.proxies.trusted = vec!["127.0.0.0/8".parse().unwrap()]);
    let reply = behind_proxy.announce(1, &elsewhere);
    assert_eq!(reply.external_ip, Some("192.0.2.7".parse().unwrap()));
}

#[test]
fn the_forwarded_address_is_the_rightmost_untrusted_hop() {
    let tracker = start_live(|live| {
        live.proxies.trusted = vec!["127.0.0.0/8".parse().unwrap(), "10.0.0.0/8".parse().unwrap()];
        live.proxies.forwarded_headers = vec!["x-forwarded-for".to_owned()];
    });
    let mut connection = tracker.connect();
    let target = leecher(1).target(&passkey(1));
    let forged = "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 192.0.2.9, 10.1.1.1\r\n";
    connection.send(format!("GET {target} HTTP/1.1\r\n{forged}\r\n").as_bytes());
    assert_eq!(connection.read_reply().status(), 200);
    assert_eq!(tracker.last_event().ip.to_string(), "192.0.2.9");
    connection.send(format!("GET {target} HTTP/1.1\r\nX-Forwarded-For: rubbish\r\n\r\n").as_bytes());
    assert_eq!(connection.read_reply().status(), 400);
    assert_eq!(tracker.refused("bad_forwarded_address"), 1);
}

#[test]
fn low_ports_are_accepted_but_never_handed_out() {
    let tracker = start();
    for (client, port) in [(1, 0), (2, 80), (3, 1023)] {
        tracker.announce(1, &Announce { port, ..leecher(client) });
    }
    let reply = tracker.announce(2, &leecher(9));
    assert_eq!((reply.incomplete, reply.peers), (Some(4), Some(vec![])));
    tracker.announce(1, &stopped(&Announce { port: 0, ..leecher(1) }));
    assert_eq!(tracker.scrape(&TORRENT).incomplete, 3);
}

#[test]
fn left_may_be_missing_or_enormous() {
    let tracker = start();
    tracker.announce(1, &Announce { left: None, ..leecher(1) });
    assert_eq!(tracker.last_event().left, None);
    tracker.announce(2, &Announce { left: None, ..leecher(2) }.with_extra("&left=99999999999999999999999"));
    assert_eq!(tracker.last_event().left, Some(u64::MAX));
    assert_eq!(tracker.scrape(&TORRENT).incomplete, 2);
}

#[test]
fn counters_that_go_backwards_are_a_new_baseline() {
    let tracker = start();
    tracker.announce(1, &leecher(1).with_totals(1000, 1000, 5));
    tracker.pass(1800);
    tracker.announce(1, &leecher(1).with_totals(10, 3000, 5));
    let event = tracker.last_event();
    assert_eq!((event.uploaded_delta, event.downloaded_delta), (0, 0));
    tracker.pass(1800);
    tracker.announce(1, &leecher(1).with_totals(12, 3003, 5));
    let event = tracker.last_event();
    assert_eq!((event.uploaded_delta, event.downloaded_delta, event.since_last.0), (2, 3, 1800));
}

#[test]
fn an_unseen_peer_with_counters_is_a_baseline() {
    let tracker = start();
    tracker.announce(1, &leecher(1).with_totals(1 << 50, 1 << 50, 5));
    let event = tracker.last_event();
    assert_eq!((event.uploaded_delta, event.downloaded_delta, event.since_last.0), (0, 0, 0));
    assert_eq!((event.uploaded_total, event.downloaded_total), (1 << 50, 1 << 50));
}

#[test]
fn several_clients_of_a_user_are_kept_apart_limited_and_not_given_to_each_other() {
    let tracker = start_live(|live| live.clients_per_user_max = 2);
    tracker.announce(1, &leecher(1));
    assert_eq!(tracker.announce(1, &leecher(2)).peers, Some(vec![]));
    let refused = tracker.ask(1, &leecher(3)).failure_reason.expect("two are the limit");
    assert!(refused.contains('2'), "{refused}");
    assert_eq!(ports(&tracker.announce(2, &leecher(4))), [20_001, 20_002]);
    assert_eq!(tracker.refused("too_many_clients"), 1);
}

#[test]
fn a_dual_stack_client_is_one_record_with_both_addresses_credited_once() {
    let tracker = start();
    tracker.announce(1, &leecher(1));
    assert_eq!(tracker.ask_v6(1, &leecher(1)).incomplete, Some(1));
    tracker.pass(1800);
    tracker.announce(1, &leecher(1).with_totals(700, 0, 5));
    tracker.ask_v6(1, &leecher(1).with_totals(700, 0, 5));
    let credited: u64 = tracker.events().iter().map(|event| event.uploaded_delta).sum();
    assert_eq!(credited, 700);
    let reply = tracker.announce(2, &leecher(2));
    assert_eq!(reply.peers, Some(vec!["127.0.0.1:20001".parse().unwrap()]));
    assert_eq!(reply.peers6, Some(vec!["[::1]:20001".parse().unwrap()]));
}

#[test]
fn stopped_of_an_unknown_peer_is_a_success() {
    let tracker = start();
    tracker.announce(1, &stopped(&leecher(1)));
    let event = tracker.last_event();
    assert_eq!((event.event, event.uploaded_delta), (Stopped, 0));
    assert_eq!(tracker.scrape(&TORRENT), testkit::SwarmCounts::default());
}

#[test]
fn too_soon_is_credited_and_warned_of_but_gets_no_peers() {
    let tracker = start();
    tracker.announce(2, &leecher(2));
    assert_eq!(tracker.announce(1, &leecher(1).with_event(Started)).all_peers().len(), 1);
    tracker.pass(60);
    let reply = tracker.announce(1, &leecher(1).with_totals(5, 0, 5));
    assert_eq!(reply.peers, Some(vec![]));
    assert!(reply.warning_message.expect("a warning").contains("min interval"));
    assert_eq!(tracker.last_event().uploaded_delta, 5);
    let reply = tracker.announce(1, &leecher(1).with_totals(5, 5, 0).with_event(Completed));
    assert_eq!((reply.warning_message, reply.peers.map(|peers| peers.len())), (None, Some(1)));
    let reply = tracker.announce(1, &stopped(&leecher(1).with_totals(5, 5, 0)));
    assert_eq!(reply.warning_message, None);
    assert_eq!(tracker.tracker().counters().too_soon.get(), 1);
}

#[test]
fn an_empty_swarm_still_has_peers_in_the_reply() {
    let tracker = start();
    let reply = tracker.announce(1, &leecher(1));
    assert_eq!((reply.peers, reply.peers6), (Some(vec![]), None));
    assert_eq!((reply.interval, reply.min_interval), (Some(1800), Some(900)));
}

#[test]
fn w1_upper_case_passkeys_are_normalised_wherever_they_stand() {
    let tracker = start();
    tracker.gate.put_user(domain::UserId::new(77).unwrap(), "abcdefabcdefabcd".parse().unwrap(), true);
    let query = leecher(1).query();
    for target in [
        format!("/ABCDEFABCDEFABCD/announce?{query}"),
        format!("/announce/ABCDEFABCDEFABCD?{query}"),
        format!("/announce?passkey=ABCDEFABCDEFABCD&{query}"),
        format!("/announce?{query}&passkey=abcdefABCDEFabcd"),
    ] {
        assert_eq!(tracker.get(&target).status(), 200);
        assert_eq!(tracker.last_event().user.get(), 77, "{target}");
    }
    assert_eq!(tracker.events().len(), 4);
}

#[test]
fn requests_may_be_pipelined() {
    let tracker = start();
    let mut connection = tracker.connect();
    let requests: String = (1..=20)
        .map(|client| {
            format!(
                "GET {} HTTP/1.1\r\nHost: t\r\n\r\n",
                leecher(client).target(&passkey(1 + u64::from(client % 9)))
            )
        })
        .collect();
    // In pieces, so that requests are cut anywhere.
    for piece in requests.as_bytes().chunks(97) {
        connection.send(piece);
    }
    for _ in 0..20 {
        assert_eq!(connection.read_reply().status(), 200);
    }
    assert_eq!(tracker.scrape(&TORRENT).incomplete, 20);
}

#[test]
fn connections_close_when_asked_to_or_when_http_1_0_does_not_ask_for_more() {
    let tracker = start();
    let target = leecher(1).target(&passkey(1));
    for (request, stays_open) in [
        (format!("GET {target} HTTP/1.0\r\n\r\n"), false),
        (format!("GET {target} HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), true),
        (format!("GET {target} HTTP/1.1\r\nConnection: close\r\n\r\n"), false),
        (format!("GET {target} HTTP/1.1\r\nconnection: foo, Close\r\n\r\n"), false),
        (format!("GET {target} HTTP/1.1\r\n\r\n"), true),
        (format!("GET http://tracker.example:6969{target} HTTP/1.1\r\nHost: t\r\n\r\n"), true),
    ] {
        let mut connection = tracker.connect();
        connection.send(request.as_bytes());
        let reply = connection.read_reply();
        assert_eq!(reply.status(), 200, "{request}");
        let said = reply.header("connection").map(str::to_owned);
        if stays_open {
            assert_ne!(said.as_deref(), Some("close"), "{request}");
            connection.send(request.as_bytes());
            assert_eq!(connection.read_reply().status(), 200, "{request}");
        } else {
            assert_eq!(said.as_deref(), Some("close"), "{request}");
            assert!(connection.read_to_close().is_empty());
        }
    }
}

#[test]
fn a_cdn_may_add_many_headers_but_not_more_than_8_kib() {
    let tracker = start();
    let target = leecher(1).target(&passkey(1));
    let request = |headers: usize| {
        let headers: String =
            (0..headers).map(|n| format!("X-Header-Number-{n}: {}\r\n", "v".repeat(80))).collect();
        format!("GET {target} HTTP/1.1\r\n{headers}\r\n")
    };
    let mut connection = tracker.connect();
    connection.send(request(60).as_bytes());
    assert_eq!(connection.read_reply().status(), 200);
    let mut connection = RawHttp::connect(tracker.http_v4());
    // The last line never comes: the head is refused for its size, not for being incomplete.
    let endless = request(100);
    connection.send(&endless.as_bytes()[..9000]);
    assert_eq!(connection.read_reply().status(), 431);
    assert_eq!(tracker.refused("head_too_large"), 1);
}

#[test]
fn seeders_are_given_leechers_only() {
    let tracker = start();
    tracker.announce(1, &seeder(1));
    tracker.announce(2, &leecher(2));
    assert_eq!(ports(&tracker.announce(3, &seeder(3))), [20_002]);
    assert_eq!(ports(&tracker.announce(4, &leecher(4))), [20_001, 20_002, 20_003]);
}

#[test]
fn replies_carry_retry_in_external_ip_and_warnings() {
    let tracker = start();
    let reply = tracker.ask(1, &Announce { info_hash: UNKNOWN_TORRENT, ..leecher(1) });
    assert_eq!(reply.retry_in, Some(testkit::RetryIn::Minutes(5)));
    assert!(reply.failure_reason.is_some());
    assert_eq!(tracker.ask_v6(1, &leecher(1)).external_ip, Some("::1".parse().unwrap()));
}

//! UDP: BEP 15 and BEP 41 over real sockets, and unverified senders.

use std::time::Duration;

use domain::AnnounceEvent::Completed;
use testkit::Announce;
use testkit::udp::{announce_packet, request_head};

use crate::support::*;

fn path(user: u64) -> String {
    format!("/{}/announce", passkey(user))
}

#[test]
fn t1_announce_and_scrape_over_both_families() {
    let tracker = start();
    for (mut udp, user) in [(tracker.udp_v4(), 1), (tracker.udp_v6(), 3)] {
        let first = udp.announce(&seeder(user as u32), &path(user)).unwrap();
        assert_eq!((first.interval, first.peers.len()), (1800, 0));
        let reply = udp.announce(&leecher(user as u32 + 1), &path(user + 1)).unwrap();
        assert_eq!(reply.peers.len(), 1, "peers of the own family only");
        assert_eq!(reply.peers[0].port(), 20_000 + user as u16);
    }
    let counts = tracker.udp_v6().scrape(&[TORRENT, OTHER_TORRENT, UNKNOWN_TORRENT], "").unwrap();
    assert_eq!((counts[0].complete, counts[0].incomplete), (2, 2));
    assert_eq!(counts[1], testkit::SwarmCounts::default());
    assert_eq!(tracker.tracker().counters().announces_udp.get(), 4);
}

#[test]
fn t1_the_passkey_may_stand_anywhere_in_the_url() {
    let tracker = start();
    let mut udp = tracker.udp_v4();
    for url in [
        path(1),
        format!("/announce/{}", passkey(1)),
        format!("/announce?passkey={}", passkey(1))
            .to_uppercase()
            .replace("/ANNOUNCE?PASSKEY", "/announce?passkey"),
    ] {
        udp.announce(&leecher(1), &url).unwrap();
        assert_eq!(tracker.last_event().user.get(), 1);
    }
}

#[test]
fn t2_refusals_are_error_packets_with_a_reason() {
    let tracker = start();
    let mut udp = tracker.udp_v4();
    let refusal = udp.announce(&leecher(1), "").unwrap_err();
    assert!(refusal.contains("BEP 41") && refusal.contains("http://"), "{refusal}");
    let refusal = udp.announce(&leecher(1), "/ffffffffffffffff/announce").unwrap_err();
    assert!(refusal.to_lowercase().contains("passkey"), "{refusal}");
    let unknown = Announce { info_hash: UNKNOWN_TORRENT, ..leecher(1) };
    let refusal = udp.announce(&unknown, &path(1)).unwrap_err();
    assert!(refusal.to_lowercase().contains("torrent"), "{refusal}");
    let refusal = udp.announce(&leecher(1), "/nonsense").unwrap_err();
    assert!(!refusal.is_empty());
    assert_eq!(tracker.events().len(), 0);
    assert_eq!(tracker.refused("no_passkey"), 1);
}

/// lftp sends the packet again as soon as it is refused.
#[test]
fn repeated_errors_are_suppressed_for_a_client_that_repeats_its_packet() {
    let tracker = start();
    let mut udp = tracker.udp_v4();
    let connection = udp.connect();
    let unknown = Announce { info_hash: UNKNOWN_TORRENT, ..leecher(1) };
    for transaction in 1..=5 {
        udp.exchange(&announce_packet(connection, transaction, &unknown, &path(1)));
    }
    for transaction in 6..=50 {
        udp.send(&announce_packet(connection, transaction, &unknown, &path(1)));
    }
    // What comes next on this socket is the answer about another torrent, and none of the 45.
    let reply = udp.exchange(&announce_packet(connection, 51, &leecher(1), &path(1)));
    assert_eq!((&reply[..4], &reply[4..8]), (&1_u32.to_be_bytes()[..], &51_u32.to_be_bytes()[..]));
    assert_eq!(tracker.tracker().counters().errors_suppressed.get(), 45);
    tracker.pass(10);
    let reply = udp.exchange(&announce_packet(connection, 52, &unknown, &path(1)));
    assert_eq!(reply[..4], 3_u32.to_be_bytes(), "an error packet");
}

#[test]
fn a_scrape_is_answered_to_addresses_that_announced() {
    let tracker = start();
    let mut udp = tracker.udp_v4();
    let refusal = udp.scrape(&[TORRENT], "").unwrap_err();
    assert!(refusal.contains("announce first"), "{refusal}");
    udp.announce(&leecher(1), &path(1)).unwrap();
    udp.announce(&seeder(1).with_event(Completed), &path(1)).unwrap();
    let counts = udp.scrape(&[TORRENT], "").unwrap()[0];
    assert_eq!((counts.complete, counts.downloaded), (1, 1));
    tracker.pass(2401);
    assert!(udp.scrape(&[TORRENT], "").is_err());
}

#[test]
fn connection_ids_go_stale_and_the_error_is_no_longer_than_a_connect_reply() {
    let tracker = start();
    let mut udp = tracker.udp_v4();
    let connection = udp.connect();
    let packet = announce_packet(connection, 7, &leecher(1), &path(1));
    tracker.pass(120);
    assert!(udp.exchange(&packet).len() >= 20, "an older window is still accepted");
    tracker.pass(121);
    let reply = udp.exchange(&packet);
    assert_eq!(reply[..4], 3_u32.to_be_bytes(), "an error packet");
    assert_eq!(reply[4..8], 7_u32.to_be_bytes());
    assert!(reply.len() <= 16, "{} bytes", reply.len());
    assert_eq!(tracker.refused("stale_connection_id"), 1);
}

/// An unverified sender never gets more than a connect reply, nor more than it sent.
#[test]
fn unverified_senders_get_no_amplification() {
    let tracker = start();
    let mut scrape = request_head(99, 2, 1);
    scrape.extend([1; 20 * 74]);
    let mut unknown_action = request_head(99, 77, 1);
    unknown_action.extend([0; 200]);
    let mut packets = vec![vec![], vec![0; 15], request_head(0x0417_2710_1981, 0, 1), scrape, unknown_action];
    packets.push(announce_packet(99, 7, &leecher(1), &path(1)));
    packets.extend((0..200).map(|length| vec![0xff; length]));
    // A socket for each, so that a late reply is not taken for that to another packet.
    let sent: Vec<_> = packets
        .iter()
        .map(|packet| {
            let udp = tracker.udp_v4();
            udp.send(packet);
            (udp, packet)
        })
        .collect();
    // One thread answers in turn: when it has come to this one, it has answered all before it.
    tracker.udp_v4().connect();
    let mut replies = 0;
    for (udp, packet) in sent {
        while let Some(reply) = udp.receive(Duration::from_millis(1)) {
            assert!(reply.len() <= 16 && reply.len() <= packet.len(), "{} for {}", reply.len(), packet.len());
            replies += 1;
        }
    }
    assert!(replies >= 3, "a stale connection id gets an error reply");
    assert_eq!(tracker.events().len(), 0);
}

#[test]
fn malformed_packets_with_a_valid_id_get_an_error() {
    let tracker = start();
    let mut udp = tracker.udp_v4();
    let connection = udp.connect();
    let mut cut_off = announce_packet(connection, 7, &leecher(1), &path(1));
    cut_off.truncate(97);
    let mut bad_option = announce_packet(connection, 7, &leecher(1), "");
    bad_option.extend([2, 200, b'/']);
    let mut bad_scrape = request_head(connection, 2, 7);
    bad_scrape.extend([0; 21]);
    for packet in [cut_off, bad_option, bad_scrape, request_head(connection, 9, 7)] {
        let reply = udp.exchange(&packet);
        assert_eq!(reply[..4], 3_u32.to_be_bytes());
        assert!(reply.len() > 8, "an error with a reason");
    }
    for reason in ["short_announce", "truncated_option", "bad_hash_list", "unknown_action"] {
        assert_eq!(tracker.refused(reason), 1, "{reason}");
    }
}

#[test]
fn replies_fit_a_packet_that_crosses_any_network() {
    let tracker = start_live(|live| live.numwant_max = 200);
    for peer in 0..300_u32 {
        tracker.gate.put_user(
            domain::UserId::new(1000 + u64::from(peer)).unwrap(),
            format!("{:032x}", 1000 + peer).parse().unwrap(),
            true,
        );
        let announce = Announce { key: Some(peer + 1), ..leecher(1000 + peer) };
        tracker.ask_v6(1000 + u64::from(peer), &announce);
    }
    let mut udp = tracker.udp_v6();
    let reply = udp.announce(&Announce { numwant: Some(200), ..leecher(9999) }, &path(9)).unwrap();
    assert_eq!(reply.peers.len(), (1232 - 20) / 18);
}

//! What one dishonest member can do: floods, invented peer ids, made-up upload, several accounts.

use domain::{PeerId, RiskEvent, RiskKind};
use testkit::Announce;

use crate::limits::{AnnounceReply, RawHttp, RetryIn};
use crate::support::*;

const MIB: u64 = 1 << 20;

fn limit_announces(per_s: u32, burst: u32) -> TestTracker {
    start_live(|live| {
        (live.limits.announces_per_user_per_s, live.limits.announce_burst_per_user) = (per_s, burst);
    })
}

fn with_peer_id(announce: &Announce, number: u32) -> Announce {
    let mut peer_id = *b"-TT0001-------------";
    peer_id[16..].copy_from_slice(&number.to_be_bytes());
    Announce { peer_id: PeerId(peer_id), ..announce.clone() }
}

fn risks_of(tracker: &TestTracker, kind: RiskKind) -> Vec<RiskEvent> {
    tracker.recorder.risks().into_iter().filter(|risk| risk.kind == kind).collect()
}

#[test]
fn a_flood_of_one_user_is_refused_with_retry_in_and_not_written_down() {
    let tracker = limit_announces(2, 10);
    assert!((0..10).all(|_| tracker.ask(1, &leecher(1)).failure_reason.is_none()));
    for _ in 0..5 {
        let refused = tracker.ask(1, &leecher(1));
        assert!(refused.failure_reason.expect("a reason").contains("too many announces of your account"));
        assert_eq!(refused.retry_in, Some(RetryIn::Minutes(1)));
    }
    assert_eq!((tracker.refused("too_many_announces"), tracker.events().len()), (5, 10));
    assert_eq!(tracker.recorder.places_in_use(), 0);
    assert_eq!(tracker.ask(2, &leecher(2)).failure_reason, None, "another user at the same address");
    tracker.pass(3);
    let served = (0..10).filter(|_| tracker.ask(1, &leecher(1)).failure_reason.is_none()).count();
    assert_eq!(served, 6, "two a second come back");
}

#[test]
fn a_flood_of_one_user_over_udp_gets_a_reason() {
    let tracker = limit_announces(1, 3);
    let path = format!("/{}/announce", passkey(1));
    let mut udp = tracker.udp_v4();
    for _ in 0..3 {
        udp.announce(&leecher(1), &path).unwrap();
    }
    let refusal = udp.announce(&leecher(1), &path).unwrap_err();
    assert!(refusal.contains("too many announces of your account"), "{refusal}");
    assert_eq!(tracker.events().len(), 3);
}

/// Transmission repeats a refused `stopped` forever.
#[test]
fn a_stop_over_the_limit_succeeds_and_is_recorded_for_known_peers_only() {
    let tracker = limit_announces(1, 2);
    tracker.announce(1, &leecher(1));
    tracker.announce(1, &leecher(1));
    assert_eq!(tracker.refused("too_many_announces"), 0);
    tracker.announce(1, &stopped(&with_peer_id(&leecher(1), 7)));
    assert_eq!(tracker.events().len(), 2, "nothing ended, so there is nothing to write");
    assert_eq!(tracker.tracker().counters().stops_unrecorded.get(), 1);
    tracker.announce(1, &stopped(&leecher(1)));
    assert_eq!((tracker.events().len(), tracker.scrape(&TORRENT).incomplete), (3, 0));
    assert_eq!(tracker.recorder.places_in_use(), 0);
}

#[test]
fn zero_means_no_limit_on_announces() {
    let tracker = limit_announces(0, 0);
    let mut connection = tracker.connect();
    let target = leecher(1).target(&passkey(1));
    let ask = |_| AnnounceReply::decode(&connection.get(&target).body).failure_reason;
    assert!((0..50).map(ask).all(|reason| reason.is_none()));
}

#[test]
fn too_many_peer_ids_are_refused_reported_and_not_written_down() {
    let tracker = start();
    for number in 0..30 {
        let client = with_peer_id(&leecher(1), number);
        tracker.announce(1, &client);
        tracker.announce(1, &stopped(&client));
    }
    assert_eq!(tracker.events().len(), 60);
    for number in 30..40 {
        let refused = tracker.ask(1, &with_peer_id(&leecher(1), number));
        assert!(
            refused.failure_reason.expect("a reason").contains("peer ids on this torrent within an hour")
        );
        assert_eq!(refused.retry_in, Some(RetryIn::Minutes(60)));
        tracker.announce(1, &stopped(&with_peer_id(&leecher(1), 100 + number)));
    }
    assert_eq!(tracker.events().len(), 60, "neither refused announces nor stops of unknown peers");
    assert_eq!(tracker.refused("too_many_peer_ids"), 10);
    assert_eq!(tracker.recorder.places_in_use(), 0);
    let [risk] = risks_of(&tracker, RiskKind::ManyPeerIds)[..] else { panic!("one report a minute") };
    assert_eq!((risk.user.get(), risk.count), (1, 15));
    tracker.pass(60);
    tracker.ask(1, &with_peer_id(&leecher(1), 50));
    let risks = risks_of(&tracker, RiskKind::ManyPeerIds);
    assert!(risks[1].count > 30 && risks[1].unreported > 10, "{:?}", risks[1]);
    tracker.announce(2, &leecher(2));
}

#[test]
fn a_user_whose_lists_are_used_up_is_warned_and_counted() {
    let tracker = start();
    tracker.announce(2, &leecher(2));
    let given: Vec<bool> = (0..20)
        .map(|number| {
            let client = with_peer_id(&leecher(1), number);
            let reply = tracker.announce(1, &client);
            tracker.announce(1, &stopped(&client));
            assert_eq!(reply.warning_message.is_some(), reply.all_peers().is_empty());
            !reply.all_peers().is_empty()
        })
        .collect();
    assert_eq!(given, [vec![true; 15], vec![false; 5]].concat());
    assert_eq!(tracker.tracker().counters().lists_withheld.get(), 5);
}

#[test]
fn upload_without_leechers_is_reported_with_what_was_claimed() {
    let tracker = start();
    tracker.announce(1, &seeder(1));
    tracker.pass(1800);
    tracker.announce(1, &seeder(1).with_totals(5 * MIB, 0, 0));
    let [risk] = tracker.recorder.risks()[..] else { panic!("{:?}", tracker.recorder.risks()) };
    assert_eq!((risk.kind, risk.user.get(), risk.elapsed.0), (RiskKind::UploadWithoutLeechers, 1, 1800));
    assert_eq!((risk.uploaded_claimed, risk.uploaded_credited), (5 * MIB, 5 * MIB));
    let event = tracker.last_event();
    assert_eq!((event.uploaded_delta, event.uncredited_upload), (5 * MIB, 0));
    tracker.announce(2, &leecher(2));
    tracker.pass(1800);
    tracker.announce(1, &seeder(1).with_totals(6 * MIB, 0, 0));
    assert_eq!(tracker.recorder.risks().len(), 1, "there is a leecher now");
    assert_eq!(tracker.tracker().counters().upload_without_leechers.get(), 1);
}

#[test]
fn upload_without_leechers_is_not_credited_if_configured() {
    let tracker = start_live(|live| live.credit_upload_without_leechers = false);
    tracker.announce(1, &seeder(1));
    let before = tracker.last_event();
    tracker.pass(1800);
    tracker.announce(1, &seeder(1).with_totals(5 * MIB, 0, 0));
    let event = tracker.last_event();
    assert_eq!((event.uploaded_delta, event.uncredited_upload), (0, 5 * MIB));
    assert_eq!(event.uploaded_total, 5 * MIB);
    assert_ne!(event.session.run, before.session.run, "a new run begins with the new totals");
    let risk = tracker.recorder.risks()[0];
    assert_eq!((risk.uploaded_claimed, risk.uploaded_credited), (5 * MIB, 0));
    tracker.announce(2, &leecher(2));
    tracker.pass(1800);
    tracker.announce(1, &seeder(1).with_totals(6 * MIB, 0, 0));
    let event = tracker.last_event();
    assert_eq!((event.uploaded_delta, event.uncredited_upload), (MIB, 0));
}

fn announce_from(tracker: &TestTracker, user: u64, address: &str) {
    let target = leecher(user as u32).target(&passkey(user));
    let mut connection = RawHttp::connect(tracker.http_v4());
    let head = format!("GET {target} HTTP/1.1\r\nHost: t\r\nX-Forwarded-For: {address}\r\n\r\n");
    connection.send(head.as_bytes());
    let reply = connection.read_reply();
    assert_eq!(AnnounceReply::decode(&reply.body).failure_reason, None);
}

#[test]
fn an_address_that_many_users_share_is_reported_for_each_of_them() {
    let tracker = start_live(|live| {
        live.proxies.trusted = vec!["127.0.0.1/32".parse().unwrap()];
        live.proxies.forwarded_headers = vec!["x-forwarded-for".to_owned()];
    });
    for user in 1..=4 {
        announce_from(&tracker, user, &format!("2001:db8:1:2::{user}"));
        announce_from(&tracker, user, "2001:db8:1:3::1");
    }
    assert_eq!(tracker.recorder.risks(), [], "four are a family");
    announce_from(&tracker, 5, "2001:db8:1:2:ffff::1");
    announce_from(&tracker, 5, "2001:db8:1:2:ffff::1");
    announce_from(&tracker, 1, "2001:db8:1:2::1");
    announce_from(&tracker, 6, "2001:db8:1:4::1");
    let risks = risks_of(&tracker, RiskKind::SharedAddress);
    let told: Vec<(u64, u64)> = risks.iter().map(|risk| (risk.user.get(), risk.count)).collect();
    assert_eq!(told, [(5, 5), (1, 5)], "one network of IPv6 is one address, and a user is reported once");
    assert_eq!(risks[0].ip.to_string(), "2001:db8:1:2:ffff::1");
    tracker.pass(3600);
    announce_from(&tracker, 2, "2001:db8:1:2::1");
    assert_eq!(risks_of(&tracker, RiskKind::SharedAddress).len(), 2, "an hour later it begins anew");
}

/// All clients behind a proxy that is not trusted have its address.
#[test]
fn loopback_is_not_a_shared_address() {
    let tracker = start();
    (1..=9).for_each(|user| _ = tracker.announce(user, &leecher(user as u32)));
    assert_eq!(tracker.recorder.risks(), []);
}

//! Announces are answered when they may be: at once, or once they are stored; and not taken where they could not be
//! written down.

use std::time::Duration;

use domain::{AnnounceEvent, RateCeiling};
use testkit::udp::announce_packet;
use testkit::{Announce, AnnounceReply, RawHttp, RetryIn, SwarmCounts, eventually_equal};
use tracker::settings::Acknowledge;

use crate::support::*;

fn send(tracker: &TestTracker, announce: &Announce) -> RawHttp {
    let mut connection = tracker.connect();
    connection.send(format!("GET {} HTTP/1.1\r\n\r\n", announce.target(&passkey(1))).as_bytes());
    connection
}

/// Whether nothing has come yet.
fn is_silent(connection: &RawHttp) -> bool {
    let stream = connection.stream();
    stream.set_nonblocking(true).unwrap();
    let peeked = stream.peek(&mut [0]);
    stream.set_nonblocking(false).unwrap();
    peeked.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

#[test]
fn events_are_answered_once_they_are_stored_and_heartbeats_at_once() {
    let tracker = start();
    tracker.announce(1, &leecher(1));
    tracker.recorder.hold();
    for (number, event) in
        [AnnounceEvent::Started, AnnounceEvent::Completed, AnnounceEvent::Stopped].into_iter().enumerate()
    {
        let mut connection = send(&tracker, &leecher(1).with_event(event));
        eventually_equal(1, PATIENCE, || tracker.recorder.held_count());
        // The swarm knows of it, and everyone else is answered, but not the client itself.
        assert_eq!(tracker.events().last().unwrap().event, event, "{number}");
        assert_eq!(tracker.announce(2, &leecher(2)).failure_reason, None);
        assert!(is_silent(&connection), "{event}");
        tracker.recorder.store_held();
        let reply = AnnounceReply::decode(&connection.read_reply().body);
        assert_eq!(reply.failure_reason, None);
        tracker.recorder.hold();
    }
}

#[test]
fn over_udp_the_reply_to_an_event_is_sent_once_it_is_stored() {
    let tracker = start();
    let path = format!("/{}/announce", passkey(1));
    for mut udp in [tracker.udp_v4(), tracker.udp_v6()] {
        tracker.recorder.hold();
        let connection = udp.connect();
        let started = leecher(1).with_event(AnnounceEvent::Started);
        udp.send(&announce_packet(connection, 77, &started, &path));
        eventually_equal(1, PATIENCE, || tracker.recorder.held_count());
        // A heartbeat overtakes it.
        udp.send(&announce_packet(connection, 78, &leecher(1), &path));
        let first = udp.receive(PATIENCE).unwrap();
        assert_eq!(first[4..8], 78_u32.to_be_bytes());
        tracker.recorder.store_held();
        let second = udp.receive(PATIENCE).unwrap();
        assert_eq!((&second[..4], &second[4..8]), (&1_u32.to_be_bytes()[..], &77_u32.to_be_bytes()[..]));
    }
}

#[test]
fn every_announce_waits_with_ack_all_and_none_with_ack_none() {
    let tracker = start_live(|live| live.acknowledge = Acknowledge::All);
    tracker.recorder.hold();
    let mut connection = send(&tracker, &leecher(1));
    eventually_equal(1, PATIENCE, || tracker.recorder.held_count());
    assert!(is_silent(&connection));
    tracker.recorder.store_held();
    assert_eq!(connection.read_reply().status(), 200);

    let tracker = start_live(|live| live.acknowledge = Acknowledge::None);
    tracker.recorder.hold();
    tracker.announce(1, &leecher(1).with_event(AnnounceEvent::Started));
    assert_eq!(tracker.recorder.held_count(), 0);
}

#[test]
fn an_event_not_stored_in_time_gets_retry_in() {
    let tracker = start_live(|live| live.acknowledge_timeout = Duration::from_millis(20));
    tracker.recorder.hold();
    let reply = tracker.ask(1, &leecher(1).with_event(AnnounceEvent::Started));
    assert!(reply.failure_reason.unwrap().contains("could not store"));
    assert_eq!(reply.retry_in, Some(RetryIn::Minutes(1)));
    assert_eq!(tracker.refused("not_stored_in_time"), 1);
    // The connection continues, also for pipelined requests.
    tracker.recorder.store_held();
    assert_eq!(tracker.announce(1, &leecher(1).with_event(AnnounceEvent::Started)).failure_reason, None);
}

#[test]
fn j1_what_cannot_be_written_down_is_not_taken() {
    let tracker = start();
    tracker.recorder.set_full(true);
    let reply = tracker.ask(1, &seeder(1));
    assert!(reply.failure_reason.unwrap().contains("cannot store announces"));
    assert_eq!(reply.retry_in, Some(RetryIn::Minutes(1)));
    assert_eq!(tracker.scrape(&TORRENT), SwarmCounts::default(), "nothing has changed");
    assert_eq!(tracker.refused("journal_full"), 1);
    let refusal = tracker.udp_v4().announce(&seeder(1), &format!("/{}/announce", passkey(1))).unwrap_err();
    assert!(refusal.contains("cannot store announces"), "{refusal}");
    assert_eq!(tracker.recorder.places_in_use(), 0, "what was never given is not given back");
    tracker.recorder.set_full(false);
    tracker.announce(1, &seeder(1));
    assert_eq!(tracker.events().len(), 1);
}

#[test]
fn places_are_given_back_where_an_announce_is_refused_by_the_swarm() {
    let tracker = start_live(|live| live.clients_per_user_max = 1);
    tracker.announce(1, &leecher(1));
    assert!(tracker.ask(1, &leecher(2)).failure_reason.is_some());
    assert_eq!(tracker.recorder.places_in_use(), 0);
}

#[test]
fn j8_an_implausible_claim_is_credited_up_to_the_ceiling_and_left_to_the_ledger_to_report() {
    let tracker = start_live(|live| live.ceiling = RateCeiling { bytes_per_s: 1000 });
    tracker.announce(2, &leecher(2));
    tracker.announce(1, &leecher(1));
    for claimed in [1_u64 << 40, 1 << 41] {
        tracker.pass(20);
        tracker.announce(1, &leecher(1).with_totals(claimed, 0, 1000));
        assert_eq!(tracker.last_event().uploaded_delta, 30_000);
    }
    assert_eq!(tracker.recorder.risks(), [], "the ledger knows what was credited");
    assert_eq!(tracker.tracker().counters().implausible.get(), 2);
}

#[test]
fn j8_a_repeated_announce_gives_no_second_entry_of_weight() {
    let tracker = start();
    tracker.announce(1, &leecher(1));
    tracker.pass(60);
    let completed = leecher(1).with_totals(500, 1_000_000, 0).with_event(AnnounceEvent::Completed);
    tracker.announce(1, &completed);
    let first = tracker.last_event();
    tracker.announce(1, &completed);
    let again = tracker.last_event();
    assert_eq!((first.uploaded_delta, first.downloaded_delta, first.since_last.0), (500, 1_000_000, 60));
    assert_eq!((again.uploaded_delta, again.downloaded_delta, again.since_last.0), (0, 0, 0));
    assert_eq!((first.event, again.event), (AnnounceEvent::Completed, AnnounceEvent::None));
}

/// A thread hands over what it recorded before it sleeps, with and without a reply that waits: no event stays behind until
/// the next request.
#[test]
fn j1_every_thread_hands_over_before_it_sleeps() {
    let tracker = start();
    let path = format!("/{}/announce", passkey(1));
    let handed_over = |events: usize| {
        eventually_equal((events, 0), PATIENCE, || {
            (tracker.events().len(), tracker.recorder.not_handed_over())
        });
    };
    for round in 0..3 {
        tracker.announce(1, &leecher(1));
        handed_over(4 * round + 1);
        tracker.announce(1, &leecher(1).with_event(AnnounceEvent::Started));
        handed_over(4 * round + 2);
        for mut udp in [tracker.udp_v4(), tracker.udp_v6()] {
            let connection = udp.connect();
            udp.send(&announce_packet(connection, 7, &leecher(2), &path));
            assert!(udp.receive(PATIENCE).is_some());
        }
        handed_over(4 * round + 4);
    }
}

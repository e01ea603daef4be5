//! Slots, torrents that await approval and banned ports, over real sockets.

use std::sync::Barrier;
use std::thread;

use access::{LeechSlots, TorrentAccess, UserAccess};
use domain::{AnnounceEvent, Cause, InfoHash, Seconds, TorrentId, UserId};
use testkit::{Announce, RetryIn, eventually_equal};
use tracker::Eviction;
use tracker::settings::LiveSettings;

use crate::support::*;

fn on(torrent: InfoHash, announce: Announce) -> Announce {
    Announce { info_hash: torrent, ..announce }
}

/// Sets the rows of user 1.
fn give_slots(tracker: &TestTracker, leech_slots: LeechSlots) {
    let terms = UserAccess { passkey: passkey(1), enabled: true, is_external: false, leech_slots };
    tracker.gate.put_user_access(UserId::new(1).unwrap(), terms);
}

/// Sets the row of the torrent.
fn put_torrent(tracker: &TestTracker, approved: bool, leech_slots: LeechSlots) {
    let terms =
        TorrentAccess { info_hash: TORRENT, info_hash_v2: None, enabled: true, approved, leech_slots };
    tracker.gate.put_torrent_access(TorrentId::new(1).unwrap(), terms, tracker.tracker().now());
}

#[track_caller]
fn assert_refused(tracker: &TestTracker, user: u64, announce: &Announce, reason: &str) {
    let written = tracker.events().len();
    let reply = tracker.ask(user, announce);
    let said = reply.failure_reason.expect("it is refused");
    assert!(said.contains(reason), "{said}");
    assert_eq!(tracker.events().len(), written, "what is refused is not written down");
    assert_eq!(tracker.recorder.places_in_use(), 0);
}

#[test]
fn a_user_at_the_leech_limit_gets_the_reason_over_http_and_udp() {
    let tracker = start_live(|live| live.leeches_per_user_max = Some(1));
    tracker.announce(1, &leecher(1));
    let second = on(OTHER_TORRENT, leecher(2));
    assert_refused(&tracker, 1, &second, "one at a time is your limit");
    assert_eq!(tracker.ask(1, &second).retry_in, Some(RetryIn::Minutes(10)));
    let path = format!("/{}/announce", passkey(1));
    let refused = tracker.udp_v6().announce(&second, &path).expect_err("over UDP as well");
    assert!(refused.contains("one at a time"), "{refused}");
    assert_eq!(tracker.refused("too_many_leeches"), 3);
    assert_eq!(tracker.scrape(&OTHER_TORRENT).incomplete, 0);
    tracker.announce(2, &second);
    // It is complete: there is room for another.
    tracker.announce(1, &seeder(1).with_event(AnnounceEvent::Completed));
    tracker.announce(1, &Announce { port: 4000, ..on(OTHER_TORRENT, leecher(3)) });
    assert_refused(&tracker, 1, &leecher(4), "limit");
}

#[test]
fn limits_of_one_user_or_torrent_come_before_those_of_all_and_change_live() {
    let tracker = start();
    tracker.announce(1, &leecher(1));
    let second = on(OTHER_TORRENT, leecher(2));
    give_slots(&tracker, LeechSlots::at_most(1).unwrap());
    assert_refused(&tracker, 1, &second, "limit");
    tracker.announce(1, &leecher(1));
    give_slots(&tracker, LeechSlots::at_most(0).unwrap());
    tracker.announce(1, &leecher(1));
    assert_refused(&tracker, 1, &second, "only seed");
    tracker.running().reload(LiveSettings { leeches_per_user_max: Some(1), ..LiveSettings::default() });
    give_slots(&tracker, LeechSlots::UNLIMITED);
    tracker.announce(1, &second);
    give_slots(&tracker, LeechSlots::DEFAULT);
    tracker.announce(1, &second);
    tracker.announce(1, &stopped(&second));
    assert_refused(&tracker, 1, &second, "limit");
    tracker.running().reload(LiveSettings::default());
    tracker.announce(1, &second);

    put_torrent(&tracker, true, LeechSlots::at_most(1).unwrap());
    tracker.announce(1, &leecher(1));
    assert_refused(&tracker, 2, &leecher(3), "(1)");
    tracker.announce(2, &seeder(3));
    put_torrent(&tracker, true, LeechSlots::DEFAULT);
    tracker.announce(3, &leecher(4));
    tracker.running().reload(LiveSettings { leeches_per_torrent_max: Some(2), ..LiveSettings::default() });
    assert_refused(&tracker, 4, &leecher(5), "(2)");
    assert_eq!(tracker.refused("torrent_full"), 2);
}

/// A slot is released by `stopped`, by expiry, and by an eviction.
#[test]
fn t3_a_slot_comes_back_with_silence_and_eviction() {
    let tracker = start_live(|live| live.leeches_per_user_max = Some(1));
    let second = on(OTHER_TORRENT, leecher(2));
    tracker.announce(1, &leecher(1));
    tracker.pass(2400);
    tracker.tracker().expire_peers();
    eventually_equal(0, PATIENCE, || tracker.scrape(&TORRENT).incomplete);
    tracker.announce(1, &second);
    assert_refused(&tracker, 1, &leecher(1), "limit");
    tracker.gate.remove_torrent(TorrentId::new(2).unwrap());
    tracker.tracker().order_eviction(Eviction::Torrent(OTHER_TORRENT));
    eventually_equal(0, PATIENCE, || tracker.tracker().swarms().leeches_of(UserId::new(1).unwrap()));
    tracker.announce(1, &leecher(1));
    tracker.announce(1, &stopped(&leecher(1)));
    tracker.announce(1, &leecher(3));
}

/// Two clients of a user ask for different torrents at the same moment, again and again: one slot, one winner.
#[test]
fn of_two_connections_that_race_for_the_last_slot_one_gets_it() {
    let tracker = start_with(Options {
        live: LiveSettings { leeches_per_user_max: Some(1), ..LiveSettings::default() },
        workers: 2,
        ..Options::default()
    });
    for round in 0..50 {
        let barrier = Barrier::new(2);
        let wins = thread::scope(|scope| {
            let racers = [TORRENT, OTHER_TORRENT].map(|torrent| {
                let (tracker, barrier) = (&tracker, &barrier);
                scope.spawn(move || {
                    let mut connection = tracker.connect();
                    let announce = on(torrent, leecher(1));
                    barrier.wait();
                    let reply = connection.get(&announce.target(&passkey(1)));
                    let is_in = testkit::AnnounceReply::decode(&reply.body).failure_reason.is_none();
                    (is_in, stopped(&announce))
                })
            });
            racers.map(|racer| racer.join().unwrap())
        });
        let winners: Vec<_> = wins.iter().filter(|(is_in, _)| *is_in).collect();
        assert_eq!(winners.len(), 1, "round {round}");
        tracker.announce(1, &winners[0].1);
    }
    assert_eq!(tracker.refused("too_many_leeches"), 50);
}

#[test]
fn a_torrent_that_awaits_approval_is_announced_soon_again_and_gives_no_peers() {
    let tracker = start();
    put_torrent(&tracker, false, LeechSlots::DEFAULT);
    tracker.announce(1, &seeder(1).with_event(AnnounceEvent::Started));
    let reply = tracker.announce(2, &leecher(2).with_event(AnnounceEvent::Started));
    assert_eq!((reply.interval, reply.min_interval), (Some(60), Some(60)));
    assert_eq!((reply.peers, reply.complete, reply.incomplete), (Some(vec![]), Some(1), Some(1)));
    let event = tracker.last_event();
    assert_eq!(
        (event.event, event.interval, event.min_interval),
        (AnnounceEvent::Started, Seconds(60), Seconds(60))
    );
    tracker.pass(60);
    let reply = tracker.announce(2, &leecher(2).with_totals(0, 5, 95));
    assert_eq!((reply.peers, reply.warning_message), (Some(vec![]), None), "it came when it was told to");
    assert_eq!(tracker.last_event().downloaded_delta, 5, "and is accounted like any other");
    let udp = tracker.udp_v4().announce(&leecher(3), &format!("/{}/announce", passkey(3))).unwrap();
    assert_eq!((udp.interval, udp.peers.len()), (60, 0));
    assert_eq!(tracker.scrape(&TORRENT).complete, 1);

    // Approved: the next announce gets peers, however soon, and the normal intervals.
    tracker.pass(3);
    put_torrent(&tracker, true, LeechSlots::DEFAULT);
    tracker.pass(2);
    let reply = tracker.announce(2, &leecher(2).with_totals(0, 5, 95));
    assert_eq!((reply.interval, reply.min_interval, reply.warning_message), (Some(1800), Some(900), None));
    assert_eq!(reply.peers.map(|peers| peers.len()), Some(2), "the seeder and the leecher over UDP");
    tracker.pass(30);
    let reply = tracker.announce(2, &leecher(2).with_totals(0, 5, 95));
    assert!(reply.warning_message.is_some(), "from then on patience is asked for");
    assert_eq!(reply.peers, Some(vec![]));
    // And back: the seeders stay, but no peers are returned.
    put_torrent(&tracker, false, LeechSlots::DEFAULT);
    assert_eq!(tracker.announce(4, &leecher(4)).peers, Some(vec![]));
    assert_eq!(tracker.scrape(&TORRENT).complete, 1);
}

#[test]
fn the_short_interval_is_never_longer_than_the_usual_one() {
    let tracker = start_live(|live| {
        live.pending_interval = Seconds(3000);
        live.min_announce_interval = Seconds(10);
    });
    put_torrent(&tracker, false, LeechSlots::DEFAULT);
    let reply = tracker.announce(1, &leecher(1));
    assert_eq!((reply.interval, reply.min_interval), (Some(1800), Some(10)));
}

#[test]
fn a_banned_port_is_refused_but_stopped_is_accepted() {
    let tracker = start();
    let port = leecher(1).port;
    tracker.announce(1, &leecher(1));
    tracker.gate.set_banned_ports([format!("{port}").parse().unwrap()]);
    assert_refused(&tracker, 1, &leecher(1), "port");
    assert_refused(&tracker, 1, &leecher(1).with_event(AnnounceEvent::Completed), "port");
    let refused = tracker.udp_v4().announce(&leecher(1), &format!("/{}/announce", passkey(1)));
    assert!(refused.expect_err("over UDP as well").contains("choose another"));
    assert_eq!(tracker.ask(1, &leecher(1)).retry_in, Some(RetryIn::Minutes(5)));
    assert_eq!(tracker.refused("port_banned"), 4);
    tracker.announce(1, &stopped(&leecher(1)).with_totals(7, 0, 5));
    assert_eq!(tracker.last_event().uploaded_delta, 7, "a goodbye is taken, with what it moved");
    assert_eq!(tracker.scrape(&TORRENT).incomplete, 0);
    tracker.announce(1, &Announce { port: port + 1, ..leecher(1) });
    tracker.gate.set_banned_ports([]);
    tracker.announce(2, &leecher(1));
}

#[test]
fn peers_on_a_port_that_is_banned_leave_their_swarms() {
    let tracker = start();
    tracker.announce(1, &leecher(1));
    tracker.announce(2, &on(OTHER_TORRENT, seeder(2)));
    // One client, two families, one of its two ports banned.
    tracker.announce(3, &leecher(3));
    tracker.ask_v6(3, &Announce { port: leecher(1).port, ..leecher(3) });
    let ban = [leecher(1).port, seeder(2).port].map(|port| port.to_string().parse().unwrap());
    tracker.gate.set_banned_ports(ban);
    tracker.tracker().order_eviction(Eviction::BannedPorts);
    let left = || (tracker.scrape(&TORRENT).incomplete, tracker.scrape(&OTHER_TORRENT).complete);
    eventually_equal((0, 0), PATIENCE, left);
    let departed: Vec<_> =
        tracker.events().into_iter().filter(|event| event.cause == Cause::Removal).collect();
    assert_eq!(departed.len(), 3);
    assert!(departed.iter().all(|event| event.event == AnnounceEvent::Stopped));
    assert_eq!(tracker.tracker().counters().peers_evicted.get(), 3);
}

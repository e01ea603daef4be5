//! Expired peers (T3), and evicted peers of removed users and torrents.

mod clock_steps;
mod clock_steps_accounts;

use std::net::IpAddr;

use access::ClientRules;
use domain::{AnnounceEvent, Cause, PeerId, Seconds, TorrentId, TrafficEvent, UserId};
use testkit::{Announce, SwarmCounts, eventually, eventually_equal};
use tracker::Eviction;
use tracker::settings::LiveSettings;

use crate::support::*;

/// Defaults: interval 1800 s, grace 600 s.
const SILENCE_MAX_S: u32 = 2400;

fn user(id: u64) -> UserId {
    UserId::new(id).unwrap()
}

fn counts(complete: i64, incomplete: i64) -> SwarmCounts {
    SwarmCounts { complete, incomplete, downloaded: 0 }
}

/// The departures written down so far, in the order of their users; waits until there are so many, since the
/// housekeeper may be at it too.
#[track_caller]
fn departures(tracker: &TestTracker, count: usize) -> Vec<TrafficEvent> {
    eventually("the departures to be written down", PATIENCE, || {
        let mut departures: Vec<TrafficEvent> =
            tracker.events().into_iter().filter(|event| event.cause != Cause::Announce).collect();
        departures.sort_by_key(|event| (event.user.get(), event.port));
        (departures.len() >= count).then_some(departures)
    })
}

/// An expired peer's `stopped` has no deltas, and its other fields as last announced.
#[track_caller]
fn assert_departed(event: &TrafficEvent, last: &TrafficEvent, cause: Cause) {
    let expected = TrafficEvent {
        uploaded_delta: 0,
        downloaded_delta: 0,
        left: last.left.filter(|left| *left == 0),
        event: AnnounceEvent::Stopped,
        at: event.at,
        steady: event.steady,
        since_last: event.at.since(last.at),
        cause,
        ..*last
    };
    assert_eq!(*event, expected);
}

#[test]
fn t3_silent_peers_expire_after_interval_and_grace() {
    let tracker = start();
    tracker.announce(1, &seeder(1));
    tracker.ask_v6(2, &leecher(2));
    tracker.udp_v4().announce(&leecher(3), &format!("/{}/announce", passkey(3))).unwrap();
    tracker.pass(SILENCE_MAX_S - 1);
    tracker.tracker().expire_peers();
    assert_eq!(tracker.scrape(&TORRENT), counts(1, 2), "a second is left");
    tracker.pass(1);
    tracker.tracker().expire_peers();
    eventually_equal(counts(0, 0), PATIENCE, || tracker.scrape(&TORRENT));
    eventually_equal(3, PATIENCE, || tracker.tracker().counters().peers_expired.get());
    assert_eq!(tracker.announce(4, &leecher(4)).all_peers(), []);
}

/// The test calls nothing: the tracker expires peers by itself.
#[test]
fn t3_the_housekeeper_notices_silence() {
    let tracker = start();
    tracker.announce(1, &seeder(1));
    tracker.pass(SILENCE_MAX_S);
    eventually_equal(counts(0, 0), PATIENCE, || tracker.scrape(&TORRENT));
    departures(&tracker, 1);
}

#[test]
fn t3_every_announce_pushes_the_end_back() {
    let tracker = start();
    for _ in 0..5 {
        tracker.announce(1, &seeder(1));
        tracker.pass(SILENCE_MAX_S - 1);
        tracker.tracker().expire_peers();
        assert_eq!(tracker.scrape(&TORRENT).complete, 1);
    }
    tracker.pass(1);
    tracker.tracker().expire_peers();
    eventually_equal(counts(0, 0), PATIENCE, || tracker.scrape(&TORRENT));
    assert_eq!(departures(&tracker, 1)[0].since_last, Seconds(SILENCE_MAX_S));
}

#[test]
fn t3_what_is_written_down_is_a_stop_with_nothing_moved() {
    let tracker = start();
    tracker.announce(1, &leecher(1));
    tracker.ask_v6(2, &leecher(2));
    tracker.pass(1800);
    tracker.announce(1, &leecher(1).with_totals(1_000, 2_000, 0));
    tracker.ask_v6(2, &leecher(2).with_totals(30, 40, 50));
    let last = tracker.events()[2..].to_vec();
    assert_eq!((last[0].uploaded_delta, last[1].downloaded_delta), (1_000, 40));
    tracker.pass(SILENCE_MAX_S);
    tracker.tracker().expire_peers();
    let departed = departures(&tracker, 2);
    assert_eq!(departed.len(), 2);
    for (event, last) in departed.iter().zip(&last) {
        assert_departed(event, last, Cause::Timeout);
    }
    assert_eq!((departed[0].passkey, departed[1].passkey), (Some(passkey(1)), Some(passkey(2))));
    assert_eq!((departed[0].uploaded_total, departed[0].downloaded_total), (1_000, 2_000));
    assert_eq!(departed[1].ip, "::1".parse::<IpAddr>().unwrap());
    let credited: u64 = tracker.events().iter().map(|event| event.uploaded_delta).sum();
    assert_eq!(credited, 1_030);
}

#[test]
fn t3_a_stop_is_recorded_once() {
    let tracker = start();
    tracker.announce(1, &leecher(1));
    tracker.announce(1, &stopped(&leecher(1)));
    tracker.announce(2, &leecher(2));
    tracker.pass(SILENCE_MAX_S);
    tracker.tracker().expire_peers();
    let users: Vec<u64> = departures(&tracker, 1).iter().map(|event| event.user.get()).collect();
    assert_eq!(users, [2]);
}

/// The passkey of the moment is written down, not the one under which the peer last announced.
#[test]
fn t3_a_user_with_a_new_passkey_expires_under_it() {
    let tracker = start();
    tracker.announce(1, &leecher(1));
    tracker.gate.put_user(user(1), passkey(100), true);
    tracker.pass(SILENCE_MAX_S);
    tracker.tracker().expire_peers();
    assert_eq!(departures(&tracker, 1)[0].passkey, Some(passkey(100)));
}

#[test]
fn t3_a_peer_that_returns_after_expiry_starts_from_its_current_counters() {
    let tracker = start();
    tracker.announce(1, &leecher(1).with_totals(500, 0, 5));
    tracker.pass(SILENCE_MAX_S);
    tracker.tracker().expire_peers();
    departures(&tracker, 1);
    tracker.announce(1, &leecher(1).with_totals(900, 0, 5));
    let event = tracker.last_event();
    assert_eq!((event.uploaded_delta, event.since_last), (0, Seconds(0)));
    assert_eq!(tracker.scrape(&TORRENT), counts(0, 1));
}

#[test]
fn a_longer_interval_is_granted_to_the_peers_that_are_there() {
    let tracker = start();
    tracker.announce(1, &seeder(1));
    tracker.running().reload(LiveSettings { announce_interval: Seconds(7200), ..LiveSettings::default() });
    assert_eq!(tracker.announce(2, &leecher(2)).interval, Some(7200));
    tracker.pass(7200 + 599);
    tracker.tracker().expire_peers();
    assert_eq!(tracker.scrape(&TORRENT), counts(1, 1));
    tracker.pass(1);
    tracker.tracker().expire_peers();
    eventually_equal(counts(0, 0), PATIENCE, || tracker.scrape(&TORRENT));
}

#[test]
fn the_peers_of_a_removed_user_leave_all_swarms() {
    let tracker = start();
    let elsewhere = Announce { info_hash: OTHER_TORRENT, ..seeder(2).with_totals(77, 0, 0) };
    tracker.announce(1, &leecher(1).with_totals(5, 6, 7));
    tracker.announce(1, &elsewhere);
    tracker.announce(2, &leecher(3));
    let last = tracker.events();
    tracker.pass(60);
    tracker.gate.put_user(user(1), passkey(1), false);
    tracker.tracker().order_eviction(Eviction::User(user(1)));
    let both = || (tracker.scrape(&TORRENT), tracker.scrape(&OTHER_TORRENT));
    eventually_equal((counts(0, 1), counts(0, 0)), PATIENCE, both);
    let departed = departures(&tracker, 2);
    assert_eq!(departed.len(), 2);
    for (event, last) in departed.iter().zip(&last) {
        assert_departed(event, last, Cause::Removal);
        assert_eq!((event.passkey, event.since_last), (Some(passkey(1)), Seconds(60)));
    }
    assert!(tracker.refusal(&leecher(1).target(&passkey(1))).contains("disabled"));
    assert_eq!(tracker.tracker().counters().peers_expired.get(), 0, "they did not fall silent");
}

/// The lists are by passkey: a removed user must still leave them.
#[test]
fn the_departure_of_a_removed_user_is_written_down_with_the_last_passkey() {
    let tracker = start();
    tracker.announce(1, &leecher(1));
    tracker.gate.remove_user(user(1));
    tracker.tracker().order_eviction(Eviction::User(user(1)));
    let event = departures(&tracker, 1)[0];
    assert_eq!((event.passkey, event.user, event.cause), (Some(passkey(1)), user(1), Cause::Removal));
}

/// They announce at their interval, and the traffic until then is credited.
#[test]
fn t3_a_shorter_interval_spares_peers_that_were_promised_a_longer_one() {
    let tracker = start();
    tracker.announce(1, &leecher(1));
    let shorter =
        LiveSettings { announce_interval: Seconds(60), peer_grace: Seconds(60), ..LiveSettings::default() };
    tracker.tracker().set_live(shorter);
    tracker.pass(SILENCE_MAX_S - 1);
    tracker.announce(2, &leecher(2));
    tracker.tracker().expire_peers();
    assert_eq!(tracker.scrape(&TORRENT), counts(0, 2));
    tracker.pass(120);
    tracker.tracker().expire_peers();
    eventually_equal(counts(0, 0), PATIENCE, || tracker.scrape(&TORRENT));
}

#[test]
fn peers_of_a_forbidden_client_are_evicted_and_may_send_stopped() {
    let tracker = start();
    tracker.announce(1, &leecher(1));
    let other = Announce { peer_id: PeerId(*b"-qB4500-abcdefghijkl"), ..leecher(2) };
    tracker.announce(2, &other);
    tracker.gate.set_clients(ClientRules::new([("-TR".parse().unwrap(), false)]));
    tracker.tracker().order_eviction(Eviction::ForbiddenClients);
    let departed = departures(&tracker, 1);
    assert_eq!((departed.len(), departed[0].user, departed[0].cause), (1, user(1), Cause::Removal));
    assert!(tracker.ask(1, &leecher(1)).failure_reason.is_some());
    // Some clients repeat a refused `stopped` forever.
    let goodbye = leecher(1).with_event(AnnounceEvent::Stopped);
    tracker.announce(1, &goodbye);
    tracker.announce(1, &Announce { info_hash: UNKNOWN_TORRENT, ..goodbye });
    assert_eq!(tracker.scrape(&TORRENT), counts(0, 1));
}

/// An order that was overtaken by a change of mind is not carried out.
#[test]
fn a_user_admitted_again_is_not_evicted() {
    let tracker = start();
    tracker.announce(1, &leecher(1));
    tracker.tracker().order_eviction(Eviction::User(user(1)));
    tracker.tracker().order_eviction(Eviction::Torrent(TORRENT));
    tracker.tracker().evict_ordered();
    tracker.tracker().evict_ordered();
    assert_eq!(tracker.scrape(&TORRENT), counts(0, 1));
}

#[test]
fn the_peers_of_a_removed_torrent_leave_and_others_stay() {
    let tracker = start();
    for client in 1..=5 {
        tracker.announce(client.into(), &leecher(client).with_totals(client.into(), 0, 9));
    }
    tracker.announce(6, &Announce { info_hash: OTHER_TORRENT, ..seeder(6) });
    let last = tracker.events();
    tracker.gate.remove_torrent(TorrentId::new(1).unwrap());
    tracker.tracker().order_eviction(Eviction::Torrent(TORRENT));
    let departed = departures(&tracker, 5);
    assert_eq!(departed.len(), 5);
    for (event, last) in departed.iter().zip(&last) {
        assert_departed(event, last, Cause::Removal);
    }
    assert!(tracker.refusal(&leecher(1).target(&passkey(1))).contains("unknown torrent"));
    assert_eq!(tracker.scrape(&OTHER_TORRENT), counts(1, 0));
    // Registered again, it starts empty, and what the wheel still remembers does no harm.
    tracker.gate.put_torrent(TorrentId::new(1).unwrap(), TORRENT, None, true);
    tracker.announce(1, &leecher(1));
    tracker.pass(SILENCE_MAX_S - 1);
    tracker.tracker().expire_peers();
    assert_eq!(tracker.scrape(&TORRENT), counts(0, 1));
}

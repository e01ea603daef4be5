//! A wall clock that is set forward and back, again and again: durations follow steady time, dates the wall clock.

use domain::clock::Clock;

use super::*;

const HOUR_S: i32 = 3_600;

#[test]
fn a_step_of_the_wall_clock_expires_no_peer_and_changes_no_duration() {
    let tracker = start();
    tracker.announce(1, &seeder(1));
    tracker.announce(2, &leecher(2));
    for step in [2 * HOUR_S, -2 * HOUR_S, -8 * HOUR_S, 16 * HOUR_S, -8 * HOUR_S] {
        tracker.pass(1_000);
        tracker.clock.step(step);
        tracker.tracker().expire_peers();
        assert_eq!(tracker.scrape(&TORRENT), counts(1, 1), "after {step}");
        for (user, announce) in [(1, seeder(1)), (2, leecher(2))] {
            tracker.announce(user, &announce);
            let event = tracker.last_event();
            assert_eq!((event.at, event.steady), (tracker.clock.now(), tracker.clock.steady()));
            assert_eq!(event.since_last, Seconds(1_000), "after {step}");
        }
    }
    assert_eq!(tracker.tracker().counters().too_soon.get(), 0);
    tracker.clock.step(2 * HOUR_S);
    tracker.pass(SILENCE_MAX_S + 5);
    tracker.tracker().expire_peers();
    for departure in departures(&tracker, 2) {
        assert_eq!(departure.since_last, Seconds(SILENCE_MAX_S));
        assert_eq!(departure.at.since(tracker.clock.now()), Seconds(0));
        assert_eq!(tracker.clock.now().since(departure.at), Seconds(5), "dated by the wall clock");
    }
}

#[test]
fn a_step_of_the_wall_clock_neither_opens_nor_closes_the_limits() {
    let tracker = start_live(|live| {
        live.limits.requests_per_address_per_s = 1;
        live.limits.request_burst_per_address = 2;
    });
    let is_allowed = || {
        let address = IpAddr::from([192, 0, 2, 1]);
        tracker.tracker().check_flood(address, tracker::Sender::Verified, tracker.tracker().now()).is_ok()
    };
    assert!(is_allowed() && is_allowed() && !is_allowed());
    for step in [HOUR_S, -HOUR_S, -HOUR_S] {
        tracker.clock.step(step);
        assert!(!is_allowed(), "after {step}");
    }
    tracker.pass(1);
    assert!(is_allowed() && !is_allowed());
}

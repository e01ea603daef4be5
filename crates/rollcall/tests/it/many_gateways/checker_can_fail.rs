//! The checker finds what is wrong: each history here is right but for one thing.

use crate::many_gateways::checker::{Bounds, violations};
use crate::many_gateways::history::{
    Declaration, DeviceSession, End, Fault, FaultKind, Gateway, History, OPEN, Shown, WatchSession,
};
use crate::many_gateways::spans::Ms;

const USER: u64 = 1_000;
const VIEWER: u64 = 1;
const BOUNDS: Bounds = Bounds { ttl: 10_000, pending: 3_000, settle: 2_000, recovery: 5_000, lease: 5_000 };

/// A person at gateway 0 from the first second on, and a watcher at gateway 1.
fn history(to: Ms, end: End, shown: &[(Ms, &str)]) -> History {
    let stay = DeviceSession { user: USER, device: 0, gateway: 0, from: 1_000, to, end };
    let shown = shown.iter().zip(1..).map(|((at, status), version)| Shown {
        at: *at,
        user: USER,
        status: (*status).to_owned(),
        version,
        is_change: version > 1,
    });
    let look = WatchSession { viewer: VIEWER, gateway: 1, from: 0, to: OPEN, shown: shown.collect() };
    let mut history =
        History { device_sessions: vec![stay], watch_sessions: vec![look], ..History::default() };
    history.finish(60_000);
    history
}

fn with_fault(mut history: History, kind: FaultKind, gateway: Option<Gateway>, span: (Ms, Ms)) -> History {
    history.faults.push(Fault { kind, gateway, from: span.0, to: span.1 });
    history
}

fn saying(mut history: History, words: &[(Ms, Option<&'static str>)]) -> History {
    let said = |(sent, what): &(Ms, Option<&'static str>)| Declaration {
        user: USER,
        gateway: 0,
        what: *what,
        sent: *sent,
        confirmed: sent + 50,
    };
    history.declarations = words.iter().map(said).collect();
    history
}

#[track_caller]
fn assert_broken(history: &History, rules: &[&str]) {
    let found = violations(history, &BOUNDS);
    let mut broken: Vec<&str> = found.iter().map(|violation| violation.rule).collect();
    broken.dedup();
    assert_eq!(broken, rules, "{found:#?}");
}

#[test]
fn a_right_history_is_right() {
    let shown = [(0, "offline"), (1_050, "online"), (30_040, "offline")];
    assert_broken(&history(30_000, End::Closed, &shown), &[]);
    // Silent: away, offline when the TTL is over.
    let shown = [(0, "offline"), (1_050, "online"), (36_000, "away"), (39_900, "offline")];
    assert_broken(&history(30_000, End::Silent, &shown), &[]);
    // The gateway dies: pending when its lease is over, then offline.
    let shown = [(0, "offline"), (1_050, "online"), (34_000, "pending"), (37_500, "offline")];
    let killed = history(30_000, End::ByGateway, &shown);
    assert_broken(&with_fault(killed, FaultKind::Dead, Some(0), (30_000, 40_000)), &[]);
}

#[test]
fn a_user_shown_longer_than_the_ttl_is_an_error_unless_the_watchers_gateway_failed() {
    let shown = [(0, "offline"), (1_050, "online"), (41_000, "offline")];
    let silent = history(30_000, End::Silent, &shown);
    assert_broken(&silent, &["ghost"]);
    for kind in [FaultKind::Dead, FaultKind::Frozen, FaultKind::NoRedis] {
        assert_broken(&with_fault(silent.clone(), kind, Some(0), (29_000, 45_000)), &["ghost"]);
    }
    assert_broken(&with_fault(silent.clone(), FaultKind::NoRedis, None, (29_000, 45_000)), &["ghost"]);
    assert_broken(&with_fault(silent, FaultKind::Frozen, Some(1), (29_000, 40_500)), &[]);
    // Shown online until the end, without a change.
    assert_broken(&history(30_000, End::ByGateway, &[(1_050, "busy")]), &["ghost", "late"]);
    // Who never came.
    let mut never = history(30_000, End::Closed, &[(0, "online")]);
    never.device_sessions.clear();
    assert_broken(&never, &["ghost"]);
}

#[test]
fn a_connected_user_not_shown_is_an_error_unless_redis_was_unreachable() {
    for status in ["offline", "pending"] {
        let shown = [(0, "offline"), (1_050, "online"), (20_000, status), (20_010, "online")];
        let lost = history(OPEN, End::Open, &shown);
        assert_broken(&lost, &["lost"]);
        assert_broken(&with_fault(lost.clone(), FaultKind::Dead, Some(2), (15_000, 25_000)), &["lost"]);
        assert_broken(&with_fault(lost.clone(), FaultKind::NoRedis, Some(2), (15_000, 25_000)), &["lost"]);
        assert_broken(&with_fault(lost.clone(), FaultKind::NoRedis, Some(0), (10_000, 14_000)), &["lost"]);
        for gateway in [None, Some(0), Some(1)] {
            assert_broken(&with_fault(lost.clone(), FaultKind::NoRedis, gateway, (10_000, 16_000)), &[]);
        }
        let mut neighbours = with_fault(lost, FaultKind::NoRedis, None, (10_000, 30_000));
        neighbours.watch_sessions[0].gateway = 0;
        assert_broken(&neighbours, &["lost"]);
    }
    // The connect is never shown.
    assert_broken(&history(OPEN, End::Open, &[(0, "offline")]), &["lost"]);
    // A snapshot that does not know (P4).
    let mut late = history(OPEN, End::Open, &[(20_000, "offline"), (20_100, "online")]);
    late.watch_sessions[0].from = 19_990;
    assert_broken(&late, &["lost"]);
}

#[test]
fn a_second_device_on_another_gateway_keeps_a_user_online() {
    let shown = [(0, "offline"), (1_050, "online"), (30_040, "offline")];
    let mut two = history(30_000, End::Closed, &shown);
    two.device_sessions.push(DeviceSession {
        user: USER,
        device: 1,
        gateway: 2,
        from: 5_000,
        to: 60_000,
        end: End::Open,
    });
    assert_broken(&two, &["lost"]);
    assert_broken(&with_fault(two, FaultKind::NoRedis, Some(2), (29_000, 60_000)), &[]);
}

#[test]
fn an_invisible_user_must_not_be_shown_whatever_failed() {
    let shown =
        [(0, "offline"), (1_050, "online"), (10_100, "offline"), (30_000, "online"), (30_010, "offline")];
    let seen = saying(history(OPEN, End::Open, &shown), &[(10_000, Some("invisible"))]);
    assert_broken(&seen, &["seen"]);
    assert_broken(&with_fault(seen.clone(), FaultKind::NoRedis, None, (20_000, 29_000)), &["seen"]);
    // A declaration to a faulty gateway may be lost.
    assert_broken(&with_fault(seen.clone(), FaultKind::NoRedis, Some(0), (9_000, 40_000)), &[]);
    // The watcher's gateway could not receive it.
    assert_broken(&with_fault(seen.clone(), FaultKind::NoRedis, Some(1), (9_000, 30_000)), &[]);
    let taken_back = saying(seen, &[(10_000, Some("invisible")), (29_990, None)]);
    assert_broken(&taken_back, &["lost"]);
    // Pending reveals as much.
    let shown =
        [(0, "offline"), (1_050, "online"), (10_100, "offline"), (30_000, "pending"), (30_010, "offline")];
    let hinted = saying(history(OPEN, End::Open, &shown), &[(10_000, Some("invisible"))]);
    assert_broken(&hinted, &["seen"]);
}

#[test]
fn without_faults_departures_are_shown_soon() {
    let shown = [(0, "offline"), (1_050, "online"), (33_000, "offline")];
    let late = history(30_000, End::Closed, &shown);
    assert_broken(&late, &["late"]);
    assert_broken(&with_fault(late, FaultKind::NoRedis, Some(0), (29_500, 32_000)), &[]);
    let shown = [(0, "offline"), (1_050, "online"), (39_000, "pending"), (50_000, "offline")];
    assert_broken(&history(30_000, End::Silent, &shown), &["late"]);
}

#[test]
fn versions_do_not_go_back_on_a_connection_nor_come_twice() {
    let shown = [(0, "offline"), (1_050, "online"), (2_000, "busy")];
    let right = history(OPEN, End::Open, &shown);
    for (version, is_wrong) in [(3, false), (2, true), (1, true), (0, false)] {
        let mut wrong = right.clone();
        wrong.watch_sessions[0].shown[2].version = version;
        assert_broken(&wrong, if is_wrong { &["back"] } else { &[] });
    }
}

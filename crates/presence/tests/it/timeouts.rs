//! Timeouts: probes (P7), app states (P8), jitter (P10), sessions without a connection.

use domain::Seconds;
use presence::{AppState, Cause, CloseCause, ConnId, Effect, Hello, Input, Policy, Status};

use crate::support::*;

const CONN: ConnId = ConnId(1);

fn answered(fixture: &mut Fixture) {
    fixture.input(7, Input::ProbeAnswered { conn: CONN });
}

#[test]
fn p7_a_silent_connection_second_by_second() {
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, hello("page"));
    assert_eq!(fixture.status(7), Status::Online);
    for at in 1..=95 {
        fixture.take();
        fixture.pass_to(at);
        let effects = fixture.changes();
        let probe = matches!(at, 30 | 60 | 65 | 70 | 75 | 80 | 85);
        assert_eq!(effects.contains(&Effect::Probe(CONN)), probe, "a probe at {at} s");
        let close = effects.contains(&Effect::Close { conn: CONN, cause: CloseCause::NoPong });
        assert_eq!(close, at == 90, "closed at {at} s");
        let expected = match at {
            ..35 => Status::Online,
            35..90 => Status::Away,
            _ => Status::Offline,
        };
        assert_eq!(fixture.status(7), expected, "at {at} s");
    }
    assert_eq!(fixture.public(7).last_seen, second(0));
    assert_eq!(fixture.table.counts().connections, 0);
}

#[test]
fn p7_timeouts_have_a_cause() {
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, hello("page"));
    fixture.take();
    fixture.pass_to(90);
    let transitions: Vec<_> = fixture
        .take()
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Transition { from, to, cause, device: by, .. } => Some((from, to, cause, by)),
            _ => None,
        })
        .collect();
    let by = Some(device("page"));
    assert_eq!(
        transitions,
        [
            (Status::Online, Status::Away, Cause::Silence, by.clone()),
            (Status::Away, Status::Offline, Cause::Silence, by),
        ]
    );
}

#[test]
fn p7_an_answered_probe_is_away_and_stays_so_as_long_as_answers_come() {
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, hello("frozen-page"));
    let mut asked_at = Vec::new();
    for at in 1..=600 {
        fixture.pass_to(at);
        if fixture.probes() > 0 {
            asked_at.push(at);
            answered(&mut fixture);
        }
        assert_eq!(fixture.status(7), if at < 35 { Status::Online } else { Status::Away }, "at {at} s");
    }
    assert_eq!(asked_at, (1..=20).map(|turn| turn * 30).collect::<Vec<u64>>());
    assert_eq!(fixture.public(7).last_seen, second(600));
    fixture.heard(7, 1);
    assert_eq!(fixture.status(7), Status::Online);
    // From the last answer on, the same times apply.
    fixture.pass_to(690);
    assert_eq!(fixture.status(7), Status::Offline);
}

#[test]
fn p7_after_an_answer_the_times_start_again() {
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, hello("page"));
    fixture.pass_to(31);
    answered(&mut fixture);
    fixture.take();
    let mut asked_at = Vec::new();
    for at in 32..=120 {
        fixture.pass_to(at);
        if fixture.probes() > 0 {
            asked_at.push(at);
        }
        assert_eq!(fixture.status(7), if at < 35 { Status::Online } else { Status::Away }, "at {at} s");
    }
    assert_eq!(asked_at, [61, 91, 96, 101, 106, 111, 116]);
    fixture.pass_to(121);
    assert_eq!(fixture.status(7), Status::Offline);
    assert_eq!(fixture.public(7).last_seen, second(31));
}

#[test]
fn p7_a_heartbeat_at_any_time_makes_online_at_once_and_starts_anew() {
    for at in 1..90 {
        let mut fixture = Fixture::new();
        fixture.connect(7, 1, hello("page"));
        fixture.pass_to(at);
        fixture.heard(7, 1);
        assert_eq!(fixture.status(7), Status::Online, "heard after {at} s");
        fixture.pass_to(at + 34);
        assert_eq!(fixture.status(7), Status::Online, "heard after {at} s");
        fixture.pass_to(at + 35);
        assert_eq!(fixture.status(7), Status::Away, "heard after {at} s");
        fixture.pass_to(at + 89);
        assert_eq!(fixture.status(7), Status::Away, "heard after {at} s");
        fixture.pass_to(at + 90);
        assert_eq!(fixture.status(7), Status::Offline, "heard after {at} s");
    }
}

#[test]
fn p7_offline_in_time_whatever_the_settings() {
    let settings =
        [(5, 1, 1, 2), (30, 5, 6, 2), (30, 5, 100, 3), (10, 60, 6, 3), (7, 3, 2, 9), (30, 7, 6, 2)];
    for (heartbeat, probe, probes_max, missed_max) in settings {
        let (heartbeat, probe) = (Seconds(heartbeat), Seconds(probe));
        let policy =
            Policy { heartbeat, probe, probes_max, missed_max, ping: Seconds(4), ..Policy::default() };
        let gone = u64::from(heartbeat.0 * missed_max);
        let mut fixture = Fixture::with(policy.clone());
        fixture.connect(7, 1, hello("page"));
        fixture.pass_to(gone - 1);
        assert_ne!(fixture.status(7), Status::Offline, "{policy:?}");
        let probes = fixture.probes();
        assert!((1..=1 + probes_max as usize).contains(&probes), "{probes} probes: {policy:?}");
        fixture.pass_to(gone);
        assert_eq!(fixture.status(7), Status::Offline, "{policy:?}");
    }
}

/// A suspended machine has received nothing; its clients may still be alive.
#[test]
fn sessions_are_probed_before_they_end_after_a_clock_leap() {
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, hello("page"));
    fixture.connect(8, 2, hello("page"));
    fixture.at_ms = 1000 * 1000;
    fixture.tick();
    assert_eq!((fixture.status(7), fixture.status(8)), (Status::Online, Status::Online));
    assert_eq!(fixture.probes(), 2);
    fixture.heard(8, 2);
    fixture.pass(5);
    assert_eq!((fixture.status(7), fixture.status(8)), (Status::Offline, Status::Online));
}

#[test]
fn a_probe_that_cannot_be_written_counts_only_when_the_heartbeat_is_overdue() {
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, hello("page"));
    fixture.pass_to(20);
    fixture.input(7, Input::ProbeFailed { conn: CONN });
    assert_eq!(fixture.status(7), Status::Online);
    fixture.pass_to(30);
    fixture.take();
    fixture.input(7, Input::ProbeFailed { conn: CONN });
    assert_eq!(fixture.status(7), Status::Offline);
    assert!(fixture.take().contains(&Effect::Close { conn: CONN, cause: CloseCause::NoPong }));
}

#[test]
fn p10_jitter_below_the_limit_shows_nowhere() {
    let mut rng = fastrand::Rng::with_seed(10);
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, hello("page"));
    fixture.take();
    for _ in 0..200 {
        let heard_at = fixture.at_ms + rng.u64(1..35_000);
        fixture.pass_to(heard_at / 1000);
        // Whether the network stack answers makes no difference.
        if fixture.probes() > 0 && rng.bool() {
            answered(&mut fixture);
        }
        fixture.at_ms = heard_at;
        fixture.heard(7, 1);
        let shown =
            fixture.changes().into_iter().filter(|effect| !matches!(effect, Effect::Probe(_))).count();
        assert_eq!((shown, fixture.status(7)), (0, Status::Online));
    }
    let session = fixture.table.sessions(user(7)).next().unwrap();
    assert_eq!(session.heartbeats.len(), 10);
    assert_eq!(session.heartbeats[0], fixture.now());
}

#[test]
fn pings_go_out_regularly_and_first_ones_are_spread() {
    let mut fixture = Fixture::new();
    for conn in 0..1000 {
        fixture.connect(u64::from(conn) + 1, conn, hello("page"));
    }
    let mut pinged_at = vec![Vec::new(); 1000];
    for at in 1..=100 {
        fixture.pass_to(at);
        for effect in fixture.take() {
            if let Effect::Ping(conn) = effect {
                pinged_at[conn.0 as usize].push(at);
                fixture.heard(u64::from(conn.0) + 1, conn.0);
            }
        }
    }
    for pings in &pinged_at {
        assert_eq!(pings.len(), 4);
        assert!(pings.windows(2).all(|pair| pair[1] - pair[0] == 25));
    }
    for first in 1..=25 {
        let count = pinged_at.iter().filter(|pings| pings[0] == first).count();
        assert!((10..100).contains(&count), "{count} first pings in second {first}");
    }
}

#[test]
fn p8_in_the_background_silence_is_patient() {
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, hello("app"));
    fixture.app(7, 1, AppState::Background);
    assert_eq!(fixture.status(7), Status::Online);
    fixture.pass_to(299);
    assert_eq!((fixture.status(7), fixture.probes()), (Status::Online, 0));
    fixture.pass_to(300);
    assert_eq!(fixture.status(7), Status::Away);
    fixture.pass_to(1799);
    assert_eq!(fixture.status(7), Status::Away);
    fixture.take();
    fixture.pass_to(1800);
    assert_eq!(fixture.status(7), Status::Offline);
    assert!(fixture.take().contains(&Effect::Close { conn: CONN, cause: CloseCause::NoPong }));
}

#[test]
fn p8_in_the_background_answered_pings_keep_online_and_a_closed_connection_is_noticed_at_once() {
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, hello("app"));
    fixture.app(7, 1, AppState::Background);
    for _ in 0..100 {
        fixture.pass(25);
        fixture.heard(7, 1);
        assert_eq!(fixture.status(7), Status::Online);
    }
    fixture.drop(7, 1);
    assert_eq!(fixture.status(7), Status::Offline);
}

#[test]
fn p8_inactive_is_away_at_once_and_offline_like_the_background() {
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, hello("app"));
    fixture.app(7, 1, AppState::Inactive);
    assert_eq!(fixture.status(7), Status::Away);
    fixture.pass_to(1799);
    assert_eq!(fixture.status(7), Status::Away);
    fixture.pass_to(1800);
    assert_eq!(fixture.status(7), Status::Offline);
}

#[test]
fn p8_coming_to_the_front_is_a_heartbeat_and_probes_resume() {
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, hello("app"));
    fixture.app(7, 1, AppState::Inactive);
    fixture.pass_to(400);
    fixture.app(7, 1, AppState::Foreground);
    assert_eq!(fixture.status(7), Status::Online);
    fixture.pass_to(435);
    assert_eq!(fixture.status(7), Status::Away);
    fixture.pass_to(490);
    assert_eq!(fixture.status(7), Status::Offline);
}

fn heartbeat(name: &str, app: AppState) -> Input {
    Input::Heartbeat { hello: Hello { app, ..hello(name) } }
}

#[test]
fn without_a_connection_two_missed_are_away_and_three_offline_and_no_probe_is_sent() {
    let mut fixture = Fixture::new();
    fixture.input(7, heartbeat("page", AppState::Foreground));
    assert_eq!(fixture.status(7), Status::Online);
    assert_eq!(fixture.table.counts().without_connection, 1);
    fixture.pass_to(59);
    assert_eq!(fixture.status(7), Status::Online);
    fixture.pass_to(60);
    assert_eq!(fixture.status(7), Status::Away);
    fixture.pass_to(89);
    assert_eq!(fixture.status(7), Status::Away);
    fixture.pass_to(90);
    assert_eq!(fixture.status(7), Status::Offline);
    let asked = |effect: &Effect| matches!(effect, Effect::Probe(_) | Effect::Ping(_) | Effect::Close { .. });
    assert!(!fixture.take().iter().any(asked));
}

#[test]
fn without_a_connection_each_heartbeat_has_the_app_state() {
    let mut fixture = Fixture::new();
    fixture.input(7, heartbeat("app", AppState::Background));
    fixture.pass_to(299);
    assert_eq!(fixture.status(7), Status::Online);
    fixture.pass_to(300);
    assert_eq!(fixture.status(7), Status::Away);
    fixture.input(7, heartbeat("app", AppState::Foreground));
    assert_eq!((fixture.status(7), fixture.table.size().sessions), (Status::Online, 1));
    fixture.pass_to(360);
    assert_eq!(fixture.status(7), Status::Away);
    fixture.input(7, heartbeat("app", AppState::Inactive));
    assert_eq!(fixture.public(7).devices[0].app, AppState::Inactive);
    fixture.pass_to(360 + 1799);
    assert_eq!(fixture.status(7), Status::Away);
    fixture.pass_to(360 + 1800);
    assert_eq!(fixture.status(7), Status::Offline);
}

#[test]
fn a_goodbye_without_a_connection_ends_only_that() {
    let mut fixture = Fixture::new();
    fixture.input(7, heartbeat("browser", AppState::Foreground));
    fixture.connect(7, 1, hello("browser"));
    assert_eq!(fixture.public(7).devices.len(), 1);
    fixture.input(7, Input::Goodbye { device: device("browser") });
    assert_eq!(fixture.table.sessions(user(7)).map(|session| session.conn).collect::<Vec<_>>(), [Some(CONN)]);
    fixture.input(7, heartbeat("browser", AppState::Foreground));
    fixture.close(7, 1);
    assert_eq!(fixture.status(7), Status::Online);
    fixture.pass_to(3);
    fixture.input(7, Input::Goodbye { device: device("browser") });
    assert_eq!((fixture.status(7), fixture.public(7).last_seen), (Status::Offline, second(3)));
    let left: Vec<_> = fixture.take().into_iter().filter(|it| matches!(it, Effect::Left { .. })).collect();
    let (cause, device) = (presence::Cause::Goodbye, Some(device("browser")));
    assert_eq!(left, [Effect::Left { user: user(7), last_seen: second(3), cause, device }]);
}

#[test]
fn a_clock_that_steps_back_changes_no_timeout() {
    for back_s in [1, 30, 3600, 1_000_000] {
        let mut fixture = Fixture::new();
        fixture.connect(7, 1, hello("page"));
        fixture.connect(8, 2, hello("page"));
        fixture.at_ms = 0;
        fixture.pass_to(10);
        // From here on the clock shows another time.
        let mut now = fixture.now().0 - back_s * 1000;
        for _ in 0..95 {
            now += 1000;
            let moment = presence::WallTime(now);
            fixture.table.tick(moment, &mut fixture.effects);
            fixture
                .table
                .handle(moment, user(8), Input::Message { conn: ConnId(2) }, &mut fixture.effects)
                .unwrap();
        }
        assert_eq!(fixture.status(7), Status::Offline, "{back_s} s back");
        assert_eq!(fixture.status(8), Status::Online, "{back_s} s back");
        assert_eq!(fixture.public(8).last_seen, Some(presence::WallTime(now).seconds()), "{back_s} s back");
    }
}

#[test]
fn a_new_policy_holds_from_the_next_check_on() {
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, hello("page"));
    let hasty = Policy { heartbeat: Seconds(10), ping: Seconds(5), ..Policy::default() };
    fixture.table.set_policy(hasty);
    fixture.pass_to(55);
    assert_eq!(fixture.status(7), Status::Offline);
}

//! Coming back: after a broken connection (flapping), after a restart (P11), and what is forgotten in between.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use domain::Seconds;
use presence::{
    Cause, ConnId, Declaration, Declared, Effect, Goodbye, Input, LastKnown, Load, Policy, Remembered, Status,
};
use support::*;

/// Drops the connection and gives the seconds after which the person is offline, up to 100. They are back then.
fn drop_and_time(stage: &mut Stage) -> u64 {
    stage.drop(7, 1);
    let dropped_at = stage.at_ms / 1000;
    while stage.status(7) != Status::Offline && stage.at_ms / 1000 < dropped_at + 100 {
        stage.pass(1);
    }
    let after = stage.at_ms / 1000 - dropped_at;
    stage.connect(7, 1, hello("train"));
    after
}

#[test]
fn p5_a_connection_that_breaks_is_noticed_at_once() {
    let mut stage = Stage::new();
    stage.connect(7, 1, hello("a"));
    stage.drop(7, 1);
    assert_eq!(stage.status(7), Status::Offline);
}

#[test]
fn the_grace_of_who_keeps_breaking_grows_and_decays() {
    let mut stage = Stage::new();
    stage.connect(7, 1, hello("train"));
    let graces: Vec<u64> = (0..9).map(|_| drop_and_time(&mut stage)).collect();
    assert_eq!(graces, [0, 0, 2, 4, 8, 16, 32, 60, 60]);
    // Three stays of flap_forget take three levels off; the return after that drop adds one again.
    stage.pass_alive(360, &[(7, 1)]);
    assert_eq!(drop_and_time(&mut stage), 8);
    stage.pass_alive(120, &[(7, 1)]);
    assert_eq!(drop_and_time(&mut stage), 8);
    stage.pass_alive(1200, &[(7, 1)]);
    assert_eq!(drop_and_time(&mut stage), 0);
}

#[test]
fn who_stays_away_for_long_starts_anew() {
    let mut stage = Stage::new();
    stage.connect(7, 1, hello("train"));
    for _ in 0..6 {
        drop_and_time(&mut stage);
    }
    stage.roster.know(stage.now(), user(7), LastKnown::default());
    stage.drop(7, 1);
    stage.pass(121);
    assert_eq!(stage.status(7), Status::Offline);
    stage.connect(7, 1, hello("train"));
    assert_eq!(drop_and_time(&mut stage), 0);
}

fn flapping() -> Stage {
    let mut stage = Stage::new();
    stage.connect(7, 1, hello("train"));
    for _ in 0..5 {
        drop_and_time(&mut stage);
    }
    stage.declare(7, 1, Some(Declaration { text: Some("moving".into()), ..declaration(Declared::Busy) }));
    stage
}

#[test]
fn a_return_within_the_grace_shows_nowhere() {
    let mut stage = flapping();
    let shown = stage.public(7);
    assert_eq!(shown.status, Status::Busy);
    stage.take();
    stage.drop(7, 1);
    assert_eq!(stage.public(7), shown);
    assert_eq!(stage.roster.sessions(user(7)).count(), 0);
    assert_eq!(stage.roster.online().connections, 0);
    stage.pass(3);
    stage.connect(7, 2, hello("train"));
    assert_eq!(stage.news(), []);
    assert_eq!((stage.public(7).version, stage.public(7).devices), (shown.version, shown.devices));
}

#[test]
fn when_the_grace_is_over_the_last_seen_time_is_that_of_the_last_sign() {
    let mut stage = flapping();
    let heard_at = stage.unix();
    stage.pass(10);
    stage.drop(7, 1);
    stage.take();
    stage.pass(60);
    assert_eq!((stage.status(7), stage.public(7).last_seen), (Status::Offline, Some(heard_at)));
    let effects = stage.take();
    let (last_seen, by) = (Some(heard_at), Some(device("train")));
    assert!(effects.contains(&Effect::Left { user: user(7), last_seen, cause: Cause::Drop, device: by }));
    let gone = Effect::Transition {
        user: user(7),
        from: Status::Busy,
        to: Status::Offline,
        cause: Cause::Drop,
        device: Some(device("train")),
    };
    assert!(effects.contains(&gone));
}

#[test]
fn within_the_grace_another_device_or_a_sign_out_ends_it() {
    let mut stage = flapping();
    stage.drop(7, 1);
    stage.tell(7, Input::Heartbeat { hello: hello("desk") });
    assert_eq!((stage.status(7), stage.public(7).devices.len()), (Status::Busy, 1));
    stage.tell(7, Input::Goodbye { device: device("desk") });
    assert_eq!(stage.status(7), Status::Offline);

    let mut stage = flapping();
    stage.drop(7, 1);
    stage.tell(7, Input::SignOut { device: device("train") });
    assert_eq!((stage.status(7), stage.roster.load().sessions), (Status::Offline, 0));
    stage.pass(300);
    assert_eq!(stage.roster.load(), Load::default());
}

#[test]
fn a_declaration_can_end_within_the_grace() {
    let mut stage = flapping();
    let until = Some(stage.unix() + Seconds(3));
    stage.declare(7, 1, Some(Declaration { until, ..declaration(Declared::Busy) }));
    stage.drop(7, 1);
    assert_eq!(stage.status(7), Status::Busy);
    stage.pass(3);
    assert_eq!(stage.status(7), Status::Online);
}

#[test]
fn a_clean_goodbye_is_no_flapping_and_silence_has_no_grace() {
    let mut stage = Stage::new();
    for _ in 0..10 {
        stage.connect(7, 1, hello("a"));
        stage.close(7, 1);
        assert_eq!(stage.status(7), Status::Offline);
    }
    stage.connect(7, 1, hello("a"));
    stage.drop(7, 1);
    assert_eq!(stage.status(7), Status::Offline);

    let mut stage = flapping();
    stage.close(7, 1);
    assert_eq!(stage.status(7), Status::Offline);
    let mut stage = flapping();
    stage.pass(90);
    assert_eq!(stage.status(7), Status::Offline);
}

#[test]
fn a_drop_beside_another_session_is_no_flapping() {
    let mut stage = Stage::new();
    stage.connect(7, 1, hello("desk"));
    for _ in 0..10 {
        stage.connect(7, 2, hello("phone"));
        stage.drop(7, 2);
    }
    stage.drop(7, 1);
    assert_eq!(stage.status(7), Status::Offline);
}

#[test]
fn the_grace_can_be_turned_off() {
    let mut stage = Stage::with(Policy { flap_grace: Seconds(0), ..Policy::default() });
    stage.connect(7, 1, hello("train"));
    for _ in 0..20 {
        assert_eq!(drop_and_time(&mut stage), 0);
    }
}

/// What a server remembers that is killed with this person here.
fn killed() -> Remembered {
    let mut stage = Stage::new();
    stage.connect(7, 1, hello("a"));
    stage.declare(7, 1, Some(Declaration { text: Some("reading".into()), ..declaration(Declared::Busy) }));
    stage.pass_alive(10, &[(7, 1)]);
    stage.roster.remembered(user(7)).unwrap()
}

/// A server that was started with what was remembered.
fn restarted() -> Stage {
    let mut stage = Stage::new();
    stage.at_ms = 15_000;
    stage.tick();
    stage.roster.restore(stage.now(), killed());
    stage
}

#[test]
fn p11_who_was_here_is_pending_and_who_reconnects_is_back_without_having_left() {
    let mut stage = restarted();
    let pending = stage.public(7);
    assert_eq!((pending.status, pending.last_seen), (Status::Pending, second(10)));
    assert!(pending.version > killed().public_version);
    assert_eq!(stage.roster.online().of(Status::Pending), 1);
    stage.pass_to(200);
    stage.connect(7, 1, hello("a"));
    let back = Effect::Transition {
        user: user(7),
        from: Status::Pending,
        to: Status::Busy,
        cause: Cause::Connect,
        device: Some(device("a")),
    };
    let changed = Effect::Changed { user: user(7), public: true, own: true, urgent: true };
    assert_eq!(stage.news(), [back, changed]);
    assert_eq!(stage.public(7).text.as_deref(), Some("reading"));
    stage.pass_alive(300, &[(7, 1)]);
    assert_eq!(stage.status(7), Status::Busy);
}

#[test]
fn p11_after_the_window_the_rest_are_offline_with_their_true_last_seen() {
    let mut stage = restarted();
    stage.pass_to(314);
    assert_eq!((stage.status(7), stage.news()), (Status::Pending, vec![]));
    stage.pass_to(315);
    assert_eq!((stage.status(7), stage.public(7).last_seen), (Status::Offline, second(10)));
    let news = stage.take();
    let (last_seen, cause) = (second(10), Cause::PendingOver);
    assert!(news.contains(&Effect::Left { user: user(7), last_seen, cause, device: None }));
    assert!(news.contains(&Effect::Remember { user: user(7) }));
    let over = Effect::Transition {
        user: user(7),
        from: Status::Pending,
        to: Status::Offline,
        cause: Cause::PendingOver,
        device: None,
    };
    assert!(news.contains(&over));
    assert!(!stage.roster.remembered(user(7)).unwrap().here);
    stage.pass(200);
    assert_eq!(stage.roster.load(), Load::default());
}

#[test]
fn p11_what_was_to_end_while_the_server_was_down_has_ended() {
    let mut stage = Stage::new();
    stage.at_ms = 100_000;
    stage.tick();
    let declaration = Some(Declaration { until: second(50), ..declaration(Declared::Busy) });
    stage.roster.restore(stage.now(), Remembered { declaration, ..killed() });
    stage.connect(7, 1, hello("a"));
    assert_eq!(stage.status(7), Status::Online);
}

#[test]
fn a_restore_that_comes_late_or_twice_changes_nothing() {
    let mut stage = Stage::new();
    stage.at_ms = 15_000;
    stage.connect(7, 1, hello("a"));
    let own = stage.own(7);
    stage.roster.restore(stage.now(), killed());
    assert_eq!(stage.own(7), own);
    let mut stage = restarted();
    let own = stage.own(7);
    stage.roster.restore(stage.now(), killed());
    assert_eq!((stage.own(7), stage.roster.online().of(Status::Pending)), (own, 1));
}

#[test]
fn versions_go_on_from_what_was_last_known() {
    let far = 4_000_000_000_000;
    let last =
        LastKnown { last_seen: second(0), public_version: far, own_version: far + 5, declaration: None };
    let mut stage = Stage::new();
    stage.roster.recall(stage.now(), user(7), last.clone());
    assert_eq!((stage.public(7).version, stage.public(7).last_seen), (far, second(0)));
    stage.connect(7, 1, hello("a"));
    assert_eq!((stage.public(7).version, stage.own(7).version), (far + 1, far + 6));
    // More is known here than was stored.
    stage.roster.know(stage.now(), user(7), LastKnown { public_version: far + 100, ..last });
    assert_eq!(stage.public(7).version, far + 1);
    stage.connect(8, 2, hello("a"));
    assert_eq!(stage.public(8).version, stage.now().0);
}

#[test]
fn a_version_does_not_tell_when_somebody_was_here() {
    let mut stage = Stage::new();
    let start = stage.now().0;
    stage.pass(1000);
    stage.connect(7, 1, hello("a"));
    stage.heard(7, 1);
    stage.close(7, 1);
    assert_eq!((stage.public(7).version, stage.public(7).status), (start + 1, Status::Offline));
}

#[test]
fn who_is_watched_is_kept_and_who_is_not_is_forgotten() {
    let mut stage = Stage::new();
    let last = LastKnown { last_seen: second(0), public_version: 3, ..LastKnown::default() };
    stage.roster.know(stage.now(), user(7), last.clone());
    stage.roster.recall(stage.now(), user(8), last.clone());
    stage.pass(5000);
    assert_eq!((stage.public(7).version, stage.public(8).version), (3, 0));
    assert!(stage.roster.forget(user(7)) && !stage.roster.forget(user(7)));
    assert_eq!(stage.public(7), presence::View::unknown(user(7)));
    // Who is here stays; who left a moment ago can still be read.
    stage.roster.know(stage.now(), user(7), last);
    stage.connect(7, 1, hello("a"));
    assert!(!stage.roster.forget(user(7)));
    stage.close(7, 1);
    assert!(!stage.roster.forget(user(7)));
    assert!(stage.roster.remembered(user(7)).is_some());
    stage.pass(119);
    assert!(stage.roster.remembered(user(7)).is_some());
    stage.pass(1);
    assert_eq!(stage.roster.load(), Load::default());
}

#[test]
fn a_cleared_declaration_is_not_brought_back_by_what_was_stored() {
    let mut stage = Stage::new();
    let last = LastKnown { declaration: Some(declaration(Declared::Busy)), ..LastKnown::default() };
    stage.roster.recall(stage.now(), user(7), last.clone());
    stage.connect(7, 1, hello("a"));
    assert_eq!(stage.status(7), Status::Busy);
    stage.declare(7, 1, None);
    stage.close(7, 1);
    stage.roster.recall(stage.now(), user(7), last);
    stage.tell(7, Input::Connected { conn: ConnId(2), hello: hello("a") });
    assert_eq!(stage.status(7), Status::Online);
    stage.tell(7, Input::Closed { conn: ConnId(2), how: Goodbye::Clean });
}

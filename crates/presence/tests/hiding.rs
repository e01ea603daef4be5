//! Who hides gives nothing away (P1).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use presence::{AppState, Declaration, Declared, Effect, Hello, Input, Policy, Remembered, Status};
use support::*;

fn hide(stage: &mut Stage) {
    let said =
        Declaration { text: Some("shh".into()), until: second(9999), ..declaration(Declared::Invisible) };
    stage.declare(7, 1, Some(said));
}

/// Everything that somebody who hides can do.
fn live_on(stage: &mut Stage) {
    stage.pass_alive(100, &[(7, 1)]);
    stage.connect(7, 2, hello("second"));
    stage.tell(7, Input::Traffic { seeding: 9, leeching: 9 });
    stage.app(7, 1, AppState::Inactive);
    stage.tell(7, Input::Heartbeat { hello: Hello { declared: Some(Declared::Busy), ..hello("third") } });
    stage.pass_alive(200, &[(7, 2)]);
    hide_again(stage);
    stage.tell(7, Input::SignOut { device: device("third") });
}

fn hide_again(stage: &mut Stage) {
    stage.declare(
        7,
        1,
        Some(Declaration { text: Some("louder".into()), ..declaration(Declared::Invisible) }),
    );
}

#[test]
fn p1_invisible_looks_offline_and_frozen_at_hiding() {
    let mut stage = Stage::new();
    stage.connect(7, 1, hello("first"));
    stage.tell(7, Input::Traffic { seeding: 2, leeching: 1 });
    stage.pass_alive(20, &[(7, 1)]);
    hide(&mut stage);
    let frozen = stage.public(7);
    assert_eq!(frozen.status, Status::Offline);
    assert_eq!(frozen.last_seen, second(20));
    assert_eq!((&frozen.text, frozen.until, frozen.devices.len()), (&None, None, 0));
    assert_eq!((frozen.seeding, frozen.leeching), (0, 0));
    stage.take();
    live_on(&mut stage);
    assert_eq!(stage.public(7), frozen);
    assert!(!stage.take().iter().any(|effect| matches!(effect, Effect::Changed { public: true, .. })));
    let own = stage.own(7);
    assert_eq!((own.status, own.text.as_deref(), own.devices.len()), (Status::Invisible, Some("louder"), 2));
    assert_eq!((own.seeding, own.leeching), (9, 9));
    assert_eq!(own.last_seen, Some(stage.unix()));
    let remembered = stage.roster.remembered(user(7)).unwrap();
    assert_eq!((remembered.last_seen, remembered.hidden_since), (second(20), second(20)));
    stage.close(7, 1);
    stage.close(7, 2);
    assert_eq!(stage.public(7), frozen);
    let last_seen = Some(stage.unix());
    let is_left = |it: &Effect| matches!(it, Effect::Left { last_seen: at, .. } if *at == last_seen);
    assert!(stage.take().iter().any(is_left), "the site may know");
}

#[test]
fn p1_who_comes_hidden_was_never_here() {
    let mut stage = Stage::new();
    stage.connect(7, 1, hello("first"));
    stage.close(7, 1);
    let gone = stage.public(7);
    stage.pass(50);
    stage.take();
    stage.connect(7, 1, Hello { declared: Some(Declared::Invisible), ..hello("first") });
    assert_eq!(stage.public(7), gone);
    live_on(&mut stage);
    assert_eq!(stage.public(7), gone);
    stage.declare(7, 1, None);
    let back = stage.public(7);
    assert_eq!((back.status, back.last_seen), (Status::Online, Some(stage.unix())));
    assert!(back.version > gone.version);
}

#[test]
fn offline_and_hidden_look_the_same() {
    let mut stage = Stage::new();
    for who in [1, 2] {
        stage.connect(who, who as u32, hello("a"));
        stage.tell(who, Input::Traffic { seeding: 5, leeching: 5 });
    }
    stage.pass_alive(10, &[(1, 1), (2, 2)]);
    stage.declare(1, 1, Some(declaration(Declared::Invisible)));
    stage.close(2, 2);
    stage.pass_to(20);
    stage.tell(1, Input::Traffic { seeding: 6, leeching: 6 });
    stage.tell(2, Input::Traffic { seeding: 6, leeching: 6 });
    let (hidden, offline) = (stage.public(1), stage.public(2));
    assert_eq!(hidden, presence::View { user: user(1), ..offline });
}

#[test]
fn p11_who_hid_before_a_restart_is_not_pending_to_others() {
    for declared in [true, false] {
        let mut before = Stage::new();
        before.connect(7, 1, hello("a"));
        before.pass_alive(10, &[(7, 1)]);
        before.close(7, 1);
        let said = if declared { None } else { Some(Declared::Invisible) };
        before.connect(7, 1, Hello { declared: said, ..hello("a") });
        if declared {
            before.declare(7, 1, Some(declaration(Declared::Invisible)));
        }
        before.pass_alive(10, &[(7, 1)]);
        let shown = before.public(7);
        let remembered = before.roster.remembered(user(7)).unwrap();

        let mut stage = Stage::new();
        stage.at_ms = 30_000;
        stage.roster.restore(stage.now(), remembered);
        assert_eq!(stage.public(7), shown);
        assert_eq!(stage.own(7).status, Status::Pending);
        stage.connect(7, 1, Hello { declared: said, ..hello("a") });
        assert_eq!((stage.public(7), stage.own(7).status), (shown, Status::Invisible));
    }
}

#[test]
fn p11_who_hid_and_does_not_come_back_changes_nothing_for_others() {
    let remembered = Remembered {
        user: user(7),
        here: true,
        declaration: Some(declaration(Declared::Invisible)),
        last_seen: second(0),
        hidden_since: None,
        public_version: 5,
        own_version: 6,
    };
    let mut stage = Stage::with(Policy::default());
    stage.roster.restore(stage.now(), remembered);
    let shown = stage.public(7);
    assert_eq!((shown.status, shown.version, shown.last_seen), (Status::Offline, 5, second(0)));
    stage.pass_to(300);
    assert_eq!((stage.public(7), stage.own(7).status), (shown, Status::Offline));
    assert!(stage.own(7).version > 6);
    let (last_seen, cause) = (second(0), presence::Cause::PendingOver);
    assert!(stage.take().contains(&Effect::Left { user: user(7), last_seen, cause, device: None }));
}

#[test]
fn pending_people_who_come_back_hidden_keep_their_last_seen() {
    let mut stage = Stage::new();
    let remembered = Remembered {
        user: user(7),
        here: true,
        declaration: None,
        last_seen: second(0),
        hidden_since: None,
        public_version: 5,
        own_version: 6,
    };
    stage.at_ms = 60_000;
    stage.roster.restore(stage.now(), remembered);
    assert_eq!(stage.status(7), Status::Pending);
    stage.pass_to(70);
    stage.connect(7, 1, Hello { declared: Some(Declared::Invisible), ..hello("a") });
    let shown = stage.public(7);
    assert_eq!((shown.status, shown.last_seen), (Status::Offline, second(0)));
}

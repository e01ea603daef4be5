//! Hidden users disclose nothing (P1).

use presence::{AppState, Declaration, Declared, Effect, Hello, Input, Policy, Status, StoredPresence};

use crate::support::*;

fn hide(fixture: &mut Fixture) {
    let said =
        Declaration { text: Some("shh".into()), until: second(9999), ..declaration(Declared::Invisible) };
    fixture.declare(7, 1, Some(said));
}

/// Everything that a hidden user can do.
fn live_on(fixture: &mut Fixture) {
    fixture.pass_alive(100, &[(7, 1)]);
    fixture.connect(7, 2, hello("second"));
    fixture.input(7, Input::TorrentCounts { seeding: 9, leeching: 9 });
    fixture.app(7, 1, AppState::Inactive);
    fixture.input(7, Input::Heartbeat { hello: Hello { declared: Some(Declared::Busy), ..hello("third") } });
    fixture.pass_alive(200, &[(7, 2)]);
    hide_again(fixture);
    fixture.input(7, Input::SignOut { device: device("third") });
}

fn hide_again(fixture: &mut Fixture) {
    fixture.declare(
        7,
        1,
        Some(Declaration { text: Some("louder".into()), ..declaration(Declared::Invisible) }),
    );
}

#[test]
fn p1_invisible_looks_offline_and_frozen_at_hiding() {
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, hello("first"));
    fixture.input(7, Input::TorrentCounts { seeding: 2, leeching: 1 });
    fixture.pass_alive(20, &[(7, 1)]);
    hide(&mut fixture);
    let frozen = fixture.public(7);
    assert_eq!(frozen.status, Status::Offline);
    assert_eq!(frozen.last_seen, second(20));
    assert_eq!((&frozen.text, frozen.until, frozen.devices.len()), (&None, None, 0));
    assert_eq!((frozen.seeding, frozen.leeching), (0, 0));
    fixture.take();
    live_on(&mut fixture);
    assert_eq!(fixture.public(7), frozen);
    assert!(!fixture.take().iter().any(|effect| matches!(effect, Effect::Changed { public: true, .. })));
    let own = fixture.own(7);
    assert_eq!((own.status, own.text.as_deref(), own.devices.len()), (Status::Invisible, Some("louder"), 2));
    assert_eq!((own.seeding, own.leeching), (9, 9));
    assert_eq!(own.last_seen, Some(fixture.unix()));
    let stored = fixture.table.stored_presence(user(7)).unwrap();
    assert_eq!((stored.last_seen, stored.hidden_since), (second(20), second(20)));
    fixture.close(7, 1);
    fixture.close(7, 2);
    assert_eq!(fixture.public(7), frozen);
    let last_seen = Some(fixture.unix());
    let is_left = |it: &Effect| matches!(it, Effect::Left { last_seen: at, .. } if *at == last_seen);
    assert!(fixture.take().iter().any(is_left), "the site may know");
}

#[test]
fn p1_a_user_that_connects_hidden_was_never_online() {
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, hello("first"));
    fixture.close(7, 1);
    let gone = fixture.public(7);
    fixture.pass(50);
    fixture.take();
    fixture.connect(7, 1, Hello { declared: Some(Declared::Invisible), ..hello("first") });
    assert_eq!(fixture.public(7), gone);
    live_on(&mut fixture);
    assert_eq!(fixture.public(7), gone);
    fixture.declare(7, 1, None);
    let back = fixture.public(7);
    assert_eq!((back.status, back.last_seen), (Status::Online, Some(fixture.unix())));
    assert!(back.version > gone.version);
}

#[test]
fn offline_and_hidden_look_the_same() {
    let mut fixture = Fixture::new();
    for id in [1, 2] {
        fixture.connect(id, id as u32, hello("a"));
        fixture.input(id, Input::TorrentCounts { seeding: 5, leeching: 5 });
    }
    fixture.pass_alive(10, &[(1, 1), (2, 2)]);
    fixture.declare(1, 1, Some(declaration(Declared::Invisible)));
    fixture.close(2, 2);
    fixture.pass_to(20);
    fixture.input(1, Input::TorrentCounts { seeding: 6, leeching: 6 });
    fixture.input(2, Input::TorrentCounts { seeding: 6, leeching: 6 });
    let (hidden, offline) = (fixture.public(1), fixture.public(2));
    assert_eq!(hidden, presence::View { user: user(1), ..offline });
}

#[test]
fn p11_a_user_hidden_before_a_restart_is_not_pending_to_others() {
    for declared in [true, false] {
        let mut before = Fixture::new();
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
        let stored = before.table.stored_presence(user(7)).unwrap();

        let mut fixture = Fixture::new();
        fixture.at_ms = 30_000;
        fixture.table.restore(fixture.now(), stored);
        assert_eq!(fixture.public(7), shown);
        assert_eq!(fixture.own(7).status, Status::Pending);
        fixture.connect(7, 1, Hello { declared: said, ..hello("a") });
        assert_eq!((fixture.public(7), fixture.own(7).status), (shown, Status::Invisible));
    }
}

#[test]
fn p11_a_hidden_user_that_does_not_return_changes_nothing_for_others() {
    let stored = StoredPresence {
        user: user(7),
        online: true,
        declaration: Some(declaration(Declared::Invisible)),
        last_seen: second(0),
        hidden_since: None,
        public_version: 5,
        own_version: 6,
    };
    let mut fixture = Fixture::with(Policy::default());
    fixture.table.restore(fixture.now(), stored);
    let shown = fixture.public(7);
    assert_eq!((shown.status, shown.version, shown.last_seen), (Status::Offline, 5, second(0)));
    fixture.pass_to(300);
    assert_eq!((fixture.public(7), fixture.own(7).status), (shown, Status::Offline));
    assert!(fixture.own(7).version > 6);
    let (last_seen, cause) = (second(0), presence::Cause::PendingOver);
    assert!(fixture.take().contains(&Effect::Left { user: user(7), last_seen, cause, device: None }));
}

#[test]
fn pending_users_that_return_hidden_keep_their_last_seen() {
    let mut fixture = Fixture::new();
    let stored = StoredPresence {
        user: user(7),
        online: true,
        declaration: None,
        last_seen: second(0),
        hidden_since: None,
        public_version: 5,
        own_version: 6,
    };
    fixture.at_ms = 60_000;
    fixture.table.restore(fixture.now(), stored);
    assert_eq!(fixture.status(7), Status::Pending);
    fixture.pass_to(70);
    fixture.connect(7, 1, Hello { declared: Some(Declared::Invisible), ..hello("a") });
    let shown = fixture.public(7);
    assert_eq!((shown.status, shown.last_seen), (Status::Offline, second(0)));
}

//! Returns: after a broken connection (flap damping), after a restart (P11), and what is removed in between.

use domain::Seconds;
use presence::{
    Cause, CloseKind, ConnId, Declaration, Declared, Effect, Input, LastKnown, Policy, Status,
    StoredPresence, TableSize,
};

use crate::support::*;

/// Drops the connection and returns the seconds until the user is offline, up to 100. Then reconnects.
fn drop_and_time(fixture: &mut Fixture) -> u64 {
    fixture.drop(7, 1);
    let dropped_at = fixture.at_ms / 1000;
    while fixture.status(7) != Status::Offline && fixture.at_ms / 1000 < dropped_at + 100 {
        fixture.pass(1);
    }
    let after = fixture.at_ms / 1000 - dropped_at;
    fixture.connect(7, 1, hello("train"));
    after
}

#[test]
fn p5_a_connection_that_breaks_is_noticed_at_once() {
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, hello("a"));
    fixture.drop(7, 1);
    assert_eq!(fixture.status(7), Status::Offline);
}

#[test]
fn the_grace_of_a_flapping_user_grows_and_decays() {
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, hello("train"));
    let graces: Vec<u64> = (0..9).map(|_| drop_and_time(&mut fixture)).collect();
    assert_eq!(graces, [0, 0, 2, 4, 8, 16, 32, 60, 60]);
    // Three stays of flap_forget lower the level by three; the return after that drop raises it by one.
    fixture.pass_alive(360, &[(7, 1)]);
    assert_eq!(drop_and_time(&mut fixture), 8);
    fixture.pass_alive(120, &[(7, 1)]);
    assert_eq!(drop_and_time(&mut fixture), 8);
    fixture.pass_alive(1200, &[(7, 1)]);
    assert_eq!(drop_and_time(&mut fixture), 0);
}

#[test]
fn a_long_absence_resets_the_flap_level() {
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, hello("train"));
    for _ in 0..6 {
        drop_and_time(&mut fixture);
    }
    fixture.table.watch(fixture.now(), user(7), LastKnown::default());
    fixture.drop(7, 1);
    fixture.pass(121);
    assert_eq!(fixture.status(7), Status::Offline);
    fixture.connect(7, 1, hello("train"));
    assert_eq!(drop_and_time(&mut fixture), 0);
}

fn flapping() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, hello("train"));
    for _ in 0..5 {
        drop_and_time(&mut fixture);
    }
    fixture.declare(7, 1, Some(Declaration { text: Some("moving".into()), ..declaration(Declared::Busy) }));
    fixture
}

#[test]
fn a_return_within_the_grace_shows_nowhere() {
    let mut fixture = flapping();
    let shown = fixture.public(7);
    assert_eq!(shown.status, Status::Busy);
    fixture.take();
    fixture.drop(7, 1);
    assert_eq!(fixture.public(7), shown);
    assert_eq!(fixture.table.sessions(user(7)).count(), 0);
    assert_eq!(fixture.table.counts().connections, 0);
    fixture.pass(3);
    fixture.connect(7, 2, hello("train"));
    assert_eq!(fixture.changes(), []);
    assert_eq!((fixture.public(7).version, fixture.public(7).devices), (shown.version, shown.devices));
}

#[test]
fn when_the_grace_is_over_the_last_seen_time_is_that_of_the_last_sign() {
    let mut fixture = flapping();
    let heard_at = fixture.unix();
    fixture.pass(10);
    fixture.drop(7, 1);
    fixture.take();
    fixture.pass(60);
    assert_eq!((fixture.status(7), fixture.public(7).last_seen), (Status::Offline, Some(heard_at)));
    let effects = fixture.take();
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
    let mut fixture = flapping();
    fixture.drop(7, 1);
    fixture.input(7, Input::Heartbeat { hello: hello("desk") });
    assert_eq!((fixture.status(7), fixture.public(7).devices.len()), (Status::Busy, 1));
    fixture.input(7, Input::Goodbye { device: device("desk") });
    assert_eq!(fixture.status(7), Status::Offline);

    let mut fixture = flapping();
    fixture.drop(7, 1);
    fixture.input(7, Input::SignOut { device: device("train") });
    assert_eq!((fixture.status(7), fixture.table.size().sessions), (Status::Offline, 0));
    fixture.pass(300);
    assert_eq!(fixture.table.size(), TableSize::default());
}

#[test]
fn a_declaration_can_end_within_the_grace() {
    let mut fixture = flapping();
    let until = Some(fixture.unix() + Seconds(3));
    fixture.declare(7, 1, Some(Declaration { until, ..declaration(Declared::Busy) }));
    fixture.drop(7, 1);
    assert_eq!(fixture.status(7), Status::Busy);
    fixture.pass(3);
    assert_eq!(fixture.status(7), Status::Online);
}

#[test]
fn a_clean_goodbye_is_no_flapping_and_silence_has_no_grace() {
    let mut fixture = Fixture::new();
    for _ in 0..10 {
        fixture.connect(7, 1, hello("a"));
        fixture.close(7, 1);
        assert_eq!(fixture.status(7), Status::Offline);
    }
    fixture.connect(7, 1, hello("a"));
    fixture.drop(7, 1);
    assert_eq!(fixture.status(7), Status::Offline);

    let mut fixture = flapping();
    fixture.close(7, 1);
    assert_eq!(fixture.status(7), Status::Offline);
    let mut fixture = flapping();
    fixture.pass(90);
    assert_eq!(fixture.status(7), Status::Offline);
}

#[test]
fn a_drop_beside_another_session_is_no_flapping() {
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, hello("desk"));
    for _ in 0..10 {
        fixture.connect(7, 2, hello("phone"));
        fixture.drop(7, 2);
    }
    fixture.drop(7, 1);
    assert_eq!(fixture.status(7), Status::Offline);
}

#[test]
fn the_grace_can_be_turned_off() {
    let mut fixture = Fixture::with(Policy { flap_grace: Seconds(0), ..Policy::default() });
    fixture.connect(7, 1, hello("train"));
    for _ in 0..20 {
        assert_eq!(drop_and_time(&mut fixture), 0);
    }
}

/// The stored presence after a crash while this user was online.
fn killed() -> StoredPresence {
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, hello("a"));
    fixture.declare(7, 1, Some(Declaration { text: Some("reading".into()), ..declaration(Declared::Busy) }));
    fixture.pass_alive(10, &[(7, 1)]);
    fixture.table.stored_presence(user(7)).unwrap()
}

/// A server that was started with the stored presence.
fn restarted() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.at_ms = 15_000;
    fixture.tick();
    fixture.table.restore(fixture.now(), killed());
    fixture
}

#[test]
fn p11_online_users_are_pending_and_return_without_having_left() {
    let mut fixture = restarted();
    let pending = fixture.public(7);
    assert_eq!((pending.status, pending.last_seen), (Status::Pending, second(10)));
    assert!(pending.version > killed().public_version);
    assert_eq!(fixture.table.counts().of(Status::Pending), 1);
    fixture.pass_to(200);
    fixture.connect(7, 1, hello("a"));
    let back = Effect::Transition {
        user: user(7),
        from: Status::Pending,
        to: Status::Busy,
        cause: Cause::Connect,
        device: Some(device("a")),
    };
    let changed = Effect::Changed { user: user(7), public: true, own: true, urgent: true };
    assert_eq!(fixture.changes(), [back, changed]);
    assert_eq!(fixture.public(7).text.as_deref(), Some("reading"));
    fixture.pass_alive(300, &[(7, 1)]);
    assert_eq!(fixture.status(7), Status::Busy);
}

#[test]
fn p11_after_the_window_the_rest_are_offline_with_their_true_last_seen() {
    let mut fixture = restarted();
    fixture.pass_to(314);
    assert_eq!((fixture.status(7), fixture.changes()), (Status::Pending, vec![]));
    fixture.pass_to(315);
    assert_eq!((fixture.status(7), fixture.public(7).last_seen), (Status::Offline, second(10)));
    let news = fixture.take();
    let (last_seen, cause) = (second(10), Cause::PendingOver);
    assert!(news.contains(&Effect::Left { user: user(7), last_seen, cause, device: None }));
    assert!(news.contains(&Effect::Store { user: user(7) }));
    let over = Effect::Transition {
        user: user(7),
        from: Status::Pending,
        to: Status::Offline,
        cause: Cause::PendingOver,
        device: None,
    };
    assert!(news.contains(&over));
    assert!(!fixture.table.stored_presence(user(7)).unwrap().online);
    fixture.pass(200);
    assert_eq!(fixture.table.size(), TableSize::default());
}

#[test]
fn p11_what_was_to_end_while_the_server_was_down_has_ended() {
    let mut fixture = Fixture::new();
    fixture.at_ms = 100_000;
    fixture.tick();
    let declaration = Some(Declaration { until: second(50), ..declaration(Declared::Busy) });
    fixture.table.restore(fixture.now(), StoredPresence { declaration, ..killed() });
    fixture.connect(7, 1, hello("a"));
    assert_eq!(fixture.status(7), Status::Online);
}

#[test]
fn a_restore_that_comes_late_or_twice_changes_nothing() {
    let mut fixture = Fixture::new();
    fixture.at_ms = 15_000;
    fixture.connect(7, 1, hello("a"));
    let own = fixture.own(7);
    fixture.table.restore(fixture.now(), killed());
    assert_eq!(fixture.own(7), own);
    let mut fixture = restarted();
    let own = fixture.own(7);
    fixture.table.restore(fixture.now(), killed());
    assert_eq!((fixture.own(7), fixture.table.counts().of(Status::Pending)), (own, 1));
}

#[test]
fn versions_go_on_from_what_was_last_known() {
    let far = 4_000_000_000_000;
    let last =
        LastKnown { last_seen: second(0), public_version: far, own_version: far + 5, declaration: None };
    let mut fixture = Fixture::new();
    fixture.table.preload(fixture.now(), user(7), last.clone());
    assert_eq!((fixture.public(7).version, fixture.public(7).last_seen), (far, second(0)));
    fixture.connect(7, 1, hello("a"));
    assert_eq!((fixture.public(7).version, fixture.own(7).version), (far + 1, far + 6));
    // The table knows more than was stored.
    fixture.table.watch(fixture.now(), user(7), LastKnown { public_version: far + 100, ..last });
    assert_eq!(fixture.public(7).version, far + 1);
    fixture.connect(8, 2, hello("a"));
    assert_eq!(fixture.public(8).version, fixture.now().0);
}

#[test]
fn a_version_does_not_disclose_the_last_activity() {
    let mut fixture = Fixture::new();
    let start = fixture.now().0;
    fixture.pass(1000);
    fixture.connect(7, 1, hello("a"));
    fixture.heard(7, 1);
    fixture.close(7, 1);
    assert_eq!((fixture.public(7).version, fixture.public(7).status), (start + 1, Status::Offline));
}

#[test]
fn watched_users_are_kept_and_others_removed() {
    let mut fixture = Fixture::new();
    let last = LastKnown { last_seen: second(0), public_version: 3, ..LastKnown::default() };
    fixture.table.watch(fixture.now(), user(7), last.clone());
    fixture.table.preload(fixture.now(), user(8), last.clone());
    fixture.pass(5000);
    assert_eq!((fixture.public(7).version, fixture.public(8).version), (3, 0));
    assert!(fixture.table.unwatch(user(7)) && !fixture.table.unwatch(user(7)));
    assert_eq!(fixture.public(7), presence::View::unknown(user(7)));
    // An online user stays; one that has just left can still be read.
    fixture.table.watch(fixture.now(), user(7), last);
    fixture.connect(7, 1, hello("a"));
    assert!(!fixture.table.unwatch(user(7)));
    fixture.close(7, 1);
    assert!(!fixture.table.unwatch(user(7)));
    assert!(fixture.table.stored_presence(user(7)).is_some());
    fixture.pass(119);
    assert!(fixture.table.stored_presence(user(7)).is_some());
    fixture.pass(1);
    assert_eq!(fixture.table.size(), TableSize::default());
}

#[test]
fn a_cleared_declaration_is_not_brought_back_by_what_was_stored() {
    let mut fixture = Fixture::new();
    let last = LastKnown { declaration: Some(declaration(Declared::Busy)), ..LastKnown::default() };
    fixture.table.preload(fixture.now(), user(7), last.clone());
    fixture.connect(7, 1, hello("a"));
    assert_eq!(fixture.status(7), Status::Busy);
    fixture.declare(7, 1, None);
    fixture.close(7, 1);
    fixture.table.preload(fixture.now(), user(7), last);
    fixture.input(7, Input::Connected { conn: ConnId(2), hello: hello("a") });
    assert_eq!(fixture.status(7), Status::Online);
    fixture.input(7, Input::Closed { conn: ConnId(2), how: CloseKind::Clean });
}

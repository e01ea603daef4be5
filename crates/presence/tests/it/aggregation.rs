//! Aggregation of sessions and declarations: status, devices, first in and last out.

use domain::Seconds;
use presence::{
    AppState, Cause, CloseCause, ConnId, Declaration, Declared, DeviceView, Effect, Hello, Input, Platform,
    Policy, Refused, Status,
};

use crate::support::*;

fn saying(name: &str, declared: Declared) -> Hello {
    Hello { declared: Some(declared), ..hello(name) }
}

fn inactive(hello: Hello) -> Hello {
    Hello { app: AppState::Inactive, ..hello }
}

/// Connects these sessions and returns the status in the own view.
fn status_of(sessions: &[Hello], declared: Option<Declared>) -> Status {
    let mut fixture = Fixture::new();
    fixture.connect(7, 100, hello("extra"));
    fixture.declare(7, 100, declared.map(declaration));
    for (conn, hello) in (0..).zip(sessions) {
        fixture.connect(7, conn, hello.clone());
    }
    fixture.close(7, 100);
    fixture.own(7).status
}

#[test]
fn the_first_rule_what_the_user_declared_decides() {
    let sessions = [saying("a", Declared::Busy), saying("b", Declared::Invisible)];
    assert_eq!(status_of(&sessions, Some(Declared::Away)), Status::Away);
    assert_eq!(status_of(&sessions, Some(Declared::Busy)), Status::Busy);
    assert_eq!(status_of(&sessions, Some(Declared::Invisible)), Status::Invisible);
    assert_eq!(status_of(&sessions, Some(Declared::Online)), Status::Online);
    let idle = [inactive(saying("a", Declared::Busy))];
    assert_eq!(status_of(&idle, Some(Declared::Online)), Status::Away, "online means automatic");
    assert_eq!(status_of(&idle, Some(Declared::Busy)), Status::Busy);
}

#[test]
fn the_second_rule_one_session_that_hides_hides_the_user() {
    let sessions = [saying("a", Declared::Invisible), saying("b", Declared::Busy), hello("c")];
    assert_eq!(status_of(&sessions, None), Status::Invisible);
    let idle = [inactive(saying("a", Declared::Invisible)), hello("b")];
    assert_eq!(status_of(&idle, None), Status::Invisible);
}

#[test]
fn the_third_rule_the_best_of_what_sessions_declare() {
    use Declared::{Away, Busy, Online};
    let cases: [(&[Hello], Status); 7] = [
        (&[saying("a", Away), saying("b", Busy), saying("c", Online)], Status::Busy),
        (&[saying("a", Away), saying("b", Online)], Status::Online),
        (&[saying("a", Away), inactive(saying("b", Online))], Status::Away),
        (&[saying("a", Away), hello("b")], Status::Away),
        (&[inactive(saying("a", Busy)), hello("b")], Status::Busy),
        (&[inactive(saying("a", Online)), hello("b")], Status::Online),
        (&[inactive(saying("a", Online)), inactive(hello("b"))], Status::Away),
    ];
    for (sessions, expected) in cases {
        assert_eq!(status_of(sessions, None), expected, "{sessions:?}");
    }
}

#[test]
fn the_fourth_rule_online_if_any_session_is() {
    assert_eq!(status_of(&[hello("a"), inactive(hello("b"))], None), Status::Online);
    assert_eq!(status_of(&[inactive(hello("a")), inactive(hello("b"))], None), Status::Away);
}

#[test]
fn the_fifth_rule_offline_without_a_session_and_the_declaration_waits() {
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, hello("a"));
    fixture.declare(
        7,
        1,
        Some(Declaration { text: Some("gone fishing".into()), ..declaration(Declared::Busy) }),
    );
    fixture.close(7, 1);
    assert_eq!((fixture.status(7), fixture.own(7).status), (Status::Offline, Status::Offline));
    assert_eq!(fixture.public(7).text, None);
    let stored = fixture.table.stored_presence(user(7)).unwrap();
    assert_eq!(stored.declaration.unwrap().status, Declared::Busy);
    fixture.pass(5);
    fixture.connect(7, 2, hello("b"));
    assert_eq!(fixture.status(7), Status::Busy);
    assert_eq!(fixture.public(7).text.as_deref(), Some("gone fishing"));
}

#[test]
fn a_declaration_replaces_that_of_its_session_and_clearing_removes_both() {
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, saying("a", Declared::Away));
    fixture.declare(7, 1, Some(declaration(Declared::Busy)));
    assert_eq!(fixture.status(7), Status::Busy);
    fixture.declare(7, 1, None);
    assert_eq!(fixture.status(7), Status::Online, "what it said at connect is gone too");
    fixture.connect(7, 2, saying("b", Declared::Away));
    assert_eq!(fixture.status(7), Status::Away);
    fixture.declare(7, 1, None);
    assert_eq!(fixture.status(7), Status::Away, "another session still says so");
    fixture.close(7, 2);
    assert_eq!(fixture.status(7), Status::Online, "and what it said ended with it");
}

#[test]
fn a_declaration_ends_at_its_time() {
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, hello("a"));
    let lunch = Declaration { status: Declared::Away, text: Some("lunch".into()), until: second(60) };
    fixture.declare(7, 1, Some(Declaration { until: second(3600), ..lunch.clone() }));
    fixture.declare(7, 1, Some(lunch.clone()));
    assert_eq!((fixture.public(7).until, fixture.status(7)), (second(60), Status::Away));
    fixture.pass_alive(59, &[(7, 1)]);
    assert_eq!(fixture.status(7), Status::Away);
    fixture.take();
    fixture.pass(1);
    let view = fixture.public(7);
    assert_eq!((view.status, view.text, view.until), (Status::Online, None, None));
    let by_itself = Effect::Transition {
        user: user(7),
        from: Status::Away,
        to: Status::Online,
        cause: Cause::Until,
        device: None,
    };
    let effects = fixture.take();
    assert!(effects.contains(&by_itself) && effects.contains(&Effect::Store { user: user(7) }));
    // An expired declaration only clears the previous one.
    fixture.declare(7, 1, Some(lunch));
    assert_eq!((fixture.status(7), fixture.public(7).text), (Status::Online, None));
}

#[test]
fn a_declaration_also_ends_while_the_user_is_offline() {
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, hello("a"));
    fixture.declare(7, 1, Some(Declaration { until: second(30), ..declaration(Declared::Busy) }));
    fixture.close(7, 1);
    fixture.pass_to(29);
    assert!(fixture.table.stored_presence(user(7)).unwrap().declaration.is_some());
    fixture.pass_to(30);
    assert!(fixture.table.stored_presence(user(7)).unwrap().declaration.is_none());
}

#[test]
fn p2_two_connections_of_one_device_are_one_device_and_the_best_counts() {
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, Hello { platform: Platform::Computer, ..hello("browser") });
    fixture.app(7, 1, AppState::Background);
    fixture.connect(7, 2, hello("browser"));
    fixture.connect(7, 3, inactive(Hello { platform: Platform::Phone, ..hello("a-phone") }));
    let phone = DeviceView {
        id: device("a-phone"),
        platform: Platform::Phone,
        app: AppState::Inactive,
        status: Status::Away,
    };
    let browser = DeviceView {
        id: device("browser"),
        platform: Platform::Web,
        app: AppState::Foreground,
        status: Status::Online,
    };
    assert_eq!(fixture.public(7).devices, [phone.clone(), browser.clone()]);
    let version = fixture.public(7).version;
    fixture.take();
    fixture.connect(7, 4, hello("browser"));
    fixture.close(7, 4);
    assert_eq!(
        (fixture.public(7).version, fixture.changes()),
        (version, vec![]),
        "one more tab shows nowhere"
    );
    fixture.close(7, 2);
    let hidden_tab = DeviceView { app: AppState::Background, platform: Platform::Computer, ..browser };
    assert_eq!(fixture.public(7).devices, [phone, hidden_tab]);
    fixture.close(7, 1);
    assert_eq!((fixture.public(7).devices.len(), fixture.status(7)), (1, Status::Away));
}

#[test]
fn the_first_session_in_and_the_last_out_are_effects() {
    let mut fixture = Fixture::new();
    let arrivals = |fixture: &mut Fixture| {
        let effects = fixture.take();
        effects
            .into_iter()
            .filter(|it| matches!(it, Effect::Arrived { .. } | Effect::Left { .. }))
            .collect::<Vec<_>>()
    };
    fixture.connect(7, 1, hello("a"));
    fixture.connect(7, 2, hello("b"));
    assert_eq!(
        arrivals(&mut fixture),
        [Effect::Arrived { user: user(7), cause: Cause::Connect, device: Some(device("a")) }]
    );
    fixture.pass_to(5);
    fixture.close(7, 1);
    assert_eq!(arrivals(&mut fixture), []);
    fixture.pass_to(9);
    fixture.drop(7, 2);
    // The dropped session was last active at 0, the other closed at 5.
    assert_eq!(
        arrivals(&mut fixture),
        [Effect::Left { user: user(7), last_seen: second(5), cause: Cause::Drop, device: Some(device("b")) }]
    );
    assert_eq!(fixture.public(7).last_seen, second(5));
}

#[test]
fn only_arrivals_and_departures_are_urgent_for_others() {
    let mut fixture = Fixture::new();
    let changed = |fixture: &mut Fixture| {
        let effects = fixture.take();
        let changes = effects.into_iter().filter_map(|effect| match effect {
            Effect::Changed { public, own, urgent, .. } => Some((public, own, urgent)),
            _ => None,
        });
        changes.collect::<Vec<_>>()
    };
    fixture.connect(7, 1, hello("a"));
    assert_eq!(changed(&mut fixture), [(true, true, true)]);
    fixture.declare(7, 1, Some(declaration(Declared::Busy)));
    assert_eq!(changed(&mut fixture), [(true, true, false)]);
    fixture.input(7, Input::TorrentCounts { seeding: 3, leeching: 1 });
    assert_eq!(changed(&mut fixture), [(true, true, false)]);
    fixture.input(7, Input::TorrentCounts { seeding: 3, leeching: 1 });
    assert_eq!(changed(&mut fixture), []);
    fixture.declare(7, 1, Some(declaration(Declared::Invisible)));
    assert_eq!(changed(&mut fixture), [(true, true, true)]);
    fixture.app(7, 1, AppState::Background);
    assert_eq!(changed(&mut fixture), [(false, true, true)]);
    fixture.close(7, 1);
    assert_eq!(changed(&mut fixture), [(false, true, true)]);
}

#[test]
fn signing_a_device_out_ends_all_its_sessions() {
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, hello("lost"));
    fixture.connect(7, 2, hello("lost"));
    fixture.input(7, Input::Heartbeat { hello: hello("lost") });
    fixture.connect(7, 3, hello("here"));
    fixture.take();
    fixture.input(7, Input::SignOut { device: device("lost") });
    let closed: Vec<_> = fixture
        .take()
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Close { conn, cause: CloseCause::SignedOut } => Some(conn.0),
            _ => None,
        })
        .collect();
    assert_eq!(closed, [2, 1]);
    assert_eq!(fixture.public(7).devices.len(), 1);
    assert_eq!(fixture.table.counts().connections, 1);
    // The connections report their end later, which is ignored.
    fixture.close(7, 1);
    fixture.drop(7, 2);
    assert_eq!((fixture.status(7), fixture.table.size().unknown_inputs), (Status::Online, 0));
    fixture.input(7, Input::SignOut { device: device("here") });
    assert_eq!(fixture.status(7), Status::Offline);
    let effects = fixture.take();
    let cause = effects
        .iter()
        .find_map(|it| if let Effect::Transition { cause, .. } = it { Some(*cause) } else { None });
    assert_eq!(cause, Some(Cause::SignedOut));
}

#[test]
fn one_device_too_many_is_refused_and_leaves_no_trace() {
    let mut fixture = Fixture::with(Policy { devices_max: 3, ..Policy::default() });
    for (conn, name) in [(1, "a"), (2, "b"), (3, "b"), (4, "c")] {
        fixture.connect(7, conn, hello(name));
    }
    fixture.take();
    let (before, load) = (fixture.own(7), fixture.table.size());
    let refused = Err(Refused::TooManyDevices { max: 3 });
    assert_eq!(fixture.try_input(7, Input::Connected { conn: ConnId(5), hello: hello("d") }), refused);
    assert_eq!(fixture.try_input(7, Input::Heartbeat { hello: hello("d") }), refused);
    assert_eq!((fixture.own(7), fixture.table.size(), fixture.take()), (before, load, vec![]));
    assert_eq!(fixture.try_input(7, Input::Heartbeat { hello: hello("c") }), Ok(()));
    fixture.close(7, 1);
    assert_eq!(fixture.try_input(7, Input::Connected { conn: ConnId(5), hello: hello("d") }), Ok(()));
}

#[test]
fn one_session_too_many_is_refused() {
    let mut fixture = Fixture::new();
    for conn in 0..Policy::SESSIONS_MAX {
        fixture.connect(7, conn, hello("browser"));
    }
    let one_more = Input::Connected { conn: ConnId(500), hello: hello("browser") };
    assert_eq!(fixture.try_input(7, one_more), Err(Refused::TooManySessions { max: Policy::SESSIONS_MAX }));
    assert_eq!(fixture.table.counts().connections, Policy::SESSIONS_MAX);
}

#[test]
fn unknown_connections_are_ignored_and_counted() {
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, hello("a"));
    fixture.take();
    let conn = ConnId(9);
    for id in [7, 8] {
        fixture.input(id, Input::Message { conn });
        fixture.input(id, Input::ProbeAnswered { conn });
        fixture.input(id, Input::ProbeFailed { conn });
        fixture.input(id, Input::App { conn, state: AppState::Inactive });
        fixture.input(id, Input::Declare { conn, declaration: None });
        fixture.input(id, Input::Goodbye { device: device("x") });
        fixture.drop(id, 9);
        fixture.input(id, Input::SignOut { device: device("x") });
    }
    fixture.input(8, Input::TorrentCounts { seeding: 1, leeching: 1 });
    // Another user's connection.
    fixture.input(8, Input::Message { conn: ConnId(1) });
    // A connection that is already connected.
    fixture.connect(7, 1, hello("b"));
    assert_eq!(fixture.take(), []);
    assert_eq!((fixture.table.size().unknown_inputs, fixture.table.size().users), (14, 1));
}

#[test]
fn the_counts_are_kept() {
    let mut fixture = Fixture::new();
    fixture.connect(1, 1, hello("a"));
    fixture.connect(2, 2, saying("a", Declared::Busy));
    fixture.connect(3, 3, saying("a", Declared::Invisible));
    fixture.connect(4, 4, inactive(hello("a")));
    fixture.input(4, Input::Heartbeat { hello: inactive(hello("b")) });
    let counts = fixture.table.counts();
    let by_status = Status::ALL.map(|status| counts.of(status));
    assert_eq!(by_status, [0, 0, 1, 1, 1, 1]);
    assert_eq!(
        (counts.online(), counts.visible(), counts.connections, counts.without_connection),
        (4, 3, 4, 1)
    );
    let listed = |fixture: &Fixture, after: Option<u64>| -> Vec<u64> {
        fixture.table.listed_after(after.map(user)).map(|user| user.get()).collect()
    };
    assert_eq!((listed(&fixture, None), listed(&fixture, Some(2))), (vec![1, 2, 3, 4], vec![3, 4]));
    assert_eq!(fixture.table.own_status(user(3)), (Status::Invisible, true));
    for id in 1..=4 {
        fixture.close(id, id as u32);
    }
    fixture.pass(300);
    let counts = fixture.table.counts();
    assert_eq!((counts.online(), counts.connections, counts.without_connection), (1, 0, 1));
    assert_eq!(listed(&fixture, None), [4]);
}

#[test]
fn last_seen_of_online_users_is_stored_at_intervals() {
    let mut fixture = Fixture::new();
    fixture.connect(7, 1, hello("a"));
    fixture.connect(8, 2, saying("a", Declared::Invisible));
    fixture.take();
    fixture.pass_alive(600, &[(7, 1), (8, 2)]);
    let stored = |id| Effect::Store { user: user(id) };
    let effects = fixture.take();
    let count = |id| effects.iter().filter(|effect| **effect == stored(id)).count();
    assert!((9..=10).contains(&count(7)), "{} times", count(7));
    assert_eq!(count(8), 0, "nothing of a hidden user changes");
    assert_eq!(fixture.table.stored_presence(user(7)).unwrap().last_seen, second(600));
}

#[test]
fn p11_each_activity_is_stored_unless_one_was_a_moment_ago() {
    let mut fixture = Fixture::with(Policy { store_interval: Seconds(1), ..Policy::default() });
    fixture.connect(7, 1, hello("a"));
    fixture.input(8, Input::Heartbeat { hello: hello("b") });
    fixture.pass(20);
    fixture.take();
    let stored = |fixture: &mut Fixture, id| fixture.take().contains(&Effect::Store { user: user(id) });
    fixture.heard(7, 1);
    assert!(stored(&mut fixture, 7));
    fixture.heard(7, 1);
    assert!(!stored(&mut fixture, 7), "twice within a second");
    fixture.input(8, Input::Heartbeat { hello: hello("b") });
    assert!(stored(&mut fixture, 8));
    fixture.pass(10);
    assert!(!stored(&mut fixture, 7), "nothing was heard");
    fixture.input(7, Input::ProbeAnswered { conn: ConnId(1) });
    assert!(stored(&mut fixture, 7));
}

#[test]
fn causes_have_names() {
    for cause in Cause::ALL {
        assert_eq!(Cause::from_name(cause.name()), Some(cause));
        assert_eq!(cause.to_string(), cause.name());
    }
    assert_eq!(Cause::from_name("signed_out"), Some(Cause::SignedOut));
}

//! What sessions and words add up to: aggregation, declarations, devices, first in and last out.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use domain::Seconds;
use presence::{
    AppState, Cause, CloseCause, ConnId, Declaration, Declared, DeviceView, Effect, Hello, Input, Platform,
    Policy, Refused, Status,
};
use support::*;

fn saying(name: &str, declared: Declared) -> Hello {
    Hello { declared: Some(declared), ..hello(name) }
}

fn inactive(hello: Hello) -> Hello {
    Hello { app: AppState::Inactive, ..hello }
}

/// Connects these and gives the status in the own view.
fn status_of(sessions: &[Hello], declared: Option<Declared>) -> Status {
    let mut stage = Stage::new();
    stage.connect(7, 100, hello("extra"));
    stage.declare(7, 100, declared.map(declaration));
    for (conn, hello) in (0..).zip(sessions) {
        stage.connect(7, conn, hello.clone());
    }
    stage.close(7, 100);
    stage.own(7).status
}

#[test]
fn the_first_rule_what_the_person_declared_decides() {
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
fn the_second_rule_one_session_that_hides_hides_the_person() {
    let sessions = [saying("a", Declared::Invisible), saying("b", Declared::Busy), hello("c")];
    assert_eq!(status_of(&sessions, None), Status::Invisible);
    let idle = [inactive(saying("a", Declared::Invisible)), hello("b")];
    assert_eq!(status_of(&idle, None), Status::Invisible);
}

#[test]
fn the_third_rule_the_best_of_what_sessions_say() {
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
fn the_fifth_rule_nobody_without_a_session_is_here_and_the_declaration_waits() {
    let mut stage = Stage::new();
    stage.connect(7, 1, hello("a"));
    stage.declare(
        7,
        1,
        Some(Declaration { text: Some("gone fishing".into()), ..declaration(Declared::Busy) }),
    );
    stage.close(7, 1);
    assert_eq!((stage.status(7), stage.own(7).status), (Status::Offline, Status::Offline));
    assert_eq!(stage.public(7).text, None);
    let remembered = stage.roster.remembered(user(7)).unwrap();
    assert_eq!(remembered.declaration.unwrap().status, Declared::Busy);
    stage.pass(5);
    stage.connect(7, 2, hello("b"));
    assert_eq!(stage.status(7), Status::Busy);
    assert_eq!(stage.public(7).text.as_deref(), Some("gone fishing"));
}

#[test]
fn a_declaration_replaces_what_its_session_said_and_clearing_removes_both() {
    let mut stage = Stage::new();
    stage.connect(7, 1, saying("a", Declared::Away));
    stage.declare(7, 1, Some(declaration(Declared::Busy)));
    assert_eq!(stage.status(7), Status::Busy);
    stage.declare(7, 1, None);
    assert_eq!(stage.status(7), Status::Online, "what it said at connect is gone too");
    stage.connect(7, 2, saying("b", Declared::Away));
    assert_eq!(stage.status(7), Status::Away);
    stage.declare(7, 1, None);
    assert_eq!(stage.status(7), Status::Away, "another session still says so");
    stage.close(7, 2);
    assert_eq!(stage.status(7), Status::Online, "and what it said ended with it");
}

#[test]
fn a_declaration_ends_when_it_said_it_would() {
    let mut stage = Stage::new();
    stage.connect(7, 1, hello("a"));
    let lunch = Declaration { status: Declared::Away, text: Some("lunch".into()), until: second(60) };
    stage.declare(7, 1, Some(Declaration { until: second(3600), ..lunch.clone() }));
    stage.declare(7, 1, Some(lunch.clone()));
    assert_eq!((stage.public(7).until, stage.status(7)), (second(60), Status::Away));
    stage.pass_alive(59, &[(7, 1)]);
    assert_eq!(stage.status(7), Status::Away);
    stage.take();
    stage.pass(1);
    let view = stage.public(7);
    assert_eq!((view.status, view.text, view.until), (Status::Online, None, None));
    let by_itself = Effect::Transition {
        user: user(7),
        from: Status::Away,
        to: Status::Online,
        cause: Cause::Until,
        device: None,
    };
    let effects = stage.take();
    assert!(effects.contains(&by_itself) && effects.contains(&Effect::Remember { user: user(7) }));
    // One that is over already changes nothing but what was declared before.
    stage.declare(7, 1, Some(lunch));
    assert_eq!((stage.status(7), stage.public(7).text), (Status::Online, None));
}

#[test]
fn a_declaration_also_ends_while_nobody_is_here() {
    let mut stage = Stage::new();
    stage.connect(7, 1, hello("a"));
    stage.declare(7, 1, Some(Declaration { until: second(30), ..declaration(Declared::Busy) }));
    stage.close(7, 1);
    stage.pass_to(29);
    assert!(stage.roster.remembered(user(7)).unwrap().declaration.is_some());
    stage.pass_to(30);
    assert!(stage.roster.remembered(user(7)).unwrap().declaration.is_none());
}

#[test]
fn p2_two_connections_of_one_device_are_one_device_and_the_best_counts() {
    let mut stage = Stage::new();
    stage.connect(7, 1, Hello { platform: Platform::Computer, ..hello("browser") });
    stage.app(7, 1, AppState::Background);
    stage.connect(7, 2, hello("browser"));
    stage.connect(7, 3, inactive(Hello { platform: Platform::Phone, ..hello("a-phone") }));
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
    assert_eq!(stage.public(7).devices, [phone.clone(), browser.clone()]);
    let version = stage.public(7).version;
    stage.take();
    stage.connect(7, 4, hello("browser"));
    stage.close(7, 4);
    assert_eq!((stage.public(7).version, stage.news()), (version, vec![]), "one more tab shows nowhere");
    stage.close(7, 2);
    let hidden_tab = DeviceView { app: AppState::Background, platform: Platform::Computer, ..browser };
    assert_eq!(stage.public(7).devices, [phone, hidden_tab]);
    stage.close(7, 1);
    assert_eq!((stage.public(7).devices.len(), stage.status(7)), (1, Status::Away));
}

#[test]
fn the_first_session_in_and_the_last_out_are_told() {
    let mut stage = Stage::new();
    let arrivals = |stage: &mut Stage| {
        let effects = stage.take();
        effects
            .into_iter()
            .filter(|it| matches!(it, Effect::Arrived { .. } | Effect::Left { .. }))
            .collect::<Vec<_>>()
    };
    stage.connect(7, 1, hello("a"));
    stage.connect(7, 2, hello("b"));
    assert_eq!(
        arrivals(&mut stage),
        [Effect::Arrived { user: user(7), cause: Cause::Connect, device: Some(device("a")) }]
    );
    stage.pass_to(5);
    stage.close(7, 1);
    assert_eq!(arrivals(&mut stage), []);
    stage.pass_to(9);
    stage.drop(7, 2);
    // The one that broke was heard at 0, the other said goodbye at 5.
    assert_eq!(
        arrivals(&mut stage),
        [Effect::Left { user: user(7), last_seen: second(5), cause: Cause::Drop, device: Some(device("b")) }]
    );
    assert_eq!(stage.public(7).last_seen, second(5));
}

#[test]
fn only_coming_and_going_is_urgent_for_others() {
    let mut stage = Stage::new();
    let changed = |stage: &mut Stage| {
        let effects = stage.take();
        let changes = effects.into_iter().filter_map(|effect| match effect {
            Effect::Changed { public, own, urgent, .. } => Some((public, own, urgent)),
            _ => None,
        });
        changes.collect::<Vec<_>>()
    };
    stage.connect(7, 1, hello("a"));
    assert_eq!(changed(&mut stage), [(true, true, true)]);
    stage.declare(7, 1, Some(declaration(Declared::Busy)));
    assert_eq!(changed(&mut stage), [(true, true, false)]);
    stage.tell(7, Input::Traffic { seeding: 3, leeching: 1 });
    assert_eq!(changed(&mut stage), [(true, true, false)]);
    stage.tell(7, Input::Traffic { seeding: 3, leeching: 1 });
    assert_eq!(changed(&mut stage), []);
    stage.declare(7, 1, Some(declaration(Declared::Invisible)));
    assert_eq!(changed(&mut stage), [(true, true, true)]);
    stage.app(7, 1, AppState::Background);
    assert_eq!(changed(&mut stage), [(false, true, true)]);
    stage.close(7, 1);
    assert_eq!(changed(&mut stage), [(false, true, true)]);
}

#[test]
fn signing_a_device_out_ends_all_its_sessions() {
    let mut stage = Stage::new();
    stage.connect(7, 1, hello("lost"));
    stage.connect(7, 2, hello("lost"));
    stage.tell(7, Input::Heartbeat { hello: hello("lost") });
    stage.connect(7, 3, hello("here"));
    stage.take();
    stage.tell(7, Input::SignOut { device: device("lost") });
    let closed: Vec<_> = stage
        .take()
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Close { conn, cause: CloseCause::SignedOut } => Some(conn.0),
            _ => None,
        })
        .collect();
    assert_eq!(closed, [2, 1]);
    assert_eq!(stage.public(7).devices.len(), 1);
    assert_eq!(stage.roster.online().connections, 1);
    // The connections report their end later; nobody minds.
    stage.close(7, 1);
    stage.drop(7, 2);
    assert_eq!((stage.status(7), stage.roster.load().strays), (Status::Online, 0));
    stage.tell(7, Input::SignOut { device: device("here") });
    assert_eq!(stage.status(7), Status::Offline);
    let effects = stage.take();
    let cause = effects
        .iter()
        .find_map(|it| if let Effect::Transition { cause, .. } = it { Some(*cause) } else { None });
    assert_eq!(cause, Some(Cause::SignedOut));
}

#[test]
fn one_device_too_many_is_refused_and_leaves_no_trace() {
    let mut stage = Stage::with(Policy { devices_max: 3, ..Policy::default() });
    for (conn, name) in [(1, "a"), (2, "b"), (3, "b"), (4, "c")] {
        stage.connect(7, conn, hello(name));
    }
    stage.take();
    let (before, load) = (stage.own(7), stage.roster.load());
    let refused = Err(Refused::TooManyDevices { max: 3 });
    assert_eq!(stage.try_tell(7, Input::Connected { conn: ConnId(5), hello: hello("d") }), refused);
    assert_eq!(stage.try_tell(7, Input::Heartbeat { hello: hello("d") }), refused);
    assert_eq!((stage.own(7), stage.roster.load(), stage.take()), (before, load, vec![]));
    assert_eq!(stage.try_tell(7, Input::Heartbeat { hello: hello("c") }), Ok(()));
    stage.close(7, 1);
    assert_eq!(stage.try_tell(7, Input::Connected { conn: ConnId(5), hello: hello("d") }), Ok(()));
}

#[test]
fn one_session_too_many_is_refused() {
    let mut stage = Stage::new();
    for conn in 0..Policy::SESSIONS_MAX {
        stage.connect(7, conn, hello("browser"));
    }
    let one_more = Input::Connected { conn: ConnId(500), hello: hello("browser") };
    assert_eq!(stage.try_tell(7, one_more), Err(Refused::TooManySessions { max: Policy::SESSIONS_MAX }));
    assert_eq!(stage.roster.online().connections, Policy::SESSIONS_MAX);
}

#[test]
fn what_nobody_knows_is_ignored_and_counted() {
    let mut stage = Stage::new();
    stage.connect(7, 1, hello("a"));
    stage.take();
    let conn = ConnId(9);
    for who in [7, 8] {
        stage.tell(who, Input::Heard { conn });
        stage.tell(who, Input::ProbeAnswered { conn });
        stage.tell(who, Input::ProbeFailed { conn });
        stage.tell(who, Input::App { conn, state: AppState::Inactive });
        stage.tell(who, Input::Declare { conn, declaration: None });
        stage.tell(who, Input::Goodbye { device: device("x") });
        stage.drop(who, 9);
        stage.tell(who, Input::SignOut { device: device("x") });
    }
    stage.tell(8, Input::Traffic { seeding: 1, leeching: 1 });
    // Somebody else's connection is not this person's.
    stage.tell(8, Input::Heard { conn: ConnId(1) });
    // And one that came already does not come again.
    stage.connect(7, 1, hello("b"));
    assert_eq!(stage.take(), []);
    assert_eq!((stage.roster.load().strays, stage.roster.load().persons), (14, 1));
}

#[test]
fn the_tally_is_kept() {
    let mut stage = Stage::new();
    stage.connect(1, 1, hello("a"));
    stage.connect(2, 2, saying("a", Declared::Busy));
    stage.connect(3, 3, saying("a", Declared::Invisible));
    stage.connect(4, 4, inactive(hello("a")));
    stage.tell(4, Input::Heartbeat { hello: inactive(hello("b")) });
    let tally = stage.roster.online();
    let counts = Status::ALL.map(|status| tally.of(status));
    assert_eq!(counts, [0, 0, 1, 1, 1, 1]);
    assert_eq!((tally.here(), tally.visible(), tally.connections, tally.without_connection), (4, 3, 4, 1));
    let listed = |stage: &Stage, after: Option<u64>| -> Vec<u64> {
        stage.roster.listed_after(after.map(user)).map(|user| user.get()).collect()
    };
    assert_eq!((listed(&stage, None), listed(&stage, Some(2))), (vec![1, 2, 3, 4], vec![3, 4]));
    assert_eq!(stage.roster.standing(user(3)), (Status::Invisible, true));
    for who in 1..=4 {
        stage.close(who, who as u32);
    }
    stage.pass(300);
    let tally = stage.roster.online();
    assert_eq!((tally.here(), tally.connections, tally.without_connection), (1, 0, 1));
    assert_eq!(listed(&stage, None), [4]);
}

#[test]
fn last_seen_of_who_is_here_is_stored_now_and_then() {
    let mut stage = Stage::new();
    stage.connect(7, 1, hello("a"));
    stage.connect(8, 2, saying("a", Declared::Invisible));
    stage.take();
    stage.pass_alive(600, &[(7, 1), (8, 2)]);
    let stored = |who| Effect::Remember { user: user(who) };
    let effects = stage.take();
    let count = |who| effects.iter().filter(|effect| **effect == stored(who)).count();
    assert!((9..=10).contains(&count(7)), "{} times", count(7));
    assert_eq!(count(8), 0, "nothing of who hides changes");
    assert_eq!(stage.roster.remembered(user(7)).unwrap().last_seen, second(600));
}

#[test]
fn p11_each_sign_of_life_is_stored_when_it_is_heard_unless_one_was_a_moment_ago() {
    let mut stage = Stage::with(Policy { remember: Seconds(1), ..Policy::default() });
    stage.connect(7, 1, hello("a"));
    stage.tell(8, Input::Heartbeat { hello: hello("b") });
    stage.pass(20);
    stage.take();
    let stored = |stage: &mut Stage, who| stage.take().contains(&Effect::Remember { user: user(who) });
    stage.heard(7, 1);
    assert!(stored(&mut stage, 7));
    stage.heard(7, 1);
    assert!(!stored(&mut stage, 7), "twice within a second");
    stage.tell(8, Input::Heartbeat { hello: hello("b") });
    assert!(stored(&mut stage, 8));
    stage.pass(10);
    assert!(!stored(&mut stage, 7), "nothing was heard");
    stage.tell(7, Input::ProbeAnswered { conn: ConnId(1) });
    assert!(stored(&mut stage, 7));
}

#[test]
fn causes_have_names() {
    for cause in Cause::ALL {
        assert_eq!(Cause::from_name(cause.name()), Some(cause));
        assert_eq!(cause.to_string(), cause.name());
    }
    assert_eq!(Cause::from_name("signed_out"), Some(Cause::SignedOut));
}

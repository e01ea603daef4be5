//! People with sessions at other gateways: what is shown of them here, and what is told to the others.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use domain::{Seconds, UnixTime};
use presence::{
    AppState, Declared, Effect, Elsewhere, Hello, LastKnown, Moment, Part, PartDevice, Platform, Status,
};
use support::*;

fn there(name: &str) -> PartDevice {
    PartDevice {
        id: device(name),
        platform: Platform::Web,
        app: AppState::Foreground,
        online: true,
        said: None,
    }
}

fn elsewhere(who: u64, devices: Vec<PartDevice>, version: u64) -> Elsewhere {
    Elsewhere {
        devices,
        last_sign: Some(UnixTime(START_S)),
        public_version: version,
        own_version: version,
        ..Elsewhere::nothing(user(who))
    }
}

impl Stage {
    fn hear(&mut self, elsewhere: Elsewhere) {
        let now = self.now();
        self.roster.hear_elsewhere(now, elsewhere, &mut self.effects);
    }

    fn lose(&mut self, who: u64) {
        let now = self.now();
        self.roster.lose_elsewhere(now, user(who), &mut self.effects);
    }

    fn know(&mut self, who: u64) {
        self.roster.know(self.now(), user(who), LastKnown::default());
    }
}

fn changed(who: u64, urgent: bool) -> Effect {
    Effect::Changed { user: user(who), public: true, own: true, urgent }
}

#[test]
fn who_is_elsewhere_is_shown_but_not_counted_here() {
    let mut stage = Stage::new();
    stage.know(1);
    stage.hear(elsewhere(1, vec![there("phone")], 7));
    assert_eq!(stage.news(), [changed(1, true)]);
    let view = stage.public(1);
    assert_eq!((view.status, view.version, view.devices.len()), (Status::Online, 7, 1));
    assert_eq!(stage.roster.online().here(), 0);
    assert_eq!(stage.roster.part(user(1), None), None);
    stage.hear(elsewhere(1, vec![], 8));
    assert_eq!((stage.status(1), stage.public(1).version), (Status::Offline, 8));
    assert_eq!(stage.news(), [changed(1, true)]);
}

#[test]
fn p2_devices_here_and_elsewhere_add_up() {
    let mut stage = Stage::new();
    stage.connect(1, 1, Hello { app: AppState::Inactive, ..hello("desk") });
    assert_eq!(stage.status(1), Status::Away);
    stage.news();
    stage.hear(elsewhere(
        1,
        vec![PartDevice { said: Some(Declared::Busy), ..there("phone") }, there("desk")],
        1,
    ));
    let view = stage.own(1);
    assert_eq!(view.status, Status::Busy);
    let shown: Vec<(&str, Status)> = view.devices.iter().map(|it| (it.id.as_str(), it.status)).collect();
    assert_eq!(shown, [("desk", Status::Online), ("phone", Status::Online)], "each device once, at its best");
    // The last one here goes, and nobody has left.
    stage.news();
    stage.close(1, 1);
    assert!(stage.news().iter().all(|effect| !matches!(effect, Effect::Left { .. })));
    assert_eq!(stage.status(1), Status::Busy);
}

#[test]
fn versions_never_go_back_and_do_not_move_for_nothing() {
    let mut stage = Stage::new();
    stage.know(1);
    stage.hear(elsewhere(1, vec![there("phone")], 9));
    stage.news();
    stage.hear(elsewhere(1, vec![there("phone")], 9));
    assert_eq!(stage.news(), []);
    stage.hear(elsewhere(1, vec![], 3));
    assert_eq!(stage.public(1).version, 10, "a change is a new version, whatever was said");
    stage.hear(elsewhere(1, vec![], 12));
    assert_eq!((stage.own(1).version, stage.public(1).version), (12, 12));
}

#[test]
fn what_is_too_old_makes_pending_and_then_offline() {
    let mut stage = Stage::new();
    stage.know(1);
    stage.hear(elsewhere(1, vec![there("phone")], 1));
    stage.pass(10);
    stage.lose(1);
    assert_eq!(stage.status(1), Status::Pending);
    stage.news();
    stage.pass(301);
    assert_eq!((stage.status(1), stage.public(1).last_seen), (Status::Offline, second(0)));
    assert_eq!(stage.news(), [changed(1, false)], "others tell of who left");
    stage.lose(1);
    assert_eq!(stage.news(), []);
}

#[test]
fn who_hid_elsewhere_stays_hidden_while_pending() {
    let mut stage = Stage::new();
    stage.know(1);
    let hidden = Elsewhere {
        declaration: Some(declaration(Declared::Invisible)),
        last_seen: second(3),
        hidden_since: second(3),
        ..elsewhere(1, vec![there("phone")], 4)
    };
    stage.hear(hidden);
    assert_eq!((stage.status(1), stage.own(1).status), (Status::Offline, Status::Invisible));
    stage.lose(1);
    assert_eq!((stage.status(1), stage.own(1).status), (Status::Offline, Status::Pending));
    assert_eq!((stage.public(1).last_seen, stage.public(1).version), (second(3), 4));
}

#[test]
fn who_is_elsewhere_does_not_linger_here() {
    let mut stage = Stage::new();
    for conn in 1..=3 {
        stage.connect(1, conn, hello("desk"));
        stage.drop(1, conn);
    }
    assert_eq!(stage.status(1), Status::Online, "flapping: shown for a while");
    assert!(stage.roster.has_part(user(1)));
    stage.hear(elsewhere(1, vec![there("phone")], 1));
    assert!(!stage.roster.has_part(user(1)), "who came back elsewhere is not waited for here");
    stage.connect(1, 4, hello("desk"));
    stage.drop(1, 4);
    assert!(!stage.roster.has_part(user(1)));
    assert_eq!(stage.own(1).devices.len(), 1);
}

#[test]
fn pending_elsewhere_ends_when_a_device_comes_here() {
    let mut stage = Stage::new();
    let until = Moment(stage.now().0 + 60_000);
    stage.hear(Elsewhere { pending_until: Some(until), ..elsewhere(1, vec![], 5) });
    assert_eq!(stage.status(1), Status::Pending);
    stage.news();
    stage.connect(1, 1, hello("desk"));
    let arrived = stage.news().iter().any(|effect| matches!(effect, Effect::Arrived { .. }));
    assert!(!arrived, "who was pending had not left");
    stage.hear(Elsewhere { pending_until: Some(until), ..elsewhere(1, vec![], 5) });
    assert_eq!(stage.status(1), Status::Online);
}

#[test]
fn a_part_says_what_counts_of_the_sessions_here() {
    let mut stage = Stage::new();
    let said = |name: &str, app, declared| Hello { app, declared, ..hello(name) };
    stage.connect(1, 1, said("phone", AppState::Inactive, Some(Declared::Online)));
    stage.connect(1, 2, said("desk", AppState::Foreground, Some(Declared::Away)));
    stage.pass(5);
    stage.connect(1, 3, said("desk", AppState::Background, Some(Declared::Busy)));
    let part = stage.roster.part(user(1), None).unwrap();
    let phone = PartDevice { app: AppState::Inactive, online: false, ..there("phone") };
    let desk = PartDevice { said: Some(Declared::Busy), ..there("desk") };
    let expected =
        Part { devices: vec![desk, phone], last_sign: UnixTime(START_S + 5), gone_in: Seconds(1800) };
    assert_eq!(part, expected, "online counts only for who is");
    let heard = stage.roster.part(user(1), Some(stage.now())).unwrap();
    assert_eq!(heard.devices.len(), 1, "the older sessions gave no sign since");
    stage.pass(1);
    assert_eq!(stage.roster.part(user(1), Some(stage.now())), None);
}

#[test]
fn what_others_said_of_somebody_goes_with_the_last_who_asks() {
    let mut stage = Stage::new();
    stage.know(1);
    stage.hear(elsewhere(1, vec![there("phone")], 5));
    stage.pass(200);
    assert_eq!(stage.status(1), Status::Online);
    assert!(stage.roster.forget(user(1)));
    assert_eq!(stage.roster.load().persons, 0);
    assert_eq!(stage.roster.online(), Default::default());
}

#[test]
fn devices_elsewhere_count_for_the_most_one_may_have() {
    let mut stage = Stage::new();
    let many: Vec<PartDevice> = (0..20).map(|number| there(&format!("device-{number:02}"))).collect();
    stage.hear(elsewhere(1, many, 1));
    let connected =
        |conn, name| presence::Input::Connected { conn: presence::ConnId(conn), hello: hello(name) };
    assert!(stage.try_tell(1, connected(1, "one-more")).is_err());
    assert!(stage.try_tell(1, connected(1, "device-07")).is_ok());
}

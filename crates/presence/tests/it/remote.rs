//! Users with sessions at other gateways: what is shown here, and what is published.

use domain::{Seconds, UnixTime};
use presence::{
    AppState, Declared, Effect, Hello, LastKnown, NodeDevice, NodeEntry, Platform, RemoteSessions, Status,
    WallTime,
};

use crate::support::*;

fn there(name: &str) -> NodeDevice {
    NodeDevice {
        id: device(name),
        platform: Platform::Web,
        app: AppState::Foreground,
        online: true,
        declared: None,
    }
}

fn remote(id: u64, devices: Vec<NodeDevice>, version: u64) -> RemoteSessions {
    RemoteSessions {
        devices,
        last_activity: Some(UnixTime(START_S)),
        public_version: version,
        own_version: version,
        ..RemoteSessions::none(user(id))
    }
}

impl Fixture {
    fn hear(&mut self, remote: RemoteSessions) {
        let now = self.now();
        self.table.set_remote(now, remote, &mut self.effects);
    }

    fn lose(&mut self, id: u64) {
        let now = self.now();
        self.table.expire_remote(now, user(id), &mut self.effects);
    }

    fn watch(&mut self, id: u64) {
        self.table.watch(self.now(), user(id), LastKnown::default());
    }
}

fn changed(id: u64, urgent: bool) -> Effect {
    Effect::Changed { user: user(id), public: true, own: true, urgent }
}

#[test]
fn a_remote_user_is_shown_but_not_counted_here() {
    let mut fixture = Fixture::new();
    fixture.watch(1);
    fixture.hear(remote(1, vec![there("phone")], 7));
    assert_eq!(fixture.changes(), [changed(1, true)]);
    let view = fixture.public(1);
    assert_eq!((view.status, view.version, view.devices.len()), (Status::Online, 7, 1));
    assert_eq!(fixture.table.counts().online(), 0);
    assert_eq!(fixture.table.node_entry(user(1), None), None);
    fixture.hear(remote(1, vec![], 8));
    assert_eq!((fixture.status(1), fixture.public(1).version), (Status::Offline, 8));
    assert_eq!(fixture.changes(), [changed(1, true)]);
}

#[test]
fn p2_local_and_remote_devices_are_merged() {
    let mut fixture = Fixture::new();
    fixture.connect(1, 1, Hello { app: AppState::Inactive, ..hello("desk") });
    assert_eq!(fixture.status(1), Status::Away);
    fixture.changes();
    fixture.hear(remote(
        1,
        vec![NodeDevice { declared: Some(Declared::Busy), ..there("phone") }, there("desk")],
        1,
    ));
    let view = fixture.own(1);
    assert_eq!(view.status, Status::Busy);
    let shown: Vec<(&str, Status)> = view.devices.iter().map(|it| (it.id.as_str(), it.status)).collect();
    assert_eq!(shown, [("desk", Status::Online), ("phone", Status::Online)], "each device once, at its best");
    // The last local session ends, and the user has not left.
    fixture.changes();
    fixture.close(1, 1);
    assert!(fixture.changes().iter().all(|effect| !matches!(effect, Effect::Left { .. })));
    assert_eq!(fixture.status(1), Status::Busy);
}

#[test]
fn versions_never_go_back_and_do_not_move_for_nothing() {
    let mut fixture = Fixture::new();
    fixture.watch(1);
    fixture.hear(remote(1, vec![there("phone")], 9));
    fixture.changes();
    fixture.hear(remote(1, vec![there("phone")], 9));
    assert_eq!(fixture.changes(), []);
    fixture.hear(remote(1, vec![], 3));
    assert_eq!(fixture.public(1).version, 10, "a change is a new version, whatever was said");
    fixture.hear(remote(1, vec![], 12));
    assert_eq!((fixture.own(1).version, fixture.public(1).version), (12, 12));
}

#[test]
fn expired_remote_sessions_make_pending_and_then_offline() {
    let mut fixture = Fixture::new();
    fixture.watch(1);
    fixture.hear(remote(1, vec![there("phone")], 1));
    fixture.pass(10);
    fixture.lose(1);
    assert_eq!(fixture.status(1), Status::Pending);
    fixture.changes();
    fixture.pass(301);
    assert_eq!((fixture.status(1), fixture.public(1).last_seen), (Status::Offline, second(0)));
    assert_eq!(fixture.changes(), [changed(1, false)], "the other gateway publishes the departure");
    fixture.lose(1);
    assert_eq!(fixture.changes(), []);
}

#[test]
fn a_user_hidden_elsewhere_stays_hidden_while_pending() {
    let mut fixture = Fixture::new();
    fixture.watch(1);
    let hidden = RemoteSessions {
        declaration: Some(declaration(Declared::Invisible)),
        last_seen: second(3),
        hidden_since: second(3),
        ..remote(1, vec![there("phone")], 4)
    };
    fixture.hear(hidden);
    assert_eq!((fixture.status(1), fixture.own(1).status), (Status::Offline, Status::Invisible));
    fixture.lose(1);
    assert_eq!((fixture.status(1), fixture.own(1).status), (Status::Offline, Status::Pending));
    assert_eq!((fixture.public(1).last_seen, fixture.public(1).version), (second(3), 4));
}

#[test]
fn a_user_with_remote_sessions_does_not_linger_here() {
    let mut fixture = Fixture::new();
    for conn in 1..=3 {
        fixture.connect(1, conn, hello("desk"));
        fixture.drop(1, conn);
    }
    assert_eq!(fixture.status(1), Status::Online, "flapping: shown for a while");
    assert!(fixture.table.has_local_session(user(1)));
    fixture.hear(remote(1, vec![there("phone")], 1));
    assert!(
        !fixture.table.has_local_session(user(1)),
        "no grace period for a user that is connected elsewhere"
    );
    fixture.connect(1, 4, hello("desk"));
    fixture.drop(1, 4);
    assert!(!fixture.table.has_local_session(user(1)));
    assert_eq!(fixture.own(1).devices.len(), 1);
}

#[test]
fn pending_from_remote_ends_when_a_device_connects_here() {
    let mut fixture = Fixture::new();
    let until = WallTime(fixture.now().0 + 60_000);
    fixture.hear(RemoteSessions { pending_until: Some(until), ..remote(1, vec![], 5) });
    assert_eq!(fixture.status(1), Status::Pending);
    fixture.changes();
    fixture.connect(1, 1, hello("desk"));
    let arrived = fixture.changes().iter().any(|effect| matches!(effect, Effect::Arrived { .. }));
    assert!(!arrived, "a pending user has not left");
    fixture.hear(RemoteSessions { pending_until: Some(until), ..remote(1, vec![], 5) });
    assert_eq!(fixture.status(1), Status::Online);
}

#[test]
fn a_node_entry_has_what_counts_of_the_local_sessions() {
    let mut fixture = Fixture::new();
    let said = |name: &str, app, declared| Hello { app, declared, ..hello(name) };
    fixture.connect(1, 1, said("phone", AppState::Inactive, Some(Declared::Online)));
    fixture.connect(1, 2, said("desk", AppState::Foreground, Some(Declared::Away)));
    fixture.pass(5);
    fixture.connect(1, 3, said("desk", AppState::Background, Some(Declared::Busy)));
    let part = fixture.table.node_entry(user(1), None).unwrap();
    let phone = NodeDevice { app: AppState::Inactive, online: false, ..there("phone") };
    let desk = NodeDevice { declared: Some(Declared::Busy), ..there("desk") };
    let expected = NodeEntry {
        devices: vec![desk, phone],
        last_activity: UnixTime(START_S + 5),
        gone_in: Seconds(1800),
    };
    assert_eq!(part, expected, "a declared online counts only while online");
    let heard = fixture.table.node_entry(user(1), Some(fixture.now())).unwrap();
    assert_eq!(heard.devices.len(), 1, "the older sessions gave no sign since");
    fixture.pass(1);
    assert_eq!(fixture.table.node_entry(user(1), Some(fixture.now())), None);
}

#[test]
fn remote_sessions_are_dropped_with_the_last_watcher() {
    let mut fixture = Fixture::new();
    fixture.watch(1);
    fixture.hear(remote(1, vec![there("phone")], 5));
    fixture.pass(200);
    assert_eq!(fixture.status(1), Status::Online);
    assert!(fixture.table.unwatch(user(1)));
    assert_eq!(fixture.table.size().users, 0);
    assert_eq!(fixture.table.counts(), Default::default());
}

#[test]
fn remote_devices_count_for_the_device_limit() {
    let mut fixture = Fixture::new();
    let many: Vec<NodeDevice> = (0..20).map(|number| there(&format!("device-{number:02}"))).collect();
    fixture.hear(remote(1, many, 1));
    let connected =
        |conn, name| presence::Input::Connected { conn: presence::ConnId(conn), hello: hello(name) };
    assert!(fixture.try_input(1, connected(1, "one-more")).is_err());
    assert!(fixture.try_input(1, connected(1, "device-07")).is_ok());
}

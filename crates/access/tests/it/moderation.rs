//! Slots, pending torrents and banned ports, from the store and the site's SQL to the gate.

use std::sync::Arc;

use access::{
    AccessError, Admission, Approval, BannedPorts, Change, Follower, Gate, LeechSlots, PortRange, Torrent,
    TorrentChange, UserChange, load,
};
use domain::clock::ManualClock;
use domain::{Seconds, UnixTime};

use testkit::on_every_database;

use crate::fixture::{
    Fixture, NOW, OpenStore, info_hash, new_torrent, new_user, passkey, peer_id, torrent_id, user_id,
};

fn slots(text: &str) -> LeechSlots {
    text.parse().unwrap()
}

fn ports(text: &str) -> PortRange {
    text.parse().unwrap()
}

fn admission(gate: &Gate) -> Admission {
    gate.admit(&passkey(7), &info_hash(3), &peer_id("-TR3000-"), NOW).unwrap()
}

/// Polls once. Changes for copies of the gate are left out.
async fn poll(follower: &mut Follower) -> Vec<Change> {
    let mut changes = Vec::new();
    follower.poll(&mut |change| changes.push(change)).await.unwrap();
    changes.retain(|change| !matches!(change, Change::PasskeyChanged(_) | Change::InfoHashChanged(_)));
    changes
}

async fn listed(store: &access::Store) -> Vec<String> {
    let bans = store.list_banned_ports().await.unwrap();
    bans.iter().map(|ban| format!("{} {}", ban.range, ban.reason)).collect()
}

/// User 7, torrent 3, and a gate with a follower.
async fn scene(fixture: &Fixture) -> (access::Store, Arc<Gate>, Follower, ManualClock) {
    let store = fixture.store().await;
    store.add_user(new_user(7)).await.unwrap();
    store.add_torrent(new_torrent(3)).await.unwrap();
    let (gate, clock) = (Arc::new(Gate::default()), ManualClock::at(NOW));
    let follower = load(fixture.store().await, gate.clone()).await.unwrap().clock(Arc::new(clock.clone()));
    (store, gate, follower, clock)
}

async fn slots_of_users_and_torrents_reach_the_gate(fixture: Fixture) {
    let (store, gate, mut follower, _) = scene(&fixture).await;
    let before = admission(&gate);
    assert_eq!((before.user_slots, before.torrent_slots), (LeechSlots::DEFAULT, LeechSlots::DEFAULT));
    for text in ["3", "0", "unlimited", "1000000", "default"] {
        let change = UserChange { leech_slots: Some(slots(text)), ..UserChange::default() };
        store.change_user(user_id(7), change).await.unwrap();
        let change = TorrentChange { leech_slots: Some(slots(text)), ..TorrentChange::default() };
        store.change_torrent(torrent_id(3), change).await.unwrap();
        poll(&mut follower).await;
        let now = admission(&gate);
        assert_eq!((now.user_slots, now.torrent_slots), (slots(text), slots(text)));
        assert_eq!(store.user(user_id(7)).await.unwrap().unwrap().leech_slots, slots(text));
        assert_eq!(store.torrent(torrent_id(3)).await.unwrap().unwrap().leech_slots, slots(text));
    }
    let unknown = store.change_user(user_id(8), UserChange::default()).await;
    assert!(matches!(unknown, Err(AccessError::UnknownUser(_))));
    let unknown = store.change_torrent(torrent_id(8), TorrentChange::default()).await;
    assert!(matches!(unknown, Err(AccessError::UnknownTorrent(_))));
}

async fn a_change_leaves_other_fields_unchanged(fixture: Fixture) {
    let (store, _, _, _) = scene(&fixture).await;
    let all = TorrentChange { enabled: Some(false), approved: Some(false), leech_slots: Some(slots("5")) };
    store.change_torrent(torrent_id(3), all).await.unwrap();
    let changed = store.torrent(torrent_id(3)).await.unwrap().unwrap();
    let Torrent { enabled, approved, leech_slots, .. } = &changed;
    assert_eq!((*enabled, *approved, *leech_slots), (false, false, slots("5")));
    store.change_torrent(torrent_id(3), TorrentChange::default()).await.unwrap();
    assert_eq!(store.torrent(torrent_id(3)).await.unwrap().unwrap(), changed);
    store.set_torrent_enabled(torrent_id(3), true).await.unwrap();
    assert_eq!(store.torrent(torrent_id(3)).await.unwrap().unwrap(), Torrent { enabled: true, ..changed });
    let both = UserChange { enabled: Some(false), leech_slots: Some(slots("2")), name: None };
    store.change_user(user_id(7), both).await.unwrap();
    store.set_user_enabled(user_id(7), true).await.unwrap();
    let user = store.user(user_id(7)).await.unwrap().unwrap();
    assert_eq!((user.enabled, user.leech_slots), (true, slots("2")));
    let new_passkey = store.rotate_passkey(user_id(7), None).await.unwrap();
    let user = store.user_by_passkey(&new_passkey).await.unwrap().unwrap();
    assert_eq!(user.leech_slots, slots("2"));
}

async fn the_gate_records_when_a_torrent_was_approved(fixture: Fixture) {
    let (store, gate, mut follower, clock) = scene(&fixture).await;
    assert_eq!(admission(&gate).approval, Approval::ALWAYS);
    let approve = |approved| {
        let change = TorrentChange { approved: Some(approved), ..TorrentChange::default() };
        store.change_torrent(torrent_id(3), change)
    };
    approve(false).await.unwrap();
    assert_eq!(poll(&mut follower).await, [Change::TorrentAdmitted(info_hash(3))]);
    assert!(admission(&gate).approval.is_pending());
    clock.advance(Seconds(100));
    approve(true).await.unwrap();
    poll(&mut follower).await;
    let approved_at = NOW + Seconds(100);
    assert_eq!(admission(&gate).approval.since(), Some(approved_at));
    // Other changes and a reload leave that time.
    clock.advance(Seconds(100));
    let change = TorrentChange { leech_slots: Some(slots("9")), ..TorrentChange::default() };
    store.change_torrent(torrent_id(3), change).await.unwrap();
    poll(&mut follower).await;
    assert_eq!(admission(&gate).approval.since(), Some(approved_at));

    let added = store.add_pending_torrent(new_torrent(4)).await.unwrap();
    assert!(!added.approved);
    assert_eq!(store.torrent(torrent_id(4)).await.unwrap().unwrap(), added);
    poll(&mut follower).await;
    assert!(gate.torrent(&info_hash(4)).unwrap().approval.is_pending());
    // After a restart the time is unknown; pending torrents are pending.
    let fresh = Arc::new(Gate::default());
    load(fixture.store().await, fresh.clone()).await.unwrap();
    assert_eq!(fresh.torrent(&info_hash(3)).unwrap().approval.since(), Some(UnixTime(0)));
    assert!(fresh.torrent(&info_hash(4)).unwrap().approval.is_pending());
}

async fn ports_are_banned_and_allowed_by_ranges(fixture: Fixture) {
    let (store, gate, mut follower, _) = scene(&fixture).await;
    assert!(gate.allows_port(6881));
    store.ban_ports(ports("6881-6889"), "throttled – 限速").await.unwrap();
    store.ban_ports(ports("6885-6900"), "").await.unwrap();
    store.ban_ports(ports("65535"), "").await.unwrap();
    assert_eq!(poll(&mut follower).await, [Change::PortsChanged]);
    assert_eq!(gate.banned_port_count(), 21);
    assert!(!gate.allows_port(6881) && !gate.allows_port(6900) && !gate.allows_port(65535));
    store.ban_ports(ports("6881-6889"), "another reason").await.unwrap();
    assert_eq!(poll(&mut follower).await, [], "the same ports");
    assert_eq!(listed(&store).await, ["6881-6889 another reason", "6885-6900 ", "65535 "]);

    store.allow_ports(ports("6887-6888")).await.unwrap();
    assert_eq!(
        listed(&store).await,
        ["6881-6886 another reason", "6885-6886 ", "6889 another reason", "6889-6900 ", "65535 "]
    );
    assert_eq!(poll(&mut follower).await, [Change::PortsChanged]);
    assert!(gate.allows_port(6887) && gate.allows_port(6888) && !gate.allows_port(6889));
    let nothing = store.allow_ports(ports("6887")).await;
    assert!(matches!(nothing, Err(AccessError::PortsNotBanned(range)) if range == ports("6887")));
    // Concurrent changes of the same range: none bans again what another allowed.
    store.ban_ports(ports("100-200"), "").await.unwrap();
    let at_once = (0..8).map(|number| {
        let (store, range) = (store.clone(), ports(&(110 + 10 * number).to_string()));
        tokio::spawn(async move { store.allow_ports(range).await })
    });
    for allowing in at_once.collect::<Vec<_>>() {
        allowing.await.unwrap().unwrap();
    }
    poll(&mut follower).await;
    assert!((0..8).all(|number| gate.allows_port(110 + 10 * number)), "{:?}", listed(&store).await);
    assert!(!gate.allows_port(100) && !gate.allows_port(121) && !gate.allows_port(200));
    store.allow_ports(ports("1-65535")).await.unwrap();
    poll(&mut follower).await;
    assert_eq!(
        (gate.banned_port_count(), store.list_banned_ports().await.unwrap()),
        (0, Vec::<BannedPorts>::new())
    );
}

async fn changes_by_the_sites_sql_reach_the_gate(fixture: Fixture) {
    let (_, gate, mut follower, _) = scene(&fixture).await;
    let mut site = fixture.raw().await;
    site.execute("INSERT INTO banned_ports (first_port, last_port) VALUES (100, 200)").await;
    assert_eq!(poll(&mut follower).await, [Change::PortsChanged]);
    site.execute("UPDATE banned_ports SET last_port = 150").await;
    assert_eq!(poll(&mut follower).await, [Change::PortsChanged]);
    assert_eq!(gate.banned_port_count(), 51);
    site.execute("DELETE FROM banned_ports").await;
    assert_eq!(poll(&mut follower).await, [Change::PortsChanged]);
    assert_eq!(gate.banned_port_count(), 0);

    let off = fixture.pick("0", "FALSE", "0");
    site.execute("UPDATE users SET leech_slots = 4 WHERE id = 7").await;
    site.execute(&format!("UPDATE torrents SET leech_slots = -1, approved = {off} WHERE id = 3")).await;
    poll(&mut follower).await;
    let now = admission(&gate);
    assert_eq!((now.user_slots, now.torrent_slots), (slots("4"), LeechSlots::UNLIMITED));
    assert!(now.approval.is_pending());

    for wrong in [
        "UPDATE users SET leech_slots = -2",
        "UPDATE torrents SET leech_slots = 1000001",
        "INSERT INTO banned_ports (first_port, last_port) VALUES (0, 5)",
        "INSERT INTO banned_ports (first_port, last_port) VALUES (5, 4)",
        "INSERT INTO banned_ports (first_port, last_port) VALUES (5, 65536)",
    ] {
        assert!(site.try_execute(wrong).await.is_err(), "{wrong}");
    }
}

on_every_database!(
    slots_of_users_and_torrents_reach_the_gate,
    a_change_leaves_other_fields_unchanged,
    the_gate_records_when_a_torrent_was_approved,
    ports_are_banned_and_allowed_by_ranges,
    changes_by_the_sites_sql_reach_the_gate,
);

/// The new columns are added with their defaults.
#[tokio::test]
async fn an_older_database_is_migrated() {
    for fixture in [Fixture::sqlite(), Fixture::postgres(), Fixture::mariadb()] {
        let (store, ..) = scene(&fixture).await;
        store.close().await;
        let mut site = fixture.raw().await;
        for undo in [
            "DROP TABLE api_sessions",
            "DROP TABLE banned_ports",
            "DROP TABLE installation",
            "DROP INDEX torrents_by_approval",
            "DELETE FROM access_migrations WHERE version >= 5",
            "ALTER TABLE users DROP COLUMN leech_slots",
            "ALTER TABLE users DROP COLUMN name",
            "ALTER TABLE users DROP COLUMN sandbox",
            "ALTER TABLE torrents DROP COLUMN leech_slots",
            "ALTER TABLE torrents DROP COLUMN approved",
        ] {
            // MariaDB does not drop a column with a named constraint.
            let rule = match undo {
                "ALTER TABLE users DROP COLUMN leech_slots" => {
                    "ALTER TABLE users DROP CONSTRAINT user_leech_slots_are_a_number"
                }
                "ALTER TABLE users DROP COLUMN name" => {
                    "ALTER TABLE users DROP CONSTRAINT user_name_is_1_to_100_characters"
                }
                "ALTER TABLE users DROP COLUMN sandbox" => {
                    "ALTER TABLE users DROP CONSTRAINT user_sandbox_is_0_or_1"
                }
                "ALTER TABLE torrents DROP COLUMN leech_slots" => {
                    "ALTER TABLE torrents DROP CONSTRAINT torrent_leech_slots_are_a_number"
                }
                "ALTER TABLE torrents DROP COLUMN approved" => {
                    "ALTER TABLE torrents DROP CONSTRAINT approved_is_0_or_1"
                }
                _ => "",
            };
            if matches!(fixture, Fixture::MariaDb(_)) && !rule.is_empty() {
                site.execute(rule).await;
            }
            let undo = match (undo, &fixture) {
                ("DROP INDEX torrents_by_approval", Fixture::MariaDb(_)) => {
                    "ALTER TABLE torrents DROP INDEX torrents_by_approval"
                }
                _ => undo,
            };
            site.execute(undo).await;
        }
        let store = fixture.store().await;
        let user = store.user(user_id(7)).await.unwrap().unwrap();
        let torrent = store.torrent(torrent_id(3)).await.unwrap().unwrap();
        assert_eq!(
            (user.leech_slots, torrent.leech_slots, torrent.approved),
            (LeechSlots::DEFAULT, LeechSlots::DEFAULT, true)
        );
        assert_eq!(store.list_banned_ports().await.unwrap(), []);
    }
}

//! Scripted faults: a gateway is killed, Redis is unreachable, a network loses packets.

use std::process::Command;
use std::time::Duration;

use bench::friends;
use domain::clock::{Clock, SystemClock};

use crate::many_gateways::clients::Clients;
use crate::many_gateways::gateways::{
    BOUNDS, Gateways, HEARTBEAT_S, LEASE_S, MISSED_MAX, PATIENCE, PENDING_S, Store,
};

/// Friend of all users.
pub const VIEWER: u64 = 1;
const SECOND_VIEWER: u64 = 2;
pub const ANN: u64 = 10;
pub const BOB: u64 = 11;

/// Three gateways; two viewers are friends of Ann and Bob.
pub fn scene(store: Store) -> (Gateways, Clients) {
    let gateways = Gateways::start(store);
    let pairs = [(VIEWER, ANN), (VIEWER, BOB), (SECOND_VIEWER, ANN), (SECOND_VIEWER, BOB)];
    friends::write_to(&gateways.database, &pairs).unwrap();
    let clients = Clients::new(&gateways);
    (gateways, clients)
}

/// What any program reads.
pub fn public_keys(gateways: &Gateways, user: u64) -> [String; 3] {
    let store = gateways.store.get();
    ["presence", "connection", "heartbeat"].map(|name| store.cli(&["GET", &store.key(name, user)]))
}

#[track_caller]
fn until_status_key(gateways: &Gateways, clients: &mut Clients, user: u64, status: &str) {
    let what = format!("presence:{user} to be {status:?}");
    clients.until(&what, PATIENCE, |_| public_keys(gateways, user)[0] == status);
}

fn a_killed_gateway(store: Store) {
    let (mut gateways, mut clients) = scene(store);
    let viewer = clients.connect(VIEWER, 0, &gateways, 1);
    clients.connect(ANN, 0, &gateways, 0);
    // Bob is at both.
    clients.connect(BOB, 0, &gateways, 0);
    clients.connect(BOB, 1, &gateways, 2);
    clients.until_sees(viewer, ANN, "online");
    clients.until_sees(viewer, BOB, "online");
    until_status_key(&gateways, &mut clients, ANN, "online");
    let [_, connection, heartbeat] = public_keys(&gateways, ANN);
    assert_eq!(connection, gateways.name(0));
    let (heard, now) = (heartbeat.parse::<u64>().unwrap(), u64::from(SystemClock.now().0));
    assert!(heard <= now && now <= heard + HEARTBEAT_S * MISSED_MAX, "{heard}, {now}");
    let ttl: u64 = {
        let store = gateways.store.get();
        store.cli(&["TTL", &store.key("presence", ANN)]).parse().unwrap()
    };
    assert!((1..=HEARTBEAT_S * MISSED_MAX).contains(&ttl), "{ttl}");
    let mut both = [gateways.name(0), gateways.name(2)];
    both.sort();
    clients
        .until("Bob to be at two gateways", PATIENCE, |_| public_keys(&gateways, BOB)[1] == both.join(","));

    let killed_at = clients.now();
    gateways.servers[0].get_mut().kill();
    let pending_at = clients.until_sees(viewer, ANN, "pending");
    assert!(pending_at - killed_at <= BOUNDS.lease, "pending after {} ms", pending_at - killed_at);
    assert_eq!(public_keys(&gateways, ANN), ["", "", ""], "P19: pending is not online");
    let offline_at = clients.until_sees(viewer, ANN, "offline");
    let pending_ms = offline_at - pending_at;
    assert!(
        (PENDING_S * 1_000 - 1_000..=BOUNDS.pending).contains(&pending_ms),
        "offline after {pending_ms} ms"
    );
    assert_eq!(public_keys(&gateways, ANN), ["", "", ""]);
    // A user on two gateways was never offline.
    let of_bob: Vec<_> = clients.all_shown(viewer, BOB).filter(|shown| shown.at >= killed_at).collect();
    assert!(
        of_bob.iter().all(|shown| !["offline", "pending"].contains(&shown.status.as_str())),
        "killed at {killed_at}: {of_bob:?}"
    );
    assert_eq!(public_keys(&gateways, BOB)[1], gateways.name(2));
}

#[test]
fn p15_users_of_a_killed_gateway_are_pending_then_offline_on_time_in_the_public_keys_too() {
    a_killed_gateway(Store::single());
}

#[test]
fn p16_users_of_a_killed_gateway_are_pending_then_offline_on_time_on_a_cluster() {
    a_killed_gateway(Store::cluster());
}

/// Longer than lease and TTL: remote users expire meanwhile, and no connection is closed.
#[test]
fn p15_a_redis_outage_longer_than_the_ttl_closes_no_connection_and_presence_recovers() {
    let (mut gateways, mut clients) = scene(Store::single());
    let neighbour = clients.connect(VIEWER, 0, &gateways, 0);
    let other = clients.connect(SECOND_VIEWER, 0, &gateways, 1);
    let ann = clients.connect(ANN, 0, &gateways, 0);
    clients.until_sees(neighbour, ANN, "online");
    clients.until_sees(other, ANN, "online");

    let gone_at = clients.now();
    if let Store::Single(redis) = gateways.store.get_mut() {
        redis.kill();
    }
    clients.declare(ann, "busy");
    clients.until_sees_within(neighbour, ANN, "busy", Duration::from_secs(5));
    // Bob connects while the other gateway cannot be reached.
    let bob = clients.connect(BOB, 0, &gateways, 1);
    clients.until_sees_within(other, BOB, "online", Duration::from_secs(5));
    let given_up_at = clients.until_sees(other, ANN, "pending");
    assert!(given_up_at - gone_at <= BOUNDS.ttl, "believed for {} ms", given_up_at - gone_at);
    clients.listen_for(Duration::from_secs(LEASE_S));

    if let Store::Single(redis) = gateways.store.get_mut() {
        redis.restart();
    }
    let back_at = clients.now();
    let seen_at = clients.until_sees(other, ANN, "busy").max(clients.until_sees(neighbour, BOB, "online"));
    assert!(seen_at <= back_at + BOUNDS.recovery, "after {} ms", seen_at - back_at);
    until_status_key(&gateways, &mut clients, ANN, "busy");
    assert!(clients.lost.is_empty(), "{:?}", clients.lost);
    // The neighbour saw the user neither offline nor pending.
    let of_ann: Vec<&str> = clients.all_shown(neighbour, ANN).map(|shown| shown.status.as_str()).collect();
    assert!(!of_ann[1..].iter().any(|status| ["offline", "pending"].contains(status)), "{of_ann:?}");
    clients.close(bob, true);
    clients.until_sees(neighbour, BOB, "offline");
}

/// Set for the copy of this program that runs in a network of its own.
const INSIDE: &str = "GATEWAYS_TEST_IN_A_NETWORK_OF_ITS_OWN";

/// Loopback is the machine's, and others use it: so this test starts itself again in a network of its own, where it may
/// lose what packets it likes.
#[test]
fn p15_a_gateway_that_loses_packets_to_redis_leaves_no_stale_users_and_recovers() {
    if std::env::var_os(INSIDE).is_some() {
        lose_packets();
        return;
    }
    let script = "ip link set lo up && iptables -A INPUT -s 192.0.2.1 -j DROP";
    let tried = Command::new("unshare").args(["--net", "sh", "-c", script]).output();
    if !tried.as_ref().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this machine cannot drop packets (unshare, ip, iptables): {tried:?}");
        return;
    }
    let test = "many_gateways::scenarios::p15_a_gateway_that_loses_packets_to_redis_leaves_no_stale_users_and_recovers";
    let output = Command::new("unshare")
        .args(["--net", "sh", "-c", &format!("{script} && exec \"$@\""), "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--include-ignored"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success() && said[0].contains("1 passed"), "{}", said.concat());
}

fn lose_packets() {
    let (gateways, mut clients) = scene(Store::single());
    let viewer = clients.connect(VIEWER, 0, &gateways, 1);
    let inside = clients.connect(SECOND_VIEWER, 0, &gateways, 0);
    let ann = clients.connect(ANN, 0, &gateways, 0);
    let bob = clients.connect(BOB, 0, &gateways, 1);
    for (watcher, user) in [(viewer, ANN), (viewer, BOB), (inside, ANN), (inside, BOB)] {
        clients.until_sees(watcher, user, "online");
    }
    let port = gateways.networks[0].address().port().to_string();
    let rule = |action: &str, direction: &str| {
        let args = [action, "INPUT", "-p", "tcp", direction, &port, "-j", "DROP"];
        assert!(Command::new("iptables").args(args).status().unwrap().success());
    };
    let lost_at = clients.now();
    for direction in ["--dport", "--sport"] {
        rule("-A", direction);
    }
    // Each side gives up the other, on time, and keeps its own.
    let pending_at = clients.until_sees(viewer, ANN, "pending");
    assert!(pending_at - lost_at <= BOUNDS.lease, "after {} ms", pending_at - lost_at);
    let pending_at = clients.until_sees(inside, BOB, "pending");
    assert!(pending_at - lost_at <= BOUNDS.ttl, "after {} ms", pending_at - lost_at);
    assert_eq!((clients.sees(viewer, BOB), clients.sees(inside, ANN)), ("online", "online"));
    // Ann disconnects meanwhile: the gateway's old state must not come back with it.
    clients.close(ann, true);
    clients.until_sees(inside, ANN, "offline");
    clients.until_sees(viewer, ANN, "offline");
    for direction in ["--dport", "--sport"] {
        rule("-D", direction);
    }
    let back_at = clients.now();
    clients.until_sees(inside, BOB, "online");
    clients.close(bob, false);
    clients.until_sees(inside, BOB, "offline");
    clients.listen_for(Duration::from_secs(LEASE_S));
    let ghosts: Vec<_> = clients.all_shown(viewer, ANN).filter(|shown| shown.at > back_at).collect();
    assert!(ghosts.iter().all(|shown| shown.status == "offline"), "{ghosts:?}");
    assert_eq!(public_keys(&gateways, ANN), ["", "", ""]);
    assert!(clients.lost.is_empty(), "{:?}", clients.lost);
}

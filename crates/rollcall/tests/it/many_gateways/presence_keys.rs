//! `EXISTS presence:<id>` means online for other programs (P19): also where every gateway is killed, and after a restart.

use std::time::Duration;

use crate::many_gateways::clients::Clients;
use crate::many_gateways::gateways::{BOUNDS, COUNT, Gateways, HEARTBEAT_S, MISSED_MAX, PATIENCE, Store};
use crate::many_gateways::scenarios::{ANN, BOB, VIEWER, public_keys, scene};

/// How long the keys live unless they are refreshed.
const KEYS_MS: u64 = HEARTBEAT_S * MISSED_MAX * 1_000;

/// In how many ms the keys of a person expire; none of them may outlive the others.
fn keys_expire_in(gateways: &Gateways, user: u64) -> Option<u64> {
    let store = gateways.store.get();
    let ttl = |name: &str| store.cli(&["PTTL", &store.key(name, user)]).parse::<i64>().unwrap();
    let longest = ["presence", "connection", "heartbeat"].map(ttl).into_iter().max().unwrap();
    u64::try_from(longest).ok()
}

#[track_caller]
fn until_keys(gateways: &Gateways, clients: &mut Clients, user: u64, status: &str) {
    let what = format!("presence:{user} to be {status:?}");
    clients.until(&what, PATIENCE, |_| public_keys(gateways, user)[0] == status);
}

/// Ann's device is in the background, where it may be silent for half an hour.
fn ann_in_the_background(gateways: &Gateways, clients: &mut Clients) {
    let ann = clients.connect(ANN, 0, gateways, 0);
    clients.rpc(ann, "app.state", r#"{"state":"background"}"#);
    until_keys(gateways, clients, ANN, "online");
    let expire_in = keys_expire_in(gateways, ANN).unwrap();
    assert!(expire_in <= KEYS_MS, "{expire_in} ms");
}

fn killed_with_the_last_gateway(store: Store) {
    let (mut gateways, mut clients) = scene(store);
    let viewer = clients.connect(VIEWER, 0, &gateways, 1);
    ann_in_the_background(&gateways, &mut clients);
    clients.until_sees(viewer, ANN, "online");
    // While her gateway lives the keys are refreshed: she is online for longer than they live.
    let since = clients.now();
    while clients.now() < since + KEYS_MS + KEYS_MS / 2 {
        clients.listen_for(Duration::from_millis(200));
        assert!(keys_expire_in(&gateways, ANN).is_some(), "after {} ms", clients.now() - since);
    }

    for gateway in (0..COUNT).rev() {
        gateways.servers[gateway].get_mut().kill();
    }
    let expire_in = keys_expire_in(&gateways, ANN).unwrap();
    assert!(expire_in <= KEYS_MS, "{expire_in} ms");
    until_keys(&gateways, &mut clients, ANN, "");
    assert_eq!(public_keys(&gateways, ANN), ["", "", ""]);

    // Users that a gateway restores are pending, and an expired key stays absent.
    gateways.servers[1].get_mut().start_again();
    let viewer = clients.connect(VIEWER, 1, &gateways, 1);
    clients.until_sees(viewer, ANN, "pending");
    assert_eq!(public_keys(&gateways, ANN), ["", "", ""]);
    clients.until_sees_within(viewer, ANN, "offline", Duration::from_millis(BOUNDS.lease + BOUNDS.pending));
    assert_eq!(public_keys(&gateways, ANN), ["", "", ""]);
    // Who comes is online.
    clients.connect(BOB, 0, &gateways, 1);
    until_keys(&gateways, &mut clients, BOB, "online");
}

#[test]
fn p19_keys_of_a_device_in_the_background_die_with_the_last_gateway_and_a_restart_revives_none() {
    killed_with_the_last_gateway(Store::single());
}

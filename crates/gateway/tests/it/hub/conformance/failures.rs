//! Gateways that die or leave, and a Redis that goes away.

use std::time::Duration;

use domain::Seconds;
use presence::Policy;

use super::fixture::{Gateways, Kind, sees};
use crate::hub::fixture::{Client, until};

impl Gateways {
    /// A gateway dies: its tasks end, and it notifies no other gateway.
    fn kill(&mut self, place: usize) {
        let place = self.places.remove(place);
        place.hub.abort();
    }
}

pub async fn users_of_a_dead_gateway_are_pending_and_then_offline(gateways: &mut Gateways) {
    let [one, two, three] = gateways.users().await;
    let mut watcher = gateways.connect(0, one, "a").await;
    gateways.connect(1, two, "a").await;
    gateways.connect(1, three, "a").await;
    sees(&mut watcher, two, "online").await;
    sees(&mut watcher, three, "online").await;
    gateways.kill(1);
    sees(&mut watcher, two, "pending").await;
    let back = gateways.connect(1, three, "a").await;
    sees(&mut watcher, three, "online").await;
    sees(&mut watcher, two, "offline").await;
    assert_eq!(watcher.sees(three), "online");
    back.close();
    watcher.close();
    gateways.add_place().await;
}

pub async fn users_of_a_gateway_that_left_are_pending_unless_they_reconnected(gateways: &mut Gateways) {
    let [one, two, three] = gateways.users().await;
    let mut watcher = gateways.connect(0, one, "a").await;
    gateways.connect(2, two, "a").await;
    gateways.connect(2, three, "a").await;
    sees(&mut watcher, two, "online").await;
    sees(&mut watcher, three, "online").await;
    // As when connections are closed, and clients reconnect to another gateway before this one ends.
    let leaving = gateways.places.remove(2);
    leaving.hub.prepare_shutdown();
    let moved = gateways.connect(1, three, "a").await;
    watcher.received.clear();
    leaving.hub.stop().await;
    sees(&mut watcher, two, "pending").await;
    sees(&mut watcher, two, "offline").await;
    let of_three = format!("\"id\":\"{three}\"");
    let is_of_three = |message: &serde_json::Value| message.to_string().contains(&of_three);
    let flaps = watcher.received.iter().filter(|message| is_of_three(message));
    for message in flaps {
        assert!(
            !message.to_string().contains("pending"),
            "a reconnect at another gateway does not flap: {message}"
        );
    }
    assert_eq!(watcher.sees(three), "online");
    moved.close();
    watcher.close();
    gateways.add_place().await;
}

/// Keeps connections alive while something is waited for.
async fn until_with(alive: &[&Client], what: &str, mut is_so: impl FnMut() -> bool) {
    until(what, || {
        for client in alive {
            client.hub.record_activity(client.conn);
        }
        is_so()
    })
    .await;
}

/// Devices are offline after three seconds of silence.
fn hasty() -> Policy {
    Policy { heartbeat: Seconds(1), missed_max: 3, probe: Seconds(1), probes_max: 1, ..Policy::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p15_while_redis_is_down_local_users_are_shown_and_remote_ones_are_pending() {
    let mut gateways = Gateways::with(Kind::Single, hasty()).await;
    let [one, two, three] = gateways.users().await;
    let mut watcher = gateways.connect(0, one, "a").await;
    let here = gateways.connect(0, two, "a").await;
    let there = gateways.connect(1, three, "a").await;
    let mut also_there = gateways.connect(1, one, "b").await;
    sees(&mut watcher, two, "online").await;
    sees(&mut watcher, three, "online").await;
    tokio::task::block_in_place(|| gateways.server().kill());

    // Users of the same gateway see each other as before, and do not wait.
    here.set_status("busy").await;
    assert_eq!(watcher.sees(two), "busy");
    let late = gateways.connect(0, two, "late").await;
    let eyes = [watcher.conn, also_there.conn];
    let keep_alive = |gateways: &Gateways| {
        gateways.hub(0).record_activity(eyes[0]);
        gateways.hub(1).record_activity(eyes[1]);
    };
    until_with(
        &[&here, &there, &late],
        "who is elsewhere is believed no longer than their last word",
        || {
            keep_alive(&gateways);
            watcher.sees(three) == "pending"
        },
    )
    .await;
    assert_eq!((watcher.sees(two).as_str(), also_there.sees(three).as_str()), ("busy", "online"));
    assert!(gateways.places[0].counters.sync.outages.get() > 0);
    assert!(gateways.places[0].counters.sync.expired.get() > 0);

    tokio::task::block_in_place(|| gateways.server().restart());
    until_with(&[&here, &there, &late], "all gateways agree again", || {
        keep_alive(&gateways);
        watcher.sees(three) == "online" && also_there.sees(two) == "busy"
    })
    .await;
    late.close();
    here.close();
    until_with(&[&there], "and receives changes", || {
        keep_alive(&gateways);
        also_there.sees(two) == "offline"
    })
    .await;
    drop((watcher, there, also_there));
    gateways.end().await;
}

/// A device's silence is detected by its own gateway: it is not taken for the death of that gateway.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p7_a_silent_user_is_offline_and_never_pending() {
    let gateways = Gateways::with(Kind::Single, hasty()).await;
    let [one, two, three, four] = gateways.users().await;
    let mut watcher = gateways.connect(0, one, "a").await;
    for (place, silent) in [(1, two), (2, three), (1, four)] {
        gateways.connect(place, silent, "a").await;
        sees(&mut watcher, silent, "online").await;
    }
    let watching = watcher.conn;
    until("all are gone", || {
        gateways.hub(0).record_activity(watching);
        [two, three, four].iter().all(|silent| watcher.sees(*silent) == "offline")
    })
    .await;
    assert!(
        watcher.received.iter().all(|message| !message.to_string().contains("pending")),
        "{:?}",
        watcher.received
    );
    drop(watcher);
    gateways.end().await;
}

/// A gateway that was declared dead returns with the sessions that are still active, and no others: those may
/// have moved to another gateway.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_was_declared_dead_returns_with_live_sessions() {
    let mut gateways =
        Gateways::with(Kind::Single, Policy { pending: Seconds(60), ..Policy::default() }).await;
    let [one, two, three] = gateways.users().await;
    let mut watcher = gateways.connect(0, one, "a").await;
    let alive = gateways.connect(1, two, "a").await;
    let silent = gateways.connect(1, three, "a").await;
    sees(&mut watcher, two, "online").await;
    sees(&mut watcher, three, "online").await;
    let taken_for_dead = gateways.places[1].store.as_ref().unwrap().node();
    // The second renewal follows when the gateway knows of the first.
    for _ in 0..2 {
        let server = gateways.server();
        let lease =
            || tokio::task::block_in_place(|| server.cli(&["ZSCORE", "{p:nodes}", taken_for_dead.as_str()]));
        let before = lease();
        until("the lease is renewed", || lease() != before).await;
    }
    tokio::task::block_in_place(|| {
        let server = gateways.server();
        let now = server.cli(&["TIME"]);
        let now_s = now.lines().next().unwrap();
        server.cli(&["ZADD", "{p:nodes}:gone", &format!("{now_s}000"), taken_for_dead.as_str()]);
        server.cli(&["ZREM", "{p:nodes}", taken_for_dead.as_str()]);
    });
    sees(&mut watcher, two, "pending").await;
    sees(&mut watcher, three, "pending").await;
    until_with(&[&alive], "online again after activity", || watcher.sees(two) == "online").await;
    assert_eq!(watcher.sees(three), "pending", "without activity");
    until_with(&[&silent], "until activity", || watcher.sees(three) == "online").await;
    assert!(gateways.places[1].counters.sync.rejoins.get() > 0);
    alive.close();
    sees(&mut watcher, two, "offline").await;
    drop((watcher, silent));
    gateways.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_outage_of_redis_is_not_visible() {
    let mut gateways = Gateways::new(Kind::Single).await;
    let [one, two] = gateways.users().await;
    let mut watcher = gateways.connect(0, one, "a").await;
    let other = gateways.connect(1, two, "a").await;
    sees(&mut watcher, two, "online").await;
    watcher.received.clear();
    tokio::task::block_in_place(|| gateways.server().kill());
    tokio::task::block_in_place(|| gateways.server().restart());
    let keep_alive = |client: &Client| client.hub.record_activity(client.conn);
    other.set_status("busy").await;
    until("the change arrives", || {
        keep_alive(&watcher);
        keep_alive(&other);
        watcher.sees(two) == "busy"
    })
    .await;
    let changes: Vec<&serde_json::Value> = watcher
        .received
        .iter()
        .flat_map(|message| message["users"].as_array().into_iter().flatten())
        .collect();
    assert!(changes.iter().all(|change| change["status"] != "offline"), "{changes:?}");
    tokio::time::timeout(Duration::from_secs(30), gateways.end()).await.unwrap();
}

//! Gateways that die or leave, and a Redis that goes away.

use std::time::Duration;

use domain::Seconds;
use presence::Policy;

use super::stage::{Kind, Stage, sees};
use crate::hub::tests::rig::{Client, until};

impl Stage {
    /// A gateway dies: nothing of it goes on, and it tells nobody.
    fn kill(&mut self, place: usize) {
        let place = self.places.remove(place);
        place.hub.stop.send_replace(true);
    }
}

pub async fn who_was_at_a_gateway_that_died_is_pending_and_then_offline(stage: &mut Stage) {
    let [one, two, three] = stage.circle().await;
    let mut watcher = stage.connect(0, one, "a").await;
    stage.connect(1, two, "a").await;
    stage.connect(1, three, "a").await;
    sees(&mut watcher, two, "online").await;
    sees(&mut watcher, three, "online").await;
    stage.kill(1);
    sees(&mut watcher, two, "pending").await;
    let back = stage.connect(1, three, "a").await;
    sees(&mut watcher, three, "online").await;
    sees(&mut watcher, two, "offline").await;
    assert_eq!(watcher.sees(three), "online");
    back.close();
    watcher.close();
    stage.add_place().await;
}

pub async fn who_was_at_a_gateway_that_left_is_pending_unless_they_came_elsewhere(stage: &mut Stage) {
    let [one, two, three] = stage.circle().await;
    let mut watcher = stage.connect(0, one, "a").await;
    stage.connect(2, two, "a").await;
    stage.connect(2, three, "a").await;
    sees(&mut watcher, two, "online").await;
    sees(&mut watcher, three, "online").await;
    // As when connections are sent away, and come back elsewhere before the gateway ends.
    let leaving = stage.places.remove(2);
    leaving.hub.begin_to_stop();
    let moved = stage.connect(1, three, "a").await;
    watcher.heard.clear();
    leaving.hub.stop().await;
    sees(&mut watcher, two, "pending").await;
    sees(&mut watcher, two, "offline").await;
    let of_three = format!("\"id\":\"{three}\"");
    let is_of_three = |heard: &serde_json::Value| heard.to_string().contains(&of_three);
    let flaps = watcher.heard.iter().filter(|heard| is_of_three(heard));
    for heard in flaps {
        assert!(!heard.to_string().contains("pending"), "who came elsewhere does not flap: {heard}");
    }
    assert_eq!(watcher.sees(three), "online");
    moved.close();
    watcher.close();
    stage.add_place().await;
}

/// Keeps connections alive while something is waited for.
async fn until_with(alive: &[&Client], what: &str, mut is_so: impl FnMut() -> bool) {
    until(what, || {
        for client in alive {
            client.hub.heard(client.conn);
        }
        is_so()
    })
    .await;
}

/// Devices are gone after three seconds of silence.
fn hasty() -> Policy {
    Policy { heartbeat: Seconds(1), missed_max: 3, probe: Seconds(1), probes_max: 1, ..Policy::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p15_while_redis_is_away_those_here_are_shown_and_those_elsewhere_are_pending() {
    let mut stage = Stage::with(Kind::Single, hasty()).await;
    let [one, two, three] = stage.circle().await;
    let mut watcher = stage.connect(0, one, "a").await;
    let here = stage.connect(0, two, "a").await;
    let there = stage.connect(1, three, "a").await;
    let mut also_there = stage.connect(1, one, "b").await;
    sees(&mut watcher, two, "online").await;
    sees(&mut watcher, three, "online").await;
    tokio::task::block_in_place(|| stage.server().kill());

    // Those who are here see each other as ever, and are not kept waiting.
    here.set_status("busy").await;
    assert_eq!(watcher.sees(two), "busy");
    let late = stage.connect(0, two, "late").await;
    let eyes = [watcher.conn, also_there.conn];
    let heard = |stage: &Stage| {
        stage.hub(0).heard(eyes[0]);
        stage.hub(1).heard(eyes[1]);
    };
    until_with(
        &[&here, &there, &late],
        "who is elsewhere is believed no longer than their last word",
        || {
            heard(&stage);
            watcher.sees(three) == "pending"
        },
    )
    .await;
    assert_eq!((watcher.sees(two).as_str(), also_there.sees(three).as_str()), ("busy", "online"));
    assert!(stage.places[0].counters.sharing.outages.get() > 0);
    assert!(stage.places[0].counters.sharing.lost.get() > 0);

    tokio::task::block_in_place(|| stage.server().restart());
    until_with(&[&here, &there, &late], "everybody agrees again", || {
        heard(&stage);
        watcher.sees(three) == "online" && also_there.sees(two) == "busy"
    })
    .await;
    late.close();
    here.close();
    until_with(&[&there], "and hears of what happens", || {
        heard(&stage);
        also_there.sees(two) == "offline"
    })
    .await;
    drop((watcher, there, also_there));
    stage.end().await;
}

/// Silence is for the own gateway to find out: nobody takes it for the death of that gateway.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p7_who_is_silent_for_too_long_is_offline_and_never_pending() {
    let stage = Stage::with(Kind::Single, hasty()).await;
    let [one, two, three, four] = stage.circle().await;
    let mut watcher = stage.connect(0, one, "a").await;
    for (place, silent) in [(1, two), (2, three), (1, four)] {
        stage.connect(place, silent, "a").await;
        sees(&mut watcher, silent, "online").await;
    }
    let watching = watcher.conn;
    until("all are gone", || {
        stage.hub(0).heard(watching);
        [two, three, four].iter().all(|silent| watcher.sees(*silent) == "offline")
    })
    .await;
    assert!(watcher.heard.iter().all(|heard| !heard.to_string().contains("pending")), "{:?}", watcher.heard);
    drop(watcher);
    stage.end().await;
}

/// A gateway that was taken for dead comes back with those who are still heard, and with nobody else: the others may have
/// gone elsewhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_was_taken_for_dead_brings_back_who_is_heard() {
    let mut stage = Stage::with(Kind::Single, Policy { pending: Seconds(60), ..Policy::default() }).await;
    let [one, two, three] = stage.circle().await;
    let mut watcher = stage.connect(0, one, "a").await;
    let alive = stage.connect(1, two, "a").await;
    let silent = stage.connect(1, three, "a").await;
    sees(&mut watcher, two, "online").await;
    sees(&mut watcher, three, "online").await;
    let hub = stage.hub(1).clone();
    let sharing = hub.outside.sharing.as_ref().unwrap();
    let connected_at = hub.now();
    until("the gateway was known to be alive after that", || sharing.contact_at() > connected_at).await;
    let taken_for_dead = sharing.register.node();
    tokio::task::block_in_place(|| {
        let server = stage.server();
        let now = server.cli(&["TIME"]);
        let now_s = now.lines().next().unwrap();
        server.cli(&["ZADD", "{p:nodes}:gone", &format!("{now_s}000"), taken_for_dead.as_str()]);
        server.cli(&["ZREM", "{p:nodes}", taken_for_dead.as_str()]);
    });
    sees(&mut watcher, two, "pending").await;
    sees(&mut watcher, three, "pending").await;
    until_with(&[&alive], "who is heard is online again", || watcher.sees(two) == "online").await;
    assert_eq!(watcher.sees(three), "pending", "nobody knows whether they are still there");
    until_with(&[&silent], "until they are heard", || watcher.sees(three) == "online").await;
    assert!(stage.places[1].counters.sharing.rejoins.get() > 0);
    alive.close();
    sees(&mut watcher, two, "offline").await;
    drop((watcher, silent));
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_loss_of_redis_is_not_seen_by_anybody() {
    let mut stage = Stage::new(Kind::Single).await;
    let [one, two] = stage.circle().await;
    let mut watcher = stage.connect(0, one, "a").await;
    let other = stage.connect(1, two, "a").await;
    sees(&mut watcher, two, "online").await;
    watcher.heard.clear();
    tokio::task::block_in_place(|| stage.server().kill());
    tokio::task::block_in_place(|| stage.server().restart());
    let heard = |client: &Client| client.hub.heard(client.conn);
    other.set_status("busy").await;
    until("the change arrives", || {
        heard(&watcher);
        heard(&other);
        watcher.sees(two) == "busy"
    })
    .await;
    let told: Vec<&serde_json::Value> =
        watcher.heard.iter().flat_map(|heard| heard["users"].as_array().into_iter().flatten()).collect();
    assert!(told.iter().all(|told| told["status"] != "offline"), "{told:?}");
    tokio::time::timeout(Duration::from_secs(30), stage.end()).await.unwrap();
}

//! What the register has of somebody is wrong, old or lost, and is mended.

use domain::Seconds;
use presence::{Policy, Status};

use super::stage::{Kind, Stage, now, sees};
use crate::hub::tests::rig::{until, user};

impl Stage {
    async fn redis(&mut self, command: &[&str]) -> String {
        tokio::task::block_in_place(|| self.server().cli(command))
    }

    fn node(&self, place: usize) -> String {
        self.hub(place).register().unwrap().node().as_str().to_owned()
    }
}

fn record(number: u64) -> String {
    format!("p:u:{{{number}}}")
}

/// Nobody has to give a sign of life for it: they are connected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_here_and_was_taken_out_of_the_register_is_published_again() {
    let mut stage = Stage::new(Kind::Single).await;
    let [one, two] = stage.circle().await;
    let mut watcher = stage.connect(0, one, "a").await;
    let other = stage.connect(1, two, "a").await;
    sees(&mut watcher, two, "online").await;
    stage.settled().await;
    let part = format!("n:{}", stage.node(1));
    assert_eq!(stage.redis(&["HDEL", &record(two), &part]).await.trim(), "1");
    stage.redis(&["HINCRBY", &record(two), "o", "1"]).await;
    stage.hub(1).ask_all_again();
    let mended = stage.places[1].counters.clone();
    until("the gateway sees that its part is missing", || mended.sharing.mended.get() > 0).await;
    let server = stage.server();
    until("it is there again", || {
        tokio::task::block_in_place(|| server.cli(&["HEXISTS", &record(two), &part])).trim() == "1"
    })
    .await;
    assert_eq!(mended.sharing.mended.get(), 1, "once is enough");
    sees(&mut watcher, two, "online").await;
    drop((watcher, other));
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p15_when_redis_loses_its_data_nobody_comes_again() {
    let mut stage = Stage::new(Kind::Single).await;
    let [one, two] = stage.circle().await;
    let mut watcher = stage.connect(0, one, "a").await;
    let other = stage.connect(1, two, "a").await;
    sees(&mut watcher, two, "online").await;
    stage.settled().await;
    stage.redis(&["FLUSHALL"]).await;
    let server = stage.server();
    until("they are published again", || {
        other.hub.heard(other.conn);
        tokio::task::block_in_place(|| server.cli(&["EXISTS", &record(two)])).trim() == "1"
    })
    .await;
    other.close();
    sees(&mut watcher, two, "offline").await;
    let mut kinds = Vec::new();
    for _ in 0..500 {
        stage.write_down().await;
        let history = stage.people.history(user(two), None, 20).await.unwrap();
        kinds = history.iter().map(|one| one.occurrence.kind).collect();
        if kinds.contains(&people::OccurrenceKind::Left) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(kinds.len(), 4, "they came and went, and changed twice by it: {kinds:?}");
    drop(watcher);
    stage.end().await;
}

/// The last sign of life of who is here is written now and then, as the register's version of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p11_the_last_sign_of_life_is_written_while_people_are_here() {
    let policy = Policy { remember: Seconds(1), ..Policy::default() };
    let stage = Stage::with(Kind::Single, policy).await;
    let [one, two] = stage.circle().await;
    let (seen, hidden) = (stage.connect(0, one, "a").await, stage.connect(1, two, "a").await);
    hidden.set_status("invisible").await;
    stage.settled().await;
    stage.write_down().await;
    let last_seen = async |number: u64| {
        let here = stage.people.here(None, 10).await.unwrap();
        here.into_iter().find(|one| one.user == user(number)).and_then(|one| one.last_seen)
    };
    let (since, hid_at) = (last_seen(one).await.unwrap(), last_seen(two).await);
    for _ in 0..3_000 {
        seen.hub.heard(seen.conn);
        hidden.hub.heard(hidden.conn);
        stage.write_down().await;
        if last_seen(one).await.unwrap().0 > since.0 + 1 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(last_seen(one).await.unwrap().0 > since.0 + 1, "{since:?}");
    assert_eq!(last_seen(two).await, hid_at, "who hides leaves no trace");
    drop((seen, hidden));
    stage.end().await;
}

/// All gateways were down for longer than anybody is believed, and nobody has cleared up yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p15_a_part_that_has_run_out_is_shown_to_nobody() {
    let mut stage = Stage::with(Kind::Single, Policy { pending: Seconds(60), ..Policy::default() }).await;
    let [one, two] = stage.circle().await;
    let sign = now().0 - 100;
    let part = format!("-1 {} {sign} 90 - cf1old", u64::from(sign + 90) * 1000);
    for gone in [two, 4_000] {
        stage.redis(&["HSET", &record(gone), "v", "7", "o", "7", "n:gw-old.1", &part]).await;
    }
    let mut watcher = stage.connect(0, one, "a").await;
    assert_eq!(watcher.sees(two), "pending", "in the snapshot itself");
    let statuses = stage.hub(0).status(&[user(4_000)]).await.unwrap();
    assert_eq!(statuses[0].status, Status::Pending, "whom nobody watches");
    // However often it is asked, and whatever comes with the same version.
    for _ in 0..3 {
        let asked = stage.places[0].counters.sharing.asked_again.get();
        until("it was asked again", || {
            stage.hub(0).ask_all_again();
            stage.places[0].counters.sharing.asked_again.get() >= asked + 2
        })
        .await;
    }
    assert_eq!(watcher.sees(two), "pending");
    assert!(watcher.heard.iter().all(|heard| !heard.to_string().contains("cf1old")), "{:?}", watcher.heard);
    let back = stage.connect(1, two, "a").await;
    sees(&mut watcher, two, "online").await;
    drop((watcher, back));
    stage.end().await;
}

/// People were taken from a gateway, and then the list of those that died was lost in a failover: it is a member, but may
/// not write of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p15_a_gateway_that_is_refused_joins_anew_even_if_it_is_a_member() {
    let mut stage = Stage::new(Kind::Single).await;
    let [one, two, three] = stage.circle().await;
    let mut watcher = stage.connect(0, one, "a").await;
    let other = stage.connect(1, two, "a").await;
    let silent = stage.connect(1, three, "a").await;
    sees(&mut watcher, two, "online").await;
    sees(&mut watcher, three, "online").await;
    let refused = stage.node(1);
    let far = format!("{}000", now().0 + 3600);
    stage.redis(&["HSET", &record(two), &format!("x:{refused}"), &far]).await;
    other.set_status("busy").await;
    sees(&mut watcher, two, "busy").await;
    assert_ne!(stage.node(1), refused);
    assert_eq!(stage.places[1].counters.sharing.rejoins.get(), 1);
    sees(&mut watcher, three, "online").await;
    drop((watcher, other, silent));
    stage.end().await;
}

//! Records that are wrong, old or lost are repaired.

use domain::Seconds;
use presence::{Policy, Status};

use super::fixture::{Gateways, Kind, now, sees};
use crate::hub::fixture::{until, user};

impl Gateways {
    async fn redis(&mut self, command: &[&str]) -> String {
        tokio::task::block_in_place(|| self.server().cli(command))
    }

    fn node(&self, place: usize) -> String {
        self.places[place].store.as_ref().unwrap().node().to_string()
    }
}

fn record(number: u64) -> String {
    format!("p:u:{{{number}}}")
}

/// Without new activity: the users are connected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_online_user_that_was_removed_from_the_store_is_published_again() {
    let mut gateways = Gateways::new(Kind::Single).await;
    let [one, two] = gateways.users().await;
    let mut watcher = gateways.connect(0, one, "a").await;
    let other = gateways.connect(1, two, "a").await;
    sees(&mut watcher, two, "online").await;
    gateways.settled().await;
    let part = format!("n:{}", gateways.node(1));
    assert_eq!(gateways.redis(&["HDEL", &record(two), &part]).await.trim(), "1");
    gateways.redis(&["HINCRBY", &record(two), "o", "1"]).await;
    gateways.hub(1).receive_gap();
    let mended = gateways.places[1].counters.clone();
    until("the gateway sees that its part is missing", || mended.sync.repaired.get() > 0).await;
    let server = gateways.server();
    until("it is there again", || {
        tokio::task::block_in_place(|| server.cli(&["HEXISTS", &record(two), &part])).trim() == "1"
    })
    .await;
    assert_eq!(mended.sync.repaired.get(), 1, "once is enough");
    sees(&mut watcher, two, "online").await;
    drop((watcher, other));
    gateways.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p15_when_redis_loses_its_data_no_user_arrives_again() {
    let mut gateways = Gateways::new(Kind::Single).await;
    let [one, two] = gateways.users().await;
    let mut watcher = gateways.connect(0, one, "a").await;
    let other = gateways.connect(1, two, "a").await;
    sees(&mut watcher, two, "online").await;
    gateways.settled().await;
    gateways.redis(&["FLUSHALL"]).await;
    let server = gateways.server();
    until("they are published again", || {
        other.hub.record_activity(other.conn);
        tokio::task::block_in_place(|| server.cli(&["EXISTS", &record(two)])).trim() == "1"
    })
    .await;
    other.close();
    sees(&mut watcher, two, "offline").await;
    let mut kinds = Vec::new();
    for _ in 0..500 {
        gateways.flush_presence().await;
        let history = gateways.friend_store.history(user(two), None, 20).await.unwrap();
        kinds = history.iter().map(|one| one.event.kind).collect();
        if kinds.contains(&friends::PresenceEventKind::Left) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(kinds.len(), 4, "they came and went, and changed twice by it: {kinds:?}");
    drop(watcher);
    gateways.end().await;
}

/// The last activity of an online user is saved periodically, with the store's version.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p11_the_last_activity_is_saved_while_users_are_online() {
    let policy = Policy { store_interval: Seconds(1), ..Policy::default() };
    let gateways = Gateways::with(Kind::Single, policy).await;
    let [one, two] = gateways.users().await;
    let (seen, hidden) = (gateways.connect(0, one, "a").await, gateways.connect(1, two, "a").await);
    hidden.set_status("invisible").await;
    gateways.settled().await;
    gateways.flush_presence().await;
    let last_seen = async |number: u64| {
        let here = gateways.friend_store.stored_online(None, 10).await.unwrap();
        here.into_iter().find(|one| one.user == user(number)).and_then(|one| one.last_seen)
    };
    let (since, hid_at) = (last_seen(one).await.unwrap(), last_seen(two).await);
    for _ in 0..3_000 {
        seen.hub.record_activity(seen.conn);
        hidden.hub.record_activity(hidden.conn);
        gateways.flush_presence().await;
        if last_seen(one).await.unwrap().0 > since.0 + 1 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(last_seen(one).await.unwrap().0 > since.0 + 1, "{since:?}");
    assert_eq!(last_seen(two).await, hid_at, "who hides leaves no trace");
    drop((seen, hidden));
    gateways.end().await;
}

/// All gateways were down for longer than entries are valid, and nothing was reaped yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p15_an_expired_entry_is_not_shown() {
    let mut gateways =
        Gateways::with(Kind::Single, Policy { pending: Seconds(60), ..Policy::default() }).await;
    let [one, two] = gateways.users().await;
    let sign = now().0 - 100;
    let part = format!("-1 {} {sign} 90 - cf1old", u64::from(sign + 90) * 1000);
    for gone in [two, 4_000] {
        gateways.redis(&["HSET", &record(gone), "v", "7", "o", "7", "n:gw-old.1", &part]).await;
    }
    let mut watcher = gateways.connect(0, one, "a").await;
    assert_eq!(watcher.sees(two), "pending", "in the snapshot itself");
    let statuses = gateways.hub(0).admin.status(&[user(4_000)]).await.unwrap();
    assert_eq!(statuses[0].status, Status::Pending, "not watched");
    // However often the record is read, and whatever arrives with the same version.
    for _ in 0..3 {
        let asked = gateways.places[0].counters.sync.rechecked.get();
        until("it was asked again", || {
            gateways.hub(0).receive_gap();
            gateways.places[0].counters.sync.rechecked.get() >= asked + 2
        })
        .await;
    }
    assert_eq!(watcher.sees(two), "pending");
    assert!(
        watcher.received.iter().all(|message| !message.to_string().contains("cf1old")),
        "{:?}",
        watcher.received
    );
    let back = gateways.connect(1, two, "a").await;
    sees(&mut watcher, two, "online").await;
    drop((watcher, back));
    gateways.end().await;
}

/// Users were reaped from a gateway, and then the list of dead nodes was lost in a failover: the gateway is a member,
/// but may not write these users.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p15_a_gateway_that_is_refused_joins_anew_even_if_it_is_a_member() {
    let mut gateways = Gateways::new(Kind::Single).await;
    let [one, two, three] = gateways.users().await;
    let mut watcher = gateways.connect(0, one, "a").await;
    let other = gateways.connect(1, two, "a").await;
    let silent = gateways.connect(1, three, "a").await;
    sees(&mut watcher, two, "online").await;
    sees(&mut watcher, three, "online").await;
    let refused = gateways.node(1);
    let far = format!("{}000", now().0 + 3600);
    gateways.redis(&["HSET", &record(two), &format!("x:{refused}"), &far]).await;
    other.set_status("busy").await;
    sees(&mut watcher, two, "busy").await;
    assert_ne!(gateways.node(1), refused);
    assert_eq!(gateways.places[1].counters.sync.rejoins.get(), 1);
    sees(&mut watcher, three, "online").await;
    drop((watcher, other, silent));
    gateways.end().await;
}

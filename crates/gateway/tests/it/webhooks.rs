//! Webhooks with a real database and a real receiver.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use database::{Database, SqliteDatabase, SqliteOptions};
use domain::UserId;
use domain::clock::{Clock, SystemClock};
use friends::PresenceEventKind;
use friends::{FriendStore, FriendsSettings, PresenceEvent};
use gateway::GatewayCounters;
use gateway::counters::WebhookOutcome;
use gateway::leader_lease::LeaderLease;
use gateway::settings::{Secret, WebhookSettings};
use gateway::webhooks::Webhooks;
use keyspace::keys::gateways::WEBHOOKS_LEASE_KEY;
use keyspace::{Redis, RedisSettings};
use presence::{Cause, DeviceId};
use tempfile::TempDir;
use testkit::{Hook, HookReceiver, HookReply, RedisServer, eventually, eventually_async};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
const SECRET: &str = "a secret of the site's and ours";

/// A database that outlives the servers on it.
struct Scene {
    _folder: TempDir,
    friend_store: FriendStore,
}

/// Webhooks that run.
struct Running {
    counters: Arc<GatewayCounters>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Scene {
    async fn new() -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("people.db");
        let database = SqliteDatabase::open(&path, SqliteOptions::default()).await.unwrap();
        let friend_store =
            FriendStore::open(Database::Sqlite(database), FriendsSettings::default()).await.unwrap();
        Scene { _folder: folder, friend_store }
    }

    async fn start(&self, receiver: &HookReceiver, give_up: Duration) -> Running {
        self.start_in_turn(receiver, give_up, LeaderLease::always_held()).await
    }

    /// In a cluster.
    async fn start_in_turn(&self, receiver: &HookReceiver, give_up: Duration, lease: LeaderLease) -> Running {
        let settings =
            WebhookSettings { url: receiver.url(), ca_file: None, secret: Secret::new(SECRET), give_up };
        let counters = Arc::new(GatewayCounters::default());
        let (stop, stopped) = watch::channel(false);
        let webhooks = Webhooks::open(
            self.friend_store.clone(),
            &settings,
            Arc::clone(&counters),
            Arc::new(SystemClock),
        );
        let task = tokio::spawn(webhooks.await.unwrap().with_lease(Arc::new(lease)).run(stopped));
        Running { counters, stop, task }
    }

    /// Each user arrives and leaves, one after the other.
    async fn come_and_go(&self, users: std::ops::RangeInclusive<u64>) {
        let at_ms = SystemClock.now_ms();
        let event = |user: u64, kind, cause| PresenceEvent {
            user: UserId::new(user).unwrap(),
            at_ms,
            kind,
            cause: Some(cause),
            device: DeviceId::new("phone-1"),
        };
        let batch: Vec<PresenceEvent> = users
            .flat_map(|user| {
                [
                    event(user, PresenceEventKind::Arrived, Cause::Connect),
                    event(user, PresenceEventKind::Left, Cause::Close),
                ]
            })
            .collect();
        self.friend_store.record(&batch).await.unwrap();
    }
}

impl Running {
    async fn stop(self) {
        self.stop.send(true).unwrap();
        self.task.await.unwrap();
    }

    /// Stops it as a crash would.
    async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

/// Waits for this many deliveries.
async fn taken(receiver: &HookReceiver, count: usize) -> Vec<Hook> {
    eventually_async(&format!("{count} deliveries"), PATIENCE, async || {
        Some(receiver.taken()).filter(|taken| taken.len() >= count)
    })
    .await
}

/// Deliveries about one user, in order.
fn events_of(hooks: &[Hook], user: u64) -> Vec<String> {
    let of_user = hooks.iter().filter(|hook| hook.user() == user);
    of_user.map(|hook| hook.json()["event"].as_str().unwrap().to_owned()).collect()
}

/// The signature as a receiver would check it, by another implementation of HMAC.
fn is_signed(hook: &Hook) -> bool {
    use sha2::{Digest, Sha256};
    let header = hook.header("rollcall-signature").unwrap();
    let (time, signature) = header.split_once(",v1=").unwrap();
    let text = format!("{}.{}", time.strip_prefix("t=").unwrap(), hook.body);
    let mut key = [0; 64];
    key[..SECRET.len()].copy_from_slice(SECRET.as_bytes());
    let padded = |with: u8| key.map(|byte| byte ^ with);
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(text).finalize();
    let outer = Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize();
    outer.iter().map(|byte| format!("{byte:02x}")).collect::<String>() == signature
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arrivals_and_departures_are_sent_once_in_order_and_signed() {
    let (scene, receiver) = (Scene::new().await, HookReceiver::start());
    scene.come_and_go(1..=1).await;
    let running = scene.start(&receiver, Duration::from_secs(3600)).await;
    scene.come_and_go(2..=21).await;
    let hooks = taken(&receiver, 40).await;
    for user in 2..=21 {
        assert_eq!(events_of(&hooks, user), ["arrived", "left"]);
    }
    assert!(events_of(&hooks, 1).is_empty(), "events from before webhooks were enabled are not sent");
    let first = hooks.iter().find(|hook| hook.user() == 2).unwrap();
    assert!(hooks.iter().all(is_signed), "{first:?}");
    assert_eq!(first.head[0], "POST /hook HTTP/1.1");
    let json = first.json();
    assert_eq!((json["cause"].as_str(), json["device"].as_str()), (Some("connect"), Some("phone-1")));
    assert_eq!(first.header("rollcall-delivery"), json["id"].as_str());
    assert_eq!(first.header("rollcall-attempt"), Some("1"));
    assert_eq!(json["at"].as_u64().unwrap(), json["at_ms"].as_u64().unwrap() / 1000);
    let mut ids: Vec<String> = hooks.iter().map(|hook| hook.json()["id"].to_string()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 40, "every message has an id of its own");
    running.stop().await;
    let again = scene.start(&receiver, Duration::from_secs(3600)).await;
    scene.come_and_go(30..=30).await;
    assert_eq!(taken(&receiver, 42).await.len(), 42, "a clean restart repeats nothing");
    again.stop().await;
}

/// During a take-over the new process is open long before it is alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_process_has_sent_meanwhile_is_not_sent_again() {
    let (scene, receiver) = (Scene::new().await, HookReceiver::start());
    let running = scene.start(&receiver, Duration::from_secs(3600)).await;
    let settings = WebhookSettings {
        url: receiver.url(),
        ca_file: None,
        secret: Secret::new(SECRET),
        give_up: Duration::from_secs(3600),
    };
    let counters = Arc::new(GatewayCounters::default());
    let next =
        Webhooks::open(scene.friend_store.clone(), &settings, counters, Arc::new(SystemClock)).await.unwrap();
    scene.come_and_go(1..=10).await;
    taken(&receiver, 20).await;
    running.stop().await;
    let (stop, stopped) = watch::channel(false);
    let next = tokio::spawn(next.run(stopped));
    scene.come_and_go(11..=11).await;
    let hooks = taken(&receiver, 22).await;
    assert_eq!(events_of(&hooks, 11), ["arrived", "left"]);
    assert_eq!(events_of(&hooks, 1), ["arrived", "left"]);
    stop.send(true).unwrap();
    next.await.unwrap();
    assert_eq!(receiver.taken().len(), 22);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_delivery_holds_up_no_other_user_and_is_not_overtaken() {
    let (scene, receiver) = (Scene::new().await, HookReceiver::start());
    receiver.behave(HookReply::StatusFor(7, 500));
    let running = scene.start(&receiver, Duration::from_secs(3600)).await;
    scene.come_and_go(5..=9).await;
    let hooks = taken(&receiver, 8).await;
    assert!(events_of(&hooks, 7).is_empty());
    assert!(
        receiver.hooks().iter().filter(|hook| hook.user() == 7).all(|hook| hook.json()["event"] == "arrived")
    );
    receiver.behave(HookReply::Accept);
    let hooks = taken(&receiver, 10).await;
    assert_eq!(events_of(&hooks, 7), ["arrived", "left"]);
    let tries: Vec<Hook> = receiver.hooks().into_iter().filter(|hook| hook.user() == 7).collect();
    let ids: Vec<String> = tries.iter().map(|hook| hook.json()["id"].to_string()).collect();
    assert!(tries.len() >= 3 && ids[..ids.len() - 1].iter().all(|id| *id == ids[0]), "{ids:?}");
    assert!(running.counters.webhooks.attempts.get(WebhookOutcome::WrongStatus) >= 1);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_repeats_but_never_loses() {
    let (scene, receiver) = (Scene::new().await, HookReceiver::start());
    let running = scene.start(&receiver, Duration::from_secs(3600)).await;
    scene.come_and_go(1..=20).await;
    taken(&receiver, 5).await;
    running.kill().await;
    scene.come_and_go(21..=30).await;
    let running = scene.start(&receiver, Duration::from_secs(3600)).await;
    eventually_async("every event to be delivered", PATIENCE, async || {
        let taken = receiver.taken();
        (1..=30)
            .all(|user| events_of(&taken, user).ends_with(&["arrived".into(), "left".into()]))
            .then_some(())
    })
    .await;
    for user in 1..=30 {
        // A repetition begins with the first unconfirmed delivery: never with a departure whose arrival was not sent.
        assert_eq!(events_of(&receiver.taken(), user)[0], "arrived");
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_is_away_gets_everything_when_it_is_back() {
    let scene = Scene::new().await;
    let receiver = HookReceiver::start();
    let port = receiver.port();
    let running = scene.start(&receiver, Duration::from_secs(3600)).await;
    drop(receiver);
    scene.come_and_go(1..=10).await;
    let counters = Arc::clone(&running.counters);
    tokio::task::spawn_blocking(move || {
        eventually("failed attempts", PATIENCE, || {
            (counters.webhooks.attempts.get(WebhookOutcome::Unreachable) >= 5).then_some(())
        });
    })
    .await
    .unwrap();
    assert_eq!(running.counters.webhooks.waiting.get(), 20);
    let receiver = HookReceiver::start_on(port);
    let hooks = taken(&receiver, 20).await;
    (1..=10).for_each(|user| assert_eq!(events_of(&hooks, user), ["arrived", "left"]));
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_delivery_fails_for_good_and_is_counted() {
    let (scene, receiver) = (Scene::new().await, HookReceiver::start());
    receiver.behave(HookReply::Status(410));
    let running = scene.start(&receiver, Duration::from_millis(1)).await;
    scene.come_and_go(1..=3).await;
    let counters = Arc::clone(&running.counters);
    tokio::task::spawn_blocking(move || {
        eventually("six messages to be given up", PATIENCE, || {
            (counters.webhooks.given_up.get() == 6).then_some(())
        });
    })
    .await
    .unwrap();
    assert!(receiver.taken().is_empty());
    receiver.behave(HookReply::Accept);
    scene.come_and_go(4..=4).await;
    assert_eq!(events_of(&taken(&receiver, 2).await, 4), ["arrived", "left"], "and others are sent");
    running.stop().await;
    assert_eq!(scene.friend_store.cursor("webhooks").await.unwrap(), Some(friends::PresenceEventId(8)));
    Webhooks::forget(&scene.friend_store).await.unwrap();
    assert_eq!(
        scene.friend_store.cursor("webhooks").await.unwrap(),
        None,
        "nothing is kept for webhooks that are off"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_receiver_gets_only_so_many_at_once() {
    let (scene, receiver) = (Scene::new().await, HookReceiver::start());
    receiver.behave(HookReply::Slow(Duration::from_millis(100)));
    let running = scene.start(&receiver, Duration::from_secs(3600)).await;
    scene.come_and_go(1..=30).await;
    let hooks = taken(&receiver, 60).await;
    (1..=30).for_each(|user| assert_eq!(events_of(&hooks, user), ["arrived", "left"]));
    assert!((2..=16).contains(&receiver.at_once_max()), "{}", receiver.at_once_max());
    running.stop().await;
}

/// The leader lease of the webhooks.
fn lease(redis: &RedisServer, process: &str) -> LeaderLease {
    let handle = Redis::new(RedisSettings::from_url(&redis.url()).unwrap()).unwrap();
    LeaderLease::shared(handle, WEBHOOKS_LEASE_KEY, process, Duration::from_secs(2))
}

/// Each delivery id once, in the order of its first arrival.
fn ids_of(hooks: &[Hook]) -> Vec<String> {
    let mut ids: Vec<String> = hooks.iter().map(|hook| hook.json()["id"].to_string()).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Waits for this many different deliveries; some may be repeated.
async fn told_of(receiver: &HookReceiver, count: usize) {
    eventually_async(&format!("{count} different deliveries"), PATIENCE, async || {
        (ids_of(&receiver.taken()).len() >= count).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_gateways_on_one_database_one_sends_and_the_other_continues_when_it_ends() {
    let (scene, receiver, redis) = (Scene::new().await, HookReceiver::start(), RedisServer::start());
    let long = Duration::from_secs(3600);
    let first = scene.start_in_turn(&receiver, long, lease(&redis, "gw-a.1")).await;
    let second = scene.start_in_turn(&receiver, long, lease(&redis, "gw-b.1")).await;
    scene.come_and_go(1..=20).await;
    taken(&receiver, 40).await;
    // The leader releases the lease; it may be either of them.
    first.stop().await;
    scene.come_and_go(21..=30).await;
    let hooks = taken(&receiver, 60).await;
    assert_eq!((hooks.len(), ids_of(&hooks).len()), (60, 60), "no delivery is repeated without a failure");
    let third = scene.start_in_turn(&receiver, long, lease(&redis, "gw-a.2")).await;
    second.kill().await;
    scene.come_and_go(31..=40).await;
    // The lease of the killed one expires.
    told_of(&receiver, 80).await;
    // The killed one may have sent deliveries that it did not record: a repeated id counts once.
    let mut seen = HashSet::new();
    let mut hooks = receiver.taken();
    hooks.retain(|hook| seen.insert(hook.json()["id"].to_string()));
    for user in 1..=40 {
        assert_eq!(events_of(&hooks, user), ["arrived", "left"], "{user}");
    }
    third.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_loses_the_lease_stops_and_the_other_sends_the_rest() {
    let (scene, receiver, redis) = (Scene::new().await, HookReceiver::start(), RedisServer::start());
    let long = Duration::from_secs(3600);
    let first = scene.start_in_turn(&receiver, long, lease(&redis, "gw-a.1")).await;
    scene.come_and_go(1..=5).await;
    taken(&receiver, 10).await;
    // As if this process had been suspended for longer than its lease.
    redis.cli(&["SET", WEBHOOKS_LEASE_KEY, "gw-b.1", "PX", "60000"]);
    let second = scene.start_in_turn(&receiver, long, lease(&redis, "gw-b.1")).await;
    let counters = Arc::clone(&first.counters);
    scene.come_and_go(6..=15).await;
    told_of(&receiver, 30).await;
    eventually_async("no delivery to be waiting", PATIENCE, async || {
        (counters.webhooks.waiting.get() == 0).then_some(())
    })
    .await;
    first.stop().await;
    second.stop().await;
    assert_eq!(redis.cli(&["EXISTS", WEBHOOKS_LEASE_KEY]).trim(), "0", "the lease is released at the end");
}

//! Several hubs on one Redis: rooms, typing, and what is done to devices at other gateways.

use std::sync::Arc;
use std::time::Duration;

use domain::clock::SystemClock;
use friends::FriendStore;
use gateway::cluster::{ClusterSettings, ClusterStore};
use keyspace::{Redis, RedisSettings};
use serde_json::{Value, json};
use testkit::{RedisCluster, RedisServer};

use super::fixture::{Client, START, hello, open, until, user};
use gateway::cluster_sync::SyncSettings;
use gateway::counters::GatewayCounters;
use gateway::hub::{Hub, HubParts, HubSettings};
use gateway::leader_lease::LeaderLease;
use gateway::torrent_counts::NoTorrentCounts;

const LEASE: Duration = Duration::from_secs(2);

/// Gateways on one database and one Redis.
struct TestCluster {
    folder: tempfile::TempDir,
    friend_store: FriendStore,
    url: String,
}

/// One gateway.
struct TestGateway {
    hub: Arc<Hub>,
    store: Arc<ClusterStore>,
    counters: Arc<GatewayCounters>,
    redis: Redis,
}

impl TestCluster {
    async fn at(url: String) -> TestCluster {
        let folder = tempfile::tempdir().unwrap();
        let friend_store = open(&folder).await;
        TestCluster { folder, friend_store, url }
    }

    async fn gateway(&self, name: &str) -> TestGateway {
        let redis = Redis::new(RedisSettings::from_url(&self.url).unwrap()).unwrap();
        let settings = ClusterSettings { lease: LEASE, ..ClusterSettings::default() };
        let store = Arc::new(ClusterStore::join(redis.clone(), name, settings).await.unwrap());
        let sync = SyncSettings { renew: LEASE / 5, ..SyncSettings::default() };
        let settings = HubSettings { batch: Duration::from_millis(10), sync, ..HubSettings::default() };
        let counters = Arc::new(GatewayCounters::default());
        let parts = HubParts {
            friend_store: open(&self.folder).await,
            clock: Arc::new(SystemClock),
            settings,
            counters: counters.clone(),
            torrent_counts: Arc::new(NoTorrentCounts),
            is_disabled: Arc::new(|_| false),
            seed: 7,
            pruning: LeaderLease::always_held(),
            store: Some(store.clone()),
            redis: Some(redis.clone()),
        };
        TestGateway { hub: Hub::start(parts).await.unwrap(), store, counters, redis }
    }

    async fn befriend(&self, one: u64, other: u64) {
        self.friend_store.add_friends(&[(user(one), user(other))], START).await.unwrap();
    }
}

impl TestGateway {
    async fn connect(&self, number: u64, device: &str) -> Client {
        Client::connect(&self.hub, number, hello(device)).await.unwrap()
    }

    /// Stops it as a crash would: other gateways are not notified.
    fn kill(self) {
        self.hub.abort();
    }
}

/// The room messages that a client received since the last call.
fn room_messages(client: &mut Client, received: &mut Vec<String>) -> Vec<String> {
    for push in client.pushed() {
        let push = &push["push"];
        for what in ["join", "leave"] {
            if let Some(change) = push.get(what) {
                received.push(format!("{what} {}", change["info"]["user"].as_str().unwrap()));
            }
        }
    }
    received.clone()
}

async fn expect_room_messages(client: &mut Client, expected: &[&str]) {
    let mut received = Vec::new();
    until(&format!("{expected:?}"), || room_messages(client, &mut received).len() >= expected.len()).await;
    received.sort_unstable();
    assert_eq!(received, expected);
}

async fn sees_in_room(client: &Client, room: &str, expected: &[&str]) {
    for _ in 0..3_000 {
        if client.in_room(room).await == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(client.in_room(room).await, expected);
}

fn typing(client: &mut Client) -> Vec<Value> {
    let data = |push: &Value| push["push"]["pub"]["data"].clone();
    let timeless = |mut data: Value| {
        assert!(data.as_object_mut().unwrap().remove("at_ms").is_some(), "P18: {data}");
        data
    };
    client.pushed().iter().map(data).filter(|data| data["type"] == "typing").map(timeless).collect()
}

async fn expect_typing(client: &mut Client, expected: Value) {
    let mut received = Vec::new();
    until("typing", || {
        received.extend(typing(client));
        !received.is_empty()
    })
    .await;
    assert_eq!(received, [expected]);
}

async fn a_room_is_one_whichever_gateway(url: String) {
    let cluster = TestCluster::at(url).await;
    let (a, b) = (cluster.gateway("gw-a").await, cluster.gateway("gw-b").await);
    let room = "room:{x}";
    let mut one = a.connect(1, "pc").await;
    one.enter(room).await;
    expect_room_messages(&mut one, &["join 1"]).await;
    let mut two = b.connect(2, "pc").await;
    two.enter(room).await;
    expect_room_messages(&mut one, &["join 2"]).await;
    expect_room_messages(&mut two, &["join 1", "join 2"]).await;
    sees_in_room(&two, room, &["1", "2"]).await;
    let stats = a.hub.commands.presence_stats(one.conn, room).await.unwrap();
    assert!(stats.get().contains(r#""num_users":2"#), "{stats}");

    // Another connection of the same user joins, at either gateway, and each leaves by itself.
    let phone = a.connect(2, "phone").await;
    phone.enter(room).await;
    expect_room_messages(&mut one, &["join 2"]).await;
    sees_in_room(&one, room, &["1", "2", "2"]).await;
    sees_in_room(&two, room, &["1", "2", "2"]).await;
    let stats = b.hub.commands.presence_stats(two.conn, room).await.unwrap();
    assert_eq!(stats.get(), r#"{"num_clients":3,"num_users":2}"#);
    two.close();
    expect_room_messages(&mut one, &["leave 2"]).await;
    assert_eq!(one.in_room(room).await, ["1", "2"]);

    // A user who becomes invisible leaves at every gateway; a viewer on the `never` list does not see the user
    // anywhere.
    let mut three = b.connect(3, "pc").await;
    three.enter(room).await;
    sees_in_room(&three, room, &["1", "2", "3"]).await;
    expect_room_messages(&mut one, &["join 3"]).await;
    // A new member receives the present members, from the gateway itself or as soon as the others have answered.
    let mut received = Vec::new();
    until("all joins", || {
        let received = room_messages(&mut three, &mut received);
        ["join 1", "join 2", "join 3"].iter().all(|join| received.iter().any(|one| one == join))
    })
    .await;
    one.set_status("invisible").await;
    expect_room_messages(&mut three, &["leave 1"]).await;
    one.rpc("status.clear", json!({})).await.unwrap();
    expect_room_messages(&mut three, &["join 1"]).await;
    one.rpc("privacy.set", json!({"never": ["3"]})).await.unwrap();
    expect_room_messages(&mut three, &["leave 1"]).await;
    assert_eq!(three.in_room(room).await, ["2", "3"]);

    // Typing is sent to the users that may see it, at any gateway.
    room_messages(&mut one, &mut Vec::new());
    three.rpc("typing", json!({"room": "{x}", "on": true})).await.unwrap();
    let on = json!({"type": "typing", "from": "3", "on": true, "room": "{x}"});
    expect_typing(&mut one, on).await;
    three.rpc("typing", json!({"room": "{x}", "on": false})).await.unwrap();
    expect_typing(&mut one, json!({"type": "typing", "from": "3", "on": false, "room": "{x}"})).await;

    // Members at a dead gateway leave; none stays for ever.
    b.kill();
    expect_room_messages(&mut one, &["leave 3"]).await;
    assert_eq!(one.in_room(room).await, ["1", "2"]);
    a.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p4_a_room_is_one_whichever_gateway_on_redis() {
    let redis = RedisServer::start();
    a_room_is_one_whichever_gateway(redis.url()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p16_a_room_is_one_whichever_gateway_on_a_cluster() {
    let cluster = RedisCluster::start();
    a_room_is_one_whichever_gateway(format!("redis+cluster://127.0.0.1:{}", cluster.node(0).port())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_missed_of_a_room_is_found_by_comparing() {
    let redis = RedisServer::start();
    let cluster = TestCluster::at(redis.url()).await;
    let (a, b) = (cluster.gateway("gw-a").await, cluster.gateway("gw-b").await);
    let one = a.connect(1, "pc").await;
    one.enter("room:x").await;
    let two = b.connect(2, "pc").await;
    two.enter("room:x").await;
    sees_in_room(&one, "room:x", &["1", "2"]).await;
    sees_in_room(&two, "room:x", &["1", "2"]).await;
    // Redis loses everything: entries are written again at the next comparison.
    redis.cli(&["FLUSHALL"]);
    b.hub.receive_gap();
    let part = || redis.cli(&["HGETALL", &format!("p:r:{{x}}:{}", b.store.node())]);
    until("the part", || part().contains("pc") || part().contains("\"n\":1")).await;
    let three = a.connect(3, "pc").await;
    three.enter("room:x").await;
    sees_in_room(&two, "room:x", &["1", "2", "3"]).await;
    // A lost message.
    let lost: i64 = a.redis.query(redis::cmd("XTRIM").arg(inbox_of(&b)).arg("MAXLEN").arg(0)).await.unwrap();
    assert!(lost >= 0);
    three.close();
    sees_in_room(&two, "room:x", &["1", "2"]).await;
    a.hub.stop().await;
    b.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_is_dropped_with_its_last_local_member_although_they_are_in_it_elsewhere() {
    let redis = RedisServer::start();
    let cluster = TestCluster::at(redis.url()).await;
    let (a, b) = (cluster.gateway("gw-a").await, cluster.gateway("gw-b").await);
    let (here, there) = (a.connect(1, "pc").await, b.connect(1, "phone").await);
    here.enter("room:x").await;
    there.enter("room:x").await;
    sees_in_room(&here, "room:x", &["1", "1"]).await;
    here.close();
    until("the room to be forgotten", || a.counters.hub.rooms.get() == 0).await;
    sees_in_room(&there, "room:x", &["1"]).await;
    a.hub.stop().await;
    b.hub.stop().await;
}

fn inbox_of(gate: &TestGateway) -> String {
    format!("p:in:{}", gate.store.node())
}

async fn messages_reach_devices_at_other_gateways(url: String) {
    let cluster = TestCluster::at(url).await;
    cluster.befriend(1, 2).await;
    let (a, b) = (cluster.gateway("gw-a").await, cluster.gateway("gw-b").await);
    let mut one = a.connect(1, "pc").await;
    let mut two = b.connect(2, "phone").await;
    until("both", || one.sees(2) == "online" && two.sees(1) == "online").await;
    one.rpc("typing", json!({"to": 2, "on": true})).await.unwrap();
    expect_typing(&mut two, json!({"type": "typing", "from": "1", "on": true})).await;
    // An invisible user no longer types, wherever that was sent.
    one.set_status("invisible").await;
    expect_typing(&mut two, json!({"type": "typing", "from": "1", "on": false})).await;

    let other = b.connect(1, "tablet").await;
    let mut devices = Value::Null;
    for _ in 0..3_000 {
        devices = one.rpc("devices.list", json!({})).await.unwrap();
        if devices["devices"].as_array().unwrap().len() == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let names: Vec<&str> =
        devices["devices"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(names, ["pc", "tablet"]);
    let elsewhere = a.hub.admin.remote_devices(user(1)).await.unwrap();
    assert_eq!((elsewhere.len(), elsewhere[0].0.as_str()), (1, "gw-b"));
    one.rpc("devices.sign_out", json!({"device": "tablet"})).await.unwrap();
    until("the tablet to be gone", || b.hub.users.devices(user(1)).is_empty()).await;
    drop(other);

    let ended = a.hub.admin.disconnect(user(2), None, false).await.unwrap();
    assert_eq!(ended, 1);
    until("the phone to be gone", || b.hub.users.devices(user(2)).is_empty()).await;

    // HTTP heartbeats may reach any gateway, and the goodbye another one.
    a.hub.http_heartbeat(user(5), hello("tv")).await.unwrap();
    for _ in 0..3_000 {
        if !b.hub.admin.remote_devices(user(5)).await.unwrap().is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    b.hub.http_goodbye(user(5), presence::DeviceId::new("tv").unwrap());
    until("the television to be gone", || a.hub.users.devices(user(5)).is_empty()).await;
    a.hub.stop().await;
    b.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p2_messages_reach_devices_at_other_gateways_on_redis() {
    let redis = RedisServer::start();
    messages_reach_devices_at_other_gateways(redis.url()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p16_messages_reach_devices_at_other_gateways_on_a_cluster() {
    let cluster = RedisCluster::start();
    let url = format!("redis+cluster://127.0.0.1:{}", cluster.node(0).port());
    messages_reach_devices_at_other_gateways(url).await;
}

/// Two gateways wrote declarations one after the other, but the second record arrives here before the reply to the
/// first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p4_a_record_received_before_the_reply_to_an_older_declaration_is_shown_in_the_end() {
    let redis = RedisServer::start();
    let cluster = TestCluster::at(redis.url()).await;
    let (a, b) = (cluster.gateway("gw-a").await, cluster.gateway("gw-b").await);
    cluster.befriend(1, 2).await;
    let (here, there) = (a.connect(1, "pc").await, b.connect(1, "phone").await);
    let (mut near, mut far) = (a.connect(2, "pc").await, b.connect(2, "phone").await);
    here.set_status("busy").await;
    until("busy", || near.sees(1) == "busy" && far.sees(1) == "busy").await;
    until("an answer", || a.hub.sizes().unpublished == 0).await;
    a.hub.withhold_publish_reply(user(1));
    let applied = || a.counters.sync.applied.get();
    let before = applied();
    there.set_status("online").await;
    until("online", || far.sees(1) == "online").await;
    until("the record", || applied() > before).await;
    assert_eq!(near.sees(1), "busy", "the local declaration is newer");
    a.hub.deliver_publish_reply(user(1));
    until("online, too", || near.sees(1) == "online").await;
    drop((here, there));
    a.hub.stop().await;
    b.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p4_users_that_are_not_watched_here_are_found_and_counted_once() {
    let redis = RedisServer::start();
    let cluster = TestCluster::at(redis.url()).await;
    let (a, b) = (cluster.gateway("gw-a").await, cluster.gateway("gw-b").await);
    let busy = b.connect(2, "pc").await;
    busy.set_status("busy").await;
    let hidden = b.connect(3, "pc").await;
    hidden.set_status("invisible").await;
    // One user, two gateways.
    let (here, there) = (a.connect(4, "pc").await, b.connect(4, "phone").await);
    let mut statuses = Vec::new();
    for _ in 0..3_000 {
        let views = a.hub.admin.status(&[user(2), user(3), user(2), user(4), user(9)]).await.unwrap();
        statuses = views.iter().map(|view| view.status.name()).collect();
        if statuses == ["busy", "offline", "busy", "online", "offline"] {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(statuses, ["busy", "offline", "busy", "online", "offline"]);
    cluster
        .friend_store
        .set_privacy(
            user(2),
            &presence::Privacy { status: presence::Audience::Everyone, ..Default::default() },
        )
        .await
        .unwrap();
    let asked = here.rpc("status.get", json!({"users": [2, 9]})).await.unwrap();
    assert_eq!(
        (asked["users"][0]["status"].as_str(), asked["users"][1]["status"].as_str()),
        (Some("busy"), Some("offline"))
    );
    for gate in [&a, &b] {
        let mut count = gate.hub.admin.online_count().await;
        for _ in 0..1_000 {
            if (count.tally.of(presence::Status::Online), count.tally.connections) == (1, 4) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
            count = gate.hub.admin.online_count().await;
        }
        let of = |status| count.tally.of(status);
        let friend_store =
            (of(presence::Status::Online), of(presence::Status::Busy), of(presence::Status::Invisible));
        assert_eq!((friend_store, count.tally.connections), ((1, 1, 1), 4));
        assert_eq!(count.connections.iter().sum::<u64>(), 4);
    }
    drop((here, there));
    a.hub.stop().await;
    b.hub.stop().await;
}

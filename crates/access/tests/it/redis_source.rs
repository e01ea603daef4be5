//! The Redis source, and copies of the database in the same keys (M1 to M3, M11).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use access::redis_source::sync::sync;
use access::redis_source::{Copier, CopierParts, CopyQueue, Kind, SyncOptions, SyncReport};
use access::{
    Change, ClientPrefix, Gate, RedisSource, RedisSourceFollower, Refusal, SqlWhitelist, Store, Whitelist,
    load,
};
use domain::clock::SystemClock;
use keyspace::{Redis, RedisSettings, RedisSourceChannels};
use testkit::{RedisCluster, RedisServer, eventually_async, on_every_database};
use tokio::sync::{mpsc, oneshot};

use crate::fixture::{
    Fixture, NOW, OpenStore, info_hash, new_torrent, new_user, passkey, peer_id, torrent_id, user_id,
};

const TIMEOUT: Duration = Duration::from_secs(30);

fn keys_at(url: &str) -> RedisSource {
    let settings = RedisSettings::from_url(url).unwrap();
    RedisSource::new(Redis::new(settings).unwrap(), RedisSourceChannels::default())
}

fn torrent_key(number: u64) -> String {
    format!("t:info_hash:{}", info_hash(number))
}

fn user_key(number: u64) -> String {
    format!("t:user:{}", passkey(number))
}

struct Following {
    gate: Arc<Gate>,
    changes: mpsc::UnboundedReceiver<Change>,
    counters: Arc<access::redis_source::RedisSourceCounters>,
    _stop: oneshot::Sender<()>,
}

impl Following {
    async fn start(url: &str, scan_pause: Duration) -> Following {
        let gate = Arc::new(Gate::default());
        let follower = RedisSourceFollower::load(keys_at(url), gate.clone()).await.scan_pause(scan_pause);
        let (sender, changes) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let counters = follower.counters();
        tokio::spawn(follower.run(move |change| sender.send(change).unwrap_or_default(), stopped));
        Following { gate, changes, counters, _stop: stop }
    }

    async fn expect(&mut self, expected: Change) {
        let receiving = async {
            while let Some(change) = self.changes.recv().await {
                if change == expected {
                    return;
                }
            }
            panic!("the follower ended");
        };
        tokio::time::timeout(TIMEOUT, receiving)
            .await
            .unwrap_or_else(|_| panic!("not reported: {expected:?}"));
    }

    /// Waits for this many further scans.
    async fn scans(&self, count: u64) {
        let goal = self.counters.scans.load(Ordering::Relaxed) + count;
        eventually_async("scans continue", TIMEOUT, async || {
            (self.counters.scans.load(Ordering::Relaxed) >= goal).then_some(())
        })
        .await;
    }
}

/// Not the canonical spelling.
const UPPER_CASE: &str = "t:info_hash:ABCDEF0123456789ABCDEF0123456789ABCDEF01";
const NEVER: Duration = Duration::from_secs(3600);
const OFTEN: Duration = Duration::from_millis(20);

#[tokio::test(flavor = "multi_thread")]
async fn m1_m3_existing_keys_admit_and_published_changes_apply_at_once() {
    let server = RedisServer::start();
    let cli = |args: &[&str]| server.cli(args);
    cli(&["SET", &torrent_key(1), "1"]);
    cli(&["HSET", &user_key(7), "user_id", "7", "name", "anna"]);
    let mut site = Following::start(&server.url(), NEVER).await;
    assert_eq!(site.gate.torrent_of(&info_hash(1)), Some(torrent_id(1)));
    assert_eq!(site.gate.admit_user(&passkey(7), NOW), Ok(user_id(7)));
    assert!(site.gate.allows_client(&peer_id("-XX1")), "without a list every client is allowed");

    cli(&["SET", &torrent_key(2), "2"]);
    cli(&["PUBLISH", "t:ch:torrent", &info_hash(2).to_string()]);
    site.expect(Change::TorrentAdmitted(info_hash(2))).await;
    cli(&["DEL", &torrent_key(1)]);
    cli(&["PUBLISH", "t:ch:torrent", &info_hash(1).to_string()]);
    site.expect(Change::TorrentRemoved(info_hash(1))).await;
    assert_eq!(site.gate.torrent_of(&info_hash(1)), None);

    // A new passkey: of several keys, the one published last counts.
    cli(&["HSET", &user_key(8), "user_id", "7"]);
    cli(&["PUBLISH", "t:ch:user", &passkey(8).to_string()]);
    site.expect(Change::UserAdmitted(user_id(7))).await;
    assert_eq!(site.gate.admit_user(&passkey(8), NOW), Ok(user_id(7)));
    assert!(site.gate.admit_user(&passkey(7), NOW).is_err());
    cli(&["DEL", &user_key(8)]);
    cli(&["PUBLISH", "t:ch:user", &passkey(8).to_string()]);
    site.expect(Change::UserRemoved(user_id(7))).await;

    // The value may be anything.
    cli(&["HSET", "t:whitelist:-TR3", "name", "Transmission"]);
    cli(&["PUBLISH", "t:ch:whitelist", "-TR3"]);
    site.expect(Change::ClientsChanged).await;
    assert!(site.gate.allows_client(&peer_id("-TR3")) && !site.gate.allows_client(&peer_id("-XX1")));
    cli(&["DEL", "t:whitelist:-TR3"]);
    cli(&["PUBLISH", "t:ch:whitelist", ""]);
    site.expect(Change::ClientsChanged).await;
    assert!(site.gate.allows_client(&peer_id("-XX1")));
    cli(&["PUBLISH", "t:ch:torrent", "nonsense"]);
    cli(&["SET", &torrent_key(3), "3"]);
    cli(&["PUBLISH", "t:ch:torrent", &info_hash(3).to_string()]);
    site.expect(Change::TorrentAdmitted(info_hash(3))).await;
    assert_eq!(site.counters.messages_malformed.load(Ordering::Relaxed), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn unpublished_changes_are_found_by_a_scan_and_malformed_keys_are_skipped() {
    let server = RedisServer::start();
    let mut lines = vec![format!("SET {} many", torrent_key(9))];
    lines.push(format!("SET {UPPER_CASE} 5"));
    lines.push(format!("LPUSH {} 1", user_key(9)));
    lines.push(format!("HSET {} name x", user_key(10)));
    for number in 1..=3000 {
        lines.push(format!("SET {} {number}", torrent_key(number + 100)));
        lines.push(format!("HSET {} user_id {number}", user_key(number + 100)));
        lines.push(format!("SET other:{number} 1"));
    }
    server.cli_lines(&(lines.join("\n") + "\n"));
    let mut site = Following::start(&server.url(), OFTEN).await;
    assert_eq!((site.gate.torrent_count(), site.gate.user_count()), (3000, 3000));
    site.scans(1).await;
    assert_eq!(site.counters.keys_malformed.load(Ordering::Relaxed), 4);

    // A hybrid torrent has two infohashes; a third is in conflict until one of the others is deleted.
    for number in [4001, 4002, 4003] {
        server.cli(&["SET", &torrent_key(number), "4000"]);
        site.scans(2).await;
    }
    let known = |number| site.gate.torrent(&info_hash(number)).map(|grant| grant.info_hash);
    assert_eq!((known(4001), known(4002)), (Some(info_hash(4001)), Some(info_hash(4001))));
    assert_eq!(known(4003), None);
    assert_eq!(site.counters.keys_conflicting.load(Ordering::Relaxed), 1);
    server.cli(&["DEL", &torrent_key(4001)]);
    site.expect(Change::TorrentRemoved(info_hash(4001))).await;
    // The same scan inserts its successor.
    site.scans(1).await;
    let known = |number| site.gate.torrent(&info_hash(number)).map(|grant| grant.info_hash);
    assert_eq!((known(4001), known(4002), known(4003)), (None, Some(info_hash(4002)), Some(info_hash(4002))));

    // A user's passkey changes without a message; a passkey moves to another user.
    server.cli(&["HSET", &user_key(5000), "user_id", "1"]);
    server.cli(&["DEL", &user_key(101)]);
    site.expect(Change::UserAdmitted(user_id(1))).await;
    assert_eq!(site.gate.admit_user(&passkey(5000), NOW), Ok(user_id(1)));
    assert!(site.gate.admit_user(&passkey(101), NOW).is_err());
    server.cli(&["HSET", &user_key(102), "user_id", "9999"]);
    site.expect(Change::UserRemoved(user_id(2))).await;
    assert_eq!(site.gate.admit_user(&passkey(102), NOW), Ok(user_id(9999)));
    server.cli(&["DEL", &torrent_key(103)]);
    site.expect(Change::TorrentRemoved(info_hash(103))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_or_empty_redis_removes_nothing() {
    let mut server = RedisServer::start();
    server.cli(&["SET", &torrent_key(1), "1"]);
    server.cli(&["HSET", &user_key(7), "user_id", "7"]);
    let mut site = Following::start(&server.url(), OFTEN).await;
    server.kill();
    // It has no persistence, so it restarts empty.
    server.restart();
    let counters = site.counters.clone();
    eventually_async("another scan", TIMEOUT, async || {
        (counters.scans_discarded.load(Ordering::Relaxed) > 0).then_some(())
    })
    .await;
    assert_eq!(site.gate.admit_user(&passkey(7), NOW), Ok(user_id(7)));
    assert_eq!(site.gate.torrent_of(&info_hash(1)), Some(torrent_id(1)));
    // The site writes its keys again.
    server.cli(&["SET", &torrent_key(2), "2"]);
    site.expect(Change::TorrentAdmitted(info_hash(2))).await;
    site.expect(Change::TorrentRemoved(info_hash(1))).await;
    assert!(site.gate.admit_user(&passkey(7), NOW).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn m1_a_loss_of_most_keys_is_accepted_after_three_scans_or_on_request() {
    let server = RedisServer::start();
    for number in 1..=30 {
        server.cli(&["SET", &torrent_key(number), &number.to_string()]);
    }
    let keys: Vec<String> = (2..=30).map(torrent_key).collect();
    let lost: Vec<&str> = std::iter::once("DEL").chain(keys.iter().map(String::as_str)).collect();
    let mut site = Following::start(&server.url(), NEVER).await;
    assert_eq!(site.gate.torrent_count(), 30);
    server.cli(&lost);
    // The site requests a scan.
    server.cli(&["PUBLISH", "t:ch:torrent", ""]);
    site.expect(Change::TorrentRemoved(info_hash(30))).await;
    for number in 2..=30 {
        server.cli(&["SET", &torrent_key(number), &number.to_string()]);
    }
    let mut site = Following::start(&server.url(), OFTEN).await;
    server.cli(&lost);
    site.expect(Change::TorrentRemoved(info_hash(30))).await;
    assert!(site.counters.scans_discarded.load(Ordering::Relaxed) >= 2, "not at once");
}

#[tokio::test(flavor = "multi_thread")]
async fn m1_an_unpublished_deletion_of_the_last_key_is_accepted() {
    let server = RedisServer::start();
    server.cli(&["SET", &torrent_key(1), "1"]);
    let mut site = Following::start(&server.url(), OFTEN).await;
    server.cli(&["DEL", &torrent_key(1)]);
    site.expect(Change::TorrentRemoved(info_hash(1))).await;
    assert_eq!(site.gate.torrent_of(&info_hash(1)), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn m1_a_redis_that_is_unreachable_at_the_start_is_read_later() {
    let mut server = RedisServer::start();
    server.kill();
    let mut site = Following::start(&server.url(), NEVER).await;
    let gate = Gate::default().with_redis_source(site.gate.clone());
    gate.put_user(user_id(7), passkey(7), true);
    let admit = |number| gate.admit(&passkey(7), &info_hash(number), &peer_id("-TR3"), NOW);
    assert_eq!(admit(1), Err(Refusal::CannotCheckTorrent));
    gate.put_torrent(torrent_id(2), info_hash(2), None, true);
    assert!(admit(2).is_ok(), "in the database");
    server.restart();
    server.cli(&["SET", &torrent_key(1), "1"]);
    server.cli(&["PUBLISH", "t:ch:torrent", &info_hash(1).to_string()]);
    site.expect(Change::TorrentAdmitted(info_hash(1))).await;
    assert!(admit(1).is_ok());
    site.scans(1).await;
    assert_eq!(admit(3), Err(Refusal::UnknownTorrent));
}

#[tokio::test(flavor = "multi_thread")]
async fn m1_keys_on_every_master_of_a_cluster_are_found() {
    let cluster = RedisCluster::start();
    for number in 1..=12 {
        cluster.cli(&["SET", &torrent_key(number), &number.to_string()]);
    }
    let url = format!("redis+cluster://127.0.0.1:{}", cluster.node(0).port());
    let mut site = Following::start(&url, NEVER).await;
    assert_eq!(site.gate.torrent_count(), 12);
    cluster.cli(&["DEL", &torrent_key(3)]);
    cluster.node(2).cli(&["PUBLISH", "t:ch:torrent", &info_hash(3).to_string()]);
    site.expect(Change::TorrentRemoved(info_hash(3))).await;
}

fn new_copier(server: &RedisServer, gate: &Arc<Gate>, store: &Store) -> (Copier, CopyQueue) {
    Copier::new(CopierParts {
        keys: keys_at(&server.url()),
        gate: Arc::clone(gate),
        store: store.clone(),
        whitelist: Arc::new(SqlWhitelist::new(store.clone())),
        clock: Arc::new(SystemClock),
    })
}

fn present(server: &RedisServer) -> Vec<String> {
    let all = server.cli(&["KEYS", "t:[iuw]*"]);
    let mut all: Vec<String> = all.lines().map(str::to_owned).filter(|key| !key.is_empty()).collect();
    all.sort_unstable();
    all
}

async fn await_keys(server: &RedisServer, mut expected: Vec<String>) {
    expected.sort_unstable();
    // Not `eventually_equal`: the copier runs on the thread of the test.
    let what = format!("keys {expected:?}");
    eventually_async(&what, TIMEOUT, async || (present(server) == expected).then_some(())).await;
}

async fn m1_m3_keys_follow_the_database(fixture: Fixture) {
    let server = RedisServer::start();
    let store = fixture.store().await;
    store.add_users([new_user(1), new_user(2)]).await.unwrap();
    let hybrid = access::NewTorrent { info_hash_v2: Some(info_hash(51)), ..new_torrent(5) };
    store.add_torrents([new_torrent(4), hybrid]).await.unwrap();
    let prefix: ClientPrefix = "-TR3".parse().unwrap();
    store.allow_client(prefix, "Transmission 3").await.unwrap();
    store.forbid_client("-XX".parse().unwrap(), "").await.unwrap();
    let gate = Arc::new(Gate::default());
    let follower = load(store.clone(), gate.clone()).await.unwrap();
    let (copier, queue) = new_copier(&server, &gate, &store);
    let (_stop, stopped) = oneshot::channel::<()>();
    let (_end, ended) = oneshot::channel::<()>();
    tokio::spawn(copier.run(stopped));
    tokio::spawn(follower.run(move |change| queue.push(change), ended));

    let whitelist = "t:whitelist:-TR3".to_owned();
    let mut expected =
        vec![torrent_key(4), torrent_key(5), torrent_key(51), user_key(1), user_key(2), whitelist.clone()];
    await_keys(&server, expected.clone()).await;
    assert_eq!(server.cli(&["GET", &torrent_key(51)]), "5");
    assert_eq!(server.cli(&["HGETALL", &user_key(1)]), "user_id\n1");
    assert_eq!(server.cli(&["GET", &whitelist]), "Transmission 3");

    store.set_user_enabled(user_id(2), false).await.unwrap();
    store.remove_torrent(torrent_id(5)).await.unwrap();
    store.rotate_passkey(user_id(1), Some(passkey(11))).await.unwrap();
    store.remove_client(prefix).await.unwrap();
    store.add_torrent(new_torrent(6)).await.unwrap();
    expected = vec![torrent_key(4), torrent_key(6), user_key(11)];
    await_keys(&server, expected.clone()).await;

    // A copy of a row that was removed while no process ran is deleted at the next start; the site's own key stays.
    server.cli(&["SET", &torrent_key(77), "77"]);
    server.cli(&["SADD", "t:m:copies:torrents", &info_hash(77).to_string()]);
    server.cli(&["SET", &torrent_key(78), "78"]);
    expected.push(torrent_key(78));
    let gate = Arc::new(Gate::default());
    load(store.clone(), gate.clone()).await.unwrap();
    let (copier, _queue) = new_copier(&server, &gate, &store);
    let (_stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(copier.run(stopped));
    await_keys(&server, expected).await;
}

async fn m1_m3_sync_loads_the_keys_from_the_database(fixture: Fixture) {
    let server = RedisServer::start();
    let store = fixture.store().await;
    store.add_torrents((1..=2500).map(new_torrent)).await.unwrap();
    store.set_torrent_enabled(torrent_id(2500), false).await.unwrap();
    store.add_users([new_user(1), new_user(2)]).await.unwrap();
    let keys = keys_at(&server.url());
    server.cli(&["SET", &torrent_key(1), "1"]);
    server.cli(&["SET", &torrent_key(2), "wrong"]);
    server.cli(&["SET", &torrent_key(2500), "2500"]);
    server.cli(&["SET", &torrent_key(9999), "9999"]);
    server.cli(&["SET", UPPER_CASE, "1"]);
    server.cli(&["SET", &user_key(1), "of another type"]);

    let dry = SyncOptions { flush: true, is_dry: true, allow_empty: false };
    let report = sync(&store, &keys, Kind::Torrents, dry, |_| ()).await.unwrap();
    let expected = SyncReport { wanted: 2499, written: 2498, unchanged: 1, removed: 3, unknown: 0 };
    assert_eq!(report, expected);
    assert_eq!(server.cli(&["DBSIZE"]), "6");

    let mut read = 0;
    let report =
        sync(&store, &keys, Kind::Torrents, SyncOptions::default(), |rows| read = rows).await.unwrap();
    assert_eq!(report, SyncReport { removed: 1, unknown: 2, ..expected });
    assert_eq!(read, 2500);
    assert_eq!(server.cli(&["GET", &torrent_key(2)]), "2");
    assert_eq!(server.cli(&["GET", &torrent_key(9999)]), "9999");
    let flush = SyncOptions { is_dry: false, ..dry };
    let report = sync(&store, &keys, Kind::Torrents, flush, |_| ()).await.unwrap();
    let expected = SyncReport { wanted: 2499, written: 0, unchanged: 2499, removed: 2, unknown: 0 };
    assert_eq!(SyncReport { unchanged: 2499, ..report }, expected);
    assert_eq!(server.cli(&["EXISTS", &torrent_key(9999), UPPER_CASE]), "0");

    server.cli(&["SET", "t:whitelist:-TR3", "Transmission"]);
    let refused = sync(&store, &keys, Kind::Clients, flush, |_| ()).await.unwrap_err().to_string();
    assert!(refused.contains("--allow-empty"), "{refused}");
    let report = sync(&store, &keys, Kind::Users, SyncOptions::default(), |_| ()).await.unwrap();
    assert_eq!((report.wanted, report.written), (2, 2));
    assert_eq!(server.cli(&["HGET", &user_key(1), "user_id"]), "1");
}

on_every_database!(m1_m3_keys_follow_the_database, m1_m3_sync_loads_the_keys_from_the_database);

#[tokio::test(flavor = "multi_thread")]
async fn m1_m3_the_sites_own_keys_are_not_changed_and_lost_copies_are_written_again() {
    let (server, fixture) = (RedisServer::start(), Fixture::sqlite());
    let store = fixture.store().await;
    store.add_torrents([new_torrent(1), new_torrent(2)]).await.unwrap();
    store.add_user(new_user(3)).await.unwrap();
    // A torrent that is not in the database, one with another id there, and a user of the database.
    server.cli(&["SET", &torrent_key(8), "8"]);
    server.cli(&["SET", &torrent_key(2), "22"]);
    server.cli(&["HSET", &user_key(3), "user_id", "3"]);
    let gate = Arc::new(Gate::default());
    load(store.clone(), gate.clone()).await.unwrap();
    let (copier, queue) = new_copier(&server, &gate, &store);
    let (_stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(copier.run(stopped));
    let counters = queue.counters();
    eventually_async("a comparison ends", TIMEOUT, async || {
        (counters.comparisons.load(Ordering::Relaxed) > 0).then_some(())
    })
    .await;
    assert_eq!(counters.conflicts.load(Ordering::Relaxed), 1);
    assert_eq!(server.cli(&["GET", &torrent_key(2)]), "22");
    assert_eq!(server.cli(&["GET", &torrent_key(1)]), "1");
    assert_eq!(server.cli(&["SMEMBERS", "t:m:copies:torrents"]), info_hash(1).to_string());
    assert_eq!(server.cli(&["EXISTS", "t:m:copies:users"]), "0");
    store.remove_user(user_id(3)).await.unwrap();
    gate.remove_user(user_id(3));
    queue.push(Change::PasskeyChanged(passkey(3)));
    queue.push(Change::ClientsChanged);
    server.cli(&["FLUSHALL"]);
    await_keys(&server, vec![torrent_key(1), torrent_key(2)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn m3_copies_of_the_database_are_not_a_source() {
    let (server, fixture) = (RedisServer::start(), Fixture::sqlite());
    let store = fixture.store().await;
    store.add_user(new_user(3)).await.unwrap();
    let site = Following::start(&server.url(), OFTEN).await;
    let gate = Arc::new(Gate::default());
    load(store.clone(), gate.clone()).await.unwrap();
    let (copier, _queue) = new_copier(&server, &gate, &store);
    let (stop, stopped) = oneshot::channel::<()>();
    let copying = tokio::spawn(copier.run(stopped));
    await_keys(&server, vec![user_key(3)]).await;
    site.scans(2).await;
    assert_eq!(site.gate.user_of(&passkey(3)), None, "a user removed from the database would stay");
    // Also if no process is left to remove the copy.
    drop(stop);
    copying.await.unwrap();
    server.cli(&["PUBLISH", "t:ch:user", &passkey(3).to_string()]);
    site.scans(2).await;
    assert_eq!(site.gate.user_of(&passkey(3)), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn m4_external_users_have_a_key_while_they_are_verified() {
    let (server, fixture) = (RedisServer::start(), Fixture::sqlite());
    let store = fixture.store().await;
    let whitelist = SqlWhitelist::new(store.clone());
    whitelist.add(&[passkey(1)]).await.unwrap();
    let gate = Arc::new(Gate::default());
    gate.put_external_user(user_id(1001), passkey(1), true);
    gate.put_external_user(user_id(1002), passkey(2), true);
    let (copier, queue) = new_copier(&server, &gate, &store);
    let (_stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(copier.run(stopped));
    await_keys(&server, vec![user_key(1)]).await;
    assert_eq!(server.cli(&["HGET", &user_key(1), "user_id"]), "1001");
    whitelist.add(&[passkey(2)]).await.unwrap();
    whitelist.remove(&[passkey(1)]).await.unwrap();
    queue.push(Change::PasskeyChanged(passkey(1)));
    queue.push(Change::PasskeyChanged(passkey(2)));
    await_keys(&server, vec![user_key(2)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn m11_changes_by_sync_are_published() {
    let (server, fixture) = (RedisServer::start(), Fixture::sqlite());
    let store = fixture.store().await;
    let mut site = Following::start(&server.url(), NEVER).await;
    store.add_torrent(new_torrent(1)).await.unwrap();
    let keys = keys_at(&server.url());
    sync(&store, &keys, Kind::Torrents, SyncOptions::default(), |_| ()).await.unwrap();
    site.expect(Change::TorrentAdmitted(info_hash(1))).await;
    // Too many to be published one by one.
    store.add_torrents((2..=1500).map(new_torrent)).await.unwrap();
    sync(&store, &keys, Kind::Torrents, SyncOptions::default(), |_| ()).await.unwrap();
    site.expect(Change::TorrentAdmitted(info_hash(1500))).await;
    assert!(site.counters.messages.load(Ordering::Relaxed) <= 2);
}

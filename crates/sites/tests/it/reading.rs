//! The site's users, torrents and clients become ours.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use access::{ClientPrefix, LeechSlots};
use domain::clock::SystemClock;
use sites::{Reader, ReaderCounters, ReaderParts, Ring, Rings};
use testkit::proxy::{NetworkState, Proxy};
use testkit::servers::MariaDbServer;
use testkit::wait::eventually_async;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::support::tables::{Site, TORRENTS, USERS, passkey};
use crate::support::{TIMEOUT, Tracker, info_hash, torrent, user};

struct Running {
    counters: Arc<ReaderCounters>,
    rings: Rings,
    _stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn read(site: &Site, tracker: &Tracker) -> Running {
    read_every(site, tracker, Duration::from_secs(600))
}

/// With a round at the start, and then this often at the most.
fn read_every(site: &Site, tracker: &Tracker, interval: Duration) -> Running {
    let profile = Arc::new(site.profile());
    let reader = Reader::new(ReaderParts {
        profile,
        url: site.url.clone(),
        store: tracker.store.clone(),
        ledger: Arc::clone(&tracker.ledger),
        clock: Arc::new(SystemClock),
    });
    let reader = reader.round_interval(interval);
    let (counters, rings) = (reader.counters(), reader.rings());
    let (stop, stopped) = oneshot::channel::<()>();
    Running { counters, rings, _stop: stop, task: tokio::spawn(reader.run(stopped)) }
}

async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    eventually_async(what, TIMEOUT, async || is_so().await.then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_users_and_torrents_of_every_profile_are_read() {
    for site in [Site::unit3d(), Site::xbt(), Site::nexusphp(), Site::prisma()] {
        let tracker = Tracker::start().await;
        let reader = read(&site, &tracker);
        until("a round", async || reader.counters.rounds.get() > 0).await;
        assert_eq!(tracker.store.count_users().await.unwrap(), USERS, "{}", site.profile);
        let found = tracker.store.user(user(3)).await.unwrap().unwrap();
        assert_eq!((found.passkey.to_string(), found.enabled), (passkey(3), true));
        assert_eq!(tracker.store.count_torrents().await.unwrap(), TORRENTS);
        let found = tracker.store.torrent(torrent(2)).await.unwrap().unwrap();
        assert!((found.info_hash, found.enabled, found.approved) == (info_hash(2), true, true));
        assert_eq!(reader.counters.malformed.get(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_new_rows_count_within_seconds_and_requested_rows_at_once() {
    let site = Site::unit3d();
    site.sql("INSERT INTO blacklist_clients (peer_id_prefix) VALUES ('-XL')");
    let tracker = Tracker::start().await;
    let reader = read(&site, &tracker);
    until("a round", async || reader.counters.rounds.get() > 0).await;
    let rules = tracker.store.list_clients().await.unwrap();
    assert_eq!((rules[0].prefix, rules[0].allowed), ("-XL".parse::<ClientPrefix>().unwrap(), false));
    site.sql(&format!(
        "INSERT INTO users (id, passkey, group_id, can_download) VALUES (70, '{}', 3, 1), (71, '{}', 1, 0)",
        passkey(70),
        passkey(71)
    ));
    until("the new users", async || tracker.store.user(user(71)).await.unwrap().is_some()).await;
    let slots = |id| {
        let store = tracker.store.clone();
        async move { store.user(user(id)).await.unwrap().unwrap().leech_slots }
    };
    assert_eq!(slots(70).await, LeechSlots::at_most(2).unwrap());
    assert_eq!(slots(71).await, LeechSlots::at_most(0).unwrap());
    assert_eq!(slots(1).await, LeechSlots::UNLIMITED);
    // A change and a removal, each with a request before the commit.
    for ring in [Ring::User(70), Ring::User(2), Ring::Torrent(4), Ring::Clients] {
        assert!(reader.rings.ring(ring));
    }
    let rounds = reader.counters.rounds.get();
    site.sql(
        "UPDATE users SET group_id = 2, passkey = REPEAT('ab', 16) WHERE id = 70;
         UPDATE users SET deleted_at = NOW() WHERE id = 2; UPDATE torrents SET status = 0 WHERE id = 4;
         DELETE FROM blacklist_clients",
    );
    until("the changes", async || {
        let store = &tracker.store;
        let changed = store.user(user(70)).await.unwrap().unwrap();
        let is_changed = !changed.enabled && changed.passkey.to_string() == "ab".repeat(16);
        let is_removed = store.user(user(2)).await.unwrap().is_none();
        let is_pending = !store.torrent(torrent(4)).await.unwrap().unwrap().approved;
        is_changed && is_removed && is_pending && store.list_clients().await.unwrap().is_empty()
    })
    .await;
    assert_eq!(reader.counters.rounds.get(), rounds, "by a round, not by the request");
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_of_several_torrents_with_one_infohash_the_approved_one_counts() {
    let site = Site::unit3d();
    site.sql(&format!(
        "UPDATE torrents SET status = 0 WHERE id = 1;
         INSERT INTO torrents (id, info_hash) VALUES (9, UNHEX('{0}')), (10, UNHEX('{0}'))",
        info_hash(1)
    ));
    let tracker = Tracker::start().await;
    let reader = read(&site, &tracker);
    until("a round", async || reader.counters.rounds.get() > 0).await;
    let held = tracker.store.torrent_by_info_hash(&info_hash(1)).await.unwrap().unwrap();
    assert_eq!(held.id, torrent(9));
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_a_passkey_that_moves_to_another_user_is_theirs() {
    let site = Site::unit3d();
    let tracker = Tracker::start().await;
    let reader = read(&site, &tracker);
    until("a round", async || reader.counters.rounds.get() > 0).await;
    site.sql(&format!(
        "UPDATE users SET passkey = 'x' WHERE id = 1; UPDATE users SET passkey = '{}' WHERE id = 2;
         UPDATE users SET passkey = '{}' WHERE id = 1",
        passkey(1),
        passkey(2)
    ));
    assert!(reader.rings.ring(Ring::User(2)) && reader.rings.ring(Ring::User(1)));
    until("both", async || {
        let holder = async |key: u64| {
            let found = tracker.store.user_by_passkey(&passkey(key).parse().unwrap()).await.unwrap();
            found.map(|found| found.id.get())
        };
        holder(1).await == Some(2) && holder(2).await == Some(1)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_many_rows_that_vanish_at_once_are_removed_after_three_rounds() {
    let site = Site::xbt();
    for number in 20..40 {
        site.sql(&format!(
            "INSERT INTO xbt_users (uid, torrent_pass) VALUES ({number}, '{}')",
            passkey(number)
        ));
    }
    let tracker = Tracker::start().await;
    let reader = read_every(&site, &tracker, Duration::from_millis(50));
    until("a round", async || reader.counters.rounds.get() > 0).await;
    site.sql("DELETE FROM xbt_users");
    until("two rounds", async || reader.counters.removals_held.get() == 2).await;
    until("the third", async || tracker.store.count_users().await.unwrap() == 0).await;
    assert_eq!(reader.counters.removals_held.get(), 2);
    assert_eq!(reader.counters.removed.get(), USERS + 20);
    assert_eq!(tracker.store.count_torrents().await.unwrap(), TORRENTS);
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_a_database_that_is_away_changes_nothing() {
    let site = Site::xbt();
    let address: SocketAddr = ([127, 0, 0, 1], MariaDbServer::shared().port()).into();
    let proxy = Proxy::start(address);
    let url = site.url.replace(&address.to_string(), &proxy.address().to_string());
    let site = site.at(url);
    let tracker = Tracker::start().await;
    let reader = read_every(&site, &tracker, Duration::from_millis(50));
    until("a round", async || reader.counters.rounds.get() > 0).await;
    proxy.set(NetworkState::Cut);
    until("a failure", async || reader.counters.failures_in_a_row.get() > 0).await;
    site.sql("DELETE FROM xbt_users WHERE uid = 2");
    assert_eq!(tracker.store.count_users().await.unwrap(), USERS);
    proxy.set(NetworkState::Working);
    until("the removal", async || tracker.store.count_users().await.unwrap() == USERS - 1).await;
    until("its end", async || reader.counters.failures_in_a_row.get() == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_discounts_of_every_scope_are_read_and_end() {
    let site = Site::unit3d();
    site.sql(
        "UPDATE torrents SET free = 50, doubleup = 1 WHERE id = 1; INSERT INTO featured_torrents VALUES (2);
         INSERT INTO freeleech_tokens VALUES (3, 4); INSERT INTO personal_freeleeches VALUES (5);
         UPDATE `groups` SET is_double_upload = 1 WHERE id = 3; UPDATE users SET group_id = 3 WHERE id = 6",
    );
    let tracker = Tracker::start().await;
    let reader = read_every(&site, &tracker, Duration::from_millis(50));
    let listed = async || {
        let discounts = tracker.ledger.discounts().await.unwrap();
        let row = |discount: ledger::Discount| {
            let user = discount.scope.user.map_or(0, |user| user.get());
            let torrent = discount.scope.torrent.map_or(0, |torrent| torrent.get());
            (user, torrent, discount.upload.get(), discount.download.get(), discount.is_exact)
        };
        let mut rows: Vec<_> = discounts.into_iter().map(row).collect();
        rows.sort_unstable();
        rows
    };
    until("a round", async || reader.counters.rounds.get() > 0).await;
    let all = [
        (0, 1, 200, 50, false),
        (0, 2, 200, 0, true),
        (3, 4, 100, 0, false),
        (5, 0, 100, 0, false),
        (6, 0, 200, 100, false),
    ];
    assert_eq!(listed().await, all);
    site.sql("DELETE FROM freeleech_tokens; UPDATE torrents SET free = 100 WHERE id = 1");
    until("the change", async || listed().await == [(0, 1, 200, 0, false), all[1], all[3], all[4]]).await;
}

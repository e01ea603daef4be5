//! What clients moved arrives in the site's tables, once.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::AnnounceEvent::{Completed, Started, Stopped};
use sites::Stage;
use testkit::proxy::{NetworkState, Proxy};
use testkit::servers::MariaDbServer;
use testkit::wait::eventually_async;

use crate::support::tables::{Site, TORRENTS, USERS};
use crate::support::{Step, TIMEOUT, Tracker};

/// Users, accounts and torrents of the site equal the clients' own sums.
#[track_caller]
fn assert_conserved(site: &Site, tracker: &Tracker, extra: u64) {
    for user in 1..=USERS {
        let (up, down) = tracker.moved_by(user);
        assert_eq!(site.totals(user), (up + extra, down), "{} user {user}", site.profile);
    }
    for (user, torrent) in tracker.accounts() {
        let moved = tracker.moved_on(user, torrent);
        assert_eq!(site.account(user, torrent), moved, "{} user {user} on {torrent}", site.profile);
    }
}

/// Every user starts on every torrent.
async fn start_all(tracker: &mut Tracker) {
    for user in 1..=USERS {
        let start = |torrent| Step::new(user, torrent, 0, 0).event(Started);
        tracker.announce(&(1..=TORRENTS).map(start).collect::<Vec<_>>()).await;
    }
}

/// One announce of each of some users on some torrents.
async fn announce_at_random(tracker: &mut Tracker, random: &mut fastrand::Rng) {
    let steps: Vec<Step> = (0..8)
        .map(|_| {
            let (user, torrent) = (random.u64(1..=USERS), random.u64(1..=TORRENTS));
            Step::new(user, torrent, random.u64(0..1 << 30), random.u64(0..1 << 30))
        })
        .collect();
    for step in steps {
        tracker.announce(&[step]).await;
    }
    tracker.pass(1);
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_every_profile_gets_totals_accounts_and_counts() {
    for site in [Site::unit3d(), Site::xbt(), Site::nexusphp(), Site::prisma()] {
        let mut tracker = Tracker::start().await;
        let writer = tracker.write_to(&site.url, &site.profile());
        writer.settle(&tracker).await;
        tracker
            .announce(&[Step::new(1, 1, 0, 0).event(Started), Step::new(2, 1, 0, 0).left(900).event(Started)])
            .await;
        tracker.pass(60);
        tracker.announce(&[Step::new(1, 1, 900, 0), Step::new(2, 1, 0, 500).left(400)]).await;
        tracker.apply().await;
        writer.settle(&tracker).await;
        assert_conserved(&site, &tracker, 0);
        assert_eq!(site.seeders_and_leechers(1), (1, 1), "{}", site.profile);
        tracker.pass(60);
        tracker
            .announce(&[Step::new(2, 1, 0, 400).event(Completed), Step::new(1, 1, 5, 0).event(Stopped)])
            .await;
        tracker.apply().await;
        writer.settle(&tracker).await;
        assert_conserved(&site, &tracker, 0);
        assert_eq!(site.seeders_and_leechers(1), (1, 0), "{}", site.profile);
        writer.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_unit3d_has_history_and_peers_as_its_pages_read_them() {
    let site = Site::unit3d();
    let mut tracker = Tracker::start().await;
    let writer = tracker.write_to(&site.url, &site.profile());
    writer.settle(&tracker).await;
    tracker.announce(&[Step::new(3, 2, 0, 0).left(7).event(Started)]).await;
    tracker.pass(100);
    let completed_at = tracker.now().0;
    tracker.announce(&[Step::new(3, 2, 10, 7).event(Completed)]).await;
    tracker.pass(100);
    let step = Step { ip: "2001:db8::1".parse::<IpAddr>().unwrap(), ..Step::new(3, 2, 10, 0) };
    tracker.announce(&[step]).await;
    tracker.apply().await;
    writer.settle(&tracker).await;
    let row =
        "uploaded, actual_uploaded, client_uploaded, downloaded, seeder, active, seedtime, immune, agent,
         UNIX_TIMESTAMP(completed_at), UNIX_TIMESTAMP(updated_at)";
    let history =
        |site: &Site| site.sql(&format!("SELECT {row} FROM history WHERE user_id = 3 AND torrent_id = 2"));
    // Dates without a zone are in UTC, as the session of the client is.
    let read = |text: String| text.split('\t').map(str::to_owned).collect::<Vec<_>>();
    site.sql("SET GLOBAL time_zone = '+00:00'");
    let now = tracker.now().0;
    let expected = format!("20\t20\t20\t7\t1\t1\t100\t0\tqBittorrent/5.0.2\t{completed_at}\t{now}");
    assert_eq!(read(history(&site)), read(expected));
    assert_eq!(
        site.sql("SELECT HEX(ip), port, seeder, active, visible, `left`, uploaded FROM peers"),
        "20010DB8000000000000000000000001\t50000\t1\t1\t1\t0\t20"
    );
    assert_eq!(site.sql("SELECT times_completed, balance FROM torrents WHERE id = 2"), "1\t13");
    tracker.pass(10);
    tracker.announce(&[Step::new(3, 2, 0, 0).event(Stopped)]).await;
    tracker.apply().await;
    writer.settle(&tracker).await;
    assert_eq!(site.sql("SELECT active FROM peers"), "0");
    assert_eq!(site.sql("SELECT seeder, active, seedtime FROM history"), "1\t0\t110");
    writer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_a_row_is_compared_again_until_the_ledger_has_applied_its_entries() {
    let site = Site::xbt();
    let mut tracker = Tracker::start().await;
    let writer = tracker.write_to(&site.url, &site.profile());
    writer.settle(&tracker).await;
    tracker.announce(&[Step::new(1, 1, 0, 0).event(Started), Step::new(1, 1, 77, 0)]).await;
    tracker.apply_to_view().await;
    // The view is ahead of the ledger, for several flushes.
    let flushes = writer.counters.rounds.get() + 3;
    eventually_async("flushes", TIMEOUT, async || (writer.counters.rounds.get() > flushes).then_some(()))
        .await;
    assert_eq!(site.totals(1), (0, 0));
    tracker.apply_to_ledger().await;
    writer.settle(&tracker).await;
    assert_conserved(&site, &tracker, 0);
    writer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_l6_kills_and_lost_replies_neither_lose_nor_double_a_byte() {
    let mut random = fastrand::Rng::with_seed(21);
    for site in [Site::unit3d(), Site::prisma()] {
        let address: SocketAddr = {
            let server = site.url.split('@').nth(1).unwrap().split('/').next().unwrap();
            server.parse().unwrap_or_else(|_| panic!("{server}"))
        };
        let proxy = Proxy::start(address);
        let proxied = site.url.replace(&address.to_string(), &proxy.address().to_string());
        let mut tracker = Tracker::start().await;
        start_all(&mut tracker).await;
        let mut writer = tracker.write_to(&proxied, &site.profile());
        for round in 0..40 {
            announce_at_random(&mut tracker, &mut random).await;
            tracker.apply().await;
            match round % 4 {
                0 => proxy.cut_after(b"COMMIT"),
                1 => {
                    tokio::time::sleep(Duration::from_millis(random.u64(0..40))).await;
                    writer.kill(&tracker).await;
                    writer = tracker.write_to(&proxied, &site.profile());
                }
                2 => {
                    proxy.set(NetworkState::Cut);
                    tokio::time::sleep(Duration::from_millis(random.u64(0..20))).await;
                    proxy.set(NetworkState::Working);
                }
                _ => tokio::time::sleep(Duration::from_millis(random.u64(0..60))).await,
            }
        }
        // Whatever happened to the last ones.
        announce_at_random(&mut tracker, &mut random).await;
        tracker.apply().await;
        writer.settle(&tracker).await;
        assert!(!proxy.is_to_be_cut(), "no commit lost its reply");
        assert_conserved(&site, &tracker, 0);
        assert_eq!(writer.counters.refused.get(), 0);
        writer.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_what_the_site_adds_and_takes_meanwhile_stays() {
    let site = Arc::new(Site::unit3d());
    let mut tracker = Tracker::start().await;
    let writer = tracker.write_to(&site.url, &site.profile());
    writer.settle(&tracker).await;
    let is_over = Arc::new(AtomicBool::new(false));
    // A site that gives a bonus and takes some of it back, in transactions over all users in another order.
    let bonus = tokio::spawn({
        let (url, is_over) = (site.url.clone(), Arc::clone(&is_over));
        async move {
            let (database, mut given) = (crate::support::open(&url).await, 0);
            while !is_over.load(Ordering::SeqCst) {
                let mut transaction = database.begin().await.unwrap();
                let change = async {
                    transaction
                        .execute("UPDATE users SET uploaded = uploaded + 10 ORDER BY id DESC", &[])
                        .await?;
                    transaction.execute("UPDATE users SET uploaded = uploaded - 3 ORDER BY id", &[]).await?;
                    transaction.commit().await
                };
                match change.await {
                    Ok(()) => given += 7,
                    Err(error) => assert!(error.is_conflict(), "{error}"),
                }
            }
            given
        }
    });
    let mut random = fastrand::Rng::with_seed(5);
    start_all(&mut tracker).await;
    for _ in 0..30 {
        announce_at_random(&mut tracker, &mut random).await;
        tracker.apply().await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    is_over.store(true, Ordering::SeqCst);
    let given = bonus.await.unwrap();
    writer.settle(&tracker).await;
    assert_conserved(&site, &tracker, given);
    writer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_a_deadlock_is_repeated_whole() {
    let site = Site::unit3d();
    let mut tracker = Tracker::start().await;
    let writer = tracker.write_to(&site.url, &site.profile());
    writer.settle(&tracker).await;
    tracker.announce(&[Step::new(1, 1, 0, 0).event(Started), Step::new(2, 1, 0, 0).event(Started)]).await;
    tracker.apply().await;
    writer.settle(&tracker).await;
    // The site holds user 2; the writer gets user 1 and waits for 2; then the site wants user 1.
    let url = site.url.clone();
    let mut held = crate::support::open(&url).await.begin().await.unwrap();
    held.execute("UPDATE torrents SET size = size + 1", &[]).await.unwrap();
    // Much to undo, so that the writer is the victim.
    for _ in 0..50 {
        held.execute("UPDATE users SET can_download = 1 - can_download WHERE id > 1", &[]).await.unwrap();
    }
    tracker.announce(&[Step::new(1, 1, 40, 0), Step::new(2, 1, 50, 0)]).await;
    tracker.apply().await;
    let name = site.url.rsplit('/').next().unwrap();
    let waiting = format!(
        "SELECT COUNT(*) FROM information_schema.innodb_trx JOIN information_schema.processlist ON id = trx_mysql_thread_id
         WHERE trx_state = 'LOCK WAIT' AND db = '{name}'"
    );
    eventually_async("the writer to wait", TIMEOUT, async || {
        // The server renews this table only if it has not been read for 100 ms.
        tokio::time::sleep(Duration::from_millis(150)).await;
        (MariaDbServer::shared().mariadb("mysql", &waiting) != "0").then_some(())
    })
    .await;
    held.execute("UPDATE users SET can_download = 1 WHERE id = 1", &[]).await.unwrap();
    held.commit().await.unwrap();
    writer.settle(&tracker).await;
    assert!(writer.counters.conflicts.get() > 0, "no deadlock");
    assert_conserved(&site, &tracker, 0);
    writer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_a_row_whose_torrent_is_gone_is_set_aside_and_the_others_are_written() {
    let site = Site::unit3d();
    let mut tracker = Tracker::start().await;
    let writer = tracker.write_to(&site.url, &site.profile());
    writer.settle(&tracker).await;
    site.sql("DELETE FROM torrents WHERE id = 3");
    let steps: Vec<Step> = (1..=USERS)
        .flat_map(|user| (1..=TORRENTS).map(move |torrent| (user, torrent)))
        .map(|(user, torrent)| Step::new(user, torrent, user * 1000, torrent * 10))
        .collect();
    tracker
        .announce(
            &steps
                .iter()
                .map(|step| Step { uploaded: 0, downloaded: 0, event: Started, ..*step })
                .collect::<Vec<_>>(),
        )
        .await;
    tracker.announce(&steps).await;
    tracker.apply().await;
    writer.settle(&tracker).await;
    for user in 1..=USERS {
        assert_eq!(site.totals(user), tracker.moved_by(user));
        for torrent in [1, 2, 4] {
            assert_eq!(site.account(user, torrent), tracker.moved_on(user, torrent));
        }
    }
    assert_eq!(site.sql("SELECT COUNT(*), SUM(torrent_id = 3) FROM history"), format!("{}\t0", USERS * 3));
    // Once for the account and once for the client.
    assert_eq!(writer.counters.refused.get(), 2 * USERS);
    // Not tried again at every announce.
    tracker.pass(5);
    tracker.announce(&[Step::new(1, 3, 1, 0), Step::new(1, 2, 1, 0)]).await;
    tracker.apply().await;
    writer.settle(&tracker).await;
    assert_eq!(writer.counters.refused.get(), 2 * USERS);
    assert_eq!(site.account(1, 2), tracker.moved_on(1, 2));
    // The torrent returns: the next comparison of everything writes what was missing.
    writer.stop().await;
    site.sql(&format!(
        "INSERT INTO torrents (id, info_hash) VALUES (3, UNHEX('{}'))",
        crate::support::info_hash(3)
    ));
    tracker.stage.close();
    let writer = tracker.write_to(&site.url, &site.profile());
    writer.settle(&tracker).await;
    assert_conserved(&site, &tracker, 0);
    writer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_a_database_that_was_away_costs_one_difference_per_row() {
    let site = Site::xbt();
    let mut tracker = Tracker::start().await;
    let address: SocketAddr = ([127, 0, 0, 1], MariaDbServer::shared().port()).into();
    let proxy = Proxy::start(address);
    let proxied = site.url.replace(&address.to_string(), &proxy.address().to_string());
    let writer = tracker.write_to(&proxied, &site.profile());
    writer.settle(&tracker).await;
    proxy.set(NetworkState::Cut);
    tracker.announce(&[Step::new(1, 1, 0, 0).event(Started)]).await;
    for _ in 0..200 {
        tracker.pass(1);
        tracker.announce(&[Step::new(1, 1, 1000, 0)]).await;
    }
    tracker.apply().await;
    let rows = writer.counters.rows.get();
    proxy.set(NetworkState::Working);
    writer.settle(&tracker).await;
    assert_conserved(&site, &tracker, 0);
    // A user, a torrent, an account; perhaps twice, if the writer had taken some before the cut.
    assert!(writer.counters.rows.get() - rows <= 6, "{} rows", writer.counters.rows.get() - rows);
    writer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_a_full_stage_is_emptied_and_everything_is_compared() {
    let site = Site::xbt();
    let mut tracker = Tracker::with_stage(Stage::with_bound(10)).await;
    let address: SocketAddr = ([127, 0, 0, 1], MariaDbServer::shared().port()).into();
    let proxy = Proxy::start(address);
    let proxied = site.url.replace(&address.to_string(), &proxy.address().to_string());
    let writer = tracker.write_to(&proxied, &site.profile());
    writer.settle(&tracker).await;
    proxy.set(NetworkState::Cut);
    let steps: Vec<Step> = (1..=USERS).map(|user| Step::new(user, 1, 0, 0).event(Started)).collect();
    for step in &steps {
        tracker.announce(&[*step]).await;
        tracker.announce(&[Step::new(step.user, 1, 5000, 3)]).await;
    }
    tracker.apply().await;
    assert!(!tracker.stage.is_open());
    // Whatever is announced while nothing is staged is found by the comparison.
    tracker.announce(&[Step::new(2, 2, 0, 0).event(Started), Step::new(2, 2, 9, 9)]).await;
    tracker.apply().await;
    proxy.set(NetworkState::Working);
    eventually_async("the writer to compare everything", TIMEOUT, async || {
        (site.account(2, 2) == (9, 9) && site.totals(6) == (5000, 3)).then_some(())
    })
    .await;
    assert_conserved(&site, &tracker, 0);
    assert!(writer.counters.overflows.get() > 0);
    writer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_clients_that_left_during_an_interruption_are_marked_as_gone() {
    let site = Site::unit3d();
    let tracker = Tracker::start().await;
    site.sql(
        "INSERT INTO peers SELECT 1, 1, UNHEX(REPEAT('aa', 20)), UNHEX('01020304'), 1, 'x', 0, 0, 0, 1, 1, 1, 0,
             NOW() - INTERVAL 3 HOUR, NOW() - INTERVAL 2 HOUR",
    );
    let writer = tracker.write_to(&site.url, &site.profile());
    writer.settle(&tracker).await;
    assert_eq!(site.sql("SELECT active FROM peers"), "0");
    writer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_tables_that_do_not_fit_stop_the_writer_until_they_do() {
    let site = Site::xbt();
    let mut tracker = Tracker::start().await;
    site.sql("ALTER TABLE xbt_peers RENAME COLUMN mtime TO mtime_2");
    let writer = tracker.write_to(&site.url, &site.profile());
    let reason =
        eventually_async("the writer to stop", TIMEOUT, async || writer.counters.stopped.lock().clone())
            .await;
    assert!(reason.contains("the table xbt_peers has no column mtime"), "{reason}");
    // Announces go on, and the view acknowledges them.
    tracker.announce(&[Step::new(1, 1, 0, 0).event(Started), Step::new(1, 1, 8, 0)]).await;
    tracker.apply().await;
    assert_eq!((tracker.stage.len(), site.totals(1)), (0, (0, 0)));
    writer.kill(&tracker).await;
    site.sql("ALTER TABLE xbt_peers RENAME COLUMN mtime_2 TO mtime");
    let writer = tracker.write_to(&site.url, &site.profile());
    writer.settle(&tracker).await;
    assert_conserved(&site, &tracker, 0);
    writer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn l8_two_ledgers_on_one_site_add_up() {
    let site = Site::xbt();
    let mut sum = 0;
    for _ in 0..2 {
        let mut tracker = Tracker::start().await;
        let writer = tracker.write_to(&site.url, &site.profile());
        tracker.announce(&[Step::new(4, 2, 0, 0).event(Started), Step::new(4, 2, 1 << 40, 0)]).await;
        tracker.apply().await;
        writer.settle(&tracker).await;
        sum += 1 << 40;
        assert_eq!(site.totals(4), (sum, 0));
        writer.stop().await;
    }
}

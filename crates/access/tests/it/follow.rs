//! The follower: changes by any writer, and failures.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use access::{Change, Follower, Gate, Refusal, Store, load};
use testkit::{eventually_async, on_every_database};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::fixture::{
    Fixture, NOW, OpenStore, info_hash, new_torrent, new_user, passkey, peer_id, torrent_id, user_id,
};

struct Running {
    gate: Arc<Gate>,
    changes: mpsc::UnboundedReceiver<Change>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    async fn start(fixture: &Fixture) -> Running {
        let gate = Arc::new(Gate::default());
        let follower = load(fixture.store().await, gate.clone()).await.unwrap();
        let (sender, changes) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let on_change = move |change| sender.send(change).unwrap_or_default();
        Running { gate, changes, stop, task: tokio::spawn(follower.run(on_change, stopped)) }
    }

    /// Waits for a change. A busy test machine may need longer than the guaranteed second.
    async fn expect(&mut self, expected: Change) {
        let received = async { while self.changes.recv().await.expect("the follower runs") != expected {} };
        let in_time = tokio::time::timeout(
            testkit::promised(Duration::from_secs(1), Duration::from_secs(10)),
            received,
        )
        .await;
        in_time.unwrap_or_else(|_| panic!("not reported: {expected:?}"));
    }
}

/// Polls once. Changes for copies of the gate are left out.
async fn poll(follower: &mut Follower) -> Vec<Change> {
    let mut changes = Vec::new();
    follower.poll(&mut |change| changes.push(change)).await.unwrap();
    changes.retain(|change| !matches!(change, Change::PasskeyChanged(_) | Change::InfoHashChanged(_)));
    changes
}

async fn loaded(fixture: &Fixture) -> (Store, Arc<Gate>, Follower) {
    let store = fixture.store().await;
    let gate = Arc::new(Gate::default());
    let follower = load(fixture.store().await, gate.clone()).await.unwrap();
    (store, gate, follower)
}

async fn m1_m3_existing_rows_are_loaded_at_the_start(fixture: Fixture) {
    let store = fixture.store().await;
    // More than a page of each.
    store.add_users((1..=5_000).map(new_user)).await.unwrap();
    store.add_torrents((1..=5_000).map(new_torrent)).await.unwrap();
    store.allow_client("-TR".parse().unwrap(), "Transmission").await.unwrap();
    let (_, gate, _) = loaded(&fixture).await;
    assert_eq!((gate.user_count(), gate.torrent_count(), gate.client_count()), (5_000, 5_000, 1));
    let admission = gate.admit(&passkey(4_999), &info_hash(4_998), &peer_id("-TR3000-"), NOW).unwrap();
    assert_eq!((admission.user, admission.torrent), (user_id(4_999), torrent_id(4_998)));
}

async fn changes_by_another_store_reach_the_gate_within_a_second(fixture: Fixture) {
    let store = fixture.store().await;
    let mut running = Running::start(&fixture).await;
    let client = peer_id("-TR3000-");

    store.add_user(new_user(7)).await.unwrap();
    running.expect(Change::UserAdmitted(user_id(7))).await;
    store.add_torrent(new_torrent(3)).await.unwrap();
    running.expect(Change::TorrentAdmitted(info_hash(3))).await;
    assert!(running.gate.admit(&passkey(7), &info_hash(3), &client, NOW).is_ok());

    store.allow_client("-qB".parse().unwrap(), "qBittorrent").await.unwrap();
    running.expect(Change::ClientsChanged).await;
    assert_eq!(running.gate.admit(&passkey(7), &info_hash(3), &client, NOW), Err(Refusal::ClientNotAllowed));
    store.remove_client("-qB".parse().unwrap()).await.unwrap();
    running.expect(Change::ClientsChanged).await;

    let new = store.rotate_passkey(user_id(7), None).await.unwrap();
    running.expect(Change::UserAdmitted(user_id(7))).await;
    assert_eq!(running.gate.admit_user(&passkey(7), NOW), Err(Refusal::UnknownPasskey));
    assert_eq!(running.gate.admit_user(&new, NOW), Ok(user_id(7)));

    store.set_torrent_enabled(torrent_id(3), false).await.unwrap();
    running.expect(Change::TorrentRemoved(info_hash(3))).await;
    assert_eq!(running.gate.admit(&new, &info_hash(3), &client, NOW), Err(Refusal::TorrentDisabled));
    store.remove_torrent(torrent_id(3)).await.unwrap();
    running.expect(Change::TorrentRemoved(info_hash(3))).await;
    assert_eq!(running.gate.admit(&new, &info_hash(3), &client, NOW), Err(Refusal::UnknownTorrent));

    store.set_user_enabled(user_id(7), false).await.unwrap();
    running.expect(Change::UserRemoved(user_id(7))).await;
    assert_eq!(running.gate.admit_user(&new, NOW), Err(Refusal::UserDisabled));
    store.remove_user(user_id(7)).await.unwrap();
    running.expect(Change::UserRemoved(user_id(7))).await;
    assert_eq!(running.gate.admit_user(&new, NOW), Err(Refusal::UnknownPasskey));

    running.stop.send(()).unwrap();
    tokio::time::timeout(Duration::from_secs(5), running.task).await.expect("the follower stops").unwrap();
}

async fn w1_changes_by_the_sites_own_sql_reach_the_gate_within_a_second(fixture: Fixture) {
    let mut running = Running::start(&fixture).await;
    let mut raw = fixture.raw().await;
    let v2 = "EE".repeat(32);
    raw.execute(&format!(
        "INSERT INTO users (id, passkey) VALUES (5, 'ABCDEF0123456789');
             INSERT INTO torrents (id, infohash, infohash_v2) VALUES (6, '{}', '{v2}')",
        info_hash(6).to_string().to_uppercase(),
    ))
    .await;
    running.expect(Change::TorrentAdmitted(info_hash(6))).await;
    let by_v2 = "ee".repeat(20).parse().unwrap();
    let key = "abcdef0123456789".parse().unwrap();
    let admission = running.gate.admit(&key, &by_v2, &peer_id("-TR3000-"), NOW).unwrap();
    assert_eq!((admission.user, admission.info_hash), (user_id(5), info_hash(6)));

    raw.execute("UPDATE users SET id = 50 WHERE id = 5").await;
    running.expect(Change::UserRemoved(user_id(5))).await;
    assert_eq!(running.gate.admit_user(&key, NOW), Ok(user_id(50)));
    raw.execute("DELETE FROM users; DELETE FROM torrents").await;
    running.expect(Change::TorrentRemoved(info_hash(6))).await;
    assert_eq!((running.gate.user_count(), running.gate.torrent_count()), (0, 0));
}

/// A connection after the tables are created.
async fn fixture_tables(fixture: &Fixture) -> testkit::RawConnection {
    fixture.store().await.close().await;
    fixture.raw().await
}

/// A transaction that takes its number before another and commits after it.
async fn a_transaction_that_commits_late_is_not_skipped(fixture: Fixture) {
    let (store, gate, mut follower) = loaded(&fixture).await;
    let mut late = fixture.raw().await;
    late.execute(&format!(
        "{}; INSERT INTO users (id, passkey) VALUES (1, '{}')",
        fixture.begin(),
        passkey(1)
    ))
    .await;
    // In databases where writers wait for each other, this one waits.
    let early = tokio::spawn(async move { store.add_user(new_user(2)).await });
    for _ in 0..20 {
        poll(&mut follower).await;
    }
    assert_eq!(gate.admit_user(&passkey(1), NOW), Err(Refusal::UnknownPasskey), "it is not committed yet");
    late.execute("COMMIT").await;
    early.await.unwrap().unwrap();
    poll(&mut follower).await;
    assert_eq!(gate.admit_user(&passkey(1), NOW), Ok(user_id(1)));
    assert_eq!(gate.admit_user(&passkey(2), NOW), Ok(user_id(2)));
}

/// Many overlapping transactions, some of which are rolled back, while a follower polls.
async fn all_committed_overlapping_transactions_are_applied(fixture: Fixture) {
    let (_, gate, mut follower) = loaded(&fixture).await;
    let writers: Vec<_> = (0..4_u64)
        .map(|writer| {
            let url = fixture.url();
            tokio::spawn(async move {
                let store = Store::open(&url).await.unwrap();
                for step in 0..30 {
                    let number = 1 + writer * 1_000 + step;
                    store.add_user(new_user(number)).await.unwrap();
                    // The second is taken, so neither is added.
                    let pair = [new_user(number + 500), new_user(number)];
                    store.add_users(pair).await.unwrap_err();
                }
            })
        })
        .collect();
    while !writers.iter().all(tokio::task::JoinHandle::is_finished) {
        poll(&mut follower).await;
        // Leaves the cores to the writers: they wait for each other, and give up after five seconds.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    poll(&mut follower).await;
    assert_eq!(gate.user_count(), 4 * 30);
    for writer in 0..4 {
        for step in 0..30 {
            let number = 1 + writer * 1_000 + step;
            assert_eq!(gate.admit_user(&passkey(number), NOW), Ok(user_id(number)));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upserts_of_postgres_and_mariadb_are_followed() {
    for fixture in [Fixture::postgres(), Fixture::mariadb()] {
        let (store, gate, mut follower) = loaded(&fixture).await;
        store.add_users([new_user(1), new_user(2)]).await.unwrap();
        poll(&mut follower).await;
        let upsert = fixture.pick(
            "",
            "INSERT INTO users (id, passkey) VALUES (1, 'abcdef0123456789')
             ON CONFLICT (id) DO UPDATE SET passkey = excluded.passkey",
            "INSERT INTO users (id, passkey) VALUES (1, 'abcdef0123456789')
             ON DUPLICATE KEY UPDATE passkey = VALUES(passkey)",
        );
        let mut raw = fixture.raw().await;
        raw.execute(upsert).await;
        assert_eq!(poll(&mut follower).await, [Change::UserAdmitted(user_id(1))]);
        assert_eq!(gate.admit_user(&"abcdef0123456789".parse().unwrap(), NOW), Ok(user_id(1)));

        // MariaDB fires no trigger when a table is truncated, as its migration says.
        let replace = format!("REPLACE INTO users (id, passkey) VALUES (9, '{}')", passkey(2));
        raw.execute(fixture.pick("", "TRUNCATE users", &replace)).await;
        assert!(poll(&mut follower).await.contains(&Change::UserRemoved(user_id(2))));
        assert_eq!(gate.admit_user(&passkey(2), NOW).ok(), fixture.pick(None, None, Some(user_id(9))));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_and_restarted_is_followed_again() {
    let mut server = testkit::PostgresServer::start();
    let fixture = Fixture::Postgres(server.fresh_database());
    let (store, gate, mut follower) = loaded(&fixture).await;
    store.add_user(new_user(1)).await.unwrap();
    poll(&mut follower).await;
    server.kill();
    // The backend of the connection may outlive the server process.
    let limit = std::time::Duration::from_secs(30);
    let error = eventually_async("a dead server is detected", limit, async || {
        follower.poll(&mut |_| panic!("no change expected")).await.err()
    })
    .await;
    assert!(error.is_retryable(), "{error}");
    assert_eq!(gate.admit_user(&passkey(1), NOW), Ok(user_id(1)));
    server.restart();
    let mut raw = fixture.raw().await;
    raw.execute(&format!("INSERT INTO users (id, passkey) VALUES (2, '{}')", passkey(2))).await;
    assert_eq!(poll(&mut follower).await, [Change::UserAdmitted(user_id(2))]);
}

#[tokio::test]
async fn insert_or_replace_removes_the_conflicting_row() {
    let fixture = Fixture::sqlite();
    let (store, gate, mut follower) = loaded(&fixture).await;
    store.add_users([new_user(1), new_user(2)]).await.unwrap();
    store.add_torrents([new_torrent(1), new_torrent(2)]).await.unwrap();
    poll(&mut follower).await;
    let mut raw = fixture.raw().await;
    raw.execute(&format!(
        "INSERT OR REPLACE INTO users (id, passkey) VALUES (9, '{}');
             UPDATE OR REPLACE users SET passkey = '{}' WHERE id = 9;
             INSERT OR REPLACE INTO torrents (id, infohash) VALUES (9, '{}');
             UPDATE OR REPLACE torrents SET infohash = '{}' WHERE id = 9",
        passkey(1),
        passkey(2),
        info_hash(1),
        info_hash(2),
    ))
    .await;
    let changes = poll(&mut follower).await;
    assert!(changes.contains(&Change::UserRemoved(user_id(1))), "{changes:?}");
    assert!(changes.contains(&Change::UserRemoved(user_id(2))), "{changes:?}");
    assert!(changes.contains(&Change::TorrentRemoved(info_hash(1))), "{changes:?}");
    assert!(
        !changes.contains(&Change::TorrentRemoved(info_hash(2))),
        "torrent 9 has this name now: {changes:?}"
    );
    assert_eq!((gate.user_count(), gate.torrent_count()), (1, 1));
    assert_eq!(gate.admit_user(&passkey(2), NOW), Ok(user_id(9)));
    assert_eq!(gate.torrent_of(&info_hash(2)), Some(torrent_id(9)));
}

async fn users_that_swap_passkeys_are_not_removed(fixture: Fixture) {
    let (store, gate, mut follower) = loaded(&fixture).await;
    store.add_users([new_user(1), new_user(2)]).await.unwrap();
    poll(&mut follower).await;
    store.rotate_passkey(user_id(1), Some(passkey(99))).await.unwrap();
    store.rotate_passkey(user_id(2), Some(passkey(1))).await.unwrap();
    store.rotate_passkey(user_id(1), Some(passkey(2))).await.unwrap();
    let changes = poll(&mut follower).await;
    assert!(!changes.iter().any(|change| matches!(change, Change::UserRemoved(_))), "{changes:?}");
    assert_eq!(gate.admit_user(&passkey(1), NOW), Ok(user_id(2)));
    assert_eq!(gate.admit_user(&passkey(2), NOW), Ok(user_id(1)));
    assert_eq!(gate.admit_user(&passkey(99), NOW), Err(Refusal::UnknownPasskey));
}

async fn a_torrent_with_a_new_infohash_loses_the_old_one(fixture: Fixture) {
    let (store, gate, mut follower) = loaded(&fixture).await;
    store.add_torrent(new_torrent(1)).await.unwrap();
    poll(&mut follower).await;
    let sql = format!("UPDATE torrents SET infohash = '{}' WHERE id = 1", info_hash(2));
    fixture.raw().await.execute(&sql).await;
    let changes = poll(&mut follower).await;
    assert_eq!(changes, [Change::TorrentAdmitted(info_hash(2)), Change::TorrentRemoved(info_hash(1))]);
    assert_eq!(gate.torrent(&info_hash(1)), None);
}

async fn a_row_that_becomes_malformed_removes_only_its_user(fixture: Fixture) {
    let (store, gate, mut follower) = loaded(&fixture).await;
    store.add_users((1..=3).map(new_user)).await.unwrap();
    poll(&mut follower).await;
    let unguard = fixture.pick(
        "PRAGMA ignore_check_constraints = ON",
        "ALTER TABLE users DROP CONSTRAINT passkey_is_8_to_64_hex_digits, DROP CONSTRAINT user_id_is_positive;
         ALTER TABLE torrents DROP CONSTRAINT infohash_is_40_hex_digits",
        "SET check_constraint_checks = 0; DROP TRIGGER users_id_is_positive_on_insert",
    );
    let nonsense = "UPDATE users SET passkey = 'nonsense!' WHERE id = 2;
         INSERT INTO users (id, passkey) VALUES (-3, 'abcdef0123456789');
         INSERT INTO torrents (id, infohash) VALUES (4, 'short');
         INSERT INTO clients (prefix) VALUES ('hex:nothex')";
    fixture.raw().await.execute(&format!("{unguard}; {nonsense}")).await;
    assert_eq!(poll(&mut follower).await, [Change::UserRemoved(user_id(2))]);
    assert_eq!(gate.admit_user(&passkey(3), NOW), Ok(user_id(3)));

    let fresh = Arc::new(Gate::default());
    load(store, fresh.clone()).await.unwrap();
    assert_eq!((fresh.user_count(), fresh.torrent_count(), fresh.client_count()), (2, 0, 0));
}

async fn irrelevant_updates_are_not_reported(fixture: Fixture) {
    let (store, _gate, mut follower) = loaded(&fixture).await;
    store.add_user(new_user(1)).await.unwrap();
    store.add_torrent(new_torrent(1)).await.unwrap();
    assert_eq!(poll(&mut follower).await.len(), 2);
    fixture.raw().await.execute("UPDATE users SET created_at = 5; UPDATE torrents SET name = 'other'").await;
    assert_eq!(poll(&mut follower).await, []);
}

async fn one_poll_applies_several_batches(fixture: Fixture) {
    let (store, gate, mut follower) = loaded(&fixture).await;
    store.add_users((1..=7_000).map(new_user)).await.unwrap();
    assert_eq!(poll(&mut follower).await.len(), 7_000);
    assert_eq!(gate.user_count(), 7_000);
}

async fn a_log_trimmed_too_far_leads_to_a_full_reload_that_reports_removals(fixture: Fixture) {
    // As after a restore of an older copy of the tables: numbers restart.
    let again = fixture.pick(
        "DELETE FROM access_changes; DELETE FROM sqlite_sequence WHERE name = 'access_changes'",
        "TRUNCATE access_changes RESTART IDENTITY",
        "DELETE FROM access_changes; UPDATE access_counter SET newest = 0",
    );
    for trim in [
        "DELETE FROM access_changes",
        "DELETE FROM access_changes WHERE seq < (SELECT max(seq) FROM access_changes)",
        again,
    ] {
        fixture_tables(&fixture).await.execute("DELETE FROM users; DELETE FROM torrents").await;
        let (store, gate, mut follower) = loaded(&fixture).await;
        store.add_users((1..=3).map(new_user)).await.unwrap();
        store.add_torrents((1..=3).map(new_torrent)).await.unwrap();
        store.forbid_client("-XL".parse().unwrap(), "").await.unwrap();
        poll(&mut follower).await;

        store.remove_user(user_id(1)).await.unwrap();
        store.set_user_enabled(user_id(2), false).await.unwrap();
        store.remove_torrent(torrent_id(1)).await.unwrap();
        store.set_torrent_enabled(torrent_id(2), false).await.unwrap();
        store.add_user(new_user(4)).await.unwrap();
        store.remove_client("-XL".parse().unwrap()).await.unwrap();
        fixture.raw().await.execute(trim).await;

        let mut changes = poll(&mut follower).await;
        changes.sort_by_key(|change| format!("{change:?}"));
        let mut expected = [
            Change::ClientsChanged,
            Change::TorrentRemoved(info_hash(1)),
            Change::TorrentRemoved(info_hash(2)),
            Change::UserAdmitted(user_id(4)),
            Change::UserRemoved(user_id(1)),
            Change::UserRemoved(user_id(2)),
        ];
        expected.sort_by_key(|change| format!("{change:?}"));
        assert_eq!(changes, expected, "{trim}");
        assert_eq!((gate.user_count(), gate.torrent_count(), gate.client_count()), (3, 2, 0));

        store.add_user(new_user(5)).await.unwrap();
        assert_eq!(poll(&mut follower).await, [Change::UserAdmitted(user_id(5))], "{trim}");
    }
}

async fn the_log_is_trimmed_to_the_configured_length(fixture: Fixture) {
    let (store, gate, follower) = loaded(&fixture).await;
    let mut follower = follower.log_rows_max(100);
    store.add_users((1..=25_000).map(new_user)).await.unwrap();
    let mut raw = fixture.raw().await;
    let shortened = async {
        loop {
            poll(&mut follower).await;
            if raw.count("access_changes").await == 100 {
                break;
            }
        }
    };
    // PostgreSQL keeps entries as recent as the oldest open transaction of the server, also of other databases.
    tokio::time::timeout(Duration::from_secs(60), shortened).await.expect("the log is trimmed");
    assert_eq!(gate.user_count(), 25_000);
    store.remove_user(user_id(1)).await.unwrap();
    assert_eq!(poll(&mut follower).await, [Change::UserRemoved(user_id(1))]);
}

async fn a_failed_poll_changes_nothing_and_the_next_one_catches_up(fixture: Fixture) {
    let (store, gate, mut follower) = loaded(&fixture).await;
    store.add_user(new_user(1)).await.unwrap();
    poll(&mut follower).await;

    let mut raw = fixture.raw().await;
    store.add_user(new_user(2)).await.unwrap();
    raw.execute("ALTER TABLE users RENAME TO users_away").await;
    store.add_torrent(new_torrent(1)).await.unwrap();
    assert!(follower.poll(&mut |_| panic!("no change expected")).await.is_err());
    assert_eq!(gate.admit_user(&passkey(1), NOW), Ok(user_id(1)));
    assert_eq!(gate.torrent_count(), 0);

    raw.execute("ALTER TABLE users_away RENAME TO users").await;
    let caught_up = [Change::UserAdmitted(user_id(2)), Change::TorrentAdmitted(info_hash(1))];
    assert_eq!(poll(&mut follower).await, caught_up);
}

async fn an_open_transaction_does_not_block_the_follower(fixture: Fixture) {
    let (store, gate, mut follower) = loaded(&fixture).await;
    store.add_user(new_user(1)).await.unwrap();
    let mut raw = fixture.raw().await;
    raw.execute(&format!("{}; INSERT INTO users (passkey) VALUES ('{}')", fixture.begin(), passkey(2))).await;
    assert_eq!(poll(&mut follower).await, [Change::UserAdmitted(user_id(1))], "only committed rows");
    raw.execute("COMMIT").await;
    assert_eq!(poll(&mut follower).await.len(), 1);
    assert_eq!(gate.user_count(), 2);
}

async fn readers_never_see_an_empty_gate_during_a_reload(fixture: Fixture) {
    let store = fixture.store().await;
    store.add_users((1..=6_000).map(new_user)).await.unwrap();
    store.add_torrents((1..=6_000).map(new_torrent)).await.unwrap();
    let (_, gate, mut follower) = loaded(&fixture).await;

    let done = Arc::new(AtomicBool::new(false));
    let reader = {
        let (gate, done) = (gate.clone(), done.clone());
        std::thread::spawn(move || {
            let mut reads = 0_u64;
            while !done.load(Ordering::Relaxed) {
                let number = 1 + reads % 5_000;
                gate.admit(&passkey(number), &info_hash(number), &peer_id("-TR3000-"), NOW).unwrap();
                reads += 1;
            }
            reads
        })
    };
    for number in 5_001..=5_005 {
        store.remove_user(user_id(number)).await.unwrap();
        fixture.raw().await.execute("DELETE FROM access_changes").await;
        assert_eq!(poll(&mut follower).await, [Change::UserRemoved(user_id(number))]);
    }
    done.store(true, Ordering::Relaxed);
    assert!(reader.join().unwrap() > 0);
    assert_eq!(gate.user_count(), 5_995);
}

on_every_database!(
    a_transaction_that_commits_late_is_not_skipped,
    all_committed_overlapping_transactions_are_applied,
    m1_m3_existing_rows_are_loaded_at_the_start,
    changes_by_another_store_reach_the_gate_within_a_second,
    w1_changes_by_the_sites_own_sql_reach_the_gate_within_a_second,
    users_that_swap_passkeys_are_not_removed,
    a_torrent_with_a_new_infohash_loses_the_old_one,
    a_row_that_becomes_malformed_removes_only_its_user,
    irrelevant_updates_are_not_reported,
    one_poll_applies_several_batches,
    a_log_trimmed_too_far_leads_to_a_full_reload_that_reports_removals,
    the_log_is_trimmed_to_the_configured_length,
    a_failed_poll_changes_nothing_and_the_next_one_catches_up,
    an_open_transaction_does_not_block_the_follower,
    readers_never_see_an_empty_gate_during_a_reload,
);

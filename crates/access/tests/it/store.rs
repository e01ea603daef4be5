//! The store: rows, constraints and error messages, on every database.

use access::{AccessError, LeechSlots, NewUser, SiteTorrent, SiteUser, Store};

use testkit::on_every_database;

use crate::fixture::{
    self, Fixture, NOW, OpenStore, info_hash, new_torrent, new_user, passkey, torrent_id, user_id,
};

async fn a_user_is_kept_across_reopening(fixture: Fixture) {
    let store = fixture.store().await;
    let added = store.add_user(new_user(7)).await.unwrap();
    assert!(added.enabled);
    store.close().await;

    let again = fixture.store().await;
    assert_eq!(again.user(user_id(7)).await.unwrap(), Some(added.clone()));
    assert_eq!(again.user_by_passkey(&passkey(7)).await.unwrap(), Some(added));
    assert_eq!(again.user(user_id(8)).await.unwrap(), None);
}

async fn missing_ids_and_passkeys_are_assigned_and_ids_are_not_reused(fixture: Fixture) {
    let store = fixture.store().await;
    let unnumbered = NewUser { id: None, passkey: None, created_at: NOW };
    let first = store.add_user(unnumbered).await.unwrap();
    let second = store.add_user(unnumbered).await.unwrap();
    assert_eq!((first.id, second.id), (user_id(1), user_id(2)));
    assert_ne!(first.passkey, second.passkey);
    assert_eq!(first.passkey.to_string().len(), 32);

    store.remove_user(second.id).await.unwrap();
    assert_eq!(store.add_user(unnumbered).await.unwrap().id, user_id(3), "accounts outlive users");
}

async fn a_rotated_passkey_replaces_the_old_one(fixture: Fixture) {
    let store = fixture.store().await;
    store.add_user(new_user(7)).await.unwrap();
    let new = store.rotate_passkey(user_id(7), None).await.unwrap();
    assert_eq!(store.user_by_passkey(&passkey(7)).await.unwrap(), None);
    assert_eq!(store.user_by_passkey(&new).await.unwrap().unwrap().id, user_id(7));
    assert_eq!(store.rotate_passkey(user_id(7), Some(passkey(9))).await.unwrap(), passkey(9));
    assert!(matches!(store.rotate_passkey(user_id(8), None).await, Err(AccessError::UnknownUser(_))));
}

async fn users_and_torrents_are_listed_page_by_page(fixture: Fixture) {
    let store = fixture.store().await;
    store.add_users((1..=5).map(new_user)).await.unwrap();
    store.add_torrents((1..=5).map(new_torrent)).await.unwrap();
    let page = store.list_users(Some(user_id(2)), 2).await.unwrap();
    assert_eq!(page.iter().map(|user| user.id.get()).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(store.list_users(Some(user_id(4)), 2).await.unwrap().len(), 1);
    let page = store.list_torrents(None, 3).await.unwrap();
    assert_eq!(page.iter().map(|torrent| torrent.id.get()).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(store.list_torrents(Some(torrent_id(5)), 3).await.unwrap().is_empty());
    assert_eq!((store.count_users().await.unwrap(), store.count_torrents().await.unwrap()), (5, 5));
}

async fn l8_rows_of_a_site_replace_those_that_hold_their_passkeys_and_infohashes(fixture: Fixture) {
    let store = fixture.store().await;
    let site_user = |id, key| SiteUser {
        id: user_id(id),
        passkey: passkey(key),
        enabled: id != 3,
        leech_slots: LeechSlots::UNLIMITED,
    };
    store.put_site_users(&[site_user(1, 1), site_user(2, 2), site_user(3, 3)], NOW).await.unwrap();
    // Two passkeys are exchanged, and one moves to a new user.
    store.put_site_users(&[site_user(1, 2), site_user(2, 1), site_user(4, 3)], NOW).await.unwrap();
    let users = store.list_users(None, 10).await.unwrap();
    let listed: Vec<_> = users.iter().map(|user| (user.id, user.passkey, user.enabled)).collect();
    let row = |id, key| (user_id(id), passkey(key), true);
    assert_eq!(listed, [row(1, 2), row(2, 1), row(4, 3)]);
    assert_eq!(users[0].leech_slots, LeechSlots::UNLIMITED);
    let site_torrent = |id, hash, v2: Option<u64>| SiteTorrent {
        id: torrent_id(id),
        info_hash: info_hash(hash),
        info_hash_v2: v2.map(info_hash),
        enabled: true,
        approved: id != 2,
        total_bytes: 7,
        name: "a name".to_owned(),
    };
    store.put_site_torrents(&[site_torrent(1, 1, Some(21)), site_torrent(2, 2, None)], NOW).await.unwrap();
    // The second hash of a torrent becomes the first one of another.
    store.put_site_torrents(&[site_torrent(2, 21, None), site_torrent(3, 2, Some(1))], NOW).await.unwrap();
    let torrents = store.list_torrents(None, 10).await.unwrap();
    let listed: Vec<_> = torrents
        .iter()
        .map(|found| (found.id, found.info_hash, found.info_hash_v2, found.approved))
        .collect();
    assert_eq!(
        listed,
        [
            (torrent_id(2), info_hash(21), None, false),
            (torrent_id(3), info_hash(2), Some(info_hash(1)), true)
        ]
    );
    store.remove_users(&[user_id(1), user_id(9)]).await.unwrap();
    store.remove_torrents(&[torrent_id(2)]).await.unwrap();
    assert_eq!((store.count_users().await.unwrap(), store.count_torrents().await.unwrap()), (2, 1));
}

async fn changing_a_missing_row_is_an_error(fixture: Fixture) {
    let store = fixture.store().await;
    store.add_user(new_user(1)).await.unwrap();
    store.add_torrent(new_torrent(1)).await.unwrap();
    store.set_user_enabled(user_id(1), false).await.unwrap();
    store.set_torrent_enabled(torrent_id(1), false).await.unwrap();
    assert!(!store.user(user_id(1)).await.unwrap().unwrap().enabled);
    assert!(!store.torrent(torrent_id(1)).await.unwrap().unwrap().enabled);
    store.remove_user(user_id(1)).await.unwrap();
    store.remove_torrent(torrent_id(1)).await.unwrap();

    let errors = [
        store.set_user_enabled(user_id(1), true).await.unwrap_err(),
        store.remove_user(user_id(1)).await.unwrap_err(),
        store.set_torrent_enabled(torrent_id(1), true).await.unwrap_err(),
        store.remove_torrent(torrent_id(1)).await.unwrap_err(),
        store.remove_client("-TR".parse().unwrap()).await.unwrap_err(),
    ];
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "there is no user 1",
            "there is no user 1",
            "there is no torrent 1",
            "there is no torrent 1",
            "no client has the prefix -TR",
        ]
    );
    assert!(errors.iter().all(|error| !error.is_retryable()));
}

async fn a_taken_id_or_passkey_is_reported_without_disclosing_the_passkey(fixture: Fixture) {
    let store = fixture.store().await;
    store
        .add_user(NewUser { passkey: Some("abcdef0123456789".parse().unwrap()), ..new_user(7) })
        .await
        .unwrap();
    let taken_id = store.add_user(NewUser { passkey: None, ..new_user(7) }).await.unwrap_err();
    assert!(matches!(taken_id, AccessError::UserIdTaken(id) if id == user_id(7)), "{taken_id}");

    let same = NewUser { id: None, passkey: Some("ABCDEF0123456789".parse().unwrap()), created_at: NOW };
    let taken_passkey = store.add_user(same).await.unwrap_err();
    let text = taken_passkey.to_string();
    assert!(text.contains("user 7") && text.contains("abcd…"), "{text}");
    assert!(!format!("{taken_passkey:?}{text}").contains("abcdef"), "the passkey is a secret");

    store.add_user(new_user(8)).await.unwrap();
    let rotated = store.rotate_passkey(user_id(8), same.passkey).await.unwrap_err();
    assert!(matches!(rotated, AccessError::PasskeyTaken { holder, .. } if holder == user_id(7)));
}

async fn a_taken_infohash_is_reported_with_its_torrent(fixture: Fixture) {
    let store = fixture.store().await;
    let mut hybrid = new_torrent(3);
    hybrid.info_hash_v2 = Some(info_hash(33));
    store.add_torrent(hybrid).await.unwrap();
    assert_eq!(store.torrent_by_info_hash(&info_hash(33)).await.unwrap().unwrap().id, torrent_id(3));

    let taken_id = store.add_torrent(new_torrent(3)).await.unwrap_err();
    assert!(matches!(taken_id, AccessError::TorrentIdTaken(_)), "{taken_id}");
    for (v1, v2) in [(3, None), (33, None), (4, Some(3)), (4, Some(33))] {
        let mut torrent = new_torrent(4);
        torrent.info_hash = info_hash(v1);
        torrent.info_hash_v2 = v2.map(info_hash);
        let text = store.add_torrent(torrent).await.unwrap_err().to_string();
        assert!(text.contains("torrent 3 (torrent 3)"), "{v1} {v2:?}: {text}");
    }
}

async fn m2_clients_are_allowed_forbidden_and_removed_in_any_spelling(fixture: Fixture) {
    let store = fixture.store().await;
    store.allow_client("-TR3".parse().unwrap(), "Transmission 3").await.unwrap();
    store.forbid_client("hex:2dff".parse().unwrap(), "odd one").await.unwrap();
    fixture.raw().await.execute("INSERT INTO clients (prefix) VALUES ('hex:2D7142')").await;
    let list = store.list_clients().await.unwrap();
    let shown: Vec<_> = list.iter().map(|rule| (rule.prefix.to_string(), rule.allowed)).collect();
    assert_eq!(shown, [("-TR3".into(), true), ("-qB".into(), true), ("hex:2dff".into(), false)]);

    store.forbid_client("-TR3".parse().unwrap(), "").await.unwrap();
    store.forbid_client("-qB".parse().unwrap(), "").await.unwrap();
    assert!(store.list_clients().await.unwrap().iter().all(|rule| !rule.allowed));
    for prefix in ["-TR3", "-qB", "hex:2dff"] {
        store.remove_client(prefix.parse().unwrap()).await.unwrap();
    }
    assert!(store.list_clients().await.unwrap().is_empty());
}

async fn tens_of_thousands_of_users_and_torrents_are_added_in_bulk(fixture: Fixture) {
    const COUNT: u64 = 30_000;
    let store = fixture.store().await;
    assert_eq!(store.add_users((1..=COUNT).map(new_user)).await.unwrap(), COUNT);
    assert_eq!(store.add_torrents((1..=COUNT).map(new_torrent)).await.unwrap(), COUNT);
    assert_eq!(store.count_users().await.unwrap(), COUNT);
}

async fn a_bulk_insert_is_atomic_and_reports_the_row_at_fault(fixture: Fixture) {
    let store = fixture.store().await;
    store.add_user(new_user(1_234)).await.unwrap();
    let error = store.add_users((1..=2_000).map(new_user)).await.unwrap_err();
    assert!(matches!(error, AccessError::UserIdTaken(id) if id == user_id(1_234)), "{error}");
    assert_eq!(store.count_users().await.unwrap(), 1);

    let twice = (1..=700).chain([600]).map(fixture::new_torrent_without_id);
    let error = store.add_torrents(twice).await.unwrap_err();
    assert!(matches!(&error, AccessError::InfoHashTaken { name, .. } if name == "torrent 600"), "{error}");
    assert_eq!(store.count_torrents().await.unwrap(), 0);
}

async fn w1_upper_case_rows_are_read_in_lower_case(fixture: Fixture) {
    let store = fixture.store().await;
    let v2 = "AB".repeat(32);
    fixture
        .raw()
        .await
        .execute(&format!(
            "INSERT INTO users (id, passkey) VALUES (5, 'ABCDEF0123456789');
             INSERT INTO torrents (id, infohash, infohash_v2, name) VALUES (6, '{}', '{v2}', 'x')",
            "CD".repeat(20),
        ))
        .await;
    let user = store.user_by_passkey(&"abcdef0123456789".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!((user.id, user.passkey.to_string().as_str()), (user_id(5), "abcdef0123456789"));
    for digits in ["cd".repeat(20), "ab".repeat(20)] {
        let torrent = store.torrent_by_info_hash(&digits.parse().unwrap()).await.unwrap().unwrap();
        assert_eq!(torrent.info_hash.to_string(), "cd".repeat(20));
        assert_eq!(torrent.info_hash_v2.unwrap().to_string(), "ab".repeat(20));
    }
}

async fn the_tables_refuse_malformed_values(fixture: Fixture) {
    let _store = fixture.store().await;
    let mut raw = fixture.raw().await;
    for bad in [
        "INSERT INTO users (passkey) VALUES ('not hex at all')",
        "INSERT INTO users (passkey) VALUES ('abcdef')",
        "INSERT INTO users (id, passkey) VALUES (-1, 'abcdef0123')",
        "INSERT INTO users (passkey, enabled) VALUES ('abcdef0123', 2)",
        "INSERT INTO torrents (infohash) VALUES ('abcdef')",
        "INSERT INTO torrents (infohash) VALUES ('zz00000000000000000000000000000000000000')",
        "INSERT INTO clients (prefix) VALUES ('')",
    ] {
        let outcome = raw.try_execute(bad).await;
        assert!(outcome.is_err(), "{bad}");
    }
}

async fn a_malformed_row_is_left_out_of_lists_and_can_be_removed(fixture: Fixture) {
    let store = fixture.store().await;
    store.add_users((1..=3).map(new_user)).await.unwrap();
    let unguard = fixture.pick(
        "PRAGMA ignore_check_constraints = ON",
        "ALTER TABLE users DROP CONSTRAINT passkey_is_8_to_64_hex_digits",
        "SET check_constraint_checks = 0",
    );
    let mut raw = fixture.raw().await;
    raw.execute(&format!("{unguard}; UPDATE users SET passkey = 'nonsense!' WHERE id = 2")).await;
    let listed = store.list_users(None, 2).await.unwrap();
    assert_eq!(listed.iter().map(|user| user.id.get()).collect::<Vec<_>>(), [1, 3]);
    let error = store.user(user_id(2)).await.unwrap_err().to_string();
    assert!(error.contains("user 2") && !error.contains("nonsense"), "{error}");
    store.remove_user(user_id(2)).await.unwrap();
}

async fn a_database_of_a_newer_version_is_refused(fixture: Fixture) {
    fixture.store().await.close().await;
    fixture.raw().await.execute(
        "INSERT INTO access_migrations SELECT 9999, description, installed_on, success, checksum, execution_time
         FROM access_migrations LIMIT 1",
    )
    .await;
    let error = Store::open(&fixture.url()).await.unwrap_err();
    assert!(error.to_string().contains("another version"), "{error}");
}

async fn many_processes_open_a_new_database_concurrently(fixture: Fixture) {
    let openers: Vec<_> = (1..=8)
        .map(|number| {
            let url = fixture.url();
            tokio::spawn(
                async move { Store::open(&url).await.unwrap().add_user(new_user(number)).await.unwrap() },
            )
        })
        .collect();
    for opener in openers {
        opener.await.unwrap();
    }
    assert_eq!(fixture.store().await.count_users().await.unwrap(), 8);
}

async fn an_explicit_id_is_not_assigned_again(fixture: Fixture) {
    let store = fixture.store().await;
    let unnumbered = NewUser { id: None, passkey: None, created_at: NOW };
    store.add_user(new_user(1)).await.unwrap();
    assert_eq!(store.add_user(unnumbered).await.unwrap().id, user_id(2));
    store.add_users([new_user(70), new_user(7)]).await.unwrap();
    assert_eq!(store.add_user(unnumbered).await.unwrap().id, user_id(71));
    store.add_torrents([new_torrent(9), new_torrent(1)]).await.unwrap();
    let without = fixture::new_torrent_without_id(2);
    assert_eq!(store.add_torrent(without).await.unwrap().id, torrent_id(10));
}

/// Regression: after the sandbox was created, a new user got one of its ids.
async fn automatic_ids_skip_the_sandbox(fixture: Fixture) {
    let store = fixture.store().await;
    let unnumbered = NewUser { id: None, passkey: None, created_at: NOW };
    let in_sandbox = store.add_sandbox_user(new_user(900_000_001)).await.unwrap();
    assert!(in_sandbox.sandbox && store.user(in_sandbox.id).await.unwrap().unwrap().sandbox);
    let first = store.add_user(unnumbered).await.unwrap();
    assert_eq!((first.id, first.sandbox), (user_id(1), false));
    store.add_users([new_user(900_000_005), unnumbered]).await.unwrap();
    store.add_users([new_user(70)]).await.unwrap();
    store.add_users([unnumbered]).await.unwrap();
    let ids: Vec<u64> =
        store.list_users(None, 10).await.unwrap().into_iter().map(|user| user.id.get()).collect();
    assert_eq!(ids, [1, 2, 70, 71, 900_000_001, 900_000_005]);
    store.add_user(new_user(900_000_000)).await.unwrap();
    assert_eq!(store.add_user(unnumbered).await.unwrap().id, user_id(900_001_000));
    store.add_torrents([new_torrent(900_000_009), new_torrent(3)]).await.unwrap();
    let without = fixture::new_torrent_without_id(2);
    assert_eq!(store.add_torrent(without).await.unwrap().id, torrent_id(4));
}

async fn texts_are_stored_as_far_as_the_database_permits(fixture: Fixture) {
    let store = fixture.store().await;
    let long = "é".repeat(40_000);
    for (number, name) in [(1, "Łódź 🦀 \"'`\\"), (2, "with\0nul"), (3, long.as_str())] {
        let torrent = access::NewTorrent { name: name.to_owned(), ..new_torrent(number) };
        let added = store.add_torrent(torrent).await.unwrap();
        assert_eq!(added.name.replace('\u{fffd}', "\0"), name);
    }
    let too_large = access::NewTorrent { total_bytes: u64::MAX, ..new_torrent(4) };
    assert!(matches!(store.add_torrent(too_large).await, Err(AccessError::TooManyBytes(u64::MAX))));
}

#[tokio::test]
async fn a_database_of_another_program_is_refused() {
    for fixture in [Fixture::postgres(), Fixture::mariadb()] {
        fixture.raw().await.execute("CREATE TABLE users (id INT, nickname VARCHAR(20))").await;
        let error = Store::open(&fixture.url()).await.unwrap_err();
        assert!(matches!(&error, AccessError::Occupied { table, .. } if table == "users"), "{error}");
        assert!(!error.is_retryable());
    }
}

#[tokio::test]
async fn an_interrupted_migration_on_mariadb_is_repeated() {
    let fixture = Fixture::mariadb();
    fixture.store().await.close().await;
    let mut raw = fixture.raw().await;
    raw.execute("DROP TRIGGER clients_updated; DROP TABLE clients; UPDATE access_migrations SET success = 0")
        .await;
    let store = fixture.store().await;
    store.allow_client("-TR".parse().unwrap(), "Transmission").await.unwrap();
    assert_eq!(store.list_clients().await.unwrap().len(), 1);
}

on_every_database!(
    an_explicit_id_is_not_assigned_again,
    automatic_ids_skip_the_sandbox,
    texts_are_stored_as_far_as_the_database_permits,
    a_user_is_kept_across_reopening,
    missing_ids_and_passkeys_are_assigned_and_ids_are_not_reused,
    a_rotated_passkey_replaces_the_old_one,
    users_and_torrents_are_listed_page_by_page,
    l8_rows_of_a_site_replace_those_that_hold_their_passkeys_and_infohashes,
    changing_a_missing_row_is_an_error,
    a_taken_id_or_passkey_is_reported_without_disclosing_the_passkey,
    a_taken_infohash_is_reported_with_its_torrent,
    m2_clients_are_allowed_forbidden_and_removed_in_any_spelling,
    tens_of_thousands_of_users_and_torrents_are_added_in_bulk,
    a_bulk_insert_is_atomic_and_reports_the_row_at_fault,
    w1_upper_case_rows_are_read_in_lower_case,
    the_tables_refuse_malformed_values,
    a_malformed_row_is_left_out_of_lists_and_can_be_removed,
    a_database_of_a_newer_version_is_refused,
    many_processes_open_a_new_database_concurrently,
);

//! Lists of torrents and users: by ids, by search, sorted.

use access::{CatalogueKey, CatalogueOrder, NameSearch, NewTorrent, NewUser, Store, TorrentChange};
use domain::{UnixTime, UserId};

use testkit::on_every_database;

use crate::fixture::{Fixture, OpenStore, info_hash, new_torrent, torrent_id};

async fn named(store: &Store, names: &[&str]) {
    let torrents =
        (1..).zip(names).map(|(id, name)| NewTorrent { name: (*name).to_owned(), ..new_torrent(id) });
    store.add_torrents(torrents.collect::<Vec<_>>()).await.unwrap();
}

async fn found(store: &Store, text: &str) -> Vec<u64> {
    let search = NameSearch::new(text).unwrap();
    let found = store.find_torrents(&search, 1000).await.unwrap();
    assert_eq!(store.count_found(&search).await.unwrap(), found.len() as u64, "{text}");
    found.iter().map(|id| id.get()).collect()
}

async fn a_search_is_literal_and_case_insensitive(fixture: Fixture) {
    let store = fixture.store().await;
    let names = [
        "100% Pure",
        "100 percent",
        "snake_case",
        "snakeXcase",
        r"back\slash",
        "ВОЙНА и мир",
        "Ünïcode Größe",
        "emoji 😀 here",
        "emoji 😎 there",
        "a*b?c[d]e^f$g.h|i(j)k{l}+m",
        "line\nbreak",
        "quote ' and \" and `",
        "Ελλάς",
    ];
    named(&store, &names).await;
    for (text, expected) in [
        ("100%", vec![1]),
        ("%", vec![1]),
        ("_", vec![3]),
        ("e_c", vec![3]),
        ("SNAKE", vec![3, 4]),
        (r"\", vec![5]),
        (r"K\s", vec![5]),
        ("война", vec![6]),
        ("МИР", vec![6]),
        ("ünÏ", vec![7]),
        ("größe", vec![7]),
        ("😀", vec![8]),
        ("EMOJI", vec![8, 9]),
        ("a*B?c[D]e^f$g.h|i(j)k{l}+m", vec![10]),
        ("*", vec![10]),
        ("?", vec![10]),
        ("[d]", vec![10]),
        ("]", vec![10]),
        (".h", vec![10]),
        ("e\nB", vec![11]),
        ("' and \"", vec![12]),
        ("'; DROP TABLE torrents; --", vec![]),
        ("ΕΛΛΆς", vec![13]),
        (".*", vec![]),
        ("[a-z]", vec![]),
        ("  Pure  ", vec![1]),
    ] {
        assert_eq!(found(&store, text).await, expected, "{text:?}");
    }
    assert_eq!(found(&store, &"x".repeat(200)).await, [0_u64; 0]);
    let longest = "Ж😀".repeat(100);
    assert_eq!(found(&store, &longest).await, [0_u64; 0]);
}

async fn torrents_are_found_by_id_and_by_prefix_of_their_infohashes(fixture: Fixture) {
    let store = fixture.store().await;
    let mut torrents: Vec<NewTorrent> = (1..=3).map(new_torrent).collect();
    torrents[0].info_hash = "beefcafe00000000000000000000000000000001".parse().unwrap();
    torrents[1].info_hash_v2 = Some("BEEFD00D00000000000000000000000000000002".parse().unwrap());
    for (torrent, name) in torrents.iter_mut().zip(["one", "two", "beef stew"]) {
        torrent.name = name.to_owned();
    }
    store.add_torrents(torrents).await.unwrap();
    // Sites may write upper case.
    fixture
        .raw()
        .await
        .execute("UPDATE torrents SET infohash = 'BEEFCAFE00000000000000000000000000000001' WHERE id = 1")
        .await;
    assert_eq!(found(&store, "beef").await, [1, 2, 3]);
    assert_eq!(found(&store, "BEEFc").await, [1]);
    assert_eq!(found(&store, "beefd").await, [2]);
    assert_eq!(found(&store, "bee").await, [3], "three digits are too few for an infohash");
    assert_eq!(found(&store, "BEEFCAFE00000000000000000000000000000001").await, [1]);
    assert_eq!(found(&store, "2").await, [2]);
    assert_eq!(found(&store, "9223372036854775808").await, [0_u64; 0]);
    let limited = store.find_torrents(&NameSearch::new("beef").unwrap(), 2).await.unwrap();
    assert_eq!(limited, [torrent_id(1), torrent_id(2)]);
}

async fn existing_torrents_are_found_by_ids(fixture: Fixture) {
    let store = fixture.store().await;
    store.add_torrents((1..=1500).map(new_torrent)).await.unwrap();
    assert_eq!(store.torrents_with(&[]).await.unwrap(), []);
    let asked: Vec<_> = (1..=2500).map(torrent_id).collect();
    let mut found = store.torrents_with(&asked).await.unwrap();
    found.sort_by_key(|torrent| torrent.id);
    assert_eq!(found.len(), 1500);
    assert_eq!((found[6].id, found[6].info_hash), (torrent_id(7), info_hash(7)));
    assert_eq!(store.torrents_with(&[torrent_id(i64::MAX as u64)]).await.unwrap(), []);
}

async fn sorted_pages_join_also_with_equal_keys(fixture: Fixture) {
    let store = fixture.store().await;
    let torrents = (1..=50).map(|id| NewTorrent {
        total_bytes: if id == 50 { i64::MAX as u64 } else { id % 4 },
        created_at: UnixTime(1000 + (id % 5) as u32),
        name: if id % 2 == 0 { "even".to_owned() } else { "odd".to_owned() },
        ..new_torrent(id)
    });
    store.add_torrents(torrents).await.unwrap();
    let all = store.list_torrents(None, 100).await.unwrap();
    let even = NameSearch::new("EVEN").unwrap();
    for by in [CatalogueKey::Size, CatalogueKey::Added] {
        let key = |torrent: &access::Torrent| match by {
            CatalogueKey::Size => (torrent.total_bytes as i64, torrent.id),
            CatalogueKey::Added => (torrent.created_at.0.into(), torrent.id),
        };
        for (search, limit, descending) in [
            (None, 1, true),
            (None, 7, false),
            (None, 50, true),
            (Some(&even), 4, true),
            (Some(&even), 25, false),
        ] {
            let mut expected: Vec<_> =
                all.iter().filter(|one| search.is_none() || one.name == "even").map(key).collect();
            expected.sort_unstable();
            if descending {
                expected.reverse();
            }
            let (mut seen, mut after) = (Vec::new(), None);
            loop {
                let order = CatalogueOrder { by, descending, after };
                let page = store.torrents_in_order(order, search, limit).await.unwrap();
                assert!(page.torrents.len() <= limit as usize);
                seen.extend(page.torrents.iter().map(key));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(seen, expected, "{by:?} {limit} {descending}");
        }
    }
    // A cursor that was never returned.
    let after = Some((i64::MAX, torrent_id(i64::MAX as u64)));
    let order = CatalogueOrder { by: CatalogueKey::Size, descending: false, after };
    assert_eq!(store.torrents_in_order(order, None, 10).await.unwrap().torrents, []);
}

async fn pages_join_with_any_time_that_the_site_wrote(fixture: Fixture) {
    let store = fixture.store().await;
    store.add_torrents((1..=12).map(new_torrent)).await.unwrap();
    let mut raw = fixture.raw().await;
    // Equal milliseconds; before 1970; the limits.
    raw.execute("UPDATE torrents SET created_at = 1794742234000").await;
    raw.execute("UPDATE torrents SET created_at = -1 WHERE id IN (3, 4, 5)").await;
    raw.execute("UPDATE torrents SET created_at = -9223372036854775807 WHERE id = 6").await;
    raw.execute("UPDATE torrents SET created_at = 9223372036854775807 WHERE id = 7").await;
    let ascending = [6, 3, 4, 5, 1, 2, 8, 9, 10, 11, 12, 7];
    for (limit, descending) in [(1, false), (1, true), (2, true), (5, false)] {
        let seen = ids_in_order(&store, CatalogueKey::Added, descending, limit).await;
        let mut expected = ascending.to_vec();
        if descending {
            expected.reverse();
        }
        assert_eq!(seen, expected, "{limit} {descending}");
    }
}

async fn malformed_rows_do_not_end_the_list(fixture: Fixture) {
    let store = fixture.store().await;
    store.add_torrents((1..=9).map(new_torrent)).await.unwrap();
    let mut raw = fixture.raw().await;
    for sql in unchecked(&fixture) {
        raw.execute(sql).await;
    }
    raw.execute("UPDATE torrents SET leech_slots = -7 WHERE id IN (4, 5, 6)").await;
    for limit in [1, 2, 3] {
        let seen = ids_in_order(&store, CatalogueKey::Size, false, limit).await;
        assert_eq!(seen, [1, 2, 3, 7, 8, 9], "{limit}");
    }
}

/// Removes constraints, as a site may do.
fn unchecked(fixture: &Fixture) -> Vec<&'static str> {
    fixture.pick(
        vec!["PRAGMA ignore_check_constraints = ON"],
        vec!["ALTER TABLE torrents DROP CONSTRAINT torrent_leech_slots_are_a_number"],
        vec!["SET check_constraint_checks = OFF"],
    )
}

async fn ids_in_order(store: &Store, by: CatalogueKey, descending: bool, limit: u32) -> Vec<u64> {
    let (mut seen, mut after) = (Vec::new(), None);
    // Bounded, in case the list repeats itself.
    for _ in 0..20 {
        let order = CatalogueOrder { by, descending, after };
        let page = store.torrents_in_order(order, None, limit).await.unwrap();
        seen.extend(page.torrents.iter().map(|torrent| torrent.id.get()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    seen
}

async fn users_are_found_by_name_and_id(fixture: Fixture) {
    let store = fixture.store().await;
    let names = ["Ada Lovelace", "ВОЙНА", "100% Pure", "ada_b"];
    for (id, name) in (11..).zip(names) {
        let new = NewUser { id: UserId::new(id), passkey: None, created_at: UnixTime(5) };
        store.add_named_user(new, name.parse().unwrap()).await.unwrap();
    }
    store.add_user(NewUser { id: UserId::new(15), passkey: None, created_at: UnixTime(5) }).await.unwrap();
    for (text, expected) in [
        ("ADA", vec![11, 14]),
        ("война", vec![12]),
        ("%", vec![13]),
        ("_", vec![14]),
        ("15", vec![15]),
        ("x", vec![]),
    ] {
        let search = NameSearch::new(text).unwrap();
        let ids: Vec<u64> = store.find_users(&search, 10).await.unwrap().iter().map(|id| id.get()).collect();
        assert_eq!(ids, expected, "{text}");
        let mut paged = Vec::new();
        while let [user] = &store.search_users(&search, paged.last().copied(), 1).await.unwrap()[..] {
            paged.push(user.id);
        }
        assert_eq!(paged.iter().map(|id| id.get()).collect::<Vec<_>>(), expected, "{text}");
    }
    let mut some = store.users_with(&[15, 99, 11].map(|id| UserId::new(id).unwrap())).await.unwrap();
    some.sort_by_key(|user| user.id);
    let names: Vec<Option<&str>> = some.iter().map(|user| user.name.as_deref()).collect();
    assert_eq!(names, [Some("Ada Lovelace"), None]);
}

async fn pending_torrents_are_sorted_and_counted(fixture: Fixture) {
    let store = fixture.store().await;
    for id in 1..=6 {
        let new = NewTorrent { created_at: UnixTime(100 + id as u32 / 2), ..new_torrent(id) };
        match id {
            3 => store.add_torrent(new).await.unwrap(),
            _ => store.add_pending_torrent(new).await.unwrap(),
        };
    }
    assert_eq!(store.count_pending_torrents().await.unwrap(), 5);
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let order = CatalogueOrder { by: CatalogueKey::Added, descending: true, after };
        let page = store.pending_torrents(order, 2).await.unwrap();
        seen.extend(page.torrents.iter().map(|torrent| torrent.id.get()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, [6, 5, 4, 2, 1]);
    let change = TorrentChange { approved: Some(true), ..TorrentChange::default() };
    store.change_torrent(torrent_id(6), change).await.unwrap();
    assert_eq!(store.count_pending_torrents().await.unwrap(), 4);
}

on_every_database!(
    users_are_found_by_name_and_id,
    pending_torrents_are_sorted_and_counted,
    a_search_is_literal_and_case_insensitive,
    torrents_are_found_by_id_and_by_prefix_of_their_infohashes,
    existing_torrents_are_found_by_ids,
    sorted_pages_join_also_with_equal_keys,
    pages_join_with_any_time_that_the_site_wrote,
    malformed_rows_do_not_end_the_list,
);

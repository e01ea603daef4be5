//! Torrents by how many are on them, by size and by age: `/api/v1/swarms`.

use domain::AnnounceEvent;
use serde_json::{Value as Json, json};
use testkit::{Announce, Api, RedisServer, eventually, eventually_equal};

use crate::api::{PATIENCE, add_torrent, announce, builder, info_hash, items, problem, quoted};

fn ids(page: &Json) -> Vec<u64> {
    items(page).iter().map(|item| item["torrent"]["id"].as_u64().unwrap()).collect()
}

fn asked(api: &Api, query: &str) -> Json {
    api.get(&format!("/api/v1/swarms?{query}")).ok()
}

fn found(api: &Api, text: &str) -> Vec<u64> {
    let page = asked(api, &format!("order=asc&search={}", domain::percent::encode(text.as_bytes())));
    assert_eq!(page["total"], ids(&page).len(), "{text}");
    let mut found = ids(&page);
    found.sort_unstable();
    found
}

/// All torrents of a list, page by page.
fn walk(api: &Api, query: &str, limit: u32) -> Vec<u64> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = asked(api, &format!("{query}&limit={limit}{cursor}"));
        assert!(items(&page).len() <= limit as usize);
        all.extend(ids(&page));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

#[test]
fn m10_swarms_come_in_any_order_and_page_by_page() {
    let server = builder().start();
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    let passkeys: Vec<_> = (1..=3).map(|id| server.add_user(id)).collect();
    for number in 1..=5 {
        add_torrent(&server, &admin, &passkeys[0], number);
    }
    // Seeders 2, 1, 0, 0, 0; leechers 0, 2, 1, 0, 0; completed once: the third.
    for (passkey, torrent, seeds) in [(0, 1, true), (1, 1, true), (2, 2, true), (0, 2, false), (1, 2, false)]
    {
        let client = if seeds {
            Announce::seeder(info_hash(torrent), 1)
        } else {
            Announce::leecher(info_hash(torrent), 1)
        };
        announce(&server, &passkeys[passkey], &client);
    }
    let client = Announce::leecher(info_hash(3), 1);
    announce(&server, &passkeys[0], &client);
    announce(&server, &passkeys[0], &client.with_totals(0, 9, 0).with_event(AnnounceEvent::Completed));
    announce(&server, &passkeys[0], &client.with_totals(0, 9, 5));
    eventually_equal(vec![1, 2, 5, 4, 3], PATIENCE, || ids(&asked(&read, "")));
    let page = asked(&read, "sort=seeders&order=desc");
    assert_eq!((&page["total"], &page["next"]), (&json!(5), &Json::Null));
    let second = &items(&page)[1];
    assert_eq!(
        (&second["seeders"], &second["leechers"], &second["snatches"]),
        (&1.into(), &2.into(), &0.into())
    );
    assert_eq!(
        (&second["torrent"]["name"], &second["torrent"]["infohash"], &second["torrent"]["total_bytes"]),
        (&"torrent 2".into(), &info_hash(2).to_string().into(), &"0".into())
    );
    assert_eq!(ids(&asked(&read, "sort=leechers")), [2, 3, 5, 4, 1]);
    assert_eq!(ids(&asked(&read, "sort=snatches&order=asc")), [1, 2, 4, 5, 3]);
    assert_eq!(ids(&asked(&read, "sort=added&order=asc")), [1, 2, 3, 4, 5]);
    assert_eq!(ids(&asked(&read, "sort=size")), [5, 4, 3, 2, 1]);
    assert_eq!(items(&asked(&read, "sort=size&order=asc"))[1]["seeders"], 1);
    for query in
        ["sort=seeders", "sort=leechers&order=asc", "sort=snatches", "sort=size", "sort=added&order=asc"]
    {
        let all = ids(&asked(&read, query));
        for limit in [1, 2, 4, 5] {
            assert_eq!(walk(&read, query, limit), all, "{query} {limit}");
        }
        let searched = walk(&read, &format!("{query}&search=TORRENT"), 2);
        assert_eq!(searched, all, "{query}");
    }
    for wrong in ["sort=name", "order=up", "sort=", "sort=seeders&sort=size", "search=%00", "search=a%00b"] {
        assert_eq!(problem(&read.get(&format!("/api/v1/swarms?{wrong}")), 400), "bad_request", "{wrong}");
    }
    assert_eq!(admin.delete("/api/v1/torrents/2").status(), 204);
    eventually_equal(vec![1, 5, 4, 3], PATIENCE, || ids(&asked(&read, "")));
}

#[test]
fn what_is_looked_for_is_text_however_odd() {
    let server = builder().start();
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    let names =
        ["100% pure", "snake_case", r"back\slash", "<script>alert(1)</script>", "名前 \u{202e}gnp", "plain"];
    for (number, name) in (1_u8..).zip(names) {
        let said = json!({ "id": number, "infohash": info_hash(0xa0 + number).to_string(), "name": name });
        assert_eq!(admin.post("/api/v1/torrents", &said).status(), 201);
    }
    eventually_equal(6, PATIENCE, || ids(&asked(&read, "")).len());
    for (text, expected) in [
        ("%", vec![1]),
        ("_", vec![2]),
        (r"\", vec![3]),
        ("SCRIPT>", vec![4]),
        ("前", vec![5]),
        ("\u{202e}", vec![5]),
        ("P", vec![1, 4, 5, 6]),
        ("a5a5", vec![5]),
        ("A5A5", vec![5]),
        ("6", vec![6]),
        ("nothing of the kind", vec![]),
        ("' OR 1=1 --", vec![]),
        ("   ", vec![1, 2, 3, 4, 5, 6]),
        ("", vec![1, 2, 3, 4, 5, 6]),
    ] {
        assert_eq!(found(&read, text), expected, "{text:?}");
    }
    assert_eq!(found(&read, &"é".repeat(200)), [0_u64; 0]);
    for long in [201, 5000] {
        let refused = read.get(&format!("/api/v1/swarms?search={}", "x".repeat(long)));
        assert_eq!(problem(&refused, 400), "bad_request", "{long}");
    }
    // Longer than a request head may be: refused before parsing.
    let refused = read.get(&format!("/api/v1/swarms?search={}", "x".repeat(10_000)));
    assert!((400..=431).contains(&refused.status()), "{}", refused.status());
}

#[test]
fn places_that_are_stale_or_made_up_are_places_all_the_same() {
    let server = builder().start();
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    let passkey = server.add_user(1);
    for number in 1..=4 {
        add_torrent(&server, &admin, &passkey, number);
    }
    eventually_equal(vec![4, 3, 2, 1], PATIENCE, || ids(&asked(&read, "")));
    let first = asked(&read, "limit=1");
    let cursor = first["next"].as_str().unwrap();
    let (_, place) = cursor.split_once('-').unwrap();
    // Of an expired ranking, of an unknown one, of none.
    for made in ["1", "999999999999999", "0", "000"] {
        assert_eq!(ids(&asked(&read, &format!("cursor={made}-{place}"))), [3, 2, 1], "{made}");
    }
    assert_eq!(ids(&asked(&read, "cursor=0-9999999999999999999-1")), [4, 3, 2, 1]);
    assert_eq!(ids(&asked(&read, "order=asc&cursor=0-9999999999999999999-1")), [0_u64; 0]);
    assert_eq!(ids(&asked(&read, "sort=size&cursor=0-0-9999999999999999999")), [4, 3, 2, 1]);
    assert_eq!(ids(&asked(&read, "sort=added&order=asc&cursor=0-0-1")), [1, 2, 3, 4]);
    for wrong in [
        "1",
        "1-2",
        "1-2-0",
        "1-2-3-4",
        "-1-2-3",
        "1---2-3",
        "a-b-c",
        "1-2-03",
        "1234567890123456-1-1",
        "1-+2-3",
    ] {
        let refused =
            read.get(&format!("/api/v1/swarms?cursor={}", domain::percent::encode(wrong.as_bytes())));
        assert_eq!(problem(&refused, 400), "bad_request", "{wrong}");
    }
}

#[test]
fn m10_a_site_without_a_tracker_reads_the_figures_from_the_mirror() {
    let redis = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let database = format!("sqlite:{}", folder.path().join("shared.db").display());
    let server = builder()
        .set("redis.url", quoted(&redis.url()))
        .set("database.url", quoted(&database))
        .roles("tracker,ledger,activity")
        .start();
    let _site = server.companion("site", "site");
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    let passkey = server.add_user(1);
    for number in 1..=3 {
        add_torrent(&server, &admin, &passkey, number);
    }
    let page = eventually("all torrents", PATIENCE, || {
        let page = asked(&read, "order=asc");
        (ids(&page) == [1, 2, 3]).then_some(page)
    });
    let first = &items(&page)[0];
    assert_eq!(
        (&first["seeders"], &first["leechers"], &first["snatches"]),
        (&Json::Null, &Json::Null, &Json::Null)
    );
    let _keeper = server.companion("mirror", "mirror");
    announce(&server, &passkey, &Announce::seeder(info_hash(2), 1));
    eventually_equal((vec![2, 3, 1], Json::from(1), Json::from(0)), PATIENCE, || {
        let page = asked(&read, "");
        let figures = (items(&page)[0]["seeders"].clone(), items(&page)[1]["leechers"].clone());
        (ids(&page), figures.0, figures.1)
    });
}

//! What staff works with: users in order and by state, the queue, torrent files that are uploaded.

use domain::AnnounceEvent;
use serde_json::{Value as Json, json};
use testkit::{Announce, Api, RedisServer, Server, eventually, eventually_equal};

use crate::api::{PATIENCE, add_torrent, announce, builder, items, problem, quoted, sqlite};

fn ids(page: &Json) -> Vec<u64> {
    items(page).iter().map(|user| user["id"].as_u64().unwrap()).collect()
}

/// All items of a list whose address has a question mark already.
fn all_pages(api: &Api, target: &str, limit: u32) -> Vec<Json> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = api.get(&format!("{target}&limit={limit}{cursor}")).ok();
        all.extend(items(&page).iter().cloned());
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

/// Four users: 1 uploaded much, 2 a little and leeches, 3 only downloaded and was disabled, 4 never announced.
fn start_with_users() -> (Server, Api, Api) {
    let server = builder().start();
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    let passkeys: Vec<_> = (1..=4).map(|id| server.add_user(id)).collect();
    let hash = add_torrent(&server, &admin, &passkeys[0], 1);
    let client = |user: usize| Announce::leecher(hash, user as u32 + 1).with_totals(0, 0, 1 << 23);
    // All begin before any uploads: upload without leechers would not count.
    for (user, passkey) in passkeys.iter().take(3).enumerate() {
        announce(&server, passkey, &client(user).with_event(AnnounceEvent::Started));
    }
    for (user, up, down, left) in [(0, 900_000, 300_000, 0), (1, 100_000, 200_000, 5), (2, 0, 400_000, 0)] {
        let moved = client(user).with_totals(up, down, left).with_event(AnnounceEvent::None);
        announce(&server, &passkeys[user], &moved);
    }
    admin.json("PATCH", "/api/v1/users/3", &json!({ "enabled": false, "name": "Ada Lovelace" })).ok();
    eventually("the figures of all", PATIENCE, || {
        let page = read.get("/api/v1/users").ok();
        (items(&page)[2]["figures"]["downloaded"] == "400000" && items(&page)[2]["seeding"] == 0)
            .then_some(())
    });
    (server, read, admin)
}

#[test]
fn users_are_sorted_by_what_they_moved_and_filtered_by_state() {
    let (_server, read, admin) = start_with_users();
    let page = read.get("/api/v1/users").ok();
    assert_eq!((ids(&page), &page["total"]), (vec![1, 2, 3, 4], &4.into()));
    let first = &items(&page)[0];
    assert_eq!((&first["figures"]["uploaded"], &first["ratio"]), (&"900000".into(), &3.0.into()));
    assert_eq!((&first["seeding"], &first["leeching"], first.get("passkey")), (&1.into(), &0.into(), None));
    assert_eq!(items(&page)[3]["figures"], Json::Null);

    let sorted = |query: &str| -> Vec<u64> {
        let ids = |limit: u32| -> Vec<u64> {
            let all = all_pages(&read, &format!("/api/v1/users?{query}"), limit);
            all.iter().map(|user| user["id"].as_u64().unwrap()).collect()
        };
        let whole = ids(1000);
        assert_eq!(ids(1), whole, "pages join: {query}");
        whole
    };
    eventually_equal(vec![1, 2, 3, 4], PATIENCE, || sorted("sort=uploaded"));
    assert_eq!(sorted("sort=downloaded"), [3, 1, 2, 4]);
    assert_eq!(sorted("sort=ratio"), [1, 2, 3, 4]);
    assert_eq!(sorted("sort=ratio&order=asc"), [3, 2, 1, 4], "who has no ratio comes last");
    assert_eq!(sorted("sort=id&order=desc"), [4, 3, 2, 1]);
    assert_eq!(sorted("sort=last_announce").last(), Some(&4));
    for (state, expected) in [
        ("enabled", vec![1, 2, 4]),
        ("disabled", vec![3]),
        ("seeding", vec![1]),
        ("leeching", vec![2]),
        ("never_announced", vec![4]),
        ("online", vec![]),
        ("hit_and_run", vec![]),
    ] {
        eventually_equal(expected, PATIENCE, || sorted(&format!("state={state}")));
    }
    let behind = read.get("/api/v1/users?sort=downloaded&cursor=1").ok();
    assert_eq!(ids(&behind), [2, 4], "a number is a place in every order");
    assert_eq!(sorted("search=LOVE"), [3]);
    assert_eq!(sorted("search=love&sort=ratio"), [3]);
    assert_eq!(sorted("search=love&state=enabled"), [0; 0]);
    for query in ["sort=size", "state=fast", "order=up", "cursor=x", "search=%00"] {
        let refused = admin.get(&format!("/api/v1/users?{query}"));
        assert_eq!(problem(&refused, 400), "bad_request", "{query}");
    }
}

/// Regression: users offline in presence had no seeding and leeching counts in the presence API and on the Users
/// page.
#[test]
fn a5_the_presence_api_lists_seeded_torrents_of_offline_users_too() {
    let (_server, read, _) = start_with_users();
    let query = || read.post("/api/v1/presence/query", &json!({ "users": [2, 1, 99] })).ok()["items"].clone();
    let people = query();
    let shown = |person: &Json| {
        (person["status"].as_str().unwrap().to_owned(), person["seeding"].clone(), person["leeching"].clone())
    };
    assert_eq!(shown(&people[0]), ("offline".to_owned(), 0.into(), 1.into()));
    assert_eq!(shown(&people[1]), ("offline".to_owned(), 1.into(), 0.into()));
    assert_eq!(shown(&people[2]), ("offline".to_owned(), 0.into(), 0.into()));
    assert_eq!(read.get("/api/v1/presence/1").ok()["seeding"], 1);
}

#[test]
fn the_queue_of_staff_has_every_kind_in_one_order() {
    let redis = RedisServer::start();
    let server = builder().set("redis.url", quoted(&redis.url())).set("journal.retry_delay_s", 3600).start();
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    let queue = |query: &str| all_pages(&read, &format!("/api/v1/staff/queue?{query}"), 1000);
    assert_eq!(queue("kind=risk"), [Json::Null; 0]);
    let (taker, cheat) = (server.add_user(1), server.add_user(2));
    admin.json("PATCH", "/api/v1/users/1", &json!({ "name": "Ada" })).ok();
    let hash = add_torrent(&server, &admin, &taker, 1);
    for number in [2, 3] {
        let said = json!({ "infohash": format!("{number:040}"), "name": format!("new {number}"), "approved": false });
        admin.post("/api/v1/torrents", &said).ok();
    }
    // A risk: upload without leechers. A hit-and-run: downloaded, and absent for three days. A dead letter: an
    // unknown user.
    let seeder = Announce::seeder(hash, 2);
    announce(&server, &cheat, &seeder.with_event(AnnounceEvent::Started));
    announce(&server, &cheat, &seeder.with_totals(5000, 0, 0).with_event(AnnounceEvent::None));
    let leecher = Announce::leecher(hash, 1).with_totals(0, 0, 1 << 23);
    announce(&server, &taker, &leecher.with_event(AnnounceEvent::Started));
    announce(&server, &taker, &leecher.with_totals(0, 1 << 23, 0).with_event(AnnounceEvent::Completed));
    announce(&server, &taker, &leecher.with_totals(0, 1 << 23, 0).with_event(AnnounceEvent::Stopped));
    redis.cli_lines(&format!(
        "XADD tracker:traffic * passkey feedfacefeedface infohash {hash} peer_id {} port 6000 ip 192.0.2.7 af IPv4 du 1 \
         dd 3 left 0 event none ts {} dt 0 interval 1800 min_interval 900\n",
        "2d".repeat(20),
        domain::clock::Clock::now(&domain::clock::SystemClock).0
    ));
    eventually("the account of the taker", PATIENCE, || {
        let figures = read.get("/api/v1/users/1").ok()["figures"].clone();
        (figures["completed"] == 1).then_some(())
    });
    sqlite(&server, "UPDATE ledger_accounts SET last_seen = last_seen - 3 * 86400 WHERE user_id = 1");

    let all = eventually("every kind to be in the queue", PATIENCE, || {
        let all =
            queue("kind=risk").len() + queue("kind=hit_and_run").len() + queue("kind=dead_letter").len();
        (all >= 3).then(|| queue(""))
    });
    let of = |kind: &str| all.iter().filter(|item| item["kind"] == kind).collect::<Vec<_>>();
    assert_eq!(of("approval").len(), 2, "{all:?}");
    assert_eq!(of("approval")[0]["torrent"]["name"], "new 3", "the newest first");
    let risk = of("risk")[0];
    assert_eq!((&risk["user"]["id"], &risk["risk"]["kind"]), (&2.into(), &"upload_without_leechers".into()));
    assert_eq!(risk["risk"].get("ip"), None, "an address is for admins");
    let gone = of("hit_and_run")[0];
    assert_eq!((&gone["user"]["name"], &gone["torrent"]["name"]), (&"Ada".into(), &"torrent 1".into()));
    assert_eq!(gone["hit_and_run"]["account"]["figures"]["downloaded"], (1 << 23).to_string());
    assert!(of("dead_letter")[0]["dead_letter"]["reason"].as_str().unwrap().contains("user"), "{all:?}");
    assert_eq!(all.last().unwrap()["kind"], "hit_and_run", "the oldest last");
    let times: Vec<u64> = all.iter().map(|item| item["at"].as_u64().unwrap()).collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");
    for limit in [1, 2, 3] {
        assert_eq!(all_pages(&read, "/api/v1/staff/queue?", limit), all, "pages join: {limit}");
    }
    let counts = read.get("/api/v1/staff/queue?limit=1").ok()["counts"].clone();
    assert_eq!((&counts["approval"], &counts["hit_and_run"]), (&2.into(), &1.into()));
    assert_eq!((&counts["dead_letter"], &counts["failed_entry"]), (&1.into(), &0.into()));

    let users = || ids(&read.get("/api/v1/users?state=hit_and_run").ok());
    eventually_equal(vec![1], PATIENCE, users);
    let id = of("approval")[0]["torrent"]["id"].as_u64().unwrap();
    admin.json("PATCH", &format!("/api/v1/torrents/{id}"), &json!({ "approved": true })).ok();
    assert_eq!(queue("kind=approval").len(), 1, "what is done leaves the queue");
    assert_eq!(problem(&read.get("/api/v1/staff/queue?kind=other"), 400), "bad_request");
}

/// A single-file torrent, private or not.
fn torrent_file(name: &str, private: bool) -> Vec<u8> {
    let flag = if private { "7:privatei1e" } else { "" };
    let pieces = "x".repeat(20);
    format!(
        "d4:infod6:lengthi123456e4:name{}:{name}12:piece lengthi16384e6:pieces20:{pieces}{flag}ee",
        name.len()
    )
    .into_bytes()
}

#[test]
fn a_torrent_file_is_uploaded_with_the_result_of_the_command() {
    let server = builder().start();
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    let upload = |api: &Api, query: &str, bytes: &[u8]| {
        let target = format!("/api/v1/torrents/file{query}");
        api.send("POST", &target, &[("content-type", "application/x-bittorrent")], Some(bytes))
    };
    let added = upload(&admin, "", &torrent_file("a film", true));
    assert_eq!(added.status(), 201);
    let torrent = added.json();
    assert_eq!((&torrent["name"], &torrent["total_bytes"]), (&"a film".into(), &"123456".into()));
    assert_eq!(torrent["approved"], true);
    let path = server.data_folder().join("the.torrent");
    std::fs::write(&path, torrent_file("a film", true)).unwrap();
    assert_eq!(problem(&upload(&admin, "", &torrent_file("a film", true)), 409), "already_exists");
    admin.delete(&format!("/api/v1/torrents/{}", torrent["id"]));
    let by_command = server.cli(&["torrent", "add", path.to_str().unwrap()]);
    for field in ["name", "infohash", "infohash_v2", "enabled", "approved"] {
        assert_eq!(by_command[field], torrent[field], "{field}");
    }

    let pending = upload(&admin, "?approved=false", &torrent_file("b", true)).ok();
    assert_eq!(pending["approved"], false);
    assert_eq!(problem(&upload(&admin, "", &torrent_file("c", false)), 422), "public_torrent");
    assert_eq!(upload(&admin, "?allow_public=true", &torrent_file("c", false)).status(), 201);
    assert_eq!(problem(&upload(&admin, "", b"no torrent"), 422), "not_a_torrent");
    assert_eq!(problem(&upload(&admin, "", &vec![b'x'; (32 << 20) + 1]), 413), "too_large");
    assert_eq!(problem(&upload(&read, "", &torrent_file("d", true)), 403), "forbidden");
    let audit = admin.get("/api/v1/audit?action=torrent.add").ok();
    let id = Json::from(torrent["id"].to_string());
    let record = items(&audit).iter().find(|record| record["subjectId"] == id);
    assert_eq!(record.unwrap()["details"]["name"], "a film", "{audit}");
}

//! The explanation of figures: entries, risks, accounts of a torrent, names in lists, search.

use domain::AnnounceEvent;
use serde_json::{Value as Json, json};
use testkit::{Announce, Api, RedisServer, Server, eventually, eventually_equal};

use crate::api::{PATIENCE, add_torrent, announce, builder, items, problem, quoted, walk};

/// All entries of a list, page by page; pages may be empty.
fn entries(api: &Api, target: &str, limit: u32) -> Vec<Json> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let sign = if target.contains('?') { '&' } else { '?' };
        let page = api.get(&format!("{target}{sign}limit={limit}{cursor}")).ok();
        assert!(items(&page).len() <= limit as usize, "{page}");
        all.extend(items(&page).iter().cloned());
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

/// Tells the same story wherever the journal is kept.
fn entries_explain(server: &Server) {
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    let passkeys: Vec<_> = (1..=2).map(|id| server.add_user(id)).collect();
    let one = add_torrent(server, &admin, &passkeys[0], 1);
    let two = add_torrent(server, &admin, &passkeys[0], 2);
    admin
        .post("/api/v1/multipliers", &json!({ "scope": "torrent", "subject": 2, "download_percent": 50 }))
        .ok();
    let leecher = Announce::leecher(one, 1).with_totals(0, 0, 5000);
    announce(server, &passkeys[0], &leecher.with_event(AnnounceEvent::Started));
    announce(server, &passkeys[1], &Announce::seeder(one, 2));
    announce(server, &passkeys[0], &leecher.with_totals(100, 2000, 3000));
    let other = Announce::leecher(two, 3).with_totals(0, 0, 900);
    announce(server, &passkeys[0], &other.with_event(AnnounceEvent::Started));
    announce(server, &passkeys[0], &other.with_totals(10, 301, 599).with_event(AnnounceEvent::Stopped));
    let target = "/api/v1/users/1/entries";
    let all = eventually("all entries", PATIENCE, || {
        let all = entries(&admin, target, 100);
        (all.len() == 4).then_some(all)
    });
    let column = |name: &str| all.iter().map(|entry| entry[name].clone()).collect::<Vec<_>>();
    assert_eq!(column("event"), ["stopped", "started", "none", "started"]);
    assert_eq!(column("torrent"), [2, 2, 1, 1]);
    assert_eq!(column("name"), ["torrent 2", "torrent 2", "torrent 1", "torrent 1"]);
    assert_eq!(column("uploaded_delta"), ["10", "0", "100", "0"]);
    assert_eq!(column("downloaded_delta"), ["301", "0", "2000", "0"]);
    assert_eq!(column("credited_downloaded"), ["150", "0", "2000", "0"]);
    assert_eq!(column("credited_uploaded"), ["10", "0", "100", "0"]);
    assert_eq!(column("left"), ["599", "900", "3000", "5000"]);
    assert_eq!(column("ip"), ["127.0.0.1"; 4]);
    assert!(column("client").iter().all(|client| client.as_str().unwrap().starts_with('-')), "{all:?}");
    let page = admin.get(target).ok();
    assert_eq!((&page["complete"], &page["next"]), (&true.into(), &Json::Null));
    assert!(page["since"].as_u64() > Some(1_700_000_000) && page["scanned"].as_u64() >= Some(5), "{page}");
    for limit in [1, 2, 3, 4] {
        assert_eq!(entries(&admin, target, limit), all, "limit {limit}");
    }
    assert_eq!(entries(&admin, &format!("{target}?torrent=1"), 1), all[2..]);
    assert!(entries(&admin, &format!("{target}?torrent=77"), 1).is_empty());
    for wrong in ["torrent=0", "torrent=x", "torrent=", "torrent=1&torrent=2"] {
        assert_eq!(problem(&admin.get(&format!("{target}?{wrong}")), 400), "bad_request", "{wrong}");
    }
    let seen = entries(&read, target, 100);
    assert!(seen.len() == 4 && seen.iter().all(|entry| entry.get("ip").is_none()), "{seen:?}");
    assert_eq!(problem(&read.get("/api/v1/users/9/entries"), 404), "unknown_user");
    // A multiplier that was ended still explains what it did.
    assert_eq!(admin.delete("/api/v1/multipliers/1").status(), 204);
    assert_eq!(problem(&admin.delete("/api/v1/multipliers/1"), 404), "unknown_multiplier");
    assert_eq!(items(&admin.get(target).ok())[0]["credited_downloaded"], "150");
    let ended = admin.get("/api/v1/multipliers").ok()["items"].clone();
    assert!(ended[0]["ends_at"].as_u64() > Some(1_700_000_000), "{ended}");
}

#[test]
fn entries_explain_a_figure() {
    entries_explain(&builder().start());
}

#[test]
fn entries_explain_a_figure_on_redis() {
    let redis = RedisServer::start();
    entries_explain(&builder().set("redis.url", quoted(&redis.url())).start());
}

/// A client that the tracker forgot after a long silence, while its counters grew: no entry shows by how much.
#[test]
fn l6_the_clients_of_an_account_explain_it_to_the_byte() {
    let server = builder().set("tracker.announce_interval_s", 1).set("tracker.peer_grace_s", 1).start();
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    let passkey = server.add_user(1);
    let hash = add_torrent(&server, &admin, &passkey, 1);
    let target = "/api/v1/users/1/torrents/1/clients";
    let nothing = read.get(target).ok();
    assert_eq!((&nothing["account"], items_of(&nothing, "clients").len()), (&Json::Null, 0));
    let leecher = Announce::leecher(hash, 1).with_totals(5, 0, 5000);
    announce(&server, &passkey, &leecher.with_event(AnnounceEvent::Started));
    announce(&server, &passkey, &leecher.with_totals(100, 2000, 3000));
    eventually("the tracker to forget it", PATIENCE, || {
        (server.scrape(&passkey, &hash).incomplete == 0).then_some(())
    });
    announce(&server, &passkey, &leecher.with_totals(150, 2600, 2400));
    announce(&server, &passkey, &leecher.with_totals(151, 2601, 2399));
    announce(&server, &passkey, &Announce::seeder(hash, 2));
    let found = eventually("all of it", PATIENCE, || {
        let found = read.get(target).ok();
        let is_all =
            found["account"]["figures"]["downloaded"] == "2601" && items_of(&found, "clients").len() == 2;
        is_all.then_some(found)
    });
    let nothing = json!({ "uploaded": "0", "downloaded": "0" });
    assert_eq!((&found["complete"], &found["rest"]), (&true.into(), &nothing));
    assert_eq!((&found["account"]["torrent"], &found["account"]["name"]), (&1.into(), &"torrent 1".into()));
    let client = items_of(&found, "clients").iter().find(|one| one["state"] == "leeching").unwrap();
    assert_eq!(client["total"], json!({ "uploaded": "146", "downloaded": "2601" }));
    assert_eq!((&client["settled"], &client["foreign"]), (&nothing, &nothing));
    let [first, second] = items_of(client, "stretches") else { panic!("{client}") };
    assert_eq!((&first["uploaded_low"], &first["uploaded_high"]), (&"5".into(), &"100".into()));
    assert_eq!((&first["bridged"], &first["nodes"]), (&Json::Null, &1.into()));
    let bridged = json!({
        "uploaded": "50", "downloaded": "600", "withheld_uploaded": "0", "withheld_downloaded": "0",
    });
    assert_eq!(second["bridged"], bridged);
    assert_eq!((&second["downloaded_low"], &second["downloaded_high"]), (&"2600".into(), &"2601".into()));
    // The entries have fewer fields, and their user.
    let told = entries(&read, "/api/v1/users/1/entries?torrent=1", 100);
    let own: Vec<&Json> = told.iter().filter(|entry| entry["client_id"] == client["id"]).collect();
    let deltas: Vec<&Json> = own.iter().map(|entry| &entry["downloaded_delta"]).collect();
    assert_eq!(deltas, ["1", "0", "0", "2000", "0"]);

    assert_eq!(problem(&read.get("/api/v1/users/9/torrents/1/clients"), 404), "unknown_user");
    assert_eq!(read.get("/api/v1/users/1/torrents/77/clients").ok()["account"], Json::Null);
    for wrong in ["0", "x", "-1", "9223372036854775808"] {
        let reply = read.get(&format!("/api/v1/users/1/torrents/{wrong}/clients"));
        assert_eq!(problem(&reply, 400), "bad_request", "{wrong}");
    }
}

fn items_of<'a>(of: &'a Json, name: &str) -> &'a [Json] {
    of[name].as_array().unwrap()
}

#[test]
fn lists_have_names_and_a_torrent_has_accounts() {
    let server = builder().start();
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    let passkeys: Vec<_> = (1..=3).map(|id| server.add_user(id)).collect();
    let hash = add_torrent(&server, &admin, &passkeys[0], 1);
    for (passkey, client) in passkeys.iter().zip(1..) {
        let leecher = Announce::leecher(hash, client).with_totals(0, 0, 5000);
        announce(&server, passkey, &leecher.with_event(AnnounceEvent::Started));
        announce(&server, passkey, &leecher.with_totals(7, 1000, 4000));
    }
    announce(&server, &passkeys[2], &Announce::seeder(hash, 9));
    let target = format!("/api/v1/torrents/{hash}/accounts");
    let accounts = eventually("all accounts", PATIENCE, || {
        let accounts = walk(&read, &target, 100);
        let is_settled = accounts.len() == 3
            && accounts.iter().all(|account| account["figures"]["downloaded"] == "1000")
            && accounts.iter().any(|account| account["seeding"] == true);
        is_settled.then_some(accounts)
    });
    let moments: Vec<u64> =
        accounts.iter().map(|one| one["figures"]["last_seen"].as_u64().unwrap()).collect();
    assert!(moments.is_sorted_by(|one, next| one >= next), "{moments:?}");
    let of = |user: u64| accounts.iter().find(|account| account["user"] == user).unwrap();
    assert_eq!(
        (&of(1)["left"], &of(1)["leeching"], &of(1)["seeding"]),
        (&"4000".into(), &true.into(), &false.into())
    );
    assert_eq!(
        (&of(3)["left"], &of(3)["leeching"], &of(3)["seeding"]),
        (&"0".into(), &true.into(), &true.into())
    );
    for limit in [1, 2, 3] {
        assert_eq!(walk(&read, &target, limit), accounts, "limit {limit}");
    }
    assert_eq!(walk(&read, "/api/v1/torrents/1/accounts", 2), accounts);
    assert_eq!(items(&read.get(&format!("{target}?cursor=9999999999-9999999999999999999")).ok()).len(), 3);
    for wrong in ["1", "1-0", "-1", "12345678901-1", "x-1", "%2B1-1"] {
        assert_eq!(problem(&read.get(&format!("{target}?cursor={wrong}")), 400), "bad_request", "{wrong}");
    }
    assert_eq!(problem(&read.get("/api/v1/torrents/77/accounts"), 404), "unknown_torrent");

    let peers = walk(&read, &format!("/api/v1/torrents/{hash}/peers"), 2);
    assert_eq!(peers.len(), 4);
    assert!(peers.iter().all(|peer| peer["client"].as_str().unwrap().starts_with('-')), "{peers:?}");
    assert_eq!((&peers[0]["left"], &peers[0]["user"]), (&"4000".into(), &1.into()));
    let last: Vec<&Json> = peers.iter().filter(|peer| peer["user"] == 3).collect();
    let left_of = |seeding: bool| &last.iter().find(|peer| peer["seeding"] == seeding).unwrap()["left"];
    assert_eq!(
        (left_of(true), left_of(false)),
        (&"0".into(), &Json::Null),
        "the account has one client's word"
    );

    let leeching = eventually("the list", PATIENCE, || {
        let page = read.get("/api/v1/users/1/leeching").ok();
        (page["count"] == 1).then_some(page)
    });
    let listed = &items(&leeching)[0];
    assert_eq!((&listed["torrent"], &listed["name"]), (&1.into(), &"torrent 1".into()));
    let accounts = read.get("/api/v1/users/1/torrents").ok();
    let account = &items(&accounts)[0];
    assert_eq!((&account["torrent"], &account["name"]), (&1.into(), &"torrent 1".into()));
    admin.delete("/api/v1/torrents/1");
    eventually_equal((Json::from(1), Json::Null), PATIENCE, || {
        let account = items(&read.get("/api/v1/users/1/torrents").ok())[0].clone();
        (account["torrent"].clone(), account["name"].clone())
    });
}

#[test]
fn j8_risks_are_listed_by_user() {
    let server = builder().start();
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    let passkeys: Vec<_> = (1..=2).map(|id| server.add_user(id)).collect();
    let hash = add_torrent(&server, &admin, &passkeys[0], 1);
    for (passkey, client) in passkeys.iter().zip(1..) {
        let seeder = Announce::seeder(hash, client);
        announce(&server, passkey, &seeder);
        announce(&server, passkey, &seeder.with_totals(u64::MAX / 4, 0, 0));
    }
    let of = |user: u64| entries(&admin, &format!("/api/v1/users/{user}/risks"), 1);
    eventually("risks of both", PATIENCE, || (!of(1).is_empty() && !of(2).is_empty()).then_some(()));
    for user in [1, 2] {
        let risks = of(user);
        assert!(risks.iter().all(|risk| risk["user"] == user), "{risks:?}");
        assert_eq!(risks[0]["ip"], "127.0.0.1");
    }
    assert!(items(&read.get("/api/v1/users/1/risks").ok())[0].get("ip").is_none());
    assert_eq!(problem(&read.get("/api/v1/users/9/risks"), 404), "unknown_user");
}

#[test]
fn j8_risks_have_a_kind_with_its_figures_and_are_filtered_by_it() {
    let server = builder().start();
    let admin = server.api(&["admin"]);
    let passkeys: Vec<_> = (1..=2).map(|id| server.add_user(id)).collect();
    let hash = add_torrent(&server, &admin, &passkeys[0], 1);
    // No other user leeches, so the upload went to no one. Then more than a line carries.
    let seeder = Announce::seeder(hash, 1);
    announce(&server, &passkeys[0], &seeder);
    announce(&server, &passkeys[0], &seeder.with_totals(5000, 0, 0));
    announce(&server, &passkeys[0], &seeder.with_totals(u64::MAX / 4, 0, 0));
    for number in 0..20_u32 {
        let mut client = Announce::leecher(hash, 2);
        client.peer_id.0[16..].copy_from_slice(&number.to_be_bytes());
        announce(&server, &passkeys[1], &client);
        announce(&server, &passkeys[1], &client.with_event(AnnounceEvent::Stopped));
    }
    let of_kind = |path: &str, kind: &str| entries(&admin, &format!("{path}?kind={kind}"), 1);
    let kinds = [
        ("/api/v1/users/1/risks", "upload_without_leechers"),
        ("/api/v1/users/1/risks", "client_rate"),
        ("/api/v1/users/2/risks", "many_peer_ids"),
    ];
    for (path, kind) in kinds {
        eventually(kind, PATIENCE, || (!of_kind(path, kind).is_empty()).then_some(()));
        assert!(of_kind(path, kind).iter().all(|risk| risk["kind"] == kind));
        assert_eq!(of_kind(path, kind).last(), of_kind("/api/v1/risks", kind).last(), "of all users");
    }
    let upload = &of_kind("/api/v1/risks", "upload_without_leechers")[0];
    assert_eq!((&upload["uploaded_claimed"], &upload["uploaded_credited"]), (&"5000".into(), &"5000".into()));
    assert_eq!((&upload["count"], &upload["ceiling_bytes_per_s"]), (&0.into(), &"0".into()));
    assert_eq!(of_kind("/api/v1/risks", "many_peer_ids")[0]["count"], 15);
    assert!(of_kind("/api/v1/users/2/risks", "client_rate").is_empty());
    for path in ["/api/v1/risks?kind=x", "/api/v1/users/1/risks?kind="] {
        assert_eq!(problem(&admin.get(path), 400), "bad_request");
    }
}

#[test]
fn j8_upload_without_leechers_is_not_credited_if_configured() {
    let server = builder().set("limits.credit_upload_without_leechers", false).start();
    let admin = server.api(&["admin"]);
    let passkeys: Vec<_> = (1..=2).map(|id| server.add_user(id)).collect();
    let hash = add_torrent(&server, &admin, &passkeys[0], 1);
    let seeder = Announce::seeder(hash, 1);
    announce(&server, &passkeys[0], &seeder);
    announce(&server, &passkeys[0], &seeder.with_totals(5000, 0, 0));
    announce(&server, &passkeys[1], &Announce::leecher(hash, 2));
    announce(&server, &passkeys[0], &seeder.with_totals(5700, 0, 0));
    let figures = || admin.get("/api/v1/users/1").ok()["figures"].clone();
    eventually("what the leecher received", PATIENCE, || (figures()["uploaded"] == "700").then_some(()));
    let risks = entries(&admin, "/api/v1/users/1/risks?kind=upload_without_leechers", 10);
    let [risk] = risks.as_slice() else { panic!("{risks:?}") };
    assert_eq!((&risk["uploaded_claimed"], &risk["uploaded_credited"]), (&"5000".into(), &"0".into()));
}

#[test]
fn users_are_looked_for_by_number_or_by_whole_passkey() {
    let server = builder().start();
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    for (id, passkey) in [(1, "0123456789abcdef"), (2, "12345678"), (12_345_678, "fedcba98")] {
        admin.post("/api/v1/users", &json!({ "id": id, "passkey": passkey })).ok();
    }
    let found = |api: &Api, text: &str| -> Vec<u64> {
        let page = api.get(&format!("/api/v1/users?search={text}")).ok();
        assert_eq!(page["next"], Json::Null);
        items(&page).iter().map(|user| user["id"].as_u64().unwrap()).collect()
    };
    for (text, by_admin) in [
        ("1", vec![1]),
        ("%202%20", vec![2]),
        ("0123456789ABCDEF", vec![1]),
        ("12345678", vec![2, 12_345_678]),
        ("fedcba9", vec![]),
        ("99", vec![]),
        ("0", vec![]),
        ("none", vec![]),
        ("%25", vec![]),
        ("", vec![1, 2, 12_345_678]),
    ] {
        assert_eq!(found(&admin, text), by_admin, "{text}");
    }
    assert_eq!(found(&read, "12345678"), [12_345_678], "a number is one");
    assert_eq!(found(&read, "0123456789abcdef"), [0; 0], "passkeys are for admins");
    for text in ["%00".to_owned(), "a".repeat(101)] {
        let refused = admin.get(&format!("/api/v1/users?search={text}"));
        assert_eq!(problem(&refused, 400), "bad_request", "{text}");
    }
    assert_eq!(problem(&admin.get("/api/v1/users?search=1&search=2"), 400), "bad_request");
}

//! The site in a process of its own, beside the tracker's.

use serde_json::{Value as Json, json};
use testkit::{Announce, Family, RedisServer, eventually, eventually_equal};

use crate::api::{PATIENCE, announce, builder, info_hash, problem, quoted};

#[test]
fn the_site_runs_beside_a_tracker_and_its_changes_reach_it() {
    let redis = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let database = format!("sqlite:{}", folder.path().join("shared.db").display());
    let server = builder()
        .set("redis.url", quoted(&redis.url()))
        .set("database.url", quoted(&database))
        .roles("tracker,ledger,activity")
        .start();
    assert!(testkit::RawHttp::try_connect(server.site_addr()).is_err(), "the tracker has no site");
    let mut site = server.companion("site", "site");
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    admin.post("/api/v1/users", &json!({ "id": 1, "passkey": "0123456789abcdef" })).ok();
    let said = json!({ "infohash": info_hash(1).to_string(), "name": "x" });
    admin.post("/api/v1/torrents", &said).ok();
    let passkey = "0123456789abcdef".parse().unwrap();
    eventually("the torrent to be known", PATIENCE, || {
        server.try_scrape(&passkey, &info_hash(1)).ok().flatten()
    });
    let client = Announce::seeder(info_hash(1), 1);
    announce(&server, &passkey, &client);
    announce(&server, &passkey, &client.with_totals(1000, 0, 0));
    eventually_equal((Json::from("1000"), Json::from(1)), PATIENCE, || {
        let shown = read.get("/api/v1/users/1").ok();
        (shown["figures"]["uploaded"].clone(), shown["seeding"].clone())
    });
    assert_eq!(read.get("/api/v1/stats").ok()["tracker"], Json::Null);
    let overview = eventually("the announces to be seen at a glance", PATIENCE, || {
        let overview = read.get("/api/v1/overview").ok();
        (overview["journal"]["appended"].as_u64() >= Some(2)).then_some(overview)
    });
    assert_eq!((&overview["tracker"], &overview["gateway"]), (&Json::Null, &Json::Null));
    let torrent = read.get(&format!("/api/v1/torrents/{}", info_hash(1))).ok();
    assert_eq!(torrent["torrent"]["swarm"], Json::Null);
    let peers = read.get(&format!("/api/v1/torrents/{}/peers", info_hash(1)));
    assert_eq!(problem(&peers, 503), "no_tracker");
    eventually("everything to be well", PATIENCE, || (read.get("/readyz").status() == 200).then_some(()));
    assert_eq!(read.get("/metrics").status(), 200);

    admin.json("PATCH", "/api/v1/users/1", &json!({ "enabled": false })).ok();
    eventually("the user to be shut out", PATIENCE, || {
        server.announce(Family::V4, &passkey, &client).failure_reason
    });
    // Without the site, the tracker continues.
    assert_eq!(site.stop().code(), Some(0));
    assert!(server.try_scrape(&passkey, &info_hash(1)).is_err(), "it still knows who is shut out");
}

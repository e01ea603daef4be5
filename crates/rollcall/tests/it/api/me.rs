//! What a person may know of themselves: `/api/v1/me`.

use domain::AnnounceEvent;
use serde_json::{Value as Json, json};
use testkit::{Announce, ApiReply, Server, eventually};

use crate::api::{PATIENCE, add_torrent, announce, builder, problem, quoted};

fn me(server: &Server, token: &str) -> ApiReply {
    let bearer = format!("Bearer {token}");
    server.anonymous_api().send("GET", "/api/v1/me", &[("authorization", &bearer)], None)
}

fn token(server: &Server, user: u64) -> String {
    server.cli(&["token", &user.to_string()])["token"].as_str().unwrap().to_owned()
}

#[test]
fn a_person_sees_their_own_status_figures_and_torrents() {
    let server = builder().set("gateway.allowed_origins", "[\"https://forum.example\"]").start();
    let (admin, token) = (server.api(&["admin"]), token(&server, 7));
    let unknown = me(&server, &token).ok();
    assert_eq!(
        (&unknown["id"], &unknown["figures"], &unknown["ratio"]),
        (&7.into(), &Json::Null, &Json::Null)
    );
    assert_eq!((&unknown["seeding"], &unknown["friends"]), (&json!({ "count": 0, "items": [] }), &0.into()));
    assert_eq!((&unknown["presence"]["status"], &unknown["sessions"]), (&"offline".into(), &json!([])));

    let passkey = server.add_user(7);
    let hash = add_torrent(&server, &admin, &passkey, 1);
    let said = json!({ "infohash": "ab".repeat(20), "name": "sized", "total_bytes": "4000" });
    admin.post("/api/v1/torrents", &said).ok();
    let sized = domain::InfoHash([0xab; 20]);
    eventually("the torrent", PATIENCE, || server.try_scrape(&passkey, &sized).ok().flatten());
    announce(&server, &passkey, &Announce::seeder(hash, 1));
    announce(&server, &passkey, &Announce::seeder(hash, 1).with_totals(3000, 0, 0));
    let leecher = Announce::leecher(sized, 2).with_totals(0, 0, 4000);
    announce(&server, &passkey, &leecher.with_event(AnnounceEvent::Started));
    announce(&server, &passkey, &leecher.with_totals(0, 2000, 2000));
    admin.json("PUT", "/api/v1/users/7/friends/8", &json!({}));
    let heartbeat = json!({ "device": "phone-1", "platform": "phone", "status": "invisible" });
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let heartbeat = heartbeat.to_string();
    let path = "/api/v1/presence/heartbeat";
    eventually("the heartbeat to be heard", PATIENCE, || {
        let heard = server.anonymous_api().send("POST", path, &headers, Some(heartbeat.as_bytes()));
        (heard.status() == 200).then_some(())
    });
    let shown = eventually("the accounts and the lists", PATIENCE, || {
        // A person may not ask often.
        let shown = me(&server, &token);
        let shown = (shown.status() == 200).then(|| shown.json())?;
        let is_settled = shown["figures"]["downloaded"] == "2000"
            && shown["figures"]["uploaded"] == "3000"
            && shown["seeding"]["count"] == 1
            && shown["leeching"]["count"] == 1;
        is_settled.then_some(shown)
    });
    assert_eq!(
        (&shown["ratio"], &shown["hit_and_runs"], &shown["friends"]),
        (&1.5.into(), &0.into(), &1.into())
    );
    assert_eq!(shown["presence"]["status"], "invisible", "a user sees their own invisible status");
    assert_eq!(shown["sessions"][0]["device"], "phone-1");
    let leeching = &shown["leeching"]["items"][0];
    assert_eq!((&leeching["name"], &leeching["infohash"]), (&"sized".into(), &"ab".repeat(20).into()));
    assert_eq!((&leeching["left"], &leeching["total_bytes"]), (&"2000".into(), &"4000".into()));
    let seeding = &shown["seeding"]["items"][0];
    assert_eq!(
        (&seeding["torrent"], &seeding["left"], &seeding["total_bytes"]),
        (&1.into(), &"0".into(), &Json::Null)
    );
    assert!(!shown.to_string().contains(&passkey.to_string()), "{shown}");

    // A page of the site may ask; others may not, nor may a key.
    let asked = |origin: &str| {
        let headers = [("authorization", bearer.as_str()), ("origin", origin)];
        let reply = server.anonymous_api().send("GET", "/api/v1/me", &headers, None);
        reply.reply.header("access-control-allow-origin").map(str::to_owned)
    };
    assert_eq!(asked("https://forum.example").as_deref(), Some("https://forum.example"));
    assert_eq!(asked("https://elsewhere.example"), None);
    assert_eq!(problem(&admin.get("/api/v1/me"), 401), "unauthorized");
    assert_eq!(problem(&me(&server, "nonsense"), 401), "unauthorized");
    assert_eq!(problem(&me(&server, admin.key().unwrap()), 401), "unauthorized");
}

#[test]
fn a_process_without_a_gateway_has_no_presence() {
    let server = builder()
        .set("gateway.token_hmac_secret", quoted("a secret that is long enough to be one"))
        .roles("tracker,ledger,activity,site")
        .start();
    assert_eq!(problem(&me(&server, &token(&server, 7)), 503), "no_gateway");
}

//! The audit trail over the API (W7): every change is there, with whose key made it.

use std::collections::BTreeSet;

use domain::AnnounceEvent;
use serde_json::{Value as Json, json};
use testkit::{Announce, Api, RawHttp, eventually};

use crate::api::{PATIENCE, builder, info_hash, items, problem, walk};

/// What the trail has, oldest first.
fn trail(admin: &Api) -> Vec<Json> {
    let mut records = walk(admin, "/api/v1/audit", 7);
    records.reverse();
    records
}

#[test]
fn w7_every_change_is_recorded_with_its_key_and_its_outcome() {
    let server = builder().start();
    let made = server.cli(&["key", "create", "--name", "auditor", "--scope", "admin"]);
    let actor = format!("key:{}", made["id"].as_str().unwrap());
    let admin = server.anonymous_api().with_key(made["key"].as_str().unwrap());
    eventually("the key to work", PATIENCE, || (admin.get("/api/v1/stats").status() == 200).then_some(()));
    let before = trail(&admin).len();
    let hash = info_hash(1).to_string();
    let torrent = format!("/api/v1/torrents/{hash}");
    let secret = "feedfacefeedfacefeedfacefeedface";
    let privacy = json!({ "status": "nobody", "last_seen": "nobody" });
    let changes: Vec<(&str, &str, String, Json, bool)> = vec![
        ("user.add", "POST", "/api/v1/users".into(), json!({ "id": 1, "passkey": secret }), true),
        ("user.add", "POST", "/api/v1/users".into(), json!({ "id": 1 }), false),
        ("user.disable", "PATCH", "/api/v1/users/1".into(), json!({ "enabled": false }), true),
        ("user.enable", "PATCH", "/api/v1/users/1".into(), json!({ "enabled": true }), true),
        ("user.enable", "PATCH", "/api/v1/users/2".into(), json!({ "enabled": true }), false),
        ("passkey.rotate", "POST", "/api/v1/users/1/passkey".into(), json!({}), true),
        ("torrent.add", "POST", "/api/v1/torrents".into(), json!({ "infohash": hash, "name": "x" }), true),
        ("torrent.disable", "PATCH", torrent.clone(), json!({ "enabled": false }), true),
        ("torrent.enable", "PATCH", torrent.clone(), json!({ "enabled": true }), true),
        ("torrent.unapprove", "PATCH", torrent.clone(), json!({ "approved": false }), true),
        ("torrent.approve", "PATCH", torrent.clone(), json!({ "approved": true }), true),
        ("torrent.change", "PATCH", torrent.clone(), json!({ "leech_slots": 5, "enabled": true }), true),
        ("user.change", "PATCH", "/api/v1/users/1".into(), json!({ "leech_slots": 2 }), true),
        ("port.ban", "PUT", "/api/v1/ports/6881/6889".into(), json!({ "reason": "throttled" }), true),
        ("port.allow", "DELETE", "/api/v1/ports/6885/6885".into(), Json::Null, true),
        ("port.allow", "DELETE", "/api/v1/ports/6885/6885".into(), Json::Null, false),
        ("client.forbid", "PUT", "/api/v1/clients/-XX".into(), json!({ "allowed": false }), true),
        ("client.allow", "PUT", "/api/v1/clients/-XX".into(), json!({ "allowed": true }), true),
        ("client.remove", "DELETE", "/api/v1/clients/-XX".into(), Json::Null, true),
        ("client.remove", "DELETE", "/api/v1/clients/-XX".into(), Json::Null, false),
        ("friend.add", "PUT", "/api/v1/users/1/friends/2".into(), json!({}), true),
        ("friend.add", "PUT", "/api/v1/users/1/friends/1".into(), json!({}), false),
        ("friend.remove", "DELETE", "/api/v1/users/2/friends/1".into(), Json::Null, true),
        ("friend.remove", "DELETE", "/api/v1/users/2/friends/1".into(), Json::Null, false),
        ("friend.import", "POST", "/api/v1/friends/import".into(), json!({ "pairs": [[1, 2]] }), true),
        ("privacy.set", "PUT", "/api/v1/users/1/privacy".into(), privacy, true),
        ("multiplier.add", "POST", "/api/v1/multipliers".into(), json!({ "scope": "site" }), true),
        ("multiplier.remove", "DELETE", "/api/v1/multipliers/1".into(), Json::Null, true),
        ("multiplier.remove", "DELETE", "/api/v1/multipliers/1".into(), Json::Null, false),
        ("view.pause", "PATCH", "/api/v1/journal/views/ledger".into(), json!({ "paused": true }), true),
        ("view.resume", "PATCH", "/api/v1/journal/views/ledger".into(), json!({ "paused": false }), true),
        ("passkey.add", "POST", "/api/v1/whitelist/add".into(), json!({ "passkeys": [secret] }), true),
        ("passkey.remove", "POST", "/api/v1/whitelist/remove".into(), json!({ "passkeys": [secret] }), true),
        ("passkey.undo", "POST", "/api/v1/whitelist/undo".into(), json!({}), false),
        ("passkey.refresh", "PUT", "/api/v1/whitelist".into(), json!(null), false),
        ("dlq.replay", "POST", "/api/v1/dead-letters/dlq/replay".into(), json!({ "all": true }), true),
        ("failed.drop", "POST", "/api/v1/dead-letters/failed/drop".into(), json!({ "ids": ["1-1"] }), true),
        ("torrent.remove", "DELETE", torrent, Json::Null, true),
        ("user.remove", "DELETE", "/api/v1/users/1".into(), Json::Null, true),
    ];
    for (action, method, target, said, is_ok) in &changes {
        let reply = match *method {
            "DELETE" => admin.delete(target),
            _ => admin.json(method, target, said),
        };
        assert_eq!((200..300).contains(&reply.status()), *is_ok, "{action}: {}", reply.status());
        // It is recorded before it is acknowledged.
        let newest = admin.get("/api/v1/audit?limit=1").ok();
        let record = &items(&newest)[0];
        assert_eq!(record["action"], *action, "{record}");
        assert_eq!(record["actorId"], actor, "{record}");
        assert_eq!(record["result"] == "ok", *is_ok, "{record}");
    }
    let all = trail(&admin);
    assert_eq!(all.len() - before, changes.len(), "each once, and nothing else");
    let text = serde_json::to_string(&all).unwrap();
    assert!(!text.contains(secret) && !text.contains(made["key"].as_str().unwrap()), "{text}");
    for (record, next) in all.iter().zip(&all[1..]) {
        assert_eq!(next["prev"], record["hash"], "each is chained to the one before");
        assert_eq!(next["seq"].as_u64(), record["seq"].as_u64().map(|seq| seq + 1));
    }
    let verified = server.try_cli(&["audit", "verify"]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
}

#[test]
fn w7_the_trail_is_verified_over_the_api() {
    let server = builder().start();
    let admin = server.api(&["admin"]);
    for id in 1..=5 {
        admin.post("/api/v1/users", &json!({ "id": id })).ok();
    }
    let verdict = admin.get("/api/v1/audit/verify").ok();
    assert_eq!(
        (&verdict["valid"], &verdict["broken_at"], &verdict["reason"]),
        (&json!(true), &Json::Null, &Json::Null)
    );
    let newest = items(&admin.get("/api/v1/audit?limit=1").ok())[0].clone();
    assert_eq!((&verdict["last"], &verdict["last_hash"]), (&newest["seq"], &newest["hash"]));
    assert_eq!(verdict["records"], newest["seq"]);
    assert_eq!(problem(&server.api(&["read"]).get("/api/v1/audit/verify"), 403), "forbidden");
    // A line is altered.
    let file = server.data_folder().join("logs/audit.log");
    let text = std::fs::read_to_string(&file).unwrap();
    let touched = text.replacen("\"subjectId\":\"3\"", "\"subjectId\":\"4\"", 1);
    assert_ne!(text, touched);
    std::fs::write(&file, touched).unwrap();
    let line = text.lines().position(|line| line.contains("\"subjectId\":\"3\"")).unwrap() as u64 + 1;
    let broken = eventually("it to be found", PATIENCE, || {
        let verdict = admin.get("/api/v1/audit/verify").ok();
        (verdict["valid"] == false).then_some(verdict)
    });
    assert_eq!((&broken["broken_at"], &broken["records"]), (&json!(line), &json!(line - 1)));
    let reason = broken["reason"].as_str().unwrap();
    assert!(reason.starts_with(&format!("line {line}: ")), "{reason}");
}

#[test]
fn the_trail_is_asked_by_action_and_page() {
    let server = builder().start();
    let admin = server.api(&["admin"]);
    for id in 1..=5 {
        admin.post("/api/v1/users", &json!({ "id": id })).ok();
        admin.post("/api/v1/whitelist/add", &json!({ "passkeys": [format!("{id:032x}")] })).ok();
    }
    let asked = |query: &str| admin.get(&format!("/api/v1/audit?{query}")).ok();
    assert_eq!(items(&asked("action=user.add")).len(), 5);
    assert_eq!(items(&asked("action=user.")).len(), 5);
    assert_eq!(items(&asked("action=user")).len(), 0);
    assert_eq!(items(&asked("action=passkey.add&limit=2")).len(), 2);
    let page = asked("limit=3");
    let next = page["next"].as_str().unwrap();
    let following = asked(&format!("limit=3&cursor={next}"));
    let number = |page: &Json, place: usize| items(page)[place]["seq"].as_u64().unwrap();
    assert_eq!(number(&page, 2), number(&following, 0) + 1, "newest first, without a gap");
    assert_eq!(asked("cursor=0")["items"], json!([]));
    for query in ["cursor=x", "cursor=-1", "limit=0", "action=a&action=b", "nonsense=1"] {
        assert_eq!(problem(&admin.get(&format!("/api/v1/audit?{query}")), 400), "bad_request", "{query}");
    }
}

/// A change is recorded even if the client disconnects before the answer.
#[test]
fn w7_a_change_whose_caller_hung_up_is_made_and_recorded() {
    let server = builder().start();
    let admin = server.api(&["admin"]);
    for id in 1..=30 {
        let body = json!({ "id": id }).to_string();
        let request = format!(
            "POST /api/v1/users HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            admin.key().unwrap(),
            body.len()
        );
        let mut connection = RawHttp::connect(server.site_addr());
        connection.send(request.as_bytes());
        // Later and later, so that some are cut off before, some amid and some after their change.
        std::thread::sleep(std::time::Duration::from_micros(id * 200));
        drop(connection);
    }
    eventually("the trail to tell of every user there is", PATIENCE, || {
        let users = walk(&admin, "/api/v1/users", 1000).len();
        let records = admin.get("/api/v1/audit?action=user.add&limit=1000").ok();
        (users > 0 && users == items(&records).len()).then_some(())
    });
}

fn users_of(risks: &[Json]) -> BTreeSet<u64> {
    risks.iter().map(|risk| risk["user"].as_u64().unwrap()).collect()
}

#[test]
fn j8_risk_events_are_listed_newest_first() {
    let server = builder().set("limits.peer_rate_max_mbit_per_s", 1).start();
    let (read, admin) = (server.api(&["read"]), server.api(&["admin"]));
    let torrent = json!({ "infohash": info_hash(1).to_string(), "name": "x" });
    admin.post("/api/v1/torrents", &torrent).ok();
    for user in 1..=3_u32 {
        let passkey = server.add_user(user.into());
        let client = Announce::leecher(info_hash(1), user).with_event(AnnounceEvent::Started);
        crate::api::announce(&server, &passkey, &client);
        let claimed = (1 << 50) + u64::from(user);
        let lying = client.with_event(AnnounceEvent::None).with_totals(claimed, 0, 5);
        crate::api::announce(&server, &passkey, &lying);
        eventually("a report", PATIENCE, || {
            users_of(&walk(&read, "/api/v1/risks", 2)).contains(&user.into()).then_some(())
        });
    }
    let risks = walk(&admin, "/api/v1/risks", 2);
    let is_newer = |pair: &[Json]| pair[0]["id"].as_str() > pair[1]["id"].as_str();
    assert!(risks.windows(2).all(is_newer), "newest first: {risks:#?}");
    assert_eq!(users_of(&risks), [1, 2, 3].into());
    let latest = risks.iter().find(|risk| risk["user"] == 3).unwrap();
    assert_eq!(latest["uploaded_claimed"], ((1_u64 << 50) + 3).to_string());
    let credited: u64 = latest["uploaded_credited"].as_str().unwrap().parse().unwrap();
    assert!(credited < 1 << 30, "{credited}");
    assert_eq!((&latest["ip"], &latest["infohash"]), (&"127.0.0.1".into(), &info_hash(1).to_string().into()));
    assert_eq!(problem(&read.get("/api/v1/risks?cursor=x"), 400), "bad_request");
}

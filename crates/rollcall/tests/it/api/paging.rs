//! Pages: how many, from where, and forged answers to both.

use crate::api::{builder, problem};

const LISTS: [&str; 11] = [
    "/api/v1/users",
    "/api/v1/users/1/torrents",
    "/api/v1/users/1/seeding",
    "/api/v1/users/1/leeching",
    "/api/v1/users/1/hit-and-runs",
    "/api/v1/users/1/entries",
    "/api/v1/users/1/risks",
    "/api/v1/torrents",
    "/api/v1/swarms",
    "/api/v1/dead-letters/failed",
    "/api/v1/risks",
];

#[test]
fn limits_and_cursors_that_are_none_of_ours_are_refused() {
    let server = builder().start();
    let admin = server.api(&["admin"]);
    server.add_user(1);
    let long = "9".repeat(10_000 - 4000);
    for list in LISTS.into_iter().chain(["/api/v1/audit"]) {
        for limit in ["1", "1000"] {
            assert_eq!(admin.get(&format!("{list}?limit={limit}")).status(), 200, "{list} {limit}");
        }
        let limits =
            ["0", "1001", "-1", "4294967296", "99999999999999999999", "ten", "", "1e3", "0x10", "%31%00"];
        for query in limits.map(|limit| format!("limit={limit}")).into_iter().chain([
            "cursor=nonsense".to_owned(),
            "cursor=-1".to_owned(),
            "cursor=%00".to_owned(),
            "cursor=1'%20OR%201=1".to_owned(),
            "cursor=18446744073709551616".to_owned(),
            format!("cursor={long}"),
            "limit=1&limit=2".to_owned(),
            "cursor=1&cursor=2".to_owned(),
            "offset=10".to_owned(),
            "LIMIT=1".to_owned(),
        ]) {
            let reply = admin.get(&format!("{list}?{query}"));
            assert_eq!(problem(&reply, 400), "bad_request", "{list}?{query}");
        }
    }
    let torrents = "/api/v1/torrents?cursor=9223372036854775807&limit=1000";
    assert_eq!(admin.get(torrents).ok()["next"], serde_json::Value::Null, "behind the last is nothing");
    assert_eq!(
        admin.get("/api/v1/dead-letters/dlq?cursor=18446744073709551615-18446744073709551615").status(),
        200
    );
    assert_eq!(problem(&admin.get("/api/v1/dead-letters/nowhere"), 404), "unknown_lane");
}

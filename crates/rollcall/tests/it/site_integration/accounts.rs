//! "Streams: traffic from the tracker to the site", and the activity lists.

use serde_json::json;

use crate::site_integration::environment::{Environment, INFOHASH, is_admitted, start};

/// "Field list"
const FIELDS: &str = "passkey infohash peer_id port ip af du dd left event ts dt interval min_interval";

/// An entry as the document's example has it.
pub fn xadd(passkey: &str, amounts: &str, event: &str, times: &str) -> String {
    format!(
        "redis XADD tracker:traffic '*' passkey {passkey} infohash $INFOHASH peer_id {:040x} \
         port 6881 ip 2001:db8::1 af IPv6 {amounts} event {event} ts $(date +%s) {times} interval 1800 min_interval 900",
        7
    )
}

#[track_caller]
fn wait_user(
    environment: &Environment,
    number: u64,
    is_so: impl Fn(&serde_json::Value) -> bool,
) -> serde_json::Value {
    let text = environment.shell.wait(&format!("api \"$SITE/api/v1/users/{number}\""), |said| {
        serde_json::from_str(said).is_ok_and(|user| is_so(&user))
    });
    serde_json::from_str(&text).unwrap()
}

#[test]
fn j2_a_site_reads_our_announces_as_the_document_says() {
    let (_redis, mut environment) = start();
    let passkey = environment.add_user(1);
    environment.shell.set("KEY", &passkey);
    let sh = &environment.shell;
    // "Consumer group: XGROUP CREATE tracker:traffic ztorrent $": it is there, because the ledger is such a consumer.
    sh.wait("redis XINFO GROUPS tracker:traffic", |said| said.contains("ztorrent"));
    assert!(sh.run("redis XGROUP CREATE tracker:traffic ztorrent '$' 2>&1 || true").contains("BUSYGROUP"));
    // A site with a consumer of its own makes another.
    assert_eq!(sh.run("redis XGROUP CREATE tracker:traffic my-site '$'"), "OK");
    assert!(is_admitted(&sh.run("announce $KEY 1 'uploaded=0&downloaded=0&left=1000&event=started'")));
    assert!(is_admitted(&sh.run("announce $KEY 1 'uploaded=300&downloaded=1000&left=0&event=completed'")));
    // "Read: XREADGROUP GROUP ztorrent consumer-1 COUNT 100 BLOCK 5000 STREAMS tracker:traffic >"
    let read =
        "redis --json XREADGROUP GROUP my-site consumer-1 COUNT 100 BLOCK 5000 STREAMS tracker:traffic '>'";
    let entries = sh.json(read)["tracker:traffic"].as_array().unwrap().clone();
    assert_eq!(entries.len(), 2, "{entries:?}");
    let value = |entry: &serde_json::Value, name: &str| {
        let flat = entry[1].as_array().unwrap();
        let at = flat.iter().step_by(2).position(|field| field == name).unwrap();
        flat[2 * at + 1].as_str().unwrap().to_owned()
    };
    let names: Vec<&str> =
        entries[0][1].as_array().unwrap().iter().step_by(2).map(|name| name.as_str().unwrap()).collect();
    assert_eq!(names[..14].join(" "), FIELDS);
    let peer_id: String = b"-XX0001-000000000001".iter().map(|byte| format!("{byte:02x}")).collect();
    let expected = [("started", "0", "0", "1000"), ("completed", "300", "1000", "0")];
    for (entry, (event, du, dd, left)) in entries.iter().zip(expected) {
        let has = |name: &str| value(entry, name);
        assert_eq!(
            (has("passkey"), has("infohash"), has("peer_id")),
            (passkey.clone(), INFOHASH.to_owned(), peer_id.clone())
        );
        assert_eq!((has("ip"), has("af"), has("port")), ("127.0.0.1".into(), "IPv4".into(), "51411".into()));
        assert_eq!(
            (has("event"), has("du"), has("dd"), has("left")),
            (event.into(), du.into(), dd.into(), left.into())
        );
        assert_eq!((has("interval"), has("min_interval")), ("1800".into(), "0".into()));
    }
    // "dt: seconds since the announce before, 0 if there was none"
    assert_eq!(value(&entries[0], "dt"), "0");
}

#[test]
fn l2_a_foreign_tracker_writes_and_the_site_keeps_the_accounts() {
    let (_redis, environment) = start();
    let passkey = environment.add_user(1);
    let sh = &environment.shell;
    // "XADD tracker:traffic * passkey <passkey> infohash <infohash> ...": a Chihaya, started and then a heartbeat.
    sh.run(&xadd(&passkey, "du 0 dd 0 left 5000", "started", "dt 0"));
    sh.run(&xadd(&passkey, "du 18446744073 dd 2000 left 3000", "none", "dt 600"));
    // "uploaded += du, downloaded += dd (stored as texts, added up as big integers)"
    let user =
        wait_user(&environment, 1, |user| user["figures"]["downloaded"] == "2000" && user["leeching"] == 1);
    assert_eq!(user["figures"]["uploaded"], "18446744073");
    assert_eq!(user["figures"]["seeding_s"], 0, "only while seeding");
    // "event=completed or left=0 -> isSeeding=true"; "event=completed -> isCompleted=true"
    sh.run(&xadd(&passkey, "du 1 dd 3000 left 0", "completed", "dt 100"));
    wait_user(&environment, 1, |user| user["seeding"] == 1 && user["leeching"] == 0);
    // "Seeding time: dt if there is one, otherwise interval; while isSeeding=true"
    sh.run(&xadd(&passkey, "du 5 dd 0 left 0", "none", "dt 700"));
    wait_user(&environment, 1, |user| user["figures"]["uploaded"] == "18446744079");
    let account = sh.json(r#"api "$SITE/api/v1/users/1/torrents""#)["items"][0].clone();
    assert_eq!(account["seeding"], true, "{account}");
    assert!(
        !account["completed_at"].is_null() && account["figures"]["seeding_s"].as_u64().unwrap() >= 700,
        "{account}"
    );

    // The second document. "The list, newest first: ZREVRANGE tracker:user:seed:<passkey> 0 -1"; "count: ZCARD"
    assert_eq!(sh.run(&format!("redis ZREVRANGE tracker:user:seed:{passkey} 0 -1")), INFOHASH);
    assert_eq!(sh.run(&format!("redis ZCARD tracker:user:seed:{passkey}")), "1");
    assert_eq!(sh.run(&format!("redis ZCARD tracker:user:leech:{passkey}")), "0");
    // "Zombies: ZREMRANGEBYSCORE tracker:user:seed:<passkey> -inf <(now_ts - 2400)>": who is alive stays.
    let sweep = format!("redis ZREMRANGEBYSCORE tracker:user:seed:{passkey} -inf $(($(date +%s) - 2400))");
    assert_eq!(sh.run(&sweep), "0");
    let listed = sh.json(r#"api "$SITE/api/v1/users/1/seeding""#);
    assert_eq!((&listed["count"], &listed["items"][0]["infohash"]), (&json!(1), &json!(INFOHASH)));
    // "event=stopped -> isSeeding=false"; "from both sets"
    sh.run(&xadd(&passkey, "du 0 dd 0 left 0", "stopped", "dt 10"));
    sh.wait(&format!("redis ZCARD tracker:user:seed:{passkey}"), |count| count == "0");
    wait_user(&environment, 1, |user| user["seeding"] == 0);
    // A torrent that is completed stays so.
    let account = sh.json(r#"api "$SITE/api/v1/users/1/torrents""#)["items"][0].clone();
    assert!(!account["completed_at"].is_null(), "{account}");
}

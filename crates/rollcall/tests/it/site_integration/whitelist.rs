//! "Redis: the passkey whitelist set".

use crate::site_integration::environment::{is_admitted, is_unknown, start};

#[test]
fn w2_the_whitelist_is_a_set_that_redis_cli_changes() {
    let (_redis, mut environment) = start();
    environment.shell.set("P1", "aaaaaaaa00000001");
    environment.shell.set("P2", "aaaaaaaa00000002");
    environment.shell.set("P3", "aaaaaaaa00000003");
    let sh = &environment.shell;
    assert!(is_unknown(&sh.run("announce $P1 1 'uploaded=0&downloaded=0&left=9'")));

    // "Add: SADD pt:passkeys <passkey>"
    assert_eq!(sh.run("redis SADD pt:passkeys $P1"), "1");
    sh.wait("announce $P1 1 'uploaded=0&downloaded=0&left=9'", is_admitted);
    // "Check: SISMEMBER pt:passkeys <passkey> -> 1 is a hit"
    assert_eq!(sh.run("redis SISMEMBER pt:passkeys $P1"), "1");
    assert_eq!(sh.run("redis SISMEMBER pt:passkeys $P2"), "0");
    // "passkeys are lowercase hexadecimal throughout"; "to avoid misjudgement by differences in case"
    assert!(is_admitted(&sh.run("announce ${P1^^} 1 'uploaded=0&downloaded=0&left=9'")));
    // "Delete: SREM pt:passkeys <passkey>": known within the TTL of the tracker's cache (300 s), or at once if published.
    sh.run("redis SADD pt:passkeys aaaaaaaa00000009");
    assert_eq!(sh.run("redis SREM pt:passkeys $P1"), "1");
    sh.run("redis PUBLISH t:ch:user $P1");
    sh.wait("announce $P1 1 'uploaded=0&downloaded=0&left=9'", is_unknown);

    // "Atomic full refresh: build a new set: SADD pt:passkeys:new <passkey...>"
    sh.run("redis SADD pt:passkeys $P2");
    assert_eq!(sh.run("redis SADD pt:passkeys:new $P1 $P3"), "2");
    assert!(is_admitted(&sh.run("announce $P2 2 'uploaded=0&downloaded=0&left=9'")));
    // "Switch: RENAME pt:passkeys pt:passkeys:old -> RENAME pt:passkeys:new pt:passkeys"
    sh.run("redis RENAME pt:passkeys pt:passkeys:old");
    // In between no passkey is refused permanently: known ones stay admitted, others get `retry in`.
    assert!(is_admitted(&sh.run("announce $P2 2 'uploaded=0&downloaded=0&left=9'")));
    assert!(
        sh.run("announce $P3 3 'uploaded=0&downloaded=0&left=9'").contains("cannot be checked right now")
    );
    sh.run("redis RENAME pt:passkeys:new pt:passkeys");
    assert!(is_admitted(&sh.run("announce $P3 3 'uploaded=0&downloaded=0&left=9'")));
    sh.wait("announce $P1 1 'uploaded=0&downloaded=0&left=9'", is_admitted);
    sh.run("redis PUBLISH t:ch:user $P2");
    sh.wait("announce $P2 2 'uploaded=0&downloaded=0&left=9'", is_unknown);
}

#[test]
fn w7_changes_to_the_whitelist_are_recorded_as_the_document_says() {
    let (_redis, environment) = start();
    let sh = &environment.shell;
    sh.run(r#"api "$SITE/api/v1/whitelist/add" -d '{"passkeys": ["aaaaaaaa00000001"]}'"#);
    sh.run(r#"api "$SITE/api/v1/whitelist/remove" -d '{"passkeys": ["aaaaaaaa00000001"]}'"#);
    sh.run(r#"printf 'aaaaaaaa00000002\naaaaaaaa00000003\n' | api -X PUT "$SITE/api/v1/whitelist" --data-binary @- "#);
    assert_eq!(sh.run("redis SMEMBERS pt:passkeys | sort | xargs"), "aaaaaaaa00000002 aaaaaaaa00000003");

    // "Storage: appended to logs/audit.log (JSON Lines)"
    let file = environment.folder.path().join("site/logs/audit.log");
    let text = std::fs::read_to_string(file).unwrap();
    let records: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // "Recorded: additions to and removals from the whitelist, full refreshes"
    for action in ["passkey.add", "passkey.remove", "passkey.refresh"] {
        let record = records.iter().find(|record| record["action"] == action).unwrap();
        // "Fields: action, actorId, subjectType, subjectId, result, details, at"
        for field in ["action", "actorId", "subjectType", "subjectId", "result", "details", "at"] {
            assert!(!record[field].is_null(), "{field} is missing: {record}");
        }
        assert_eq!(record["result"], "ok");
    }
    assert!(!text.contains("aaaaaaaa00000001"), "a passkey is a secret");
}

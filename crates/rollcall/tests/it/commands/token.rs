//! `rollcall token …`

use crate::commands::Site;

const SECRET: &str = "ROLLCALL_GATEWAY__TOKEN_HMAC_SECRET";

#[test]
fn a_token_is_printed_alone_and_recorded_without_itself() {
    let site = Site::new();
    let secret = "s".repeat(32);
    let made = site.run_with(&[(SECRET, &secret)], &["token", "7"]);
    assert_eq!((made.exit_code, made.stderr.as_str()), (0, ""));
    let token = made.stdout.trim();
    assert_eq!(token.split('.').count(), 3, "{token}");
    let json =
        site.run_with(&[(SECRET, &secret)], &["token", "7", "--ttl", "60", "--room", "lobby", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((json["user"].as_u64(), json["channel"].as_str()), (Some(7), Some("room:lobby")));
    assert!(json["expires_at"].as_u64().unwrap() > 1_700_000_000);
    let trail = site.text(&["audit", "list", "--json"]);
    assert!(trail.contains("token.mint") && trail.contains("expires_at"), "{trail}");
    assert!(!trail.contains(token) && !trail.contains(&secret));
}

#[test]
fn without_a_secret_the_error_names_the_remedy() {
    let site = Site::new();
    let told = site.refusal(&["token", "7"]);
    assert!(told.contains("gateway.secret") && told.contains("rollcall serve"), "{told}");
    let key = site.write("key.pem", "-----BEGIN PUBLIC KEY-----");
    let setting = format!("gateway.token_public_key_file={}", key.display());
    let told = site.refusal(&["token", "7", "--set", &setting]);
    assert!(told.contains("only the site has"), "{told}");
    for (arguments, expected) in [
        (&["token"][..], "<USER>"),
        (&["token", "7", "--ttl", "0"], "0 is not in"),
        (&["token", "x"], "USER"),
    ] {
        let outcome = site.run(arguments);
        assert_eq!(outcome.exit_code, 2, "{arguments:?}");
        assert!(outcome.stderr.contains(expected), "{arguments:?}: {}", outcome.stderr);
    }
}

//! "The verify API (when Redis has no hit)".

use crate::site_integration::environment::{start, start_with};

#[test]
fn w3_the_verify_endpoint_answers_as_the_document_says() {
    let (_redis, mut environment) = start();
    let known = environment.add_user(1);
    environment.shell.set("KNOWN", &known);
    let sh = &environment.shell;
    // "curl -s -H "X-API-Key: ${TRACKER_API_KEY}" "https://pt.example.com/passkey/verify?passkey=abcdef012345..."",
    // "Returns 200 OK, {"valid": true|false}". "Redis set first; on a miss the column passkey of the table of users"
    let verify = |passkey: &str| {
        sh.json(&format!(
            r#"curl -s --cacert "$CA" -H "X-API-Key: ${{TRACKER_API_KEY}}" "$SITE/passkey/verify?passkey={passkey}""#
        ))
    };
    assert_eq!(verify("$KNOWN"), serde_json::json!({"valid": true}));
    assert_eq!(verify("${KNOWN^^}"), serde_json::json!({"valid": true}));
    assert_eq!(verify("abcdef012345"), serde_json::json!({"valid": false}));
    sh.run("redis SADD pt:passkeys abcdef012345");
    assert_eq!(verify("abcdef012345"), serde_json::json!({"valid": true}));

    let status = |arguments: &str| {
        sh.run(&format!(r#"curl -s -o /dev/null -w '%{{http_code}}' --cacert "$CA" {arguments}"#))
    };
    let key = r#"-H "X-API-Key: ${TRACKER_API_KEY}""#;
    // "401 means that authentication failed"
    assert_eq!(status(r#""$SITE/passkey/verify?passkey=abcdef012345""#), "401");
    assert_eq!(status(r#"-H 'X-API-Key: wrong' "$SITE/passkey/verify?passkey=abcdef012345""#), "401");
    // "400 means that the parameter is not valid"
    for target in [
        "/passkey/verify",
        "/passkey/verify?passkey=",
        "/passkey/verify?passkey=xyz",
        "/passkey/verify?passkey=abc",
    ] {
        assert_eq!(status(&format!("{key} \"$SITE{target}\"")), "400", "{target}");
    }
    // "A service account of its own is advised": the key is good for this and nothing else.
    assert_eq!(status(&format!("{key} \"$SITE/api/v1/users\"")), "403");
    // "All of it must go over HTTPS": the site serves only HTTPS on this port.
    let plain = sh.run(r#"curl -s "${SITE/https/http}/passkey/verify?passkey=abcdef012345" || true"#);
    assert!(!plain.contains("valid\":"), "{plain}");
    // "Audit": each call here, since one of one is recorded.
    let text = std::fs::read_to_string(environment.folder.path().join("site/logs/audit.log")).unwrap();
    assert!(text.lines().any(|line| line.contains("\"passkey.verify\"")), "{text}");
}

#[test]
fn w6_the_verify_endpoint_is_rate_limited_with_retry_after() {
    let (_redis, environment) = start_with(&[("ROLLCALL_SITE__REQUESTS_PER_KEY_PER_S", "1")]);
    // "Rate limiting: the verify endpoint should have it"
    let call = r#"curl -s -i --cacert "$CA" -H "X-API-Key: ${TRACKER_API_KEY}" "$SITE/passkey/verify?passkey=abcdef012345""#;
    let reply = environment.shell.wait(call, |reply| reply.starts_with("HTTP/1.1 429")).to_ascii_lowercase();
    assert!(reply.contains("retry-after: "), "{reply}");
}

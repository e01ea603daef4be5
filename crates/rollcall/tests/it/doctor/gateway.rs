//! The gateway: secrets, keys, origins, open files.

use std::os::unix::fs::PermissionsExt;

use crate::doctor::Installation;

#[test]
fn secrets_that_can_be_guessed_or_read_are_found_and_not_shown() {
    let report = Installation::new().set("gateway.token_hmac_secret", "hunter2hunter2").doctor();
    let expected = ["gateway.token_hmac_secret", "14 characters", "openssl rand -hex 32"];
    report.has_problem("configuration", &expected, "rollcall config check");
    assert!(!report.json.to_string().contains("hunter2"));
    let installation = Installation::new();
    installation.doctor().has("gateway", "ok", &["the first start generates a secret"]);
    std::fs::create_dir_all(installation.data()).unwrap();
    let path = installation.data().join("gateway.secret");
    std::fs::write(&path, format!("{}\n", "a1".repeat(32))).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    installation.doctor().has_problem("gateway", &["gateway.secret", "other users"], "chmod 600");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let report = installation.doctor();
    report.has("gateway", "ok", &["signed with the secret in"]);
    assert!(!report.json.to_string().contains("a1a1a1"));
}

#[test]
fn keys_that_cannot_be_read_and_origins_that_are_missing_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("wrong.pem");
    std::fs::write(&wrong, "nothing").unwrap();
    let report = Installation::new()
        .set("gateway.token_public_key_file", wrong.display())
        .set("gateway.token_jwks_file", folder.path().join("missing.json").display())
        .set("site.addr", format!("0.0.0.0:{}", testkit::ports::free_port()))
        .set("site.allow_plaintext", true)
        .set("gateway.webhook_url", "https://pt.example.com/hook")
        .set("gateway.webhook_secret", "short")
        .doctor();
    report.has_problem("gateway", &["token_public_key_file", "does not look like"], "-----BEGIN");
    report.has_problem("gateway", &["token_jwks_file", "cannot be read"], "ls -l");
    report.has_warning("gateway", &["allowed_origins"], "gateway.allowed_origins");
    report.has_warning("gateway", &["webhook_secret", "5 characters"], "openssl rand");
    let report = Installation::new().set("gateway.connections_max", 10_000_000).doctor();
    report.has_warning("file limits", &["gateway.connections_max"], "LimitNOFILE");
}

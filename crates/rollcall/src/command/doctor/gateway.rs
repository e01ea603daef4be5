//! The gateway: strong secrets, readable keys, allowed origins.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::Target;
use super::finding::Findings;
use crate::config::Config;
use crate::gateway_secret::{self, SECRET_CHARS_MIN};

pub(super) const NAME: &str = "gateway";

pub(super) fn check(target: &Target) -> Findings {
    let mut findings = Findings::of(NAME);
    let gateway = &target.config.gateway;
    match gateway.token_hmac_secret.reveal() {
        // Short secrets are refused when the configuration is loaded.
        Some(secret) => {
            findings.ok(format!("gateway.token_hmac_secret has {} characters", secret.chars().count()));
        }
        None if gateway_secret::is_stored(&target.config) => stored_secret(&mut findings, &target.data),
        None => {}
    }
    if let Some(path) = &gateway.token_public_key_file {
        key_file(&mut findings, "gateway.token_public_key_file", path, "-----BEGIN");
    }
    if let Some(path) = &gateway.token_jwks_file {
        key_file(&mut findings, "gateway.token_jwks_file", path, "\"keys\"");
    }
    origins(&mut findings, &target.config);
    webhooks(&mut findings, &target.config);
    findings
}

fn stored_secret(findings: &mut Findings, data: &Path) {
    let path = gateway_secret::path_in(data);
    let shown = path.display();
    match gateway_secret::read(data) {
        Ok(None) => findings.ok(format!("the first start generates a secret for tokens: {shown}")),
        Ok(Some(_)) => match fs::metadata(&path).map(|file| file.permissions().mode() & 0o077) {
            Ok(0) => findings.ok(format!("tokens are signed with the secret in {shown}")),
            Ok(_) => findings.problem(
                format!("{shown} is readable by other users, who could connect as any user"),
                format!("chmod 600 {shown}; if others may have read it: remove it, restart, and set the new one on the site"),
            ),
            Err(error) => findings.problem(format!("{shown}: {error}"), format!("ls -l {shown}")),
        },
        Err(error) => findings.problem(
            crate::one_line(&error),
            format!("let the server's user read it, or remove it: ls -l {shown}"),
        ),
    }
}

fn key_file(findings: &mut Findings, setting: &str, path: &Path, sign: &str) {
    let shown = path.display();
    match fs::read_to_string(path) {
        Ok(text) if text.contains(sign) => findings.ok(format!("{setting} {shown} is readable")),
        Ok(_) => findings.problem(
            format!("{setting} {shown} does not look like a public key"),
            format!("it must contain {sign}: set {setting} to the right file"),
        ),
        Err(error) => findings.problem(
            format!("{setting} {shown} cannot be read: {error}"),
            format!("correct {setting}, or let the server's user read the file: ls -l {shown}"),
        ),
    }
}

/// Pages of the server's own origin may connect without being listed, but a public site rarely has the address of
/// this server.
fn origins(findings: &mut Findings, config: &Config) {
    let named = config.gateway.allowed_origins.len();
    let is_open = config.site.addr.iter().any(|address| !address.ip().is_loopback());
    match (named, is_open) {
        (0, true) => findings.warning(
            "gateway.allowed_origins is empty: pages of your site cannot connect unless this server is the site",
            "set gateway.allowed_origins to the origins of your pages, such as [\"https://pt.example.com\"]",
        ),
        (0, false) => findings.ok("only pages of this server's own site may connect"),
        _ => findings.ok(format!("pages of {named} origins may connect")),
    }
}

fn webhooks(findings: &mut Findings, config: &Config) {
    if config.gateway.webhook_url.as_str().is_none() {
        return;
    }
    // The configuration requires a secret.
    let chars = config.gateway.webhook_secret.reveal().map_or(0, |secret| secret.chars().count());
    match chars {
        SECRET_CHARS_MIN.. => findings.ok("webhooks are signed"),
        _ => findings.warning(
            format!("gateway.webhook_secret has {chars} characters: it could be guessed and used to forge webhooks"),
            "generate a longer one with: openssl rand -hex 32; set it on the receiver too, then restart",
        ),
    }
}

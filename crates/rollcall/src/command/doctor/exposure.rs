//! Plain HTTP on public addresses, and short API keys.

use std::net::SocketAddr;

use super::Target;
use super::finding::Findings;

/// Shorter keys can be found by brute force.
const KEY_CHARS_PROBLEM: usize = 16;
/// Recommended: 128 bits in hexadecimal.
const KEY_CHARS_WARNING: usize = 32;

pub(super) fn check(target: &Target) -> Findings {
    let mut findings = Findings::of("exposure");
    let (tracker, site) = (&target.config.tracker, &target.config.site);
    plain_http(
        &mut findings,
        ("tracker.http_addr", &tracker.http_addr),
        tracker.allow_plaintext,
        "passkeys",
        "use tracker.https_addr with tracker.tls_cert_file and tracker.tls_key_file, or listen on loopback behind a \
         proxy with TLS",
    );
    if site.tls_cert_file.is_none() {
        plain_http(
            &mut findings,
            ("site.addr", &site.addr),
            site.allow_plaintext,
            "API keys",
            "set site.tls_cert_file and site.tls_key_file, or listen on loopback behind a proxy with TLS",
        );
    }
    short_key(&mut findings, site.tracker_api_key.reveal());
    findings
}

fn plain_http(
    findings: &mut Findings,
    (key, addresses): (&str, &[SocketAddr]),
    is_allowed: bool,
    secrets: &str,
    remedy: &str,
) {
    let open: Vec<String> =
        addresses.iter().filter(|a| !a.ip().is_loopback()).map(ToString::to_string).collect();
    if open.is_empty() {
        return findings.ok(format!("{key}: plain HTTP on loopback only"));
    }
    let section = key.split('.').next().unwrap_or(key);
    let found = format!("{key} {}: plain HTTP: the {secrets} can be read on the network", open.join(", "));
    match is_allowed {
        true => findings.warning(
            format!("{found} (allowed by {section}.allow_plaintext)"),
            format!("safe only behind a proxy with TLS that alone can reach it; otherwise {remedy}"),
        ),
        false => findings.problem(found, remedy),
    }
}

fn short_key(findings: &mut Findings, key: Option<&str>) {
    let Some(key) = key else { return };
    let chars = key.chars().count();
    let found = format!("site.tracker_api_key (TRACKER_API_KEY) has {chars} characters");
    let remedy = "generate one with: openssl rand -hex 32; set it on the site too, then restart";
    match chars {
        ..KEY_CHARS_PROBLEM => findings.problem(format!("{found}, which can be guessed"), remedy),
        KEY_CHARS_PROBLEM..KEY_CHARS_WARNING => findings.warning(format!("{found}, which is short"), remedy),
        _ => findings.ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::doctor::finding::Severity;

    fn severity(judge: impl FnOnce(&mut Findings)) -> Option<Severity> {
        let mut findings = Findings::of("exposure");
        judge(&mut findings);
        findings.iter().next().map(|finding| finding.severity)
    }

    #[test]
    fn keys_are_rated_by_length_and_never_shown() {
        assert_eq!(severity(|f| short_key(f, None)), None);
        assert_eq!(severity(|f| short_key(f, Some("hunter2"))), Some(Severity::Problem));
        assert_eq!(severity(|f| short_key(f, Some(&"a".repeat(20)))), Some(Severity::Warning));
        assert_eq!(severity(|f| short_key(f, Some(&"a".repeat(64)))), Some(Severity::Ok));
        let mut findings = Findings::of("exposure");
        short_key(&mut findings, Some("hunter2"));
        assert!(!format!("{findings:?}").contains("hunter2"));
    }

    #[test]
    fn plain_http_is_rated_by_address() {
        let judge = |address: &str, is_allowed| {
            let addresses = [address.parse().unwrap()];
            severity(|f| plain_http(f, ("site.addr", &addresses), is_allowed, "API keys", "…"))
        };
        assert_eq!(judge("127.0.0.1:80", false), Some(Severity::Ok));
        assert_eq!(judge("0.0.0.0:80", false), Some(Severity::Problem));
        assert_eq!(judge("[2001:db8::1]:80", true), Some(Severity::Warning));
    }
}

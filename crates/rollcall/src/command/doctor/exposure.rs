//! What others could read or guess: plain HTTP on open addresses, a short key.

use std::net::SocketAddr;

use super::Target;
use super::finding::Findings;

/// A key shorter than this can be guessed by a machine.
const KEY_CHARS_PROBLEM: usize = 16;
/// What is recommended: 128 bits in hexadecimal.
const KEY_CHARS_WARNING: usize = 32;

/// Looks at the settings alone.
pub(super) fn check(target: &Target) -> Findings {
    let mut findings = Findings::of("exposure");
    let (tracker, site) = (&target.config.tracker, &target.config.site);
    plain_http(
        &mut findings,
        ("tracker.http_addr", &tracker.http_addr),
        tracker.allow_plaintext,
        "passkeys",
        "use tracker.https_addr with tracker.tls_cert_file and tracker.tls_key_file, or listen on loopback behind a \
         proxy that speaks HTTPS",
    );
    if site.tls_cert_file.is_none() {
        plain_http(
            &mut findings,
            ("site.addr", &site.addr),
            site.allow_plaintext,
            "API keys",
            "set site.tls_cert_file and site.tls_key_file, or listen on loopback behind a proxy that speaks HTTPS",
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
    mend: &str,
) {
    let open: Vec<String> =
        addresses.iter().filter(|a| !a.ip().is_loopback()).map(ToString::to_string).collect();
    if open.is_empty() {
        return findings.ok(format!("{key}: nothing is heard over plain HTTP but from this machine"));
    }
    let section = key.split('.').next().unwrap_or(key);
    let found =
        format!("{key} {}: plain HTTP, where everybody on the way can read the {secrets}", open.join(", "));
    match is_allowed {
        true => findings.warning(
            format!("{found} (allowed by {section}.allow_plaintext)"),
            format!(
                "right only behind a proxy that speaks HTTPS and is the only one to reach it; else {mend}"
            ),
        ),
        false => findings.problem(found, mend),
    }
}

fn short_key(findings: &mut Findings, key: Option<&str>) {
    let Some(key) = key else { return };
    let chars = key.chars().count();
    let found = format!("site.tracker_api_key (TRACKER_API_KEY) has {chars} characters");
    let mend = "make one with: openssl rand -hex 32; give it to the site as well, then restart";
    match chars {
        ..KEY_CHARS_PROBLEM => findings.problem(format!("{found}, which can be guessed"), mend),
        KEY_CHARS_PROBLEM..KEY_CHARS_WARNING => findings.warning(format!("{found}, which is short"), mend),
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
    fn keys_are_graded_by_their_length_and_never_shown() {
        assert_eq!(severity(|f| short_key(f, None)), None);
        assert_eq!(severity(|f| short_key(f, Some("hunter2"))), Some(Severity::Problem));
        assert_eq!(severity(|f| short_key(f, Some(&"a".repeat(20)))), Some(Severity::Warning));
        assert_eq!(severity(|f| short_key(f, Some(&"a".repeat(64)))), Some(Severity::Ok));
        let mut findings = Findings::of("exposure");
        short_key(&mut findings, Some("hunter2"));
        assert!(!format!("{findings:?}").contains("hunter2"));
    }

    #[test]
    fn plain_http_is_judged_by_who_can_hear_it() {
        let judge = |address: &str, is_allowed| {
            let addresses = [address.parse().unwrap()];
            severity(|f| plain_http(f, ("site.addr", &addresses), is_allowed, "API keys", "…"))
        };
        assert_eq!(judge("127.0.0.1:80", false), Some(Severity::Ok));
        assert_eq!(judge("0.0.0.0:80", false), Some(Severity::Problem));
        assert_eq!(judge("[2001:db8::1]:80", true), Some(Severity::Warning));
    }
}

//! Certificates: readable, matching their keys, not about to expire; keys not readable by others.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use domain::clock::{Clock, SystemClock};
use domain::counted;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::Target;
use super::finding::Findings;

const DAY_S: i64 = 24 * 60 * 60;
/// Time for a manual renewal.
const WARNING_DAYS: i64 = 30;

const RENEW: &str = "renew it; the server reloads the files itself";

pub(super) fn check(target: &Target) -> Findings {
    let mut findings = Findings::of("certificates");
    let config = &target.config;
    let (tracker, site) = (&config.tracker, &config.site);
    let pairs = [
        ("tracker", &tracker.tls_cert_file, &tracker.tls_key_file),
        ("site", &site.tls_cert_file, &site.tls_key_file),
    ];
    for (section, certificate, key) in pairs {
        if let (Some(certificate), Some(key)) = (certificate, key) {
            pair(&mut findings, section, certificate, key);
        }
    }
    let authorities = [
        ("access.verify_ca_file", &config.access.verify_ca_file),
        ("redis.tls_ca_file", &config.redis.tls_ca_file),
        ("gateway.webhook_ca_file", &config.gateway.webhook_ca_file),
    ];
    for (setting, path) in authorities {
        if let Some(path) = path {
            authority(&mut findings, setting, path);
        }
    }
    if findings.iter().next().is_none() {
        findings.ok("none configured");
    }
    findings
}

fn pair(findings: &mut Findings, section: &str, certificate: &Path, key: &Path) {
    let setting = format!("{section}.tls_cert_file");
    let chain = read_chain(findings, &setting, certificate);
    let private_key = read_key(findings, &format!("{section}.tls_key_file"), key);
    let (Some(chain), Some(private_key)) = (chain, private_key) else { return };
    expiry(findings, &setting, certificate, &chain);
    if let Err(error) = CertifiedKey::from_der(chain, private_key, &aws_lc_rs::default_provider()) {
        findings.problem(
            format!("{} and {} do not match: {error}", certificate.display(), key.display()),
            format!("set {section}.tls_key_file to the key of this certificate; the leaf must be first in the chain"),
        );
    }
}

fn authority(findings: &mut Findings, setting: &str, path: &Path) {
    if let Some(chain) = read_chain(findings, setting, path) {
        expiry(findings, setting, path, &chain);
    }
}

fn read(findings: &mut Findings, setting: &str, path: &Path) -> Option<Vec<u8>> {
    let outcome = fs::read(path);
    outcome
        .inspect_err(|error| {
            findings.problem(
                format!("{setting} {} cannot be read: {error}", path.display()),
                format!(
                    "correct {setting}, or let the server's user read the file: ls -l {}",
                    path.display()
                ),
            );
        })
        .ok()
}

fn read_chain(findings: &mut Findings, setting: &str, path: &Path) -> Option<Vec<CertificateDer<'static>>> {
    let bytes = read(findings, setting, path)?;
    let chain = CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
    let reason = match chain {
        Ok(chain) if !chain.is_empty() => return Some(chain),
        Ok(_) => "it contains no certificate".to_owned(),
        Err(error) => error.to_string(),
    };
    findings.problem(
        format!("{setting} {} is not usable: {reason}", path.display()),
        "use a PEM file, which starts with -----BEGIN CERTIFICATE-----",
    );
    None
}

fn read_key(findings: &mut Findings, setting: &str, path: &Path) -> Option<PrivateKeyDer<'static>> {
    let bytes = read(findings, setting, path)?;
    if fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o004 != 0) {
        findings.problem(
            format!("{setting} {} is readable by every user of this machine", path.display()),
            format!("chmod 640 {0}, and chgrp it to the group of the server", path.display()),
        );
    }
    let key = PrivateKeyDer::from_pem_slice(&bytes);
    key.inspect_err(|error| {
        findings.problem(
            format!("{setting} {} is not usable: {error}", path.display()),
            "use an unencrypted PEM key, which starts with -----BEGIN PRIVATE KEY-----",
        );
    })
    .ok()
}

/// The earliest expiry in the chain counts.
fn expiry(findings: &mut Findings, setting: &str, path: &Path, chain: &[CertificateDer<'_>]) {
    let now = i64::from(SystemClock.now().0);
    let mut ends: Option<i64> = None;
    for certificate in chain {
        let Ok((_, parsed)) = x509_parser::parse_x509_certificate(certificate) else {
            return findings.problem(
                format!("{setting} {} contains something that is not a certificate", path.display()),
                format!("inspect it with: openssl x509 -in {} -noout -text", path.display()),
            );
        };
        let validity = parsed.validity();
        if validity.not_before.timestamp() > now {
            findings.problem(
                format!("{setting} {} is not valid yet", path.display()),
                "check the clock of this machine; otherwise wait, or reissue it",
            );
        }
        let end = validity.not_after.timestamp();
        ends = Some(ends.map_or(end, |earliest| earliest.min(end)));
    }
    let left_days = (ends.unwrap_or(now) - now).div_euclid(DAY_S);
    let shown = path.display();
    match left_days {
        ..0 => {
            findings.problem(format!("{setting} {shown} expired {} ago", counted(-left_days, "day")), RENEW)
        }
        0..WARNING_DAYS => {
            findings.warning(format!("{setting} {shown} expires in {}", counted(left_days, "day")), RENEW)
        }
        _ => findings.ok(format!("{setting} {shown} is valid for another {}", counted(left_days, "day"))),
    }
}

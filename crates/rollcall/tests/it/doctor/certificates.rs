//! Certificates, made with openssl and rcgen.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::ports::free_port;

use crate::doctor::Installation;

/// A certificate and its key, made by an authority of its own, valid for so many days.
fn certificate(folder: &Path, name: &str, days: i32) -> (PathBuf, PathBuf) {
    let path = |ending: &str| folder.join(format!("{name}.{ending}"));
    let (certificate, key) = (path("pem"), path("key"));
    let script = format!(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost \
         -days {days} -keyout {} -out {}",
        key.display(),
        certificate.display()
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    (certificate, key)
}

/// One of 2020: openssl makes none that is over.
fn expired_certificate(folder: &Path) -> (PathBuf, PathBuf) {
    let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(2020, 12, 31);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let (certificate_path, key_path) = (folder.join("over.pem"), folder.join("over.key"));
    std::fs::write(&certificate_path, certificate.pem()).unwrap();
    std::fs::write(&key_path, key.serialize_pem()).unwrap();
    std::fs::set_permissions(&key_path, std::fs::Permissions::from_mode(0o600)).unwrap();
    (certificate_path, key_path)
}

fn installation_with(files: &(PathBuf, PathBuf)) -> Installation {
    Installation::new()
        .set("tracker.https_addr", format!("127.0.0.1:{}", free_port()))
        .set("tracker.tls_cert_file", files.0.display())
        .set("tracker.tls_key_file", files.1.display())
}

#[test]
fn a_certificate_is_judged_by_the_days_it_has_left() {
    let folder = tempfile::tempdir().unwrap();
    let good = certificate(folder.path(), "good", 90);
    installation_with(&good).doctor().is_well("certificates");
    let soon = certificate(folder.path(), "soon", 10);
    installation_with(&soon).doctor().has_warning("certificates", &["expires in"], "renew");
    let over = expired_certificate(folder.path());
    installation_with(&over).doctor().has_problem("certificates", &["expired"], "renew");
}

#[test]
fn a_mismatched_or_world_readable_key_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (certificate(folder.path(), "one", 90), certificate(folder.path(), "two", 90));
    let report = installation_with(&(one.0.clone(), two.1)).doctor();
    report.has_problem("certificates", &["do not match"], "tracker.tls_key_file");
    std::fs::set_permissions(&one.1, std::fs::Permissions::from_mode(0o644)).unwrap();
    installation_with(&one).doctor().has_problem("certificates", &["readable by every user"], "chmod 640");
}

#[test]
fn files_that_are_missing_or_something_else_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let good = certificate(folder.path(), "good", 90);
    let missing = (folder.path().join("none.pem"), good.1.clone());
    installation_with(&missing).doctor().has_problem(
        "certificates",
        &["none.pem", "cannot be read"],
        "ls -l",
    );
    let swapped = (good.1.clone(), good.0.clone());
    let report = installation_with(&swapped).doctor();
    report.has_problem("certificates", &["contains no certificate"], "BEGIN CERTIFICATE");
    report.has_problem("certificates", &["tls_key_file", "not usable"], "PRIVATE KEY");
}

#[test]
fn the_authority_of_the_verify_endpoint_is_looked_at_too() {
    let folder = tempfile::tempdir().unwrap();
    let (authority, _) = certificate(folder.path(), "authority", 5);
    let report = Installation::new().set("access.verify_ca_file", authority.display()).doctor();
    report.has_warning("certificates", &["access.verify_ca_file", "expires in"], "renew");
}

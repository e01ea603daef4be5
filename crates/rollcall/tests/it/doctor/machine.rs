//! Settings, folders, limits, ports and keys.

use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;

use testkit::ports::free_port;

use crate::doctor::Installation;

#[test]
fn a_fresh_machine_is_well_and_nothing_is_made_on_it() {
    let installation = Installation::new();
    let report = installation.doctor();
    assert_eq!((report.exit_code, &report.json["problems"]), (0, &0.into()), "{report:#?}");
    for check in ["configuration", "data folder", "file limits", "ports", "redis", "database", "journal"] {
        report.is_well(check);
    }
    assert!(!installation.data().exists(), "the doctor changes nothing");
}

#[test]
fn the_text_output_has_the_same_result() {
    let installation = Installation::new().set("site.tracker_api_key", "hunter2");
    let output = installation.command(&["doctor"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text.contains("problem  exposure") && text.contains("-> generate one with: openssl rand -hex 32"),
        "{text}"
    );
    assert!(text.ends_with("problems: 1, warnings: 0\n") && !text.contains("hunter2"), "{text}");
}

#[test]
fn broken_settings_are_a_finding() {
    let report = Installation::new().set("tracker.workers", "many").doctor();
    report.has_problem("configuration", &["tracker.workers", "many"], "rollcall config check");
    assert_eq!(report.json["findings"].as_array().unwrap().len(), 1, "nothing else can be looked at");
}

#[test]
fn a_data_folder_that_cannot_be_one_is_found() {
    let installation = Installation::new();
    std::fs::write(installation.data(), "a file").unwrap();
    installation.doctor().has_problem("data folder", &["is a file"], "mv ");
}

#[test]
fn files_that_others_can_read_are_found() {
    let installation = Installation::new();
    installation.run(&["user", "add", "--id", "1"]);
    installation.doctor().is_well("data folder");
    let database = installation.data().join("rollcall.db");
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        [mode(&installation.data()), mode(&installation.data().join("logs"))],
        [0o700; 2],
        "new folders are private"
    );
    std::fs::set_permissions(installation.data(), std::fs::Permissions::from_mode(0o755)).unwrap();
    installation.doctor().has_warning("data folder", &["accessible by other users"], "chmod 700");
    std::fs::set_permissions(&database, std::fs::Permissions::from_mode(0o644)).unwrap();
    installation.doctor().has_warning(
        "data folder",
        &["readable by other users", "rollcall.db"],
        "chmod 600",
    );
}

#[test]
fn too_few_files_for_so_many_connections_are_found() {
    let report = Installation::new().set("limits.connections_max", 10_000_000).doctor();
    report.has_warning("file limits", &["10000100 connections"], "LimitNOFILE=10000612");
}

#[test]
fn a_port_in_use_by_another_program_is_found() {
    let (tcp, udp) = (free_port(), free_port());
    let _tcp = TcpListener::bind(("127.0.0.1", tcp)).unwrap();
    let _udp = UdpSocket::bind(("127.0.0.1", udp)).unwrap();
    let installation = Installation::new()
        .set("site.addr", format!("127.0.0.1:{tcp}"))
        .set("tracker.udp_addr", format!("127.0.0.1:{udp}"));
    let report = installation.doctor();
    report.has_problem("ports", &["site.addr", "another program"], "ss -lntup");
    report.has_problem("ports", &["tracker.udp_addr", "another program"], "tracker.udp_addr");
    report.has("ports", "ok", &["tracker.http_addr", "free"]);
}

#[test]
fn plain_http_on_public_addresses_is_found() {
    let port = free_port();
    let open = Installation::new()
        .set("tracker.http_addr", format!("0.0.0.0:{port}"))
        .set("tracker.allow_plaintext", "true")
        .set("site.tracker_api_key", "only-twenty-letters-");
    let report = open.doctor();
    report.has_warning("exposure", &["tracker.http_addr", "passkeys"], "proxy");
    report.has_warning("exposure", &["TRACKER_API_KEY", "20 characters"], "openssl rand");
}

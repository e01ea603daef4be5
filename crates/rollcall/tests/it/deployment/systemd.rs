//! The unit: valid, hardened, and telling the truth about readiness.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use testkit::ports::free_port;
use testkit::process::Process;

use crate::deployment::{BINARY, printed, read};

const UNIT: &str = "deploy/systemd/rollcall.service";
/// Of which two instances take turns.
const TEMPLATE: &str = "deploy/systemd/rollcall@.service";
/// In tenths: what systemd calls "OK" ends at 4.9; ours is far below.
const EXPOSURE_TENTHS_MAX: &str = "20";
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn the_units_are_valid_and_hardened() {
    let folder = tempfile::tempdir().unwrap();
    for (unit, name) in [(UNIT, "rollcall.service"), (TEMPLATE, "rollcall@a.service")] {
        let path = folder.path().join(name);
        // Only the program is elsewhere.
        std::fs::write(&path, read(unit).replace("/usr/bin/rollcall", BINARY)).unwrap();
        let path = path.to_str().unwrap();
        assert_eq!(printed("systemd-analyze", &["verify", "--man=no", path]), "");
        printed("systemd-analyze", &["security", "--offline=true", "--threshold", EXPOSURE_TENTHS_MAX, path]);
    }
}

#[test]
fn the_template_differs_from_the_unit_in_taking_over_only() {
    let settings = |unit: &str| -> Vec<String> {
        let lines = read(unit).lines().map(str::to_owned).collect::<Vec<_>>();
        lines.into_iter().filter(|line| !line.starts_with('#') && !line.starts_with("Description=")).collect()
    };
    let expected: Vec<String> = settings(UNIT)
        .into_iter()
        .map(|line| if line.starts_with("ExecStart=") { line + " --take-over" } else { line })
        .collect();
    assert_eq!(settings(TEMPLATE), expected);
}

#[test]
fn the_unit_allows_as_many_files_as_the_defaults_may_take() {
    let unit = read(UNIT);
    let limit: u64 =
        unit.lines().find_map(|line| line.strip_prefix("LimitNOFILE=")).unwrap().parse().unwrap();
    let defaults: serde_json::Value =
        serde_json::from_str(&printed(BINARY, &["config", "print", "--json"])).unwrap();
    let needed = defaults["limits"]["connections_max"].as_u64().unwrap()
        + defaults["site"]["connections_max"].as_u64().unwrap()
        + 512;
    assert!(limit >= needed, "{limit} of {needed}");
    let stop: u64 =
        unit.lines().find_map(|line| line.strip_prefix("TimeoutStopSec=")).unwrap().parse().unwrap();
    let drain = defaults["tracker"]["drain_timeout_s"].as_u64().unwrap();
    assert!(stop > 3 * drain, "announces, journal and views drain one after the other");
}

/// `Type=notify` would wait forever for a server that never notifies.
#[test]
fn the_service_manager_is_notified_of_readiness_and_shutdown() {
    let folder = tempfile::tempdir().unwrap();
    let socket_path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&socket_path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let port = free_port();
    let args = [
        format!("NOTIFY_SOCKET={}", socket_path.display()),
        BINARY.to_owned(),
        "serve".to_owned(),
        format!("--data={}", folder.path().join("data").display()),
        format!("--set=tracker.http_addr=127.0.0.1:{port}"),
        "--set=tracker.udp_addr=".to_owned(),
        format!("--set=site.addr=127.0.0.1:{}", free_port()),
    ];
    let mut server = Process::start("env", args, &folder.path().join("log"));
    let next = || {
        let mut message = [0; 256];
        let length = socket.recv(&mut message).expect("a message within a minute");
        String::from_utf8_lossy(&message[..length]).into_owned()
    };
    assert!(next().starts_with("READY=1\n"));
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_ok(), "ready means that it answers");
    server.terminate();
    assert!(next().starts_with("STOPPING=1\n"));
    assert!(server.wait_end(PATIENCE).success());
}

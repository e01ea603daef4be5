//! How the program starts, and how it ends: in bounded time, with what is in flight answered.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{ChildStdout, Command, Output};
use std::time::Duration;

use domain::clock::Stopwatch;
use serde_json::Value as Json;
use tempfile::TempDir;
use testkit::process::{Process, clear_settings_env};
use testkit::{Family, RawHttp, RawUdp, eventually};

use crate::serving::{PATIENCE, add_torrent, builder, leecher};

const PROGRAM: &str = env!("CARGO_BIN_EXE_rollcall");

/// The program with a JSON startup message, on free ports.
struct StartupMessage {
    process: Process,
    lines: BufReader<ChildStdout>,
    folder: TempDir,
}

impl StartupMessage {
    fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data = folder.path().join("data").display().to_string();
        // Other test programs run concurrently: none uses the default ports.
        let tracker = "tracker.http_addr=127.0.0.1:0,[::1]:0";
        let fixed = ["serve", "--data", &data, "--set", tracker, "--set", "site.addr=127.0.0.1:0"];
        let arguments = [&fixed, arguments].concat();
        let log = folder.path().join("log");
        let (process, _stdin, stdout) = Process::start_dialogue(PROGRAM, arguments, &log);
        StartupMessage { process, lines: BufReader::new(stdout), folder }
    }

    fn read_line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("the startup message can be read");
        line
    }
}

/// Runs a server that is expected to end by itself at once.
fn run_in(folder: &TempDir, settings: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    clear_settings_env(&mut command);
    command.arg("serve").arg("--data").arg(folder.path());
    command.args(settings.iter().flat_map(|setting| ["--set", setting]));
    command.output().expect("the program can be run")
}

#[test]
fn the_addresses_are_printed_as_json() {
    let mut greeting = StartupMessage::start(&["--set", "tracker.udp_addr=127.0.0.1:0", "--json"]);
    let line = greeting.read_line();
    let json: Json = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
    let addresses = |list: &str| -> Vec<SocketAddr> {
        let texts = json[list].as_array().unwrap_or_else(|| panic!("{list} in {json}")).iter();
        texts.map(|text| text.as_str().expect("a text").parse().expect("an address")).collect()
    };
    let (http, udp) = (addresses("http"), addresses("udp"));
    assert_eq!((http.len(), udp.len(), addresses("https").len()), (2, 1, 0));
    for address in http {
        assert_eq!(RawHttp::connect(address).get("/nothing").status(), 404, "{address}");
    }
    RawUdp::new(udp[0]).connect();
    assert_eq!((&json["users"], &json["torrents"]), (&Json::from(0), &Json::from(0)));
    let database = json["database"].as_str().expect("a path");
    assert!(std::path::Path::new(database).starts_with(greeting.folder.path()), "{database}");
    greeting.process.interrupt();
    assert_eq!(greeting.process.wait_end(PATIENCE).code(), Some(0), "Ctrl-C is an orderly end too");
    assert_eq!(greeting.read_line(), "", "one object, and nothing else");
}

#[test]
fn the_startup_message_has_addresses_and_next_steps() {
    let mut greeting = StartupMessage::start(&["--set", "tracker.udp_addr="]);
    let mut text = String::new();
    while !text.contains("Ctrl-C") {
        let line = greeting.read_line();
        assert!(!line.is_empty(), "the startup message ends early: {text}");
        text.push_str(&line);
    }
    for part in ["http://127.0.0.1:", "http://[::1]:", "/announce", "user add", "torrent add FILE", "--data"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("udp://"), "{text}");
}

#[test]
fn sigterm_answers_what_is_in_flight_and_ends_with_success() {
    let mut server = builder().set("tracker.drain_timeout_s", 60).start();
    let passkey = server.add_user(1);
    add_torrent(&server, &passkey);
    let address = server.addr(Family::V4);
    let mut idle = server.http(Family::V4);
    assert_eq!(idle.get("/nothing").status(), 404);
    let request = format!("GET {} HTTP/1.1\r\n\r\n", leecher(1).target(&passkey));
    let (beginning, rest) = request.as_bytes().split_at(50);
    let mut half_sent = server.http(Family::V4);
    half_sent.send(beginning);
    std::thread::scope(|scope| {
        let stopping = scope.spawn(|| server.stop());
        assert!(idle.read_to_close().is_empty());
        eventually("the listener to close", PATIENCE, || RawHttp::try_connect(address).err());
        half_sent.send(rest);
        assert_eq!(half_sent.read_reply().status(), 200);
        assert!(half_sent.read_to_close().is_empty());
        assert_eq!(stopping.join().expect("it ends").code(), Some(0));
    });
    let log = server.log();
    for part in ["\"draining\"", "\"since start\"", "\"announces_http\":1", "\"stopped\""] {
        assert!(log.contains(part), "{part} in {log}");
    }
}

#[test]
fn a_client_that_never_finishes_does_not_hold_up_the_end() {
    let mut server = builder().set("tracker.drain_timeout_s", 1).start();
    let mut stuck = server.http(Family::V6);
    stuck.send(b"GET /announce");
    let since_told = Stopwatch::start();
    assert_eq!(server.stop().code(), Some(0));
    let took = since_told.elapsed();
    assert!(took < PATIENCE, "{took:?}");
}

#[test]
fn the_same_ports_can_be_used_again_at_once() {
    let mut server = builder().start();
    let mut connection = server.http(Family::V4);
    assert_eq!(connection.get("/nothing").status(), 404);
    assert_eq!(server.stop().code(), Some(0));
    server.start_again();
    assert_eq!(server.http(Family::V4).get("/nothing").status(), 404);
}

#[test]
fn a_taken_port_is_named_on_one_line() {
    let server = builder().start();
    for family in [Family::V4, Family::V6] {
        let taken = server.addr(family);
        for (settings, protocol) in [
            ([format!("tracker.http_addr={taken}"), "tracker.udp_addr=".to_owned()], "HTTP"),
            ([format!("tracker.udp_addr={taken}"), "tracker.http_addr=".to_owned()], "UDP"),
        ] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let output = run_in(&folder, &settings.each_ref().map(String::as_str));
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{stderr}");
            assert_eq!(output.stdout, b"", "nothing is up, so nothing is said to be");
            assert_eq!(stderr.lines().count(), 1, "one clear line: {stderr}");
            for part in ["error: ", &taken.to_string(), protocol, "the port is taken", "--take-over"] {
                assert!(stderr.contains(part), "{part} in {stderr}");
            }
        }
    }
    server.udp(Family::V4).connect();
}

/// Both would write the same snapshot, read the same entries and expire the same peers.
#[test]
fn a_second_server_on_a_data_folder_refuses_and_names_take_over() {
    let mut server = builder().start();
    let elsewhere =
        ["tracker.http_addr=127.0.0.1:0", "tracker.udp_addr=127.0.0.1:0", "site.addr=127.0.0.1:0"];
    let second = |server: &testkit::Server, args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_rollcall"));
        command.arg("serve").args(args).arg("--data").arg(server.data_folder());
        command.args(elsewhere.map(|setting| format!("--set={setting}")));
        command.output().expect("the program starts")
    };
    for args in [&[][..], &["--roles", "tracker"], &["--roles", "activity,ledger"]] {
        let output = second(&server, args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "one clear line: {stderr}");
        let holder = format!("process {}", server.pid());
        for part in ["another server", &holder, "--take-over", &server.data_folder().display().to_string()] {
            assert!(stderr.contains(part), "{part} in {stderr}");
        }
    }
    let passkey = server.add_user(1);
    assert!(server.take_over().success(), "commands and a take-over work as before");
    assert_eq!(second(&server, &[]).status.code(), Some(1), "the next process holds the folder in its turn");
    // The kernel gives the locks back, whatever became of the process.
    server.kill();
    server.start_again();
    assert!(server.try_scrape(&passkey, &domain::InfoHash([0; 20])).is_ok_and(|counts| counts.is_none()));
}

#[test]
fn a_missing_certificate_is_named_on_one_line() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = run_in(
        &folder,
        &[
            "tracker.http_addr=127.0.0.1:0",
            "tracker.udp_addr=",
            "tracker.https_addr=127.0.0.1:0",
            "tracker.tls_cert_file=/nowhere/certificate.pem",
            "tracker.tls_key_file=/nowhere/key.pem",
        ],
    );
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), stderr.lines().count()), (Some(1), 1), "{stderr}");
    assert!(stderr.contains("/nowhere/certificate.pem"), "{stderr}");
}

/// A second signal does not delay the exit, nor does one during the start.
#[test]
fn a_second_sigterm_does_no_harm() {
    let mut greeting = StartupMessage::start(&["--set", "tracker.udp_addr=", "--json"]);
    greeting.read_line();
    greeting.process.terminate();
    greeting.process.terminate();
    let status = greeting.process.wait_end(Duration::from_secs(30));
    assert_eq!(status.code(), Some(0));
}

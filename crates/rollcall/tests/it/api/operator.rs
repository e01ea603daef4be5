//! The site as an operator meets it: the first key, refusals to start, limits, other origins, the end.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value as Json, json};
use testkit::ports::free_port;
use testkit::process::{Process, clear_settings_env};
use testkit::{Api, RawHttp, eventually};

use crate::api::{PATIENCE, builder, detail, metric, problem};

const PROGRAM: &str = env!("CARGO_BIN_EXE_rollcall");

/// Starts the program on this data; returns its startup message and the process.
fn greeting(data: &Path, port: u16, json: bool) -> (Process, String) {
    let data_text = data.display().to_string();
    let site = format!("site.addr=127.0.0.1:{port}");
    let mut args = vec![
        "serve",
        "--data",
        &data_text,
        "--set",
        "tracker.http_addr=127.0.0.1:0",
        "--set",
        "tracker.udp_addr=",
    ];
    args.extend(["--set", &site]);
    args.extend(json.then_some("--json"));
    let (process, _stdin, stdout) = Process::start_dialogue(PROGRAM, args, &data.with_extension("log"));
    let mut lines = BufReader::new(stdout);
    let mut text = String::new();
    let is_whole = |text: &str| text.contains("Ctrl-C") || (json && text.ends_with("}\n"));
    while !is_whole(&text) {
        assert!(lines.read_line(&mut text).unwrap() > 0, "the startup message ends early: {text}");
    }
    (process, text)
}

/// The first word that looks like a key.
fn key_in(text: &str) -> Option<&str> {
    text.split(|character: char| !character.is_ascii_alphanumeric() && character != '_')
        .find(|word| word.starts_with("rck_"))
}

fn end(mut process: Process) {
    process.terminate();
    assert_eq!(process.wait_end(PATIENCE).code(), Some(0));
}

#[test]
fn the_first_start_on_a_terminal_shows_the_key_and_writes_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let quiet = "--set tracker.http_addr=127.0.0.1:0 --set tracker.udp_addr= --set site.addr=127.0.0.1:0";
    let command = format!("exec {PROGRAM} serve --data {} {quiet}", data.display());
    let log = data.with_extension("log");
    let (mut process, _stdin, stdout) =
        Process::start_dialogue("script", ["-qec", &command, "/dev/null"], &log);
    let lines = BufReader::new(stdout).lines().map_while(Result::ok);
    let text: Vec<String> = lines.take_while(|line| !line.contains("Ctrl-C")).collect();
    assert!(text.iter().any(|line| key_in(line).is_some()), "{text:?}");
    assert!(!data.join("first-admin-key").exists());
    process.terminate();
    process.wait_end(PATIENCE);
}

#[test]
fn the_first_start_without_a_terminal_writes_a_key_with_all_rights_to_a_file_of_its_owner() {
    for as_json in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let (data, port) = (folder.path().join("data"), free_port());
        let (process, text) = greeting(&data, port, as_json);
        assert_eq!(key_in(&text), None, "what is printed here is kept by others: {text}");
        let file = data.join("first-admin-key");
        assert!(text.contains(&file.display().to_string()), "{text}");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let key = std::fs::read_to_string(&file).unwrap().trim().to_owned();
        if as_json {
            let json: Json = serde_json::from_str(&text).unwrap();
            assert_eq!((&json["first_key"], &json["first_key_file"]), (&Json::Null, &json!(file)));
            assert_eq!(json["site"][0], format!("http://127.0.0.1:{port}"));
        }
        let admin = Api::new(format!("127.0.0.1:{port}").parse().unwrap()).with_key(&key);
        assert_eq!(admin.post("/api/v1/users", &json!({ "id": 1 })).status(), 201);
        let first = admin.get("/api/v1/audit?action=key.create").ok();
        assert_eq!(first["items"][0]["subjectId"], key.split('_').nth(1).unwrap());
        let log = std::fs::read_to_string(data.with_extension("log")).unwrap();
        assert!(!log.contains(&key), "the log is kept, and so must not have it");
        end(process);
        let (process, text) = greeting(&data, port, as_json);
        assert!(!text.contains("first-admin-key"), "{text}");
        assert_eq!(admin.get("/api/v1/users/1").status(), 200, "it goes on to work");
        end(process);
    }
}

/// Runs a server that is expected to end by itself at once.
fn refused_start(settings: &[String]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(PROGRAM);
    clear_settings_env(&mut command);
    command.args(["serve", "--set", "tracker.http_addr=127.0.0.1:0", "--set", "tracker.udp_addr=", "--data"]);
    command.arg(folder.path());
    command.args(settings.iter().flat_map(|setting| ["--set", setting])).output().unwrap()
}

#[test]
fn plain_http_stays_on_loopback_unless_it_is_allowed() {
    let port = free_port();
    for address in
        [format!("0.0.0.0:{port}"), format!("[::]:{port}"), format!("127.0.0.1:{port},0.0.0.0:{port}")]
    {
        let output = refused_start(&[format!("site.addr={address}")]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && output.stdout.is_empty(), "{stderr}");
        for part in ["site.addr", "site.allow_plaintext", "site.tls_cert_file"] {
            assert!(stderr.contains(part), "{part} in {stderr}");
        }
    }
    let server =
        builder().set("site.addr", format!("\"0.0.0.0:{port}\"")).set("site.allow_plaintext", true).start();
    eventually("the site", PATIENCE, || {
        RawHttp::try_connect(format!("127.0.0.1:{port}").parse().unwrap()).ok()
    });
    eventually("a warning in the log", PATIENCE, || {
        server
            .log()
            .lines()
            .any(|line| line.contains("WARN") && line.contains("allow_plaintext"))
            .then_some(())
    });
    let half =
        refused_start(&[format!("site.addr=127.0.0.1:{port}"), "site.tls_cert_file=/nowhere.pem".to_owned()]);
    assert!(String::from_utf8_lossy(&half.stderr).contains("site.tls_key_file"));
}

#[test]
fn pages_of_other_origins_are_shut_out_unless_they_are_named() {
    let preflight = |api: &Api, origin: &str| {
        let headers = [("origin", origin), ("access-control-request-method", "POST")];
        api.send("OPTIONS", "/api/v1/users", &headers, None)
    };
    let allowed = |reply: &testkit::ApiReply| {
        reply.reply.headers.iter().any(|(name, _)| name.starts_with("access-control-"))
    };
    let closed = builder().start();
    let reply = preflight(&closed.anonymous_api(), "https://pt.example.com");
    assert!(!allowed(&reply) && reply.status() >= 400, "{reply:?}");
    let open = builder().set("site.cors_origins", "[\"https://pt.example.com\"]").start();
    let reply = preflight(&open.anonymous_api(), "https://pt.example.com");
    assert_eq!(reply.status(), 204);
    assert_eq!(reply.reply.header("access-control-allow-origin"), Some("https://pt.example.com"));
    assert!(reply.reply.header("access-control-allow-headers").unwrap().contains("x-api-key"));
    assert_eq!(reply.reply.header("access-control-allow-credentials"), None, "there are no cookies");
    assert_eq!(reply.reply.header("vary"), Some("origin"));
    let read = open.api(&["read"]);
    let reply = read.send("GET", "/api/v1/stats", &[("origin", "https://pt.example.com")], None);
    assert_eq!(
        (reply.status(), reply.reply.header("access-control-allow-origin")),
        (200, Some("https://pt.example.com"))
    );
    for origin in
        ["http://pt.example.com", "https://pt.example.com:444", "https://x.pt.example.com", "null", "*"]
    {
        assert!(!allowed(&preflight(&open.anonymous_api(), origin)), "{origin}");
    }
}

#[test]
fn w6_too_many_requests_get_retry_after() {
    let server = builder().set("site.requests_per_key_per_s", 1).start();
    let (read, other) = (server.api(&["read"]), server.api(&["admin"]));
    let refused = eventually("a refusal", PATIENCE, || {
        let reply = read.get("/api/v1/stats");
        (reply.status() != 200).then_some(reply)
    });
    assert_eq!(problem(&refused, 429), "too_many_requests");
    assert!(refused.reply.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    assert!(detail(&refused).contains("with this key"), "{}", detail(&refused));
    assert_eq!(other.get("/api/v1/stats").status(), 200, "another key has its own");
    assert!(metric(&other, "rollcall_site_rate_limited_total{by=\"key\"}") >= 1.0);

    let server = builder().set("site.requests_per_address_per_s", 1).set("site.metrics_open", true).start();
    let stranger = server.anonymous_api();
    let refused = eventually("a refusal", PATIENCE, || {
        let reply = stranger.send("GET", "/healthz", &[("x-forwarded-for", "192.0.2.1")], None);
        (reply.status() != 200).then_some(reply)
    });
    assert_eq!(problem(&refused, 429), "too_many_requests");
    assert!(detail(&refused).contains("from this address"), "{}", detail(&refused));
    assert!(refused.reply.header("retry-after").is_some());
    let page = eventually("a place in the queue", PATIENCE, || {
        Some(stranger.get("/metrics")).filter(|page| page.status() == 200)
    });
    let page = String::from_utf8(page.reply.body).unwrap();
    assert!(!page.contains("rollcall_site_rate_limited_total{by=\"address\"} 0"), "{page}");
}

/// Behind a proxy that is trusted, each client has a limit of its own.
#[test]
fn clients_behind_a_trusted_proxy_are_distinguished() {
    let server = builder()
        .set("site.requests_per_address_per_s", 1)
        .set("site.trusted_proxies", "[\"127.0.0.1/32\"]")
        .start();
    let status = |client: &str| {
        server.anonymous_api().send("GET", "/healthz", &[("x-forwarded-for", client)], None).status()
    };
    eventually("a refusal", PATIENCE, || (status("192.0.2.1") == 429).then_some(()));
    assert_eq!(status("192.0.2.2"), 200);
    assert_eq!(status("not an address"), 400);
}

#[test]
fn ping_requests_healthz_from_the_site() {
    let mut server = builder().start();
    let alive = server.cli(&["ping"]);
    assert_eq!((&alive["alive"], &alive["address"]), (&true.into(), &server.site_addr().to_string().into()));
    server.kill();
    let gone = server.try_cli(&["ping"]);
    assert_eq!(gone.status.code(), Some(1));
    let gone: Json = serde_json::from_slice(&gone.stdout).unwrap();
    assert_eq!(gone["alive"], false);
    assert!(gone["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{gone}");
}

#[test]
fn shutdown_answers_requests_in_flight_and_accepts_no_more() {
    let mut server = builder().set("tracker.drain_timeout_s", 60).start();
    let admin = server.api(&["admin"]);
    let address = server.site_addr();
    let mut idle = RawHttp::connect(address);
    assert_eq!(idle.get("/healthz").status(), 200);
    let body = json!({ "id": 1 }).to_string();
    let mut half_sent = RawHttp::connect(address);
    half_sent.send(
        format!(
            "POST /api/v1/users HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\nexpect: 100-continue\r\n\r\n",
            admin.key().unwrap(),
            body.len()
        )
        .as_bytes(),
    );
    // The server asks for the body: it has begun with the request.
    let mut go_on = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
    half_sent.stream().read_exact(&mut go_on).unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    std::thread::scope(|scope| {
        let stopping = scope.spawn(|| server.stop());
        assert!(idle.read_to_close().is_empty());
        eventually("the listener to close", PATIENCE, || RawHttp::try_connect(address).err());
        half_sent.send(body.as_bytes());
        assert_eq!(half_sent.read_reply().status(), 201);
        assert!(half_sent.read_to_close().is_empty());
        assert_eq!(stopping.join().unwrap().code(), Some(0));
    });
    server.start_again();
    assert_eq!(admin.get("/api/v1/users/1").status(), 200);
    server.cli(&["audit", "verify"]);
}

#[test]
fn a_caller_that_never_finishes_does_not_hold_up_the_end() {
    let mut server = builder().set("tracker.drain_timeout_s", 1).start();
    let admin = server.api(&["admin"]);
    let mut stuck = RawHttp::connect(server.site_addr());
    stuck.send(b"GET /healthz HTTP");
    let mut uploading = RawHttp::connect(server.site_addr());
    uploading.send(
        format!(
            "PUT /api/v1/whitelist HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\ncontent-length: 1000\r\n\r\n",
            admin.key().unwrap()
        )
        .as_bytes(),
    );
    assert_eq!(server.stop().code(), Some(0));
}

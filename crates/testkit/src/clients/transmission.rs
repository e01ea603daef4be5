//! Transmission, as its daemon, spoken to over its RPC.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::{Assignment, Client, ClientFolder, SEEDER_UPLOAD_KIB_PER_S};
use crate::Family;
use crate::http::RawHttp;
use crate::ports::free_port;
use crate::process::Process;
use crate::wait::eventually;

const PROGRAM: &str = "transmission-daemon";
const START_LIMIT: Duration = Duration::from_secs(20);
const CSRF_HEADER: &str = "x-transmission-session-id";
/// `percentDone` counts pieces that were checked; `status` says whether the client agrees.
const STATUS_SEEDING: i64 = 6;

pub struct Transmission {
    process: Process,
    rpc_port: u16,
    csrf_token: String,
    download_folder: PathBuf,
    /// Removed last, after the process that uses it has ended.
    _home: ClientFolder,
}

impl Transmission {
    /// Starts it with its one torrent.
    #[track_caller]
    pub fn start(assignment: &Assignment<'_>) -> Box<dyn Client> {
        let home = ClientFolder::new(assignment);
        let rpc_port = free_port();
        let settings = settings(&home, rpc_port, assignment.family);
        std::fs::write(home.path("settings.json"), settings.to_string())
            .expect("the folder can be written to");
        let config_dir = home.path("").display().to_string();
        let args = ["--foreground", "--log-debug", "--config-dir", &config_dir];
        let process = Process::start(PROGRAM, args, &home.path("log"));
        let download_folder = home.path("files");
        let torrent = home.torrent_path().display().to_string();
        let mut client =
            Transmission { process, rpc_port, csrf_token: String::new(), download_folder, _home: home };
        eventually("transmission-daemon to take commands", START_LIMIT, || {
            RawHttp::try_connect(Family::V4.loopback_at(rpc_port)).ok()
        });
        client.call("torrent-add", json!({ "filename": torrent }));
        Box::new(client)
    }

    #[track_caller]
    fn call(&mut self, method: &str, arguments: Value) -> Value {
        let body = json!({ "method": method, "arguments": arguments }).to_string();
        // The first reply only returns the CSRF token.
        for _ in 0..2 {
            let mut connection = RawHttp::connect(Family::V4.loopback_at(self.rpc_port));
            let request = format!(
                "POST /transmission/rpc HTTP/1.1\r\nHost: localhost\r\n{CSRF_HEADER}: {}\r\n\
                 Content-Length: {}\r\n\r\n{body}",
                self.csrf_token,
                body.len()
            );
            connection.send(request.as_bytes());
            let reply = connection.read_reply();
            if reply.status() == 409 {
                self.csrf_token = reply.header(CSRF_HEADER).expect("a 409 brings the token").to_owned();
                continue;
            }
            let answer: Value = serde_json::from_slice(&reply.body).expect("the RPC speaks JSON");
            assert_eq!(answer["result"], "success", "{method}: {answer}");
            return answer["arguments"].clone();
        }
        panic!("transmission-daemon does not take its own token");
    }

    fn torrent(&mut self) -> Value {
        let fields = json!({ "fields": ["status", "percentDone", "errorString", "trackerStats"] });
        self.call("torrent-get", fields)["torrents"][0].clone()
    }
}

impl Client for Transmission {
    fn name(&self) -> &'static str {
        "Transmission"
    }

    fn has_whole_file(&mut self) -> bool {
        let torrent = self.torrent();
        torrent["percentDone"].as_f64() == Some(1.0) && torrent["status"] == STATUS_SEEDING
    }

    fn tracker_message(&mut self) -> String {
        self.torrent()["errorString"].as_str().unwrap_or_default().to_owned()
    }

    fn leave(&mut self) {
        self.call("torrent-stop", json!({}));
    }

    fn kill(&mut self) {
        self.process.kill();
    }

    fn download_folder(&self) -> &Path {
        &self.download_folder
    }
}

fn settings(home: &ClientFolder, rpc_port: u16, family: Family) -> Value {
    let mut settings = json!({
        "download-dir": home.path("files"),
        "incomplete-dir-enabled": false,
        "rename-partial-files": false,
        "peer-port": free_port(),
        "rpc-port": rpc_port,
        "rpc-bind-address": "127.0.0.1",
        "rpc-authentication-required": false,
        "rpc-host-whitelist-enabled": false,
        "speed-limit-up-enabled": true,
        "speed-limit-up": SEEDER_UPLOAD_KIB_PER_S,
        "dht-enabled": false,
        "pex-enabled": false,
        "lpd-enabled": false,
        "utp-enabled": false,
        "port-forwarding-enabled": false,
        "blocklist-enabled": false,
    });
    let bind = if family == Family::V4 { "bind-address-ipv4" } else { "bind-address-ipv6" };
    settings[bind] = json!(family.loopback());
    settings
}

//! aria2, spoken to over its RPC.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::{Assignment, Client, ClientFolder, SEEDER_UPLOAD_KIB_PER_S};
use crate::Family;
use crate::http::RawHttp;
use crate::ports::free_port;
use crate::process::Process;

const PROGRAM: &str = "aria2c";
const STOP_LIMIT: Duration = Duration::from_secs(20);

pub struct Aria2 {
    process: Process,
    rpc_port: u16,
    home: ClientFolder,
    download_folder: PathBuf,
}

impl Aria2 {
    /// Starts it with its one torrent.
    #[track_caller]
    pub fn start(assignment: &Assignment<'_>) -> Box<dyn Client> {
        let home = ClientFolder::new(assignment);
        let rpc_port = free_port();
        let uses_udp = assignment.trackers.iter().any(|url| url.starts_with("udp:"));
        let process = Process::start(PROGRAM, args(&home, rpc_port, uses_udp), &home.path("output"));
        let download_folder = home.path("files");
        Box::new(Aria2 { process, rpc_port, home, download_folder })
    }

    /// Its one download, once it has begun.
    fn download(&self) -> Option<Value> {
        let body =
            json!({ "jsonrpc": "2.0", "id": "1", "method": "aria2.tellActive", "params": [] }).to_string();
        let mut connection = RawHttp::try_connect(Family::V4.loopback_at(self.rpc_port)).ok()?;
        let request = format!(
            "POST /jsonrpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        connection.send(request.as_bytes());
        let answer: Value =
            serde_json::from_slice(&connection.read_reply().body).expect("the RPC speaks JSON");
        answer["result"].get(0).cloned()
    }
}

impl Client for Aria2 {
    fn name(&self) -> &'static str {
        "aria2"
    }

    fn has_whole_file(&mut self) -> bool {
        // It calls itself a seeder once every piece is there and checked.
        self.download().is_some_and(|download| download["seeder"] == "true")
    }

    fn tracker_message(&mut self) -> String {
        // It shows tracker failures nowhere but in its log.
        let log = std::fs::read_to_string(self.home.path("log")).unwrap_or_default();
        let is_complaint = |line: &&str| {
            line.contains("UDPT received ERROR") || line.contains("Tracker returned failure reason")
        };
        log.lines().rev().find(is_complaint).unwrap_or_default().to_owned()
    }

    fn leave(&mut self) {
        self.process.interrupt();
        self.process.wait_end(STOP_LIMIT);
    }

    fn kill(&mut self) {
        self.process.kill();
    }

    fn download_folder(&self) -> &Path {
        &self.download_folder
    }
}

fn args(home: &ClientFolder, rpc_port: u16, uses_udp: bool) -> Vec<String> {
    let mut args = vec![
        "--no-conf=true".to_owned(),
        format!("--dir={}", home.path("files").display()),
        format!("--log={}", home.path("log").display()),
        "--log-level=info".to_owned(),
        format!("--listen-port={}", free_port()),
        "--enable-rpc=true".to_owned(),
        format!("--rpc-listen-port={rpc_port}"),
        // It speaks UDP to trackers only with DHT on; a private torrent does not use that, and it knows no node.
        format!("--enable-dht={uses_udp}"),
        format!("--dht-listen-port={}", free_port()),
        format!("--dht-file-path={}", home.path("dht.dat").display()),
        "--enable-dht6=false".to_owned(),
        "--bt-enable-lpd=false".to_owned(),
        "--enable-peer-exchange=false".to_owned(),
        // What is in the folder already is checked and seeded, for as long as it runs.
        "--check-integrity=true".to_owned(),
        "--seed-ratio=0.0".to_owned(),
        format!("--max-upload-limit={SEEDER_UPLOAD_KIB_PER_S}K"),
        "--file-allocation=none".to_owned(),
        "--summary-interval=0".to_owned(),
        "--show-console-readout=false".to_owned(),
        // It must not outlive a test that was killed.
        format!("--stop-with-process={}", std::process::id()),
    ];
    args.push(home.torrent_path().display().to_string());
    args
}

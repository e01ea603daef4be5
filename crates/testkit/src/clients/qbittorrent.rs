//! qBittorrent without a window, spoken to over its web API.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::{Assignment, Client, ClientFolder, SEEDER_UPLOAD_KIB_PER_S};
use crate::Family;
use crate::http::{HttpReply, RawHttp};
use crate::ports::free_port;
use crate::process::Process;
use crate::wait::eventually;

const PROGRAM: &str = "qbittorrent-nox";
const START_LIMIT: Duration = Duration::from_secs(60);

pub struct QBittorrent {
    process: Process,
    api_port: u16,
    download_folder: PathBuf,
    /// Removed last, after the process that uses it has ended.
    _home: ClientFolder,
}

impl QBittorrent {
    /// Starts it with its one torrent.
    #[track_caller]
    pub fn start(assignment: &Assignment<'_>) -> Box<dyn Client> {
        let home = ClientFolder::new(assignment);
        let api_port = free_port();
        let config = home.path("qBittorrent/config");
        std::fs::create_dir_all(&config).expect("the folder is new");
        std::fs::write(config.join("qBittorrent.conf"), settings(&home, api_port, assignment.family))
            .expect("the folder can be written to");
        let args = [
            format!("--profile={}", home.path("").display()),
            format!("--save-path={}", home.path("files").display()),
            "--add-paused=false".to_owned(),
            "--skip-dialog=true".to_owned(),
            home.torrent_path().display().to_string(),
        ];
        let process = Process::start(PROGRAM, args, &home.path("log"));
        let download_folder = home.path("files");
        let client = QBittorrent { process, api_port, download_folder, _home: home };
        eventually("qbittorrent-nox to have its torrent", START_LIMIT, || client.torrent());
        Box::new(client)
    }

    fn call(&self, method: &str, path: &str, body: &str) -> Option<HttpReply> {
        let mut connection = RawHttp::try_connect(Family::V4.loopback_at(self.api_port)).ok()?;
        let request = format!(
            "{method} /api/v2/torrents/{path} HTTP/1.1\r\nHost: localhost:{}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            self.api_port,
            body.len()
        );
        connection.try_send(request.as_bytes()).ok()?;
        connection.try_read_reply().ok()
    }

    fn read(&self, path: &str) -> Option<Value> {
        let reply = self.call("GET", path, "")?;
        serde_json::from_slice(&reply.body).ok()
    }

    #[track_caller]
    fn order(&self, path: &str) {
        let reply = self.call("POST", path, "hashes=all").expect("qbittorrent-nox takes orders");
        assert_eq!(reply.status(), 200, "{path}");
    }

    fn torrent(&self) -> Option<Value> {
        self.read("info")?.get(0).cloned()
    }
}

impl Client for QBittorrent {
    fn name(&self) -> &'static str {
        "qBittorrent"
    }

    fn has_whole_file(&mut self) -> bool {
        self.torrent().is_some_and(|torrent| {
            let is_seeding = torrent["state"].as_str().is_some_and(|state| state.ends_with("UP"));
            torrent["progress"].as_f64() == Some(1.0) && is_seeding && torrent["state"] != "checkingUP"
        })
    }

    fn tracker_message(&mut self) -> String {
        let hash = self.torrent().and_then(|torrent| torrent["hash"].as_str().map(str::to_owned));
        let trackers = hash.and_then(|hash| self.read(&format!("trackers?hash={hash}")));
        let is_tracker = |tracker: &&Value| tracker["tier"].as_i64().is_some_and(|tier| tier >= 0);
        let found = trackers.as_ref().and_then(Value::as_array).and_then(|all| all.iter().find(is_tracker));
        found.and_then(|tracker| tracker["msg"].as_str()).unwrap_or_default().to_owned()
    }

    fn leave(&mut self) {
        self.order("pause");
    }

    fn announce_now(&mut self) {
        self.order("reannounce");
    }

    fn kill(&mut self) {
        self.process.kill();
    }

    fn download_folder(&self) -> &Path {
        &self.download_folder
    }
}

fn settings(home: &ClientFolder, api_port: u16, family: Family) -> String {
    format!(
        "[LegalNotice]\nAccepted=true\n\n\
         [BitTorrent]\n\
         Session\\Port={port}\n\
         Session\\InterfaceAddress={address}\n\
         Session\\DHTEnabled=false\nSession\\LSDEnabled=false\nSession\\PeXEnabled=false\n\
         Session\\MultiConnectionsPerIp=true\n\
         Session\\GlobalUPSpeedLimit={upload}\n\
         Session\\DefaultSavePath={files}\n\n\
         [Network]\nPortForwardingEnabled=false\n\n\
         [Preferences]\n\
         WebUI\\Address=127.0.0.1\nWebUI\\Port={api_port}\n\
         WebUI\\LocalHostAuth=false\nWebUI\\HostHeaderValidation=false\nWebUI\\CSRFProtection=false\n\
         WebUI\\UseUPnP=false\n",
        port = free_port(),
        address = family.loopback(),
        upload = SEEDER_UPLOAD_KIB_PER_S * 1024,
        files = home.path("files").display(),
    )
}

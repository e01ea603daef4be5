//! rTorrent without a terminal, spoken to over its XML-RPC.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Assignment, Client, ClientFolder, SEEDER_UPLOAD_KIB_PER_S};
use crate::ports::free_port;
use crate::process::Process;
use crate::wait::eventually;

const PROGRAM: &str = "rtorrent";
const START_LIMIT: Duration = Duration::from_secs(60);

pub struct RTorrent {
    process: Process,
    socket: PathBuf,
    info_hash: String,
    download_folder: PathBuf,
    /// Removed last, after the process that uses it has ended.
    _home: ClientFolder,
}

impl RTorrent {
    /// Starts it with its one torrent.
    #[track_caller]
    pub fn start(assignment: &Assignment<'_>) -> Box<dyn Client> {
        let home = ClientFolder::new(assignment);
        std::fs::create_dir(home.path("session")).expect("the folder is new");
        std::fs::write(home.path("rtorrent.rc"), settings(&home, assignment))
            .expect("the folder can be written to");
        let options = format!("import={}", home.path("rtorrent.rc").display());
        let process = Process::start(PROGRAM, ["-n", "-o", &options], &home.path("log"));
        let client = RTorrent {
            process,
            socket: home.path("rpc"),
            info_hash: assignment.torrent.info_hash().to_string().to_uppercase(),
            download_folder: home.path("files"),
            _home: home,
        };
        eventually("rtorrent to have its torrent", START_LIMIT, || client.call("d.is_open"));
        Box::new(client)
    }

    /// What a command about the torrent answers; none while there is no answer, or a fault.
    fn call(&self, method: &str) -> Option<String> {
        let body = format!(
            "<?xml version=\"1.0\"?><methodCall><methodName>{method}</methodName><params><param><value>\
             <string>{}</string></value></param></params></methodCall>",
            self.info_hash
        );
        let head = format!("CONTENT_LENGTH\0{}\0SCGI\x001\0", body.len());
        let mut stream = UnixStream::connect(&self.socket).ok()?;
        stream.write_all(format!("{}:{head},{body}", head.len()).as_bytes()).ok()?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply).ok()?;
        let (_, value) = reply.split_once("<value>").filter(|_| !reply.contains("<fault>"))?;
        let (value, _) = value.split_once("</value>")?;
        let text = value.split_once('>').map_or(value, |(_, rest)| rest);
        Some(text.split_once('<').map_or(text, |(text, _)| text).to_owned())
    }
}

impl Client for RTorrent {
    fn name(&self) -> &'static str {
        "rTorrent"
    }

    fn has_whole_file(&mut self) -> bool {
        self.call("d.complete").as_deref() == Some("1") && self.call("d.hashing").as_deref() == Some("0")
    }

    fn tracker_message(&mut self) -> String {
        self.call("d.message").unwrap_or_default()
    }

    fn leave(&mut self) {
        self.call("d.stop").expect("rtorrent takes orders");
    }

    fn announce_now(&mut self) {
        self.call("d.tracker_announce").expect("rtorrent takes orders");
    }

    fn kill(&mut self) {
        self.process.kill();
    }

    fn download_folder(&self) -> &Path {
        &self.download_folder
    }
}

fn settings(home: &ClientFolder, assignment: &Assignment<'_>) -> String {
    let port = free_port();
    format!(
        "system.daemon.set = true\n\
         session.path.set = {session}\n\
         directory.default.set = {files}\n\
         network.bind_address.set = {address}\n\
         network.port_range.set = {port}-{port}\n\
         network.port_random.set = no\n\
         network.scgi.open_local = {socket}\n\
         dht.mode.set = disable\n\
         protocol.pex.set = no\n\
         trackers.use_udp.set = no\n\
         pieces.hash.on_completion.set = no\n\
         throttle.global_up.max_rate.set_kb = {SEEDER_UPLOAD_KIB_PER_S}\n\
         schedule2 = load, 0, 0, \"load.start={torrent}\"\n",
        session = home.path("session").display(),
        files = home.path("files").display(),
        address = assignment.family.loopback(),
        socket = home.path("rpc").display(),
        torrent = home.torrent_path().display(),
    )
}

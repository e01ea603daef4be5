//! libtorrent, the library of qBittorrent and Deluge, as a small Python program.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout};

use serde_json::{Value, json};

use super::{Assignment, Client, ClientFolder, SEEDER_UPLOAD_KIB_PER_S};
use crate::ports::free_port;
use crate::process::{Process, missing};

/// Debian's Python: the one that has Debian's libtorrent.
const PYTHON: &str = "/usr/bin/python3";
const PROGRAM: &str = include_str!("libtorrent_client.py");

pub struct Libtorrent {
    process: Process,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    download_folder: PathBuf,
    /// Removed last, after the process that uses it has ended.
    _home: ClientFolder,
}

impl Libtorrent {
    /// Starts it with its one torrent.
    #[track_caller]
    pub fn start(assignment: &Assignment<'_>) -> Box<dyn Client> {
        let home = ClientFolder::new(assignment);
        let settings = json!({
            "torrent": home.torrent_path(),
            "save_path": home.path("files"),
            "upload_bytes_per_s": SEEDER_UPLOAD_KIB_PER_S * 1024,
            "listen": assignment.family.loopback_at(free_port()).to_string(),
        });
        let args = ["-c", PROGRAM, &settings.to_string()];
        let (process, commands, stdout) = Process::start_dialogue(PYTHON, args, &home.path("log"));
        let download_folder = home.path("files");
        let answers = BufReader::new(stdout);
        Box::new(Libtorrent { process, commands, answers, download_folder, _home: home })
    }

    #[track_caller]
    fn command(&mut self, name: &str) -> Value {
        // A program that could not start has logged why.
        let _ = writeln!(self.commands, "{}", json!({ "do": name }));
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the answer is text");
        let answer: Value = serde_json::from_str(&line).expect("libtorrent answers with JSON");
        if let Some(what) = answer["missing"].as_str() {
            panic!("{}", missing(what));
        }
        answer
    }
}

impl Client for Libtorrent {
    fn name(&self) -> &'static str {
        "libtorrent"
    }

    fn has_whole_file(&mut self) -> bool {
        self.command("status")["whole"] == true
    }

    fn tracker_message(&mut self) -> String {
        self.command("status")["complaint"].as_str().unwrap_or_default().to_owned()
    }

    fn leave(&mut self) {
        self.command("leave");
    }

    /// Over UDP it waits for half a minute and more, whatever the tracker says.
    fn announce_now(&mut self) {
        self.command("reannounce");
    }

    fn kill(&mut self) {
        self.process.kill();
    }

    fn download_folder(&self) -> &Path {
        &self.download_folder
    }
}

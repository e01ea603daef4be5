//! Real BitTorrent clients: Transmission, aria2, libtorrent, qBittorrent and rTorrent.
//!
//! Each is a process with its own folder and one torrent, and with every other peer source turned off, so that it finds
//! peers only through the tracker.
//!
//! Observed behaviour of these versions on loopback:
//!
//! | | Transmission 3.00 | aria2 1.36 | libtorrent 2.0.8 |
//! |---|---|---|---|
//! | connects to peers on loopback | no, but accepts their connections | yes | yes |
//! | HTTP trackers on loopback | any path | any path | paths that begin with `/announce` |
//! | UDP trackers, IPv4 | without URL data | without URL data, and only with DHT on | with URL data (BEP 41) |
//! | UDP trackers, IPv6 | no | no | yes |
//! | text of a UDP error | shown | in its log | lost |
//! | interval of 5 s kept | yes | yes | over HTTP; over UDP at least 30 s |
//! | `stopped` on SIGTERM | no, only by RPC | yes | when its session is paused |
//!
//! So a pair needs at least one client other than Transmission, and only libtorrent can use a private tracker over UDP:
//! the others never send the passkey there. qBittorrent 4.5 uses libtorrent, but announces at most every five minutes
//! unless it is configured otherwise, as does rTorrent 0.9.

mod aria2;
mod libtorrent;
mod qbittorrent;
mod rtorrent;
mod transmission;

pub use aria2::Aria2;
pub use libtorrent::Libtorrent;
pub use qbittorrent::QBittorrent;
pub use rtorrent::RTorrent;
pub use transmission::Transmission;

use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use crate::Family;
use crate::torrent_file::TorrentFile;
use crate::wait::eventually;

/// Whether a client begins with the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Seeder,
    Leecher,
}

pub struct Assignment<'a> {
    pub torrent: &'a TorrentFile,
    /// Its announce URLs, in order.
    pub trackers: Vec<String>,
    /// Whether it begins with the file.
    pub role: Role,
    pub family: Family,
}

/// A running client. Dropping one kills it.
pub trait Client {
    fn name(&self) -> &'static str;

    /// Whether it reports the whole file as checked.
    fn has_whole_file(&mut self) -> bool;

    /// The tracker message it shows: the last failure or warning, empty if there is none.
    fn tracker_message(&mut self) -> String;

    /// Leaves the swarm as by a user's action, so that it announces `stopped`.
    fn leave(&mut self);

    /// Announces now. A client that keeps short intervals by itself has nothing to do.
    fn announce_now(&mut self) {}

    /// Kills it without `stopped`.
    fn kill(&mut self);

    /// Where it keeps the file.
    fn download_folder(&self) -> &Path;

    /// Waits until it has the whole file.
    #[track_caller]
    fn wait_whole_file(&mut self, limit: Duration) {
        let what = format!("{} to have the whole file", self.name());
        eventually(&what, limit, || self.has_whole_file().then_some(()));
    }

    /// Waits for a tracker message that contains `expected`.
    #[track_caller]
    fn wait_tracker_message(&mut self, expected: &str, limit: Duration) {
        let what = format!("{} to show the tracker message {expected:?}", self.name());
        eventually(&what, limit, || self.tracker_message().contains(expected).then_some(()));
    }
}

/// Upload limit of a seeder. On loopback a file would arrive before a test could see its swarm of two.
const SEEDER_UPLOAD_KIB_PER_S: u32 = 256;

/// Starts a client of some kind.
pub type StartClient = fn(&Assignment<'_>) -> Box<dyn Client>;

/// A client's folder: its settings and log at the top, the torrent's file below.
struct ClientFolder {
    folder: TempDir,
}

impl ClientFolder {
    /// A folder with the torrent, and with the file if the client is to seed.
    fn new(assignment: &Assignment<'_>) -> Self {
        let home = ClientFolder { folder: tempfile::tempdir().expect("a temporary folder") };
        std::fs::create_dir(home.path("files")).expect("the folder is new");
        assignment.torrent.write_metainfo(&home.torrent_path(), &assignment.trackers);
        if assignment.role == Role::Seeder {
            assignment.torrent.write_payload(&home.path("files"));
        }
        home
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn torrent_path(&self) -> std::path::PathBuf {
        self.path("the.torrent")
    }
}

//! The real binary with its own folder and ports.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};
use std::time::Duration;

use domain::{InfoHash, Passkey, UserId};
use tempfile::TempDir;

use crate::Family;
use crate::announce::Announce;
use crate::api::Api;
use crate::companion::{Companion, Launch};
use crate::http::{self, RawHttp};
use crate::ports::free_port;
use crate::process::{Process, clear_settings_env};
use crate::reply::{AnnounceReply, SwarmCounts};
use crate::small_disk::SmallDisk;
use crate::torrent_file::TorrentFile;
use crate::udp::RawUdp;
use crate::wait::eventually;
use crate::wall_clock;

/// Generous: the first start on a busy machine reads the binary from disk.
const START_LIMIT: Duration = Duration::from_secs(30);
/// How long an orderly end may take.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// Changes on the command line take effect within a second; a busy machine may need longer.
const CHANGE_LIMIT: Duration = Duration::from_secs(10);

/// Settings of a server, then [`ServerBuilder::start`].
pub struct ServerBuilder {
    binary: String,
    /// Section, then key, then the value as TOML writes it.
    settings: BTreeMap<String, BTreeMap<String, String>>,
    port: u16,
    site_port: u16,
    launch: Launch,
    disk_mib: Option<u32>,
}

/// A running server. Dropping it kills it and removes its data.
pub struct Server {
    binary: String,
    launch: Launch,
    process: Process,
    port: u16,
    site_port: u16,
    /// Whether it has the role `site`.
    has_site: bool,
    /// Unmounted after the process has ended, and before the folder is removed.
    disk: Option<SmallDisk>,
    folder: TempDir,
}

impl ServerBuilder {
    /// Sets a key of the configuration: `set("tracker.announce_interval_s", 5)`. The value is written as it
    /// displays, so texts need their quotes: `set("log.level", "\"debug\"")`.
    pub fn set(mut self, key: &str, toml_value: impl Display) -> Self {
        let (section, name) = key.split_once('.').expect("a key is `section.name`");
        self.settings.entry(section.to_owned()).or_default().insert(name.to_owned(), toml_value.to_string());
        self
    }

    /// Limits it to these roles. `tracker` must be one of them.
    pub fn roles(mut self, roles: &str) -> Self {
        self.launch.roles = Some(roles.to_owned());
        self
    }

    /// Limits the size of each file, as a full disk would.
    pub fn file_kib_max(mut self, kib: u32) -> Self {
        self.launch.file_kib_max = Some(kib);
        self
    }

    /// Gives its data folder its own disk, see [`Server::disk`]. Needs a machine that lets tests mount
    /// ([`SmallDisk::unavailable`]).
    pub fn disk_mib(mut self, mib: u32) -> Self {
        self.disk_mib = Some(mib);
        self
    }

    /// Gives it its own wall clock, for [`Server::set_wall_clock`].
    pub fn own_wall_clock(mut self) -> Self {
        self.launch.has_own_clock = true;
        self
    }

    /// The configuration as it will be written.
    pub fn config(&self) -> String {
        let mut text = String::new();
        for (section, keys) in &self.settings {
            writeln!(text, "[{section}]").expect("a text can be written to");
            for (name, value) in keys {
                writeln!(text, "{name} = {value}").expect("a text can be written to");
            }
        }
        text
    }

    /// Starts it, and waits until it answers over HTTP and UDP, and its site as well.
    #[track_caller]
    pub fn start(self) -> Server {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("config.toml"), self.config())
            .expect("the folder can be written to");
        let disk = self.disk_mib.map(|mib| SmallDisk::mount(&folder.path().join(&self.launch.data), mib));
        wall_clock::set(folder.path(), 0);
        let process = self.launch.start(&self.binary, folder.path(), "server");
        let has_site = self.launch.roles.as_ref().is_none_or(|roles| roles.contains("site"))
            && self.settings["site"]["addr"].contains(&self.site_port.to_string());
        let ServerBuilder { binary, launch, port, site_port, .. } = self;
        let mut server = Server { binary, launch, process, port, site_port, has_site, disk, folder };
        server.wait_ready();
        server
    }
}

impl Server {
    /// On a free loopback port, both address families, HTTP and UDP. `binary` is `env!("CARGO_BIN_EXE_rollcall")`,
    /// which is only available to the tests of that crate.
    pub fn builder(binary: &str) -> ServerBuilder {
        let (port, site_port) = (free_port(), free_port());
        let both = format!("\"127.0.0.1:{port},[::1]:{port}\"");
        let (settings, launch) = (BTreeMap::new(), Launch::default());
        let binary = binary.to_owned();
        let builder = ServerBuilder { binary, settings, port, site_port, launch, disk_mib: None };
        let builder = builder.set("tracker.http_addr", &both).set("tracker.udp_addr", &both);
        builder.set("site.addr", format!("\"127.0.0.1:{site_port}\""))
    }

    /// Where it listens, for HTTP and for UDP.
    pub fn addr(&self, family: Family) -> SocketAddr {
        family.loopback_at(self.port)
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where its site listens: API, verify endpoint, metrics, health.
    pub fn site_addr(&self) -> SocketAddr {
        Family::V4.loopback_at(self.site_port)
    }

    /// The site's API without a key.
    pub fn anonymous_api(&self) -> Api {
        Api::new(self.site_addr())
    }

    /// The site's API with a new key for these scopes, once the key works.
    #[track_caller]
    pub fn api(&self, scopes: &[&str]) -> Api {
        let mut args = vec!["key", "create", "--name", "test"];
        scopes.iter().for_each(|scope| args.extend(["--scope", scope]));
        let made = self.cli(&args);
        let api = self.anonymous_api().with_key(made["key"].as_str().expect("a new key is shown"));
        let target = if scopes == ["verify"] { "/passkey/verify" } else { "/api/v1/stats" };
        eventually("a new key to work", CHANGE_LIMIT, || (api.get(target).status() != 401).then_some(()));
        api
    }

    pub fn data_folder(&self) -> PathBuf {
        self.folder.path().join(&self.launch.data)
    }

    /// The disk of its data folder.
    #[track_caller]
    pub fn disk(&self) -> &SmallDisk {
        self.disk.as_ref().expect("it was given a disk of its own")
    }

    /// Its configuration file; change it and call [`Server::reload`].
    pub fn config_path(&self) -> PathBuf {
        config_path(self.folder.path())
    }

    /// An announce URL with the passkey in front, or behind as `behind` says. libtorrent uses trackers on
    /// loopback only if the path begins with `/announce`.
    pub fn announce_url(&self, scheme: &str, family: Family, passkey: &Passkey, behind: bool) -> String {
        let addr = self.addr(family);
        if behind {
            format!("{scheme}://{addr}/announce/{passkey}")
        } else {
            format!("{scheme}://{addr}/{passkey}/announce")
        }
    }

    #[track_caller]
    pub fn http(&self, family: Family) -> RawHttp {
        RawHttp::connect(self.addr(family))
    }

    /// A socket for its UDP port.
    #[track_caller]
    pub fn udp(&self, family: Family) -> RawUdp {
        RawUdp::new(self.addr(family))
    }

    /// Announces over HTTP, on a connection of its own.
    #[track_caller]
    pub fn announce(&self, family: Family, passkey: &Passkey, announce: &Announce) -> AnnounceReply {
        AnnounceReply::decode(&http::get(self.addr(family), &announce.target(passkey)).body)
    }

    /// Scrapes one torrent over HTTP: its counts, none if it is not in the reply, or the failure.
    #[track_caller]
    pub fn try_scrape(&self, passkey: &Passkey, info_hash: &InfoHash) -> Result<Option<SwarmCounts>, String> {
        let target = format!("/{passkey}/scrape?info_hash={}", domain::percent::encode(&info_hash.0));
        SwarmCounts::decode(&http::get(self.addr(Family::V4), &target).body, info_hash)
    }

    /// Scrapes one torrent over HTTP.
    #[track_caller]
    pub fn scrape(&self, passkey: &Passkey, info_hash: &InfoHash) -> SwarmCounts {
        let counts = self.try_scrape(passkey, info_hash).expect("the scrape is allowed");
        counts.expect("the torrent is known")
    }

    /// Adds a user with a passkey made from the id, and waits until it works.
    #[track_caller]
    pub fn add_user(&self, id: u64) -> Passkey {
        let user = UserId::new(id).expect("a user id is positive");
        let passkey = test_passkey(user);
        self.cli(&["user", "add", "--id", &user.to_string(), "--passkey", &passkey.to_string()]);
        eventually("a new passkey to work", CHANGE_LIMIT, || {
            match self.try_scrape(&passkey, &InfoHash([0; 20])) {
                Err(reason) if reason.contains("passkey") => None,
                // An unknown torrent means that the passkey works.
                _ => Some(()),
            }
        });
        passkey
    }

    /// Adds a torrent, and waits until `passkey` may scrape it.
    #[track_caller]
    pub fn add_torrent(&self, torrent: &TorrentFile, passkey: &Passkey) {
        let path = self.folder.path().join(format!("{}.torrent", torrent.info_hash()));
        torrent.write_metainfo(&path, &[]);
        self.cli(&["torrent", "add", path.to_str().expect("temporary folders have plain names")]);
        eventually("a new torrent to be known", CHANGE_LIMIT, || {
            self.try_scrape(passkey, &torrent.info_hash()).ok().flatten()
        });
    }

    /// Runs a command against the same data and configuration; panics unless it succeeds. What it printed, as JSON.
    #[track_caller]
    pub fn cli(&self, args: &[&str]) -> serde_json::Value {
        let output = self.try_cli(args);
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "`rollcall {}` failed: {stdout}{stderr}", args.join(" "));
        if stdout.trim().is_empty() {
            return serde_json::Value::Null;
        }
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{stdout:?} is not JSON: {error}"))
    }

    /// Runs a command against the same data and configuration.
    pub fn try_cli(&self, args: &[&str]) -> Output {
        let mut command = Command::new(&self.binary);
        clear_settings_env(&mut command);
        command.args(args).arg("--data").arg(self.data_folder());
        command.arg("--config").arg(self.config_path()).arg("--json");
        command.output().unwrap_or_else(|error| panic!("{} does not start: {error}", self.binary))
    }

    /// Asks it to read its configuration again.
    pub fn reload(&self) {
        self.process.hang_up();
    }

    /// Asks it to end, and waits until it has.
    #[track_caller]
    pub fn stop(&mut self) -> ExitStatus {
        self.process.terminate();
        self.process.wait_end(STOP_LIMIT)
    }

    /// Kills it without a chance to drain.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// SIGSTOP: its connections stay open without answers.
    pub fn freeze(&self) {
        self.process.suspend();
    }

    /// Lets it go on after [`Server::freeze`].
    pub fn thaw(&self) {
        self.process.resume();
    }

    /// Starts it again on the same data, after [`Server::stop`] or [`Server::kill`].
    #[track_caller]
    pub fn start_again(&mut self) {
        self.process.kill();
        self.process = self.launch.start(&self.binary, self.folder.path(), "server");
        self.wait_ready();
    }

    /// A new process takes over from this one, as in an upgrade. Waits until the old process has ended, and returns its
    /// status.
    #[track_caller]
    pub fn take_over(&mut self) -> ExitStatus {
        let launch = Launch { take_over: true, ..self.launch.clone() };
        let mut next = launch.start(&self.binary, self.folder.path(), "server");
        let ended = eventually("the old process to end", START_LIMIT + STOP_LIMIT, || {
            if let Some(status) = next.has_ended() {
                panic!("the new process ended instead of taking over ({status}):\n{}", next.log());
            }
            self.process.has_ended()
        });
        self.process = next;
        self.wait_ready();
        // A successor can take over again once this socket exists.
        let offered = self.data_folder().join("take-over.sock");
        eventually("the new process to be ready for the next", START_LIMIT, || {
            std::os::unix::net::UnixStream::connect(&offered).ok()
        });
        ended
    }

    /// Starts a process that tries to take over, and returns its output. This one is still the server.
    #[track_caller]
    pub fn take_over_in_vain(&self, args: &[&str]) -> Output {
        let mut command = Command::new(&self.binary);
        clear_settings_env(&mut command);
        command.arg("serve").arg("--take-over").args(args).arg("--data").arg(self.data_folder());
        command.arg("--config").arg(self.config_path());
        command.output().unwrap_or_else(|error| panic!("{} does not start: {error}", self.binary))
    }

    /// Sets its wall clock this many seconds ahead of the machine's, or behind it. Needs
    /// [`ServerBuilder::own_wall_clock`].
    pub fn set_wall_clock(&self, ahead_s: i64) {
        assert!(self.launch.has_own_clock, "the server uses the clock of the machine");
        wall_clock::set(self.folder.path(), ahead_s);
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Removes the file size limit from the next start on.
    pub fn lift_file_limit(&mut self) {
        self.launch.file_kib_max = None;
    }

    /// Starts another process with the same configuration and its own data folder, for these roles. Waits until it is
    /// ready.
    #[track_caller]
    pub fn companion(&self, name: &str, roles: &str) -> Companion {
        let launch = Launch { roles: Some(roles.to_owned()), data: name.to_owned(), ..Launch::default() };
        Companion::start(&self.binary, self.folder.path(), name, launch)
    }

    /// All it has logged so far, over all its starts.
    pub fn log(&self) -> String {
        self.process.log()
    }

    #[track_caller]
    fn wait_ready(&mut self) {
        for family in [Family::V4, Family::V6] {
            let addr = self.addr(family);
            let what = format!("the server to answer on {addr}");
            eventually(&what, START_LIMIT, || {
                if let Some(status) = self.process.has_ended() {
                    panic!("the server ended instead of starting ({status}):\n{}", self.process.log());
                }
                let mut connection = RawHttp::try_connect(addr).ok()?;
                connection.try_send(b"GET / HTTP/1.1\r\nHost: ready\r\nConnection: close\r\n\r\n").ok()?;
                connection.try_read_reply().ok()
            });
            RawUdp::new(addr).connect();
        }
        if self.has_site {
            self.wait_site();
        }
    }

    /// The site starts last. One with HTTPS answers this too, with a TLS alert.
    #[track_caller]
    fn wait_site(&mut self) {
        let addr = self.site_addr();
        eventually(&format!("the site to answer on {addr}"), START_LIMIT, || {
            if let Some(status) = self.process.has_ended() {
                panic!("the server ended instead of starting ({status}):\n{}", self.process.log());
            }
            let mut connection = RawHttp::try_connect(addr).ok()?;
            connection.try_send(b"GET /healthz HTTP/1.1\r\nHost: ready\r\nConnection: close\r\n\r\n").ok()?;
            Some(connection.read_to_close())
        });
    }
}

/// The passkey that tests give to a user: 32 digits that begin with the id.
pub fn test_passkey(user: UserId) -> Passkey {
    let text = format!("{:08x}{:024x}", user.get(), 0xfeed_beef_u64.wrapping_mul(user.get()));
    text.parse().expect("hexadecimal digits are a passkey")
}

fn config_path(folder: &Path) -> PathBuf {
    folder.join("config.toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_written_by_section() {
        let mut builder = Server::builder("rollcall").set("log.level", "\"debug\"");
        builder.settings.remove("tracker");
        builder.settings.remove("site");
        let builder = builder.set("tracker.announce_interval_s", 5);
        assert_eq!(builder.config(), "[log]\nlevel = \"debug\"\n[tracker]\nannounce_interval_s = 5\n");
    }

    #[test]
    fn test_passkeys_differ() {
        let passkey = |id| test_passkey(UserId::new(id).expect("positive"));
        assert_eq!(passkey(1).to_string(), "000000010000000000000000feedbeef");
        assert_ne!(passkey(1), passkey(2));
    }
}

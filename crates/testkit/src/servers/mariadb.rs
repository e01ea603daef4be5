//! A MariaDB server.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::Signal;

use super::account::Account;
use super::daemon::{Daemon, Launch, finish, on_a_free_port, try_finish};
use super::template;

/// Small, so that it starts quickly; the log is flushed at each commit, since tests kill it.
const SETTINGS: &[&str] = &[
    "--bind-address=127.0.0.1",
    "--skip-networking=0",
    "--skip-name-resolve",
    "--max-connections=300",
    "--innodb-buffer-pool-size=64M",
    "--innodb-log-file-size=32M",
    "--innodb-flush-log-at-trx-commit=1",
    "--innodb-doublewrite=1",
    "--innodb-buffer-pool-dump-at-shutdown=0",
    "--innodb-buffer-pool-load-at-startup=0",
    "--performance-schema=0",
    "--skip-log-bin",
];

/// A running MariaDB server. Dropping it ends it.
pub struct MariaDbServer {
    daemon: Daemon,
    port: u16,
    databases: AtomicU32,
}

impl MariaDbServer {
    /// A dedicated server, to be killed and restarted.
    pub fn start() -> Self {
        on_a_free_port(|port| {
            let mut daemon = Daemon::new("mariadb", Account::instead_of_root("mysql"), Signal::KILL);
            let data = daemon.folder().join("data");
            template::copy("mariadb", &data, |data| make(&daemon, data));
            let launch = launch(daemon.folder(), port);
            daemon.try_start(&launch, |_| answers(port))?;
            Ok(MariaDbServer { daemon, port, databases: AtomicU32::new(0) })
        })
    }

    /// The server that all tests of this process share. It ends with the process.
    pub fn shared() -> &'static MariaDbServer {
        static SHARED: OnceLock<MariaDbServer> = OnceLock::new();
        SHARED.get_or_init(MariaDbServer::start)
    }

    /// The address of a new, empty database.
    pub fn fresh_database(&self) -> String {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{number}");
        self.mariadb("mysql", &format!("CREATE DATABASE {name} CHARACTER SET utf8mb4"));
        self.url(&name)
    }

    /// The address of a database of this server.
    pub fn url(&self, database: &str) -> String {
        format!("mysql://root@127.0.0.1:{}/{database}", self.port)
    }

    /// Runs SQL with the `mariadb` client in a database: rows as lines, columns parted by tabs. Panics where it fails.
    #[track_caller]
    pub fn mariadb(&self, database: &str, sql: &str) -> String {
        finish(client_command(self.port, database, sql), "mariadb").trim_end().to_owned()
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn pid(&self) -> u32 {
        self.daemon.pid()
    }

    pub fn log(&self) -> String {
        self.daemon.log()
    }

    /// Kills it (SIGKILL) and waits until it is gone.
    pub fn kill(&mut self) {
        self.daemon.kill();
    }

    /// Starts it again after [`MariaDbServer::kill`], on the same port with the same data; waits until it answers.
    #[track_caller]
    pub fn restart(&mut self) {
        self.kill();
        let launch = launch(self.daemon.folder(), self.port);
        let port = self.port;
        self.daemon.restart(&launch, |_| answers(port));
    }

    /// SIGSTOP.
    pub fn freeze(&self) {
        self.daemon.freeze();
    }

    pub fn thaw(&self) {
        self.daemon.thaw();
    }
}

fn launch(folder: &Path, port: u16) -> Launch {
    let path = |option: &str, name: &str| format!("--{option}={}", folder.join(name).display()).into();
    let mut args = vec!["--no-defaults".into(), path("datadir", "data"), path("socket", "socket")];
    args.extend([path("pid-file", "pid"), path("tmpdir", ""), format!("--port={port}").into()]);
    args.extend(SETTINGS.iter().map(|setting| (*setting).into()));
    Launch { program: server_program(), args }
}

/// Debian keeps it outside the PATH of ordinary users.
fn server_program() -> String {
    let places = ["/usr/sbin/mariadbd", "/usr/bin/mariadbd"];
    places.into_iter().find(|place| Path::new(place).exists()).unwrap_or("mariadbd").to_owned()
}

fn answers(port: u16) -> bool {
    try_finish(client_command(port, "mysql", "SELECT 1"), "mariadb").is_ok()
}

fn client_command(port: u16, database: &str, sql: &str) -> Command {
    let mut command = Command::new("mariadb");
    command
        .args(["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--user=root"])
        .args(["--batch", "--skip-column-names", &format!("--port={port}")])
        .args(["--database", database, "--execute", sql])
        .stdin(Stdio::null());
    command
}

fn make(daemon: &Daemon, data: &Path) {
    let data = format!("--datadir={}", data.display());
    let options =
        ["--auth-root-authentication-method=normal", "--skip-test-db", "--innodb-log-file-size=32M"];
    daemon.run("mariadb-install-db", &[&["--no-defaults", &data], &options[..]].concat());
}

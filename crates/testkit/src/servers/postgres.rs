//! A PostgreSQL server.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::Signal;

use super::account::Account;
use super::daemon::{Daemon, Launch, finish, on_a_free_port, try_finish};
use super::template;
use crate::process::missing;

/// Small, so that it starts quickly; fsync stays on, since tests kill it.
const SETTINGS: &[&str] = &[
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "max_connections=300",
    "shared_buffers=32MB",
    "max_wal_size=256MB",
    "jit=off",
    "fsync=on",
    "synchronous_commit=on",
    "restart_after_crash=on",
];

/// A running PostgreSQL server. Dropping it ends it.
pub struct PostgresServer {
    daemon: Daemon,
    port: u16,
    databases: AtomicU32,
}

impl PostgresServer {
    /// A dedicated server, to be killed and restarted.
    pub fn start() -> Self {
        on_a_free_port(|port| {
            // SIGQUIT ends it at once, and unlike SIGKILL leaves no shared memory behind.
            let mut daemon = Daemon::new("postgres", Account::instead_of_root("postgres"), Signal::QUIT);
            let data = daemon.folder().join("data");
            template::copy(&format!("postgres-{}", version()), &data, |data| make(&daemon, data));
            let launch = launch(daemon.folder(), port);
            daemon.try_start(&launch, |_| answers(port))?;
            Ok(PostgresServer { daemon, port, databases: AtomicU32::new(0) })
        })
    }

    /// The server that all tests of this process share. It ends with the process.
    pub fn shared() -> &'static PostgresServer {
        static SHARED: OnceLock<PostgresServer> = OnceLock::new();
        SHARED.get_or_init(PostgresServer::start)
    }

    /// The address of a new, empty database.
    pub fn fresh_database(&self) -> String {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{number}");
        self.psql("postgres", &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// The address of a database of this server.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Runs SQL with `psql` in a database: rows as lines, columns parted by `|`. Panics where it fails.
    #[track_caller]
    pub fn psql(&self, database: &str, sql: &str) -> String {
        finish(psql_command(self.port, database, sql), "psql").trim_end().to_owned()
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

    /// Starts it again after [`PostgresServer::kill`], on the same port with the same data; waits until it answers.
    #[track_caller]
    pub fn restart(&mut self) {
        self.kill();
        let launch = launch(self.daemon.folder(), self.port);
        let port = self.port;
        self.daemon.restart(&launch, |_| answers(port));
    }

    /// SIGSTOP. Open sessions continue.
    pub fn freeze(&self) {
        self.daemon.freeze();
    }

    pub fn thaw(&self) {
        self.daemon.thaw();
    }
}

fn launch(folder: &Path, port: u16) -> Launch {
    let mut args = vec!["-D".into(), folder.join("data").into(), "-p".into(), port.to_string().into()];
    for setting in SETTINGS {
        args.extend(["-c".into(), (*setting).into()]);
    }
    Launch { program: program("postgres"), args }
}

fn answers(port: u16) -> bool {
    try_finish(psql_command(port, "postgres", "SELECT 1"), "psql").is_ok()
}

fn psql_command(port: u16, database: &str, sql: &str) -> Command {
    let mut command = Command::new(program("psql"));
    command
        .args(["--no-psqlrc", "--no-password", "--quiet", "--tuples-only", "--no-align"])
        .args(["--set", "ON_ERROR_STOP=1", "--host", "127.0.0.1", "--port", &port.to_string()])
        .args(["--username", "postgres", "--dbname", database, "--command", sql])
        .stdin(Stdio::null())
        .current_dir("/");
    command
}

fn make(daemon: &Daemon, data: &Path) {
    let data = data.to_str().expect("temporary folders have plain names");
    let options = ["--auth=trust", "--username=postgres", "--no-locale", "--encoding=UTF8", "--no-sync"];
    daemon.run(&program("initdb"), &[&["--pgdata", data], &options[..]].concat());
}

/// Debian keeps the programs of each version apart, and only some of them on the PATH.
fn folder_of_programs() -> PathBuf {
    let newest = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin"))
        .filter(|folder| folder.join("initdb").exists())
        .max();
    newest.unwrap_or_else(|| panic!("{}", missing("PostgreSQL")))
}

fn program(name: &str) -> String {
    folder_of_programs().join(name).display().to_string()
}

fn version() -> String {
    let folder = folder_of_programs();
    let version = folder.parent().and_then(Path::file_name).unwrap_or_default();
    version.to_string_lossy().into_owned()
}

//! One Redis server.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustix::process::Signal;

use super::daemon::{Daemon, Launch, on_a_free_port, try_finish};
use crate::ports::free_port;

/// What a confirmed write survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fsync {
    /// A loss of power: each write waits for the disk.
    Always,
    /// A kill of the process; a loss of power costs the last second.
    EverySecond,
}

/// By default without password, persistence and TLS.
#[derive(Clone, Debug, Default)]
pub struct RedisBuilder {
    directives: Vec<String>,
    password: Option<String>,
    user: Option<(String, String)>,
    tls: bool,
    is_cluster_node: bool,
}

impl RedisBuilder {
    /// Keeps an append-only file, so that a restart finds the data.
    pub fn append_only(self, fsync: Fsync) -> Self {
        let policy = match fsync {
            Fsync::Always => "always",
            Fsync::EverySecond => "everysec",
        };
        self.directive("appendonly yes").directive(&format!("appendfsync {policy}"))
    }

    /// Sets `requirepass`.
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self.directive(&format!("requirepass {password}")).directive(&format!("masterauth {password}"))
    }

    /// Adds an ACL user with these rules, such as `~* &* +@all`; [`RedisServer::url`] then signs in as this user.
    pub fn user(mut self, name: &str, password: &str, rules: &str) -> Self {
        self.user = Some((name.to_owned(), password.to_owned()));
        self.directive(&format!("user {name} on >{password} {rules}"))
    }

    /// Speaks TLS only, with a certificate for 127.0.0.1 and localhost from an authority of its own.
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Sets `maxmemory` with `noeviction`.
    pub fn memory_bytes_max(self, bytes: u64) -> Self {
        self.directive(&format!("maxmemory {bytes}")).directive("maxmemory-policy noeviction")
    }

    /// Adds a line to its configuration file.
    pub fn directive(mut self, line: &str) -> Self {
        self.directives.push(line.to_owned());
        self
    }

    pub(super) fn shared_password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// Makes it a node of a cluster, with a second port for the others.
    pub(super) fn cluster_node(mut self) -> Self {
        self.is_cluster_node = true;
        self.directive("cluster-enabled yes").directive("cluster-node-timeout 2000")
    }

    pub fn start(self) -> RedisServer {
        on_a_free_port(|port| {
            let mut server =
                RedisServer { daemon: Daemon::new("redis", None, Signal::KILL), port, builder: self.clone() };
            server.write_configuration();
            server.start_again().map(|()| server)
        })
    }
}

/// A running Redis server. Dropping it ends it.
pub struct RedisServer {
    daemon: Daemon,
    port: u16,
    builder: RedisBuilder,
}

impl RedisServer {
    /// A server without a password that keeps nothing on disk.
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// A server of another kind.
    pub fn builder() -> RedisBuilder {
        RedisBuilder::default()
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address, with whatever is needed to sign in.
    pub fn url(&self) -> String {
        let scheme = if self.builder.tls { "rediss" } else { "redis" };
        let sign_in = match (&self.builder.user, &self.builder.password) {
            (Some((name, password)), _) => format!("{name}:{password}@"),
            (None, Some(password)) => format!(":{password}@"),
            (None, None) => String::new(),
        };
        format!("{scheme}://{sign_in}127.0.0.1:{}", self.port)
    }

    pub fn pid(&self) -> u32 {
        self.daemon.pid()
    }

    /// Where it keeps its data.
    pub fn folder(&self) -> &Path {
        self.daemon.folder()
    }

    pub fn log(&self) -> String {
        self.daemon.log()
    }

    /// The certificate of its authority, in PEM, where it speaks TLS.
    pub fn authority_path(&self) -> PathBuf {
        self.folder().join("authority.pem")
    }

    /// Runs one command with `redis-cli`, signed in with all rights. Panics where it fails.
    #[track_caller]
    pub fn cli(&self, args: &[&str]) -> String {
        self.try_cli(args).unwrap_or_else(|complaint| panic!("redis-cli {args:?}: {complaint}"))
    }

    /// Runs one command with `redis-cli`; returns the error where it fails.
    pub fn try_cli(&self, args: &[&str]) -> Result<String, String> {
        let mut command = self.cli_command();
        command.args(args).stdin(Stdio::null());
        try_finish(command, "redis-cli").map(|stdout| stdout.trim_end_matches('\n').to_owned())
    }

    /// Runs many commands with one `redis-cli`, one per line. Returns all replies, failures included.
    #[track_caller]
    pub fn cli_lines(&self, lines: &str) -> String {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(lines.as_bytes()).expect("a temporary file can be written");
        std::io::Seek::rewind(&mut file).expect("a file can be read again");
        let mut command = self.cli_command();
        command.stdin(file);
        try_finish(command, "redis-cli").unwrap_or_else(|complaint| panic!("redis-cli: {complaint}"))
    }

    fn cli_command(&self) -> Command {
        let mut command = Command::new("redis-cli");
        // Without -e, a command that fails counts as a success.
        command.args(["-e", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
        if let Some(password) = &self.builder.password {
            command.args(["-a", password, "--no-auth-warning"]);
        }
        if self.builder.tls {
            command.arg("--tls").arg("--cacert").arg(self.authority_path());
        }
        command
    }

    /// Kills it (SIGKILL) and waits until it has ended.
    pub fn kill(&mut self) {
        self.daemon.kill();
    }

    /// Starts it again after [`RedisServer::kill`], on the same port with the same data; waits until it has loaded them.
    #[track_caller]
    pub fn restart(&mut self) {
        self.kill();
        let launch = self.launch();
        let probe = self.probe();
        self.daemon.restart(&launch, |pid| answers(&probe, pid));
    }

    /// SIGSTOP.
    pub fn freeze(&self) {
        self.daemon.freeze();
    }

    pub fn thaw(&self) {
        self.daemon.thaw();
    }

    pub fn is_running(&self) -> bool {
        self.daemon.is_running()
    }

    fn start_again(&mut self) -> Result<(), String> {
        let launch = self.launch();
        let probe = self.probe();
        self.daemon.try_start(&launch, |pid| answers(&probe, pid))
    }

    fn launch(&self) -> Launch {
        Launch { program: "redis-server".to_owned(), args: vec![self.folder().join("redis.conf").into()] }
    }

    /// Checks the server's process id: the port may belong to another process by now.
    fn probe(&self) -> impl Fn() -> Option<String> + use<> {
        let command_line: Vec<_> = self.cli_command().get_args().map(ToOwned::to_owned).collect();
        move || {
            let mut command = Command::new("redis-cli");
            command.args(&command_line).arg("INFO").stdin(Stdio::null());
            try_finish(command, "redis-cli").ok()
        }
    }

    fn write_configuration(&self) {
        let folder = self.folder();
        let mut lines = vec![
            "bind 127.0.0.1".to_owned(),
            "protected-mode no".to_owned(),
            "daemonize no".to_owned(),
            "save \"\"".to_owned(),
            format!("dir {}", folder.display()),
        ];
        if self.builder.tls {
            write_certificates(folder);
            lines.extend([
                "port 0".to_owned(),
                format!("tls-port {}", self.port),
                format!("tls-cert-file {}/server.pem", folder.display()),
                format!("tls-key-file {}/server.key", folder.display()),
                format!("tls-ca-cert-file {}/authority.pem", folder.display()),
                "tls-auth-clients no".to_owned(),
            ]);
        } else {
            lines.push(format!("port {}", self.port));
        }
        if self.builder.is_cluster_node {
            // The default would be in the range of outgoing connections.
            lines.push(format!("cluster-port {}", free_port()));
        }
        lines.extend(self.builder.directives.iter().cloned());
        std::fs::write(folder.join("redis.conf"), lines.join("\n") + "\n")
            .expect("its folder can be written");
    }
}

fn answers(probe: &impl Fn() -> Option<String>, pid: u32) -> bool {
    probe().is_some_and(|info| {
        let has = |line: &str| info.lines().any(|found| found.trim_end() == line);
        has(&format!("process_id:{pid}")) && has("loading:0")
    })
}

/// An authority, and a certificate of this machine signed by it.
fn write_certificates(folder: &Path) {
    let write = |name: &str, pem: String| {
        std::fs::write(folder.join(name), pem).expect("its folder can be written");
    };
    let mut authority = CertificateParams::default();
    // Its own name, or the server's certificate, which has the default one, would look self-signed.
    authority.distinguished_name.push(DnType::CommonName, "an authority for tests");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("keys can be made");
    let authority = CertifiedIssuer::self_signed(authority, key).expect("an authority can sign itself");
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let key = KeyPair::generate().expect("keys can be made");
    let certificate = CertificateParams::new(names)
        .and_then(|params| params.signed_by(&key, &authority))
        .expect("a certificate can be signed");
    write("authority.pem", authority.pem());
    write("server.pem", certificate.pem());
    write("server.key", key.serialize_pem());
}

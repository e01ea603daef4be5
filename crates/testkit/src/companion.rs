//! Starts processes of the real binary, and further processes beside a [`Server`](crate::Server).

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use crate::process::Process;
use crate::wait::eventually;
use crate::wall_clock;

/// How long a start may take on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(30);
/// How long an orderly end may take.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// Logged when a process is ready.
const READY: &str = "\"message\":\"ready\"";

/// How a process is started.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    /// All roles if none are given.
    pub(crate) roles: Option<String>,
    /// The largest file size.
    pub(crate) file_kib_max: Option<u32>,
    /// The name of its data folder.
    pub(crate) data: String,
    /// Whether it takes over from the process that runs on that folder.
    pub(crate) take_over: bool,
    /// Whether the test sets its wall clock.
    pub(crate) has_own_clock: bool,
}

impl Default for Launch {
    fn default() -> Self {
        Launch {
            roles: None,
            file_kib_max: None,
            data: "data".to_owned(),
            take_over: false,
            has_own_clock: false,
        }
    }
}

impl Launch {
    /// Starts a process with `config.toml` in `folder`; it logs there under its name.
    pub(crate) fn start(&self, binary: &str, folder: &Path, name: &str) -> Process {
        let path = |name: &str| folder.join(name).display().to_string();
        let mut args: Vec<String> = ["serve", "--config"].map(str::to_owned).into();
        args.extend([path("config.toml"), "--data".to_owned(), path(&self.data)]);
        if let Some(roles) = &self.roles {
            args.extend(["--roles".to_owned(), roles.clone()]);
        }
        if self.take_over {
            args.push("--take-over".to_owned());
        }
        let log_path = log_path(folder, name);
        if self.has_own_clock {
            args.splice(0..0, wall_clock::environment(folder).into_iter().chain([binary.to_owned()]));
            return Process::start("env", args, &log_path);
        }
        let Some(kib) = self.file_kib_max else {
            return Process::start(binary, args, &log_path);
        };
        // A write beyond the limit then fails, instead of ending the process. Blocks of `ulimit -f` have 512 bytes.
        let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$@\"", kib * 2);
        args.splice(0..0, ["-c".to_owned(), script, "sh".to_owned(), binary.to_owned()]);
        Process::start("sh", args, &log_path)
    }
}

fn log_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.log"))
}

/// A process beside a server: the same configuration, other roles, its own data folder. Dropping it kills it.
pub struct Companion {
    binary: String,
    folder: PathBuf,
    name: String,
    launch: Launch,
    process: Process,
}

impl Companion {
    #[track_caller]
    pub(crate) fn start(binary: &str, folder: &Path, name: &str, launch: Launch) -> Self {
        let process = launch.start(binary, folder, name);
        let (binary, folder, name) = (binary.to_owned(), folder.to_owned(), name.to_owned());
        let mut companion = Companion { binary, folder, name, launch, process };
        companion.wait_ready(0);
        companion
    }

    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Asks it to end, and waits until it has.
    #[track_caller]
    pub fn stop(&mut self) -> ExitStatus {
        self.process.terminate();
        self.process.wait_end(STOP_LIMIT)
    }

    /// Starts it again on the same data.
    #[track_caller]
    pub fn start_again(&mut self) {
        self.process.kill();
        let known = self.log().len();
        self.process = self.launch.start(&self.binary, &self.folder, &self.name);
        self.wait_ready(known);
    }

    /// Asks it to read its configuration again.
    pub fn reload(&self) {
        self.process.hang_up();
    }

    /// All it has logged so far, over all its starts.
    pub fn log(&self) -> String {
        self.process.log()
    }

    #[track_caller]
    fn wait_ready(&mut self, logged_before: usize) {
        let what = format!("{} to be ready", self.name);
        eventually(&what, START_LIMIT, || {
            if let Some(status) = self.process.has_ended() {
                panic!("{} ended instead of starting ({status}):\n{}", self.name, self.process.log());
            }
            let log = self.process.log();
            let is_ready = |line: &str| line.contains(READY);
            log.get(logged_before..).unwrap_or_default().lines().any(is_ready).then_some(())
        });
    }
}

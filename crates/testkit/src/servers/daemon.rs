//! A server's process and folder.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use domain::clock::Stopwatch;
use rustix::process::Signal;

use super::account::Account;
use super::watchdog::Watchdog;
use crate::process::Process;

/// How long a server may take to answer on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How often it is asked.
const START_POLL: Duration = Duration::from_millis(15);
/// How long a server may take to end after SIGTERM.
const END_LIMIT: Duration = Duration::from_secs(5);
/// A port may be taken between its choice and its use.
const PORTS_TRIED_MAX: usize = 5;

/// A server's process and folder. Dropping it ends the one and removes the other.
pub(crate) struct Daemon {
    folder: PathBuf,
    account: Option<Account>,
    end_signal: Signal,
    process: Option<Process>,
    watchdog: Watchdog,
}

/// What a server is started with.
pub(crate) struct Launch {
    pub(crate) program: String,
    pub(crate) args: Vec<OsString>,
}

impl Daemon {
    /// Makes an empty folder for a server that ends by `end_signal`.
    pub(crate) fn new(name: &str, account: Option<Account>, end_signal: Signal) -> Self {
        let folder = tempfile::Builder::new()
            .prefix(&format!("rollcall-{name}-"))
            .tempdir()
            .expect("a temporary folder")
            .keep();
        if let Some(account) = account {
            account.own(&folder);
        }
        let signal = if end_signal == Signal::QUIT { "QUIT" } else { "KILL" };
        let watchdog = Watchdog::start(&folder, signal);
        Daemon { folder, account, end_signal, process: None, watchdog }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs a program of the server's package to its end, as the server's account.
    #[track_caller]
    pub(crate) fn run(&self, program: &str, args: &[&str]) -> String {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).current_dir(&self.folder);
        if let Some(account) = self.account {
            account.run(&mut command);
        }
        finish(command, program)
    }

    /// Starts the server and waits until `answers`. Fails where it ends before.
    pub(crate) fn try_start(
        &mut self,
        launch: &Launch,
        mut answers: impl FnMut(u32) -> bool,
    ) -> Result<(), String> {
        assert!(self.process.is_none(), "{} runs already", launch.program);
        let mut command = Command::new(&launch.program);
        command.args(&launch.args).stdin(Stdio::null()).current_dir(&self.folder);
        if let Some(account) = self.account {
            account.run(&mut command);
        }
        let mut process = Process::start_command(command, &launch.program, &self.folder.join("log"));
        self.watchdog.server_started(process.id());
        let since_start = Stopwatch::start();
        loop {
            if let Some(status) = process.has_ended() {
                self.watchdog.server_ended();
                return Err(format!("{} ended with {status}:\n{}", launch.program, process.log_tail()));
            }
            if answers(process.id()) {
                self.process = Some(process);
                return Ok(());
            }
            assert!(
                since_start.elapsed() < START_LIMIT,
                "{} does not answer within {START_LIMIT:?}",
                launch.program
            );
            std::thread::sleep(START_POLL);
        }
    }

    /// Restarts the server on its port. Remains of the previous process may be in its way for a moment.
    #[track_caller]
    pub(crate) fn restart(&mut self, launch: &Launch, mut answers: impl FnMut(u32) -> bool) {
        let since_start = Stopwatch::start();
        loop {
            match self.try_start(launch, &mut answers) {
                Ok(()) => return,
                Err(reason) => assert!(since_start.elapsed() < START_LIMIT, "{reason}"),
            }
            std::thread::sleep(START_POLL);
        }
    }

    /// Kills the server (SIGKILL) and waits until it has ended.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
            self.watchdog.server_ended();
        }
    }

    /// SIGSTOP.
    pub(crate) fn freeze(&self) {
        self.running().signal(Signal::STOP);
    }

    /// Lets it go on (SIGCONT).
    pub(crate) fn thaw(&self) {
        self.running().signal(Signal::CONT);
    }

    pub(crate) fn is_running(&self) -> bool {
        self.process.is_some()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.running().id()
    }

    pub(crate) fn log(&self) -> String {
        let bytes = std::fs::read(self.folder.join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn running(&self) -> &Process {
        self.process.as_ref().expect("the server runs")
    }

    fn end(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        if process.has_ended().is_none() && self.end_signal != Signal::KILL {
            process.signal(self.end_signal);
            let since_signal = Stopwatch::start();
            while process.has_ended().is_none() && since_signal.elapsed() < END_LIMIT {
                std::thread::sleep(START_POLL);
            }
        }
        process.kill();
        self.watchdog.server_ended();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.end();
        // The watchdog removes what cannot be removed now because a child of the server still writes.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Tries ports until the server could bind one.
pub(crate) fn on_a_free_port<T>(mut start: impl FnMut(u16) -> Result<T, String>) -> T {
    let mut reasons = Vec::new();
    for _ in 0..PORTS_TRIED_MAX {
        match start(crate::ports::free_port()) {
            Ok(server) => return server,
            Err(reason) => reasons.push(reason),
        }
    }
    panic!("no server starts: {}", reasons.join("\n"));
}

/// Runs a program to its end and returns its output. Panics where it fails.
#[track_caller]
pub(crate) fn finish(command: Command, program: &str) -> String {
    try_finish(command, program).unwrap_or_else(|complaint| panic!("{program} failed: {complaint}"))
}

/// Runs a program to its end and returns its output, or its error output.
pub(crate) fn try_finish(mut command: Command, program: &str) -> Result<String, String> {
    let output = match command.output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            panic!("{}", crate::process::missing(program))
        }
        Err(error) => panic!("{program} does not start: {error}"),
    };
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    Err(format!("{stdout}{}", String::from_utf8_lossy(&output.stderr)))
}

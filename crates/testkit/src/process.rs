//! Child processes that end with their test.

use std::ffi::OsStr;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::wait::eventually;

/// How much of a log a failed test shows.
const LOG_TAIL_LINES: usize = 60;

/// A child process with its output in a file. Dropping it kills it; a failing test then shows the end of its log.
pub struct Process {
    name: String,
    child: Child,
    log_path: PathBuf,
}

impl Process {
    /// Starts a program; both its outputs go to `log_path`.
    pub fn start<A: AsRef<OsStr>>(program: &str, args: impl IntoIterator<Item = A>, log_path: &Path) -> Self {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).stdout(log_file(log_path));
        Self::spawn(command, program, log_path)
    }

    /// Starts a program with piped standard input and output; only standard error goes to `log_path`.
    pub fn start_dialogue<A: AsRef<OsStr>>(
        program: &str,
        args: impl IntoIterator<Item = A>,
        log_path: &Path,
    ) -> (Self, ChildStdin, ChildStdout) {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Self::spawn(command, program, log_path);
        let stdin = process.child.stdin.take().expect("its standard input is a pipe");
        let stdout = process.child.stdout.take().expect("its standard output is a pipe");
        (process, stdin, stdout)
    }

    /// Starts a prepared command; both its outputs go to `log_path`.
    pub(crate) fn start_command(mut command: Command, program: &str, log_path: &Path) -> Self {
        command.stdout(log_file(log_path));
        Self::spawn(command, program, log_path)
    }

    fn spawn(mut command: Command, program: &str, log_path: &Path) -> Self {
        clear_settings_env(&mut command);
        let child = match command.stderr(log_file(log_path)).spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == ErrorKind::NotFound => panic!("{}", missing(program)),
            Err(error) => panic!("{program} does not start: {error}"),
        };
        let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned();
        Process { name, child, log_path: log_path.to_owned() }
    }

    /// Asks it to end (SIGTERM).
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Asks it to end as Ctrl-C does (SIGINT).
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Asks it to read its configuration again (SIGHUP).
    pub fn hang_up(&self) {
        self.signal(Signal::HUP);
    }

    /// SIGSTOP: its sockets stay open without answers.
    pub fn suspend(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on after [`Process::suspend`].
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        // A child that has ended but was not waited for keeps its id, so this signals no other process.
        kill_process(Pid::from_child(&self.child), signal)
            .unwrap_or_else(|error| panic!("{} cannot be signalled: {error}", self.name));
    }

    /// SIGKILL, and waits until it has ended.
    pub fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits until it has ended.
    #[track_caller]
    pub fn wait_end(&mut self, limit: Duration) -> ExitStatus {
        let what = format!("{} to end", self.name);
        eventually(&what, limit, || self.has_ended())
    }

    /// Its status, if it has ended.
    pub fn has_ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be asked whether it has ended")
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// All it has written to its log so far.
    pub fn log(&self) -> String {
        let bytes = std::fs::read(&self.log_path).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The end of its log.
    pub(crate) fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("--- the end of the log of {}\n{}\n---", self.name, self.log_tail());
        }
    }
}

/// Removes settings from the environment of a child.
pub fn clear_settings_env(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let is_setting = ["ROLLCALL_", "REDIS_", "TRACKER_"]
            .iter()
            .any(|prefix| name.to_string_lossy().starts_with(prefix));
        if is_setting {
            command.env_remove(name);
        }
    }
}

/// The message for a missing program.
pub fn missing(what: &str) -> String {
    format!("{what} is not installed; run `make test`, which installs what the tests need")
}

fn log_file(path: &Path) -> File {
    File::options()
        .create(true)
        .append(true)
        .open(path)
        .unwrap_or_else(|error| panic!("cannot write the log {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "run `make test`")]
    fn a_missing_program_fails_and_says_how_to_install_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Process::start("no-such-client", ["--help"], &folder.path().join("log"));
    }

    #[test]
    fn a_child_can_be_ended_politely_and_its_output_is_kept() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let script = "trap 'echo goodbye; exit 3' TERM; echo hello; while :; do sleep 0.05; done";
        let mut child = Process::start("sh", ["-c", script], &folder.path().join("log"));
        let limit = Duration::from_secs(10);
        eventually("a greeting", limit, || child.log().contains("hello").then_some(()));
        child.terminate();
        assert_eq!(child.wait_end(limit).code(), Some(3));
        assert_eq!(child.log(), "hello\ngoodbye\n");
    }
}

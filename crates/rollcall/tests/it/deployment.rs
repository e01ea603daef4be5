//! The files in `deploy/`: the unit of systemd, the Debian package, the containers.

mod debian;
mod docker;
mod systemd;

use std::path::PathBuf;
use std::process::{Command, Output};

const BINARY: &str = env!("CARGO_BIN_EXE_rollcall");

/// The top of the repository.
fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(repository().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Runs a program in the repository root, without the environment of the test run.
#[track_caller]
fn run(program: &str, args: &[&str]) -> Output {
    let mut command = Command::new(program);
    testkit::process::clear_settings_env(&mut command);
    command.current_dir(repository()).args(args);
    command
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}; {}", testkit::process::missing(program)))
}

/// What it printed; panics unless it succeeds.
#[track_caller]
fn printed(program: &str, args: &[&str]) -> String {
    let output = run(program, args);
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program} {args:?}: {stdout}{stderr}");
    stdout.into_owned()
}

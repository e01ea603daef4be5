//! `rollcall sandbox` (W9): what it prints is pasted into a shell, for real.

mod clients;
mod creating;
mod pasting;

use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value as Json;
use testkit::{Server, eventually};

const BINARY: &str = env!("CARGO_BIN_EXE_rollcall");
const PATIENCE: Duration = Duration::from_secs(60);

/// The command of this name.
#[track_caller]
fn command<'a>(sandbox: &'a Json, name: &str) -> &'a str {
    let commands = sandbox["commands"].as_array().unwrap();
    let found = commands.iter().find(|command| command["name"] == name);
    found.unwrap_or_else(|| panic!("no command {name}: {sandbox:#}"))["command"].as_str().unwrap()
}

/// Pastes a command into a shell.
fn paste(command: &str) -> Output {
    let mut shell = Command::new("sh");
    testkit::process::clear_settings_env(&mut shell);
    shell.args(["-c", command]).output().unwrap()
}

/// What it printed; panics unless it succeeds.
#[track_caller]
fn pasted(sandbox: &Json, name: &str) -> String {
    let command = command(sandbox, name);
    let output = paste(command);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

/// Creates a sandbox and waits until the server knows it.
#[track_caller]
fn make(server: &Server, words: &[&str]) -> Json {
    let sandbox = server.cli(&[&["sandbox"], words].concat());
    let last = |list: &str| sandbox[list].as_array().unwrap().last().unwrap().clone();
    let (user, torrent) = (last("users"), last("torrents"));
    let passkey = user["passkey"].as_str().unwrap().parse().unwrap();
    let info_hash = torrent["infohash"].as_str().unwrap().parse().unwrap();
    eventually("the sandbox to be known", PATIENCE, || {
        server.try_scrape(&passkey, &info_hash).ok().flatten()
    });
    sandbox
}

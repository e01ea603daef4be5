//! The real program, run as an operator would. These tests document the JSON output.

mod audit;
mod backup;
mod client;
mod config;
mod databases;
mod friend;
mod key;
mod openapi;
mod passkey;
mod port;
mod reference;
mod token;
mod torrent;
mod usage;
mod user;
mod whitelist;
mod why;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;

/// A data folder of its own.
struct Site {
    folder: tempfile::TempDir,
}

/// What a run of the program left behind.
#[derive(Debug)]
struct Outcome {
    exit_code: i32,
    stdout: String,
    stderr: String,
}

impl Site {
    fn new() -> Self {
        Site { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn run(&self, arguments: &[&str]) -> Outcome {
        self.run_with(&[], arguments)
    }

    fn output(&self, environment: &[(&str, &str)], arguments: &[&str]) -> std::process::Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rollcall"));
        // The environment of the test run must not influence the tests.
        testkit::process::clear_settings_env(&mut command);
        command.current_dir(self.folder.path()).envs(environment.iter().copied()).args(arguments);
        command.output().unwrap()
    }

    fn run_with(&self, environment: &[(&str, &str)], arguments: &[&str]) -> Outcome {
        let output = self.output(environment, arguments);
        Outcome {
            exit_code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: without_note(&String::from_utf8(output.stderr).unwrap()),
        }
    }

    /// The output of a run that must succeed with empty standard error.
    fn text(&self, arguments: &[&str]) -> String {
        let outcome = self.run(arguments);
        assert_eq!((outcome.exit_code, outcome.stderr.as_str()), (0, ""), "{arguments:?}");
        outcome.stdout
    }

    /// The JSON of a run that must succeed. `created_at` is checked and taken out, for it is never the same.
    fn json(&self, arguments: &[&str]) -> Json {
        let text = self.text(&[arguments, &["--json"]].concat());
        assert_eq!(text.lines().count(), 1, "one object on one line: {text}");
        let mut json = serde_json::from_str(&text).unwrap();
        take_out_created_at(&mut json);
        json
    }

    /// The error line of a run that must fail with exit code 1 and print no result.
    fn refusal(&self, arguments: &[&str]) -> String {
        self.run(arguments).refusal()
    }
}

/// The first command in a folder creates the database and prints a note; that is tested once.
fn without_note(stderr: &str) -> String {
    stderr.lines().filter(|line| !line.starts_with(NEW_DATABASE)).map(|line| format!("{line}\n")).collect()
}

const NEW_DATABASE: &str = "note: there was no database at ";

#[test]
fn a_command_without_a_database_prints_one_note() {
    let site = Site::new();
    let stderr_of_list = || String::from_utf8(site.output(&[], &["user", "list"]).stderr).unwrap();
    assert!(stderr_of_list().starts_with(NEW_DATABASE));
    assert_eq!(stderr_of_list(), "");
}

impl Outcome {
    fn refusal(&self) -> String {
        assert_eq!((self.exit_code, self.stdout.as_str()), (1, ""), "{self:?}");
        assert_eq!(self.stderr.lines().count(), 1, "one clear line: {}", self.stderr);
        self.stderr.trim_end().strip_prefix("error: ").unwrap().to_owned()
    }
}

fn take_out_created_at(json: &mut Json) {
    match json {
        Json::Object(fields) => {
            let created_at = fields.remove("created_at");
            assert!(
                created_at.is_none_or(|moment| moment.as_u64().unwrap() > 1_700_000_000),
                "in Unix seconds"
            );
            fields.values_mut().for_each(take_out_created_at);
        }
        Json::Array(entries) => entries.iter_mut().for_each(take_out_created_at),
        _ => {}
    }
}

fn text_of(path: &Path) -> &str {
    path.to_str().unwrap()
}

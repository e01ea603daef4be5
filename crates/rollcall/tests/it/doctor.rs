//! `rollcall doctor`: each kind of fault, created for real, is found with its remedy.

mod certificates;
mod databases;
mod gateway;
mod machine;
mod redis;
mod running;

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value as Json;
use testkit::ports::free_port;

const BINARY: &str = env!("CARGO_BIN_EXE_rollcall");

/// A data folder, and settings of which nothing is wrong.
struct Installation {
    folder: tempfile::TempDir,
    settings: Vec<String>,
}

#[derive(Debug)]
struct Report {
    exit_code: i32,
    json: Json,
}

impl Installation {
    fn new() -> Self {
        let port = free_port();
        let settings = vec![
            format!("tracker.http_addr=127.0.0.1:{port}"),
            format!("tracker.udp_addr=127.0.0.1:{port}"),
            format!("site.addr=127.0.0.1:{}", free_port()),
            // The limit of open files may be low where the tests run.
            "limits.connections_max=50".to_owned(),
            "limits.connections_per_address_max=50".to_owned(),
            "site.connections_max=50".to_owned(),
            "gateway.connections_max=50".to_owned(),
        ];
        Installation { folder: tempfile::tempdir().unwrap(), settings }
    }

    fn set(mut self, key: &str, value: impl std::fmt::Display) -> Self {
        self.settings.push(format!("{key}={value}"));
        self
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        testkit::process::clear_settings_env(&mut command);
        command.args(words).arg("--data").arg(self.data());
        for setting in &self.settings {
            command.arg("--set").arg(setting);
        }
        command
    }

    #[track_caller]
    fn run(&self, words: &[&str]) {
        let output = self.command(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    #[track_caller]
    fn doctor(&self) -> Report {
        let output = self.command(&["doctor", "--json"]).output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        let json = serde_json::from_str(&stdout)
            .unwrap_or_else(|error| panic!("{error}: {stdout}{}", String::from_utf8_lossy(&output.stderr)));
        Report { exit_code: output.status.code().unwrap(), json }
    }
}

impl Report {
    /// The findings of a check with this grade, whose text has all of these words.
    fn find(&self, check: &str, grade: &str, words: &[&str]) -> Option<&Json> {
        self.json["findings"].as_array().unwrap().iter().find(|finding| {
            let found = finding["found"].as_str().unwrap();
            finding["check"] == check
                && finding["grade"] == grade
                && words.iter().all(|word| found.contains(word))
        })
    }

    /// There is such a finding.
    #[track_caller]
    fn has(&self, check: &str, grade: &str, words: &[&str]) -> &Json {
        self.find(check, grade, words)
            .unwrap_or_else(|| panic!("no {grade} of {check} with {words:?}: {self:#?}"))
    }

    /// Asserts a problem with these words and this remedy, and the exit code.
    #[track_caller]
    fn has_problem(&self, check: &str, words: &[&str], mend: &str) {
        let finding = self.has(check, "problem", words);
        let told = finding["mend"].as_str().unwrap();
        assert!(told.contains(mend), "{told:?} does not say {mend:?}");
        assert_eq!((self.exit_code, &self.json["healthy"]), (1, &Json::from(false)));
    }

    /// Asserts a warning with these words and this remedy.
    #[track_caller]
    fn has_warning(&self, check: &str, words: &[&str], mend: &str) {
        let finding = self.has(check, "warning", words);
        let told = finding["mend"].as_str().unwrap();
        assert!(told.contains(mend), "{told:?} does not say {mend:?}");
    }

    /// Nothing is wrong with this check.
    #[track_caller]
    fn is_well(&self, check: &str) {
        let findings = self.json["findings"].as_array().unwrap();
        let mut of_check = findings.iter().filter(|finding| finding["check"] == check).peekable();
        assert!(of_check.peek().is_some(), "{check} said nothing: {self:#?}");
        assert!(of_check.all(|finding| finding["grade"] == "ok"), "{self:#?}");
    }
}

//! Programs that tests control over standard input and output: published SDKs, our libraries, a browser.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{LazyLock, OnceLock};
use std::time::Duration;

use domain::clock::Stopwatch;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::process::Process;

/// Long enough for a machine that does much else, too.
pub const PATIENCE: Duration = Duration::from_secs(45);

/// When things happened is measured from here, in all programs alike.
static SINCE_START: LazyLock<Stopwatch> = LazyLock::new(Stopwatch::start);

/// The time now, as events have it.
pub fn now() -> Duration {
    SINCE_START.elapsed()
}

/// Which program it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The npm package `centrifuge`.
    JavaScriptSdk,
    /// The PyPI package `centrifuge-python`.
    PythonSdk,
    /// `clients/js`.
    JavaScriptLibrary,
    /// `clients/python`.
    PythonLibrary,
    /// Chromium.
    Browser,
}

impl Kind {
    /// The command line of the program.
    fn command(self) -> Vec<String> {
        let node =
            |name: &str| vec!["node".to_owned(), js_folder().join("agents").join(name).display().to_string()];
        let python = |name: &str| {
            let folder = repository().join("clients/python").display().to_string();
            let program = repository().join("crates/rollcall/tests/it/presence_clients/agents").join(name);
            let settings = format!("PYTHONPATH={folder}");
            // `-B`: the folders of the sources stay as they are.
            ["env", &settings, &python_program().display().to_string(), "-B", &program.display().to_string()]
                .map(str::to_owned)
                .to_vec()
        };
        match self {
            Kind::JavaScriptSdk => node("sdk.mjs"),
            Kind::JavaScriptLibrary => node("library.mjs"),
            Kind::Browser => node("browser.mjs"),
            Kind::PythonSdk => python("sdk.py"),
            Kind::PythonLibrary => python("library.py"),
        }
    }
}

/// The root of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where `clients/js` is built, once it is.
pub fn js_folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| installed("js.sh"))
}

/// The Python that has what `clients/python` needs.
pub fn python_program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| installed("python.sh"))
}

fn installed(script: &str) -> PathBuf {
    let output = Command::new(repository().join("scripts/clients").join(script)).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

/// A message of a program, and its time.
#[derive(Clone, Debug)]
pub struct Event {
    /// When.
    pub at: Duration,
    /// What.
    pub said: Value,
}

/// Why a command was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// By the server's code; 0 if it was not the server.
    pub code: i64,
    /// In words.
    pub message: String,
}

/// A running program. Dropping it kills it.
pub struct Agent {
    name: String,
    /// The process itself, for signals.
    pub process: Process,
    commands: ChildStdin,
    heard: Receiver<Event>,
    /// Heard while something else was waited for.
    unread: VecDeque<Event>,
    /// Everything read, for error messages.
    read: Vec<Event>,
    last_id: u64,
    /// In a browser with several users: whose page.
    pub viewer: Option<&'static str>,
    /// Removed last.
    pub folder: TempDir,
}

impl Agent {
    /// Starts a program.
    #[track_caller]
    pub fn start(kind: Kind, name: &str) -> Agent {
        let folder = tempfile::tempdir().unwrap();
        let command = kind.command();
        let log = folder.path().join("log");
        let (process, commands, stdout) = Process::start_dialogue(&command[0], &command[1..], &log);
        let (tell, heard) = channel();
        std::thread::spawn(move || read_lines(stdout, &tell));
        let name = format!("{name} ({kind:?})");
        Agent {
            name,
            process,
            commands,
            heard,
            unread: VecDeque::new(),
            read: Vec::new(),
            last_id: 0,
            viewer: None,
            folder,
        }
    }

    /// Has a command carried out, and waits for its outcome.
    #[track_caller]
    pub fn try_ask(&mut self, what: &str, details: Value) -> Result<Value, Refusal> {
        let id = self.send(what, details);
        let mut aside = VecDeque::new();
        loop {
            let event = self.next(&format!("{what} to be answered"), PATIENCE);
            if event.said["id"] != id {
                aside.push_back(event);
                continue;
            }
            aside.append(&mut self.unread);
            self.unread = aside;
            return match event.said.get("error") {
                None => Ok(event.said["ok"].clone()),
                Some(error) => Err(Refusal {
                    code: error["code"].as_i64().unwrap_or_default(),
                    message: error["message"].as_str().unwrap_or_default().to_owned(),
                }),
            };
        }
    }

    /// Has a command carried out that must succeed.
    #[track_caller]
    pub fn ask(&mut self, what: &str, details: Value) -> Value {
        let name = self.name.clone();
        self.try_ask(what, details)
            .unwrap_or_else(|refusal| panic!("{name}: {what} was refused: {refusal:?}"))
    }

    /// Calls a method of the server by the SDK.
    #[track_caller]
    pub fn rpc(&mut self, method: &str, data: Value) -> Value {
        self.ask("rpc", json!({"method": method, "data": data}))
    }

    /// Sends a command without waiting for its outcome.
    #[track_caller]
    pub fn send(&mut self, what: &str, details: Value) -> u64 {
        self.last_id += 1;
        let mut command = details;
        command["id"] = self.last_id.into();
        command["do"] = what.into();
        writeln!(self.commands, "{command}").unwrap_or_else(|error| panic!("{} is gone: {error}", self.name));
        self.last_id
    }

    /// Waits for the next message that `pick` accepts; others are dropped.
    #[track_caller]
    pub fn wait_for<T>(&mut self, what: &str, pick: impl FnMut(&Event) -> Option<T>) -> T {
        self.wait_within(what, PATIENCE, pick)
    }

    /// The same with a limit of its own.
    #[track_caller]
    pub fn wait_within<T>(
        &mut self,
        what: &str,
        limit: Duration,
        mut pick: impl FnMut(&Event) -> Option<T>,
    ) -> T {
        let deadline = now() + limit;
        loop {
            let event = self.next(what, deadline.saturating_sub(now()));
            self.read.push(event.clone());
            if let Some(picked) = pick(&event) {
                return picked;
            }
        }
    }

    /// Waits for an event by its name.
    #[track_caller]
    pub fn wait_event(&mut self, name: &str) -> Event {
        self.wait_for(&format!("the event {name}"), |event| {
            (event.said["event"] == name).then(|| event.clone())
        })
    }

    /// Waits until a user is shown with this status; returns when, and what is shown.
    #[track_caller]
    pub fn wait_status(&mut self, user: &str, status: &str) -> Sighting {
        self.wait_shown(&format!("{user} to be {status}"), user, |shown| shown["status"] == status)
    }

    /// Waits until a user is shown as `is_right` accepts.
    #[track_caller]
    pub fn wait_shown(&mut self, what: &str, user: &str, is_right: impl Fn(&Value) -> bool) -> Sighting {
        let viewer = self.viewer;
        let mut before = Vec::new();
        let (at, shown) = self.wait_for(what, |event| {
            if viewer.is_some_and(|viewer| event.said["who"] != viewer) {
                return None;
            }
            for shown in users_in(&event.said).filter(|shown| shown["id"] == user) {
                if is_right(shown) {
                    return Some((event.at, shown.clone()));
                }
                before.push((event.at, shown["status"].as_str().unwrap_or_default().to_owned()));
            }
            None
        });
        Sighting { at, user: shown, before }
    }

    /// All unread messages.
    pub fn drain(&mut self) -> Vec<Event> {
        self.unread.drain(..).chain(self.heard.try_iter()).collect()
    }

    fn story(&self) -> String {
        self.read.iter().map(|event| format!("{:.3} {}\n", event.at.as_secs_f64(), event.said)).collect()
    }

    #[track_caller]
    fn next(&mut self, what: &str, limit: Duration) -> Event {
        if let Some(event) = self.unread.pop_front() {
            return event;
        }
        match self.heard.recv_timeout(limit) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => {
                panic!("{}: waited in vain: {what}; what was heard:\n{}", self.name, self.story())
            }
            Err(RecvTimeoutError::Disconnected) => {
                panic!("{} has ended instead of {what}:\n{}", self.name, self.process.log())
            }
        }
    }
}

/// What was shown of a person, and when; and with which statuses they were shown before, since the last look.
#[derive(Debug)]
pub struct Sighting {
    /// When.
    pub at: Duration,
    /// The person.
    pub user: Value,
    /// What came before it.
    pub before: Vec<(Duration, String)>,
}

/// Users in the message: of the feed, or of a library's map of friends.
fn users_in(said: &Value) -> impl Iterator<Item = &Value> {
    let of_feed = said["data"]["users"].as_array().into_iter().flatten();
    let of_map = (said["event"] == "friend").then(|| &said["user"]);
    of_feed.chain(of_map)
}

fn read_lines(stdout: ChildStdout, tell: &Sender<Event>) {
    for line in BufReader::new(stdout).lines() {
        let Ok(line) = line else { return };
        let Ok(said) = serde_json::from_str(&line) else { continue };
        if tell.send(Event { at: now(), said }).is_err() {
            return;
        }
    }
}

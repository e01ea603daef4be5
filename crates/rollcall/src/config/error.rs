//! Configuration errors: each names the place, the value and what is expected.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Where a value was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    File {
        path: PathBuf,
        /// From 1.
        line: usize,
    },
    Environment {
        name: String,
    },
    /// `--set` on the command line.
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::File { path, line } => write!(f, "{}:{line}", path.display()),
            Origin::Environment { name } => write!(f, "environment {name}"),
            Origin::Flag => f.write_str("--set"),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read the configuration file {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{origin}: not TOML: {message}")]
    NotToml { origin: Origin, message: String },
    #[error("{origin}: unknown section [{name}], the nearest known one is [{nearest}]")]
    UnknownSection { origin: Origin, name: String, nearest: &'static str },
    #[error("{origin}: unknown key {name}, the nearest known one is {nearest}")]
    UnknownKey { origin: Origin, name: String, nearest: String },
    /// A key above the first section, or a section that is not a table.
    #[error("{origin}: {name} must be a section: write [{name}] and its keys below")]
    NotASection { origin: Origin, name: &'static str },
    /// `--set` without an equals sign.
    #[error("--set {text}: expected SECTION.KEY=VALUE, such as --set tracker.announce_interval_s=900")]
    NotAnAssignment { text: String },
    #[error("{origin}: {key} = {value}: expected {expected}")]
    BadValue {
        origin: Origin,
        /// `section.key`.
        key: String,
        value: String,
        expected: String,
    },
    /// Keys that contradict each other.
    #[error("{problem}{}", SetIn(origins))]
    Conflict {
        /// Names the keys, their values and the remedy.
        problem: String,
        /// Empty for keys at their defaults.
        origins: Vec<Origin>,
    },
}

/// " (set in rollcall.toml:3 and --set)".
struct SetIn<'a>(&'a [Origin]);

impl fmt::Display for SetIn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, origin) in self.0.iter().enumerate() {
            write!(f, "{}{origin}", if position == 0 { " (set in " } else { " and " })?;
        }
        f.write_str(if self.0.is_empty() { "" } else { ")" })
    }
}

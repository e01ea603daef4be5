//! What can be wrong with a configuration: each says where, what, and what to write instead.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Who set a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A line of the configuration file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// An environment variable.
    Environment {
        /// The variable.
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

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is not there or may not be read.
    #[error("cannot read the configuration file {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not TOML.
    #[error("{origin}: not TOML: {message}")]
    NotToml {
        /// Where.
        origin: Origin,
        /// What the parser said.
        message: String,
    },
    /// There is no such section.
    #[error("{origin}: unknown section [{name}], the nearest known one is [{nearest}]")]
    UnknownSection {
        /// Where.
        origin: Origin,
        /// As written.
        name: String,
        /// What was probably meant.
        nearest: &'static str,
    },
    /// There is no such key.
    #[error("{origin}: unknown key {name}, the nearest known one is {nearest}")]
    UnknownKey {
        /// Where.
        origin: Origin,
        /// As written.
        name: String,
        /// What was probably meant.
        nearest: String,
    },
    /// A key stands above the first section, or a section is not one.
    #[error("{origin}: {name} must be a section: write [{name}] and its keys below")]
    NotASection {
        /// Where.
        origin: Origin,
        /// The section.
        name: &'static str,
    },
    /// `--set` without an equals sign.
    #[error("--set {text}: expected SECTION.KEY=VALUE, such as --set tracker.announce_interval_s=900")]
    NotAnAssignment {
        /// As written.
        text: String,
    },
    /// The value is of the wrong kind or out of range.
    #[error("{origin}: {key} = {value}: expected {expected}")]
    BadValue {
        /// Where.
        origin: Origin,
        /// The key, with its section.
        key: String,
        /// As written.
        value: String,
        /// What may be written.
        expected: String,
    },
    /// Values that do not fit together.
    #[error("{problem}{}", SetIn(origins))]
    InvalidValue {
        /// Which keys, their values, and what to do.
        problem: String,
        /// Who set these keys; nobody for the ones at their defaults.
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

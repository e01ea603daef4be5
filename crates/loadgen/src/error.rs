//! What can go wrong while measuring.

use std::io;
use std::path::PathBuf;

/// Why a benchmark could not be run to its end.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The system refused something.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// A server stopped answering.
    #[error("the server sent nothing for {silent_s} s with {in_flight} requests in flight")]
    Silent {
        /// How long.
        silent_s: u64,
        /// Requests that were never answered.
        in_flight: usize,
    },
    /// A server closed a connection that should have been kept.
    #[error("the server closed a keep-alive connection after {replies} replies")]
    Closed {
        /// Replies until then, over all connections.
        replies: u64,
    },
    /// What came back is not what the protocol prescribes.
    #[error("not a reply: {0}")]
    NotAReply(String),
    /// The tracker refused announces that it should have taken.
    #[error("{failures} of {replies} announces were refused, for example: {example}")]
    Refused {
        /// How many were refused.
        failures: u64,
        /// Out of how many.
        replies: u64,
        /// The text of the first refusal.
        example: String,
    },
    /// A server ended before it served.
    #[error("{program} ended early ({status}); it said:\n{log}")]
    EndedEarly {
        /// Which program.
        program: String,
        /// How it ended.
        status: String,
        /// The last lines it wrote.
        log: String,
    },
    /// A server was not ready in time.
    #[error("{program} did not listen on {address} within {waited_s} s")]
    NotReady {
        /// Which program.
        program: String,
        /// Where it should have listened.
        address: String,
        /// How long was waited.
        waited_s: u64,
    },
    /// The tracker's binary is not there.
    #[error("no tracker at {0}: build it with `cargo build --release -p rollcall`")]
    NoServer(PathBuf),
    /// A database or Redis failed under way.
    #[error("the store failed: {0}")]
    Database(String),
    /// A server that is to be measured is not there.
    #[error("{program} is not installed: apt-get install {package}")]
    NotInstalled {
        /// The program that was looked for.
        program: &'static str,
        /// The package that has it.
        package: &'static str,
    },
    /// The machine does not tell what the benchmark must know.
    #[error("cannot read {what}: {why}")]
    Unreadable {
        /// Of what.
        what: String,
        /// Why not.
        why: String,
    },
}

impl LoadError {
    /// Puts what was being done beside what the system said.
    pub fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> LoadError {
        let doing = doing.into();
        move |source| LoadError::Io { doing, source }
    }

    /// What a database said.
    pub fn sql(error: sqlx::Error) -> LoadError {
        LoadError::Database(error.to_string())
    }
}

//! The error type.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A system call failed.
    #[error("{doing}: {source}")]
    Io {
        /// The operation.
        doing: String,
        source: io::Error,
    },
    /// A server stopped answering.
    #[error("the server sent nothing for {waited_s} s with {in_flight} requests in flight")]
    Timeout {
        waited_s: u64,
        /// Requests without a reply.
        in_flight: usize,
    },
    /// A server closed a connection that should have been kept open.
    #[error("the server closed a keep-alive connection after {replies} replies")]
    Closed {
        /// Replies so far, over all connections.
        replies: u64,
    },
    /// The page for the figures cannot take them.
    #[error("{0}")]
    Page(String),
    /// The reply violates the protocol.
    #[error("not a reply: {0}")]
    NotAReply(String),
    /// The tracker refused announces.
    #[error("{failures} of {replies} announces were refused, for example: {example}")]
    Refused {
        failures: u64,
        replies: u64,
        /// The first failure reason.
        example: String,
    },
    /// A server exited before it was ready.
    #[error("{program} ended early ({status}); its log:\n{log}")]
    EndedEarly { program: String, status: String, log: String },
    #[error("{program} did not listen on {address} within {waited_s} s")]
    NotReady { program: String, address: String, waited_s: u64 },
    /// The tracker's binary is missing.
    #[error("no tracker at {0}: build it with `cargo build --release -p rollcall`")]
    NoServer(PathBuf),
    /// A database or Redis failed.
    #[error("the store failed: {0}")]
    Database(String),
    /// A required server is not installed.
    #[error("{program} is not installed: apt-get install {package}")]
    NotInstalled {
        program: &'static str,
        /// The package that contains it.
        package: &'static str,
    },
    /// Required information about the machine is not readable.
    #[error("cannot read {what}: {why}")]
    Unreadable { what: String, why: String },
}

impl BenchError {
    /// Adds the operation to an I/O error.
    pub fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> BenchError {
        let doing = doing.into();
        move |source| BenchError::Io { doing, source }
    }

    pub fn sql<E: ToString>(error: E) -> BenchError {
        BenchError::Database(error.to_string())
    }
}

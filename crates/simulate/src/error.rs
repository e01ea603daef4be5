//! The error type.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
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
    /// The reply violates the protocol.
    #[error("not a reply: {0}")]
    NotAReply(String),
    /// No token could be created for a user.
    #[error("no token for user {0}")]
    NoToken(u64),
}

impl SimulationError {
    /// Adds the operation to an I/O error.
    pub fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> SimulationError {
        let doing = doing.into();
        move |source| SimulationError::Io { doing, source }
    }

    pub(crate) fn not_a_reply(bytes: &[u8]) -> SimulationError {
        SimulationError::NotAReply(String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned())
    }
}

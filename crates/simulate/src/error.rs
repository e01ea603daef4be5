//! The error type.

use crate::frames::BadFrame;

#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The server did not answer in time.
    #[error("no answer in time")]
    Timeout,
    /// The reply cannot be parsed.
    #[error("not an answer: {0}")]
    NotAReply(String),
    /// A WebSocket frame that no server may send.
    #[error(transparent)]
    Frame(#[from] BadFrame),
    /// The server refused a connection.
    #[error("the connection was refused: {0}")]
    Refused(String),
    #[error(transparent)]
    Access(#[from] access::AccessError),
    #[error(transparent)]
    Friends(#[from] friends::FriendsError),
}

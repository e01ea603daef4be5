//! What can go wrong.

use crate::frames::BadFrame;

/// Why something of the world did not work.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// A socket.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The server did not answer in time.
    #[error("no answer in time")]
    Silence,
    /// The server said something that nobody understands.
    #[error("not an answer: {0}")]
    NotAReply(String),
    /// What no server may send over a WebSocket.
    #[error(transparent)]
    Frame(#[from] BadFrame),
    /// The server turned a connection away.
    #[error("the connection was refused: {0}")]
    Refused(String),
    /// Users and torrents.
    #[error(transparent)]
    Access(#[from] access::AccessError),
    /// Friendships.
    #[error(transparent)]
    People(#[from] people::PeopleError),
}

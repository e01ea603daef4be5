//! The Centrifuge client protocol, version 2, as JSON: commands of clients, replies and pushes.
//!
//! # Layout
//!
//! - `command`: messages of clients
//! - `reply`: replies and pushes
//! - `code`: errors and reasons to close, as numbers that published SDKs understand
//!
//! # Guarantees
//!
//! - Field names and numbers are those of the reference server, so that published SDKs work unchanged.
//! - Malformed input is an error that does not contain the input.
//!
//! # Deliberately absent
//!
//! The protobuf encoding; recovery from a stream's history, for a client always gets the present state;
//! publishing by clients.

mod code;
mod command;
mod reply;

pub use code::{CloseCode, CommandError};
pub use command::{Command, ConnectRequest, Malformed, Message, Request, is_pong};
pub(crate) use command::{lines, read_message};
pub use reply::{ClientInfo, ConnectReply, Frame, PresenceStats};

//! The hub: everybody who is here, and everybody who watches them.
//!
//! # Guarantees
//!
//! - People are spread over shards, each behind one short lock. No two shards are ever locked at once, and no lock is
//!   held while something is awaited.
//! - What watchers are told of a person is put into their outboxes under that person's lock. So every watcher hears
//!   of one person in order, and nothing of them once the watch has ended or they may not be seen any more.
//! - Who connects is told of every friend once (the snapshot) and then of every later change: the watch begins and the
//!   state is read in one step.
//! - Friends and privacy are read, and changes of them applied, by one task ([`crate::watch`]): what was read before a
//!   change is never put in place after it.
//! - Once the hub is told that the server stops, connections that end are no longer anybody's going: after the
//!   restart those people are pending, not offline (P11).
//!
//! # Deliberately absent
//!
//! Sockets, frames and tokens (the session's), rules about who is online (`presence`), SQL (`people`).

use std::sync::Arc;

use domain::{UnixTime, UserId};
use presence::{ConnId, Goodbye, Hello};
use serde_json::value::RawValue;

use crate::outbox::Outbox;

/// Who connects, as their token says.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The person.
    pub user: UserId,
    /// When the token runs out, if it does.
    pub expires_at: Option<UnixTime>,
    /// What the token says about them (`info`); shown to those in the same room.
    pub info: Option<Arc<RawValue>>,
}

/// One connection of one person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnRef {
    /// The person.
    pub user: UserId,
    /// The connection.
    pub conn: ConnId,
}

/// What somebody who connected is told.
#[derive(Clone, Debug)]
pub struct Welcome {
    /// The connection, for everything that follows.
    pub conn: ConnRef,
    /// Its name on the wire.
    pub client: String,
    /// The channel of their personal feed.
    pub feed: String,
}

/// Why somebody cannot connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The database cannot be asked: error 100, temporary.
    #[error("internal error")]
    Unavailable,
    /// They have as many devices as they may: disconnect 3504.
    #[error("too many devices")]
    TooManyDevices,
    /// The server stops: disconnect 3001.
    #[error("shutdown")]
    Stopping,
}

/// Why a command was not done: the errors of the Centrifuge protocol. The texts are told to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// Something of ours failed; the same may work later.
    #[error("internal error")]
    Internal,
    /// They may not.
    #[error("permission denied")]
    PermissionDenied,
    /// There is no such command.
    #[error("method not found")]
    MethodNotFound,
    /// More than is allowed; nothing was changed.
    #[error("limit exceeded")]
    LimitExceeded,
    /// The arguments are not what the command takes.
    #[error("bad request: {0}")]
    BadRequest(&'static str),
    /// Not here.
    #[error("not available")]
    NotAvailable,
    /// Later.
    #[error("too many requests")]
    TooManyRequests,
}

impl CommandError {
    /// Its number in the Centrifuge protocol.
    pub const fn code(self) -> u32 {
        match self {
            CommandError::Internal => 100,
            CommandError::PermissionDenied => 103,
            CommandError::MethodNotFound => 104,
            CommandError::LimitExceeded => 106,
            CommandError::BadRequest(_) => 107,
            CommandError::NotAvailable => 108,
            CommandError::TooManyRequests => 111,
        }
    }

    /// Whether the same may work later.
    pub const fn is_temporary(self) -> bool {
        matches!(self, CommandError::Internal | CommandError::TooManyRequests)
    }
}

/// Everybody who is here.
pub struct Hub {}

/// What sessions say.
impl Hub {
    /// Somebody connects. The snapshot is in the outbox when this returns; the session writes the reply first.
    ///
    /// Whoever gets a welcome owes a [`Hub::closed`]. If this future is dropped before it is done, nothing stays.
    pub async fn connect(
        self: &Arc<Self>,
        identity: Identity,
        hello: Hello,
        outbox: Arc<Outbox>,
    ) -> Result<Welcome, Refusal>;

    /// Anything came from the client: a heartbeat.
    pub fn heard(&self, conn: ConnRef);

    /// A ping control frame was answered.
    pub fn probe_answered(&self, conn: ConnRef);

    /// A ping control frame could not be written.
    pub fn probe_failed(&self, conn: ConnRef);

    /// A command.
    pub async fn rpc(
        &self,
        conn: ConnRef,
        method: &str,
        data: Option<&RawValue>,
    ) -> Result<Box<RawValue>, CommandError>;

    /// Enters a room. `room` is the whole channel, `room:<name>`; whether a token is needed was checked before.
    pub async fn subscribe(&self, conn: ConnRef, room: &str) -> Result<(), CommandError>;

    /// Leaves a room; of one that they are not in as well.
    pub async fn unsubscribe(&self, conn: ConnRef, room: &str) -> Result<(), CommandError>;

    /// Who is in a room, as `{"presence":{CLIENT:{"client","user","conn_info"?}}}`: the result of `presence`.
    pub async fn presence(&self, conn: ConnRef, room: &str) -> Result<Box<RawValue>, CommandError>;

    /// How many are in a room: the result of `presence_stats`.
    pub async fn presence_stats(&self, conn: ConnRef, room: &str) -> Result<Box<RawValue>, CommandError>;

    /// The connection has ended.
    pub fn closed(&self, conn: ConnRef, how: Goodbye);
}

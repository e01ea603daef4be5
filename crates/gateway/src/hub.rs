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
//!
//! # Layout
//!
//! - `shard`, `person`: a part of the people, behind one lock; what is kept of each
//! - `table`: the numbers of connections
//! - `life`: starting, ticking, stopping, and the tasks in between
//! - `admin`, `onlookers`: what the site asks
//! - `sampler`: how many are only seemingly here

mod admin;
mod life;
mod onlookers;
pub(crate) mod person;
mod sampler;
pub(crate) mod shard;
pub(crate) mod table;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use domain::clock::Clock;
use domain::{UnixTime, UserId};
use keyspace::Redis;
use parking_lot::{Mutex, MutexGuard};
use people::{Follower, People};
use presence::{ConnId, Goodbye, Hello, Input, Moment, Policy};
use register::Register;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use crate::accounts::IsDisabled;
use crate::outbox::Outbox;
use crate::protocol::ClientInfo;
use crate::rooms::{self, Entrant, RoomName, Rooms};
use crate::settings::PeopleSettings;
use crate::sharing::SharingSettings;
use crate::traffic::TrafficCounts;
use crate::turn::Turn;
use crate::typing::Typing;
use crate::watch::{Connect, Request};
use person::client_name;
use sampler::Sampler;
use shard::{After, Outside, Shard};

pub use admin::OnlineCount;
pub use life::{HubError, HubParts};
pub use onlookers::{OnlineAsked, OnlinePage, OnlinePerson};

/// People are spread over this many locks.
const SHARDS: usize = 64;

/// People who choose who may see them take turns in this many lines.
pub(crate) const CHOOSING: usize = 64;

/// What can be set.
#[derive(Clone, Debug)]
pub struct HubSettings {
    /// When silence means away, and when gone.
    pub policy: Policy,
    /// Bounds of what people do over their connections.
    pub people: PeopleSettings,
    /// Comings and goings in rooms are put together for this long.
    pub batch: Duration,
    /// When other gateways are told and asked.
    pub sharing: SharingSettings,
}

impl Default for HubSettings {
    fn default() -> Self {
        HubSettings {
            policy: Policy::default(),
            people: PeopleSettings::default(),
            batch: Duration::from_millis(100),
            sharing: SharingSettings::default(),
        }
    }
}

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
    /// The tracker has disabled them: disconnect 3507.
    #[error("user disabled")]
    Disabled,
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
pub struct Hub {
    shards: Box<[Mutex<Shard>]>,
    pub(crate) outside: Outside,
    pub(crate) people: People,
    clock: Arc<dyn Clock>,
    pub(crate) settings: ArcSwap<HubSettings>,
    pub(crate) rooms: Rooms,
    pub(crate) typing: Typing,
    /// Whoever reads what somebody has chosen, to write it back with a part of it changed.
    pub(crate) choosing: [tokio::sync::Mutex<()>; CHOOSING],
    sampler: Sampler,
    /// Whose turn it is to shorten the history.
    pruning: Turn,
    /// Where gateways meet; none for who is alone.
    redis: Option<Redis>,
    traffic: Arc<dyn TrafficCounts>,
    pub(crate) is_disabled: IsDisabled,
    requests: mpsc::Sender<Request>,
    /// What the tasks need that have not begun.
    unbegun: Mutex<Option<(mpsc::Receiver<Request>, Follower)>>,
    /// Connections that end are nobody's going any more.
    stopping: AtomicBool,
    /// Tells the tasks to end.
    stop: watch::Sender<bool>,
    tasks: Mutex<JoinSet<()>>,
}

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
    ) -> Result<Welcome, Refusal> {
        if self.is_stopping() {
            return Err(Refusal::Stopping);
        }
        if self.is_disabled(identity.user) {
            return Err(Refusal::Disabled);
        }
        let (reply, answer) = oneshot::channel();
        let connect = Box::new(Connect { identity, hello, outbox, reply });
        self.requests.send(Request::Connect(connect)).await.map_err(|_| Refusal::Stopping)?;
        let seat = answer.await.map_err(|_| Refusal::Stopping)??;
        seat.take().ok_or(Refusal::Unavailable)
    }

    /// Anything came from the client: a heartbeat.
    pub fn heard(&self, conn: ConnRef) {
        self.tell(conn.user, Input::Heard { conn: conn.conn });
    }

    /// A ping control frame was answered.
    pub fn probe_answered(&self, conn: ConnRef) {
        self.sampler.answered(conn.conn);
        self.tell(conn.user, Input::ProbeAnswered { conn: conn.conn });
    }

    /// A ping control frame could not be written.
    pub fn probe_failed(&self, conn: ConnRef) {
        self.tell(conn.user, Input::ProbeFailed { conn: conn.conn });
    }

    /// A command.
    pub async fn rpc(
        &self,
        conn: ConnRef,
        method: &str,
        data: impl Into<Option<&RawValue>>,
    ) -> Result<Box<RawValue>, CommandError> {
        self.command(conn, method, data.into()).await
    }

    /// Enters a room. `room` is the whole channel, `room:<name>`; whether a token is needed was checked before.
    pub async fn subscribe(&self, conn: ConnRef, room: &str) -> Result<(), CommandError> {
        if !rooms::is_room(room) {
            return Err(CommandError::BadRequest("a room is \"room:\" and 1 to 64 visible characters"));
        }
        let rooms_max = self.settings.load().people.rooms_max as usize;
        let name: RoomName = room.into();
        let entrant = {
            let mut shard = self.shard(conn.user);
            let person = shard.people.get_mut(&conn.user).ok_or(CommandError::NotAvailable)?;
            let shown = person.circle.as_ref().map(|circle| circle.shown.clone());
            let connection = person.connection_mut(conn.conn).ok_or(CommandError::NotAvailable)?;
            let seat = &mut connection.seat;
            if seat.rooms.contains(&name) {
                return Ok(());
            }
            if seat.rooms.len() >= rooms_max {
                return Err(CommandError::LimitExceeded);
            }
            seat.rooms.push(name.clone());
            let client = client_name(seat.client).into();
            let info = ClientInfo { client, user: conn.user, info: seat.info.clone() };
            let shown = shown.ok_or(CommandError::NotAvailable)?;
            Entrant { info, conn: conn.conn, outbox: connection.outbox.clone(), shown }
        };
        self.rooms.enter(&name, entrant);
        self.settle_room(conn, &name);
        Ok(())
    }

    /// What changed between the look at the person and their coming into the room.
    fn settle_room(&self, conn: ConnRef, name: &RoomName) {
        let (shown, is_there) = {
            let shard = self.shard(conn.user);
            let person = shard.people.get(&conn.user);
            let connection = person.and_then(|person| person.connection(conn.conn));
            let is_there = connection.is_some_and(|connection| connection.seat.rooms.contains(name));
            (person.and_then(|person| person.circle.as_ref()).map(|circle| circle.shown.clone()), is_there)
        };
        if let Some(shown) = shown {
            self.rooms.show(name, conn.user, &shown);
        }
        if !is_there {
            self.rooms.leave(name, conn.user, conn.conn);
        }
    }

    /// Leaves a room; also one that they are not in.
    pub async fn unsubscribe(&self, conn: ConnRef, room: &str) -> Result<(), CommandError> {
        let left = {
            let mut shard = self.shard(conn.user);
            let person = shard.people.get_mut(&conn.user);
            person.and_then(|person| person.connection_mut(conn.conn)).and_then(|connection| {
                let place = connection.seat.rooms.iter().position(|name| **name == *room)?;
                Some(connection.seat.rooms.swap_remove(place))
            })
        };
        if let Some(name) = left {
            self.rooms.leave(&name, conn.user, conn.conn);
        }
        Ok(())
    }

    /// Who is in a room: the result of `presence`. Only for who is in it.
    pub async fn presence(&self, conn: ConnRef, room: &str) -> Result<Box<RawValue>, CommandError> {
        let name = self.room_of(conn, room)?;
        raw(ClientInfo::presence(&self.rooms.presence(&name, conn.user)))
    }

    /// How many are in a room: the result of `presence_stats`. Only for who is in it.
    pub async fn presence_stats(&self, conn: ConnRef, room: &str) -> Result<Box<RawValue>, CommandError> {
        let name = self.room_of(conn, room)?;
        raw(self.rooms.stats(&name, conn.user).to_json())
    }

    /// The connection has ended.
    pub fn closed(&self, conn: ConnRef, how: Goodbye) {
        let ended = {
            let mut shard = self.shard(conn.user);
            let mut after = After::default();
            let is_there =
                shard.people.get(&conn.user).is_some_and(|person| person.connection(conn.conn).is_some());
            // The own devices that stay are told by this; the one that went is not there to be told.
            let dropped = shard.drop_connection(conn, &self.outside);
            if is_there && !self.is_stopping() {
                let input = Input::Closed { conn: conn.conn, how };
                after = shard.input(self.now(), conn.user, input, &self.outside).unwrap_or_default();
            }
            drop(shard);
            self.finish(after);
            dropped
        };
        let Some((connection, friends)) = ended else { return };
        for watched in friends.iter().chain(&connection.seat.tracked) {
            self.end_watch(*watched, conn.conn);
        }
        for room in &connection.seat.rooms {
            self.rooms.leave(room, conn.user, conn.conn);
        }
        let is_gone = {
            let shard = self.shard(conn.user);
            shard.people.get(&conn.user).is_none_or(|person| person.circle.is_none())
        };
        if is_gone {
            self.typing.silence(conn.user);
        }
        self.outside.table.write().release(conn);
    }
}

/// What all parts use.
impl Hub {
    pub(crate) fn now(&self) -> Moment {
        Moment(self.clock.now_ms())
    }

    pub(crate) fn requests(&self) -> &mpsc::Sender<Request> {
        &self.requests
    }

    /// The book that all gateways share; none for who is alone.
    pub(crate) fn register(&self) -> Option<&Arc<Register>> {
        self.outside.sharing.as_ref().map(|sharing| &sharing.register)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// The shard of a person. Never asked for while another is held.
    pub(crate) fn shard(&self, user: UserId) -> MutexGuard<'_, Shard> {
        // Ids are handed out one after the other: any bits of them will do, the lowest best.
        self.shards[user.get() as usize % SHARDS].lock()
    }

    /// Every shard, to be locked one after the other.
    pub(crate) fn shards(&self) -> impl Iterator<Item = &Mutex<Shard>> {
        self.shards.iter()
    }

    /// Likewise, beginning with another one each time.
    pub(crate) fn shards_from(&self, turn: &AtomicUsize) -> impl Iterator<Item = &Mutex<Shard>> {
        let first = turn.fetch_add(1, Ordering::Relaxed) % SHARDS;
        self.shards[first..].iter().chain(&self.shards[..first])
    }

    /// Tells the roster something that cannot be refused.
    pub(crate) fn tell(&self, user: UserId, input: Input) {
        let now = self.now();
        let after = self.shard(user).input(now, user, input, &self.outside);
        self.finish(after.unwrap_or_default());
    }

    /// Does what was left for after the lock.
    pub(crate) fn finish(&self, after: After) {
        for (user, shown, rooms) in after.shown {
            for room in &rooms {
                self.rooms.show(room, user, &shown);
            }
            // Whoever was told of their typing may not be one who may see them now.
            self.typing.silence(user);
        }
    }

    /// A room that this connection is in.
    pub(crate) fn room_of(&self, conn: ConnRef, room: &str) -> Result<RoomName, CommandError> {
        let shard = self.shard(conn.user);
        let connection = shard.people.get(&conn.user).and_then(|person| person.connection(conn.conn));
        let rooms = connection.map(|connection| connection.seat.rooms.as_slice()).unwrap_or_default();
        rooms.iter().find(|name| ***name == *room).cloned().ok_or(CommandError::PermissionDenied)
    }
}

/// JSON that was made here.
pub(crate) fn raw(json: String) -> Result<Box<RawValue>, CommandError> {
    RawValue::from_string(json).map_err(|_| CommandError::Internal)
}

#[cfg(test)]
mod tests;

//! Many WebSocket clients: tens of thousands of connections on one thread; an idle one holds only its socket and its
//! index.
//!
//! - Each client connects from a loopback address that it shares with a few others, so that neither ports nor the
//!   server's limits per address are exhausted.
//! - Pings are answered at once, as clients and browsers do. Everything else is passed to the caller, which
//!   acts between two polls.
//! - A client whose connection ends reports it once and stays closed until the caller opens it again.
//!
//! # Layout
//!
//! - [`protocol`]: upgrade, token, connect command, and the server's lines
//! - `connection`: one connection; `frames`: the client side of RFC 6455

mod connection;
mod frames;
pub mod protocol;

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use domain::clock::Stopwatch;
use mio::{Events, Interest, Poll, Token};

use crate::error::SimulationError;
use connection::{Connection, Identity, SharedState, Stop};
use frames::Opcode;
use protocol::Protocol;

/// The address before it is left to other tests.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Servers limit connections per address.
const MEMBERS_PER_ADDRESS: usize = 50;
/// Longest wait of one poll.
const LOOK: Duration = Duration::from_millis(20);

#[derive(Clone)]
pub struct WebSocketClientsPlan {
    pub server: SocketAddr,
    pub protocol: Protocol,
    /// Connections being opened at once. A server's accept queue is bounded.
    pub opening_max: usize,
}

/// One client: a device of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub usize);

/// An event of a client.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The connect command was accepted.
    Up,
    Reply {
        /// The number of the command.
        id: u32,
        is_error: bool,
        line: &'a [u8],
    },
    /// A line that is not a reply, or any message of a plain server.
    Message(&'a [u8]),
    Down(&'a CloseReason),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// Closed by the server with this code.
    Code(u16),
    /// The upgrade was refused with this HTTP status.
    Refused(u16),
    /// The connect command was refused with this line.
    ConnectRefused(String),
    /// The connection broke or was never made.
    Broken,
}

/// Totals over all clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub pings: u64,
    /// Ping control frames answered.
    pub probes: u64,
    /// Messages that are not replies.
    pub messages: u64,
    pub bytes: u64,
}

struct Slot {
    identity: Identity,
    /// Overrides the common server.
    server: Option<SocketAddr>,
    /// Whether it should be connected.
    is_wanted: bool,
    /// Whether it does not read from its socket.
    is_silent: bool,
    connection: Option<Connection>,
}

pub struct WebSocketClients {
    server: SocketAddr,
    poll: Poll,
    events: Events,
    slots: Vec<Slot>,
    to_open: VecDeque<usize>,
    /// Clients with unread data for which epoll reports no further event.
    to_attend: Vec<usize>,
    opening: usize,
    opening_max: usize,
    up: usize,
    shared: SharedState,
    watch: Stopwatch,
}

impl WebSocketClients {
    pub fn new(plan: WebSocketClientsPlan) -> Result<WebSocketClients, SimulationError> {
        Ok(WebSocketClients {
            server: plan.server,
            poll: Poll::new().map_err(SimulationError::io("opening epoll"))?,
            events: Events::with_capacity(4096),
            slots: Vec::new(),
            to_open: VecDeque::new(),
            to_attend: Vec::new(),
            opening: 0,
            opening_max: plan.opening_max.max(1),
            up: 0,
            shared: SharedState::new(plan.protocol, plan.server),
            watch: Stopwatch::start(),
        })
    }

    /// Adds a client, not yet connected: a browser.
    pub fn join(&mut self, user: u64, device: u32) -> ClientId {
        self.join_as(user, &format!("d{device}"), "web")
    }

    /// The same with a device of this name and platform.
    pub fn join_as(&mut self, user: u64, device: &str, platform: &'static str) -> ClientId {
        let identity = Identity { user, device: device.into(), platform };
        self.slots.push(Slot {
            identity,
            server: None,
            is_wanted: false,
            is_silent: false,
            connection: None,
        });
        ClientId(self.slots.len() - 1)
    }

    /// The server to connect to from the next open on.
    pub fn send_to(&mut self, member: ClientId, server: SocketAddr) {
        self.slots[member.0].server = Some(server);
    }

    /// Stops reading: the connection stays open, and nothing is read or answered.
    pub fn silence(&mut self, member: ClientId) {
        self.slots[member.0].is_silent = true;
    }

    /// Reads again, from where it stopped.
    pub fn resume(&mut self, member: ClientId) {
        if std::mem::take(&mut self.slots[member.0].is_silent) {
            self.to_attend.push(member.0);
        }
    }

    pub fn user(&self, member: ClientId) -> u64 {
        self.slots[member.0].identity.user
    }

    /// Connects the client, within the limit of connections being opened.
    pub fn open(&mut self, member: ClientId) {
        if !std::mem::replace(&mut self.slots[member.0].is_wanted, true) {
            self.to_open.push_back(member.0);
        }
    }

    /// Closes the connection, with a close frame or as a crash would. No event is reported. A client that waits to be
    /// opened stays closed.
    pub fn close(&mut self, member: ClientId, with_close_frame: bool) {
        let Some(connection) = self.leave(member.0) else { return };
        connection.end(with_close_frame, &mut self.shared);
    }

    /// Sends a line, if the client is connected.
    pub fn send(&mut self, member: ClientId, line: &str) -> Result<(), SimulationError> {
        let slot = &mut self.slots[member.0];
        let Some(connection) = slot.connection.as_mut().filter(|connection| connection.is_up()) else {
            return Ok(());
        };
        match connection.send(Opcode::Text, line.as_bytes(), &mut self.shared) {
            Err(Stop::Failed(error)) => Err(error),
            // The read reports the end.
            Err(Stop::Ended(_)) | Ok(()) => Ok(()),
        }
    }

    /// Connected clients.
    pub fn up(&self) -> usize {
        self.up
    }

    pub fn is_up(&self, member: ClientId) -> bool {
        self.slots[member.0].connection.as_ref().is_some_and(Connection::is_up)
    }

    /// Clients being connected.
    pub fn opening(&self) -> usize {
        self.to_open.len() + self.opening
    }

    pub fn members(&self) -> impl Iterator<Item = ClientId> + use<> {
        (0..self.slots.len()).map(ClientId)
    }

    /// Totals so far.
    pub fn counts(&self) -> Counts {
        self.shared.counts
    }

    /// Time since the start, for timestamps.
    pub fn now(&self) -> Duration {
        self.watch.elapsed()
    }

    /// Polls the sockets once, with this timeout, and reports events.
    pub fn poll(
        &mut self,
        wait: Duration,
        on_event: &mut dyn FnMut(ClientId, Event<'_>),
    ) -> Result<(), SimulationError> {
        self.open_some(on_event)?;
        for number in std::mem::take(&mut self.to_attend) {
            self.attend(number, true, on_event)?;
        }
        match self.poll.poll(&mut self.events, Some(wait)) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(SimulationError::io("waiting for the clients")(error)),
        }
        let mut events = std::mem::replace(&mut self.events, Events::with_capacity(0));
        let result = events
            .iter()
            .try_for_each(|event| self.attend(event.token().0, event.is_read_closed(), on_event));
        events.clear();
        self.events = events;
        result
    }

    /// Polls until `enough` returns true; false after the limit.
    pub fn poll_until(
        &mut self,
        limit: Duration,
        mut enough: impl FnMut(&WebSocketClients) -> bool,
        on_event: &mut dyn FnMut(ClientId, Event<'_>),
    ) -> Result<bool, SimulationError> {
        let watch = Stopwatch::start();
        while !enough(self) {
            if watch.elapsed() >= limit {
                return Ok(false);
            }
            self.poll(LOOK, on_event)?;
        }
        Ok(true)
    }

    /// Polls for this long.
    pub fn poll_for(
        &mut self,
        length: Duration,
        on_event: &mut dyn FnMut(ClientId, Event<'_>),
    ) -> Result<(), SimulationError> {
        self.poll_until(length, |_| false, on_event).map(|_| ())
    }

    fn open_some(&mut self, on_event: &mut dyn FnMut(ClientId, Event<'_>)) -> Result<(), SimulationError> {
        while self.opening < self.opening_max
            && let Some(number) = self.to_open.pop_front()
        {
            let slot = &mut self.slots[number];
            // Closed while it waited, and perhaps opened again.
            if !slot.is_wanted || slot.connection.is_some() {
                continue;
            }
            let server = slot.server.unwrap_or(self.server);
            let mut connection = match Connection::begin(address_of(number), server) {
                Ok(connection) => connection,
                // A stopped server refuses at once.
                Err(SimulationError::Io { source, .. }) if source.kind() == ErrorKind::ConnectionRefused => {
                    slot.is_wanted = false;
                    on_event(ClientId(number), Event::Down(&CloseReason::Broken));
                    continue;
                }
                Err(error) => return Err(error),
            };
            self.poll
                .registry()
                .register(&mut connection.stream, Token(number), Interest::READABLE | Interest::WRITABLE)
                .map_err(SimulationError::io("watching a connection"))?;
            slot.connection = Some(connection);
            self.opening += 1;
        }
        Ok(())
    }

    fn attend(
        &mut self,
        number: usize,
        is_read_closed: bool,
        on_event: &mut dyn FnMut(ClientId, Event<'_>),
    ) -> Result<(), SimulationError> {
        let slot = &mut self.slots[number];
        if slot.is_silent {
            return Ok(());
        }
        // Closed earlier in this poll.
        let Some(connection) = &mut slot.connection else { return Ok(()) };
        let was_up = connection.is_up();
        let result = connection.go_on(&slot.identity, &mut self.shared, is_read_closed, &mut |event| {
            on_event(ClientId(number), event);
        });
        if !was_up && connection.is_up() {
            self.opening -= 1;
            self.up += 1;
        }
        match result {
            Ok(()) => Ok(()),
            Err(Stop::Failed(error)) => Err(error),
            Err(Stop::Ended(ending)) => {
                self.leave(number);
                on_event(ClientId(number), Event::Down(&ending));
                Ok(())
            }
        }
    }

    /// Removes the connection and updates the counts.
    fn leave(&mut self, number: usize) -> Option<Connection> {
        let slot = &mut self.slots[number];
        slot.is_wanted = false;
        slot.is_silent = false;
        let connection = slot.connection.take()?;
        if connection.is_up() {
            self.up -= 1;
        } else {
            self.opening -= 1;
        }
        Some(connection)
    }
}

fn address_of(number: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(FIRST_ADDRESS.to_bits() + (number / MEMBERS_PER_ADDRESS) as u32)
}

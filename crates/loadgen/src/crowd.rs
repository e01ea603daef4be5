//! A crowd of people on WebSockets: tens of thousands of connections on one thread, with nothing kept for an idle one but
//! its socket and its number.
//!
//! - Every member connects from an address of loopback that it shares with a few others, so that neither ports nor the
//!   server's bounds per address run out.
//! - Pings are answered at once, as clients and browsers do. What else is heard is told to whoever turns the crowd; what
//!   is done about it is done between two turns.
//! - A member whose connection ends is told so once and stays away until it is opened again: reconnecting is a decision
//!   of the one who measures.
//!
//! # Layout
//!
//! - [`speech`]: upgrade, token, connect command, and the lines of the server
//! - [`friends`]: friendships, straight into the database
//! - `connection`: one connection, from the first packet to the last line

mod connection;
pub mod friends;
pub mod speech;

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use domain::clock::Stopwatch;
use mio::{Events, Interest, Poll, Token};

use crate::error::LoadError;
use connection::{Connection, Identity, Means, Stop};
use speech::Speech;
use world::frames::Opcode;

/// The first address that members come from; the one before it is left to others.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Members that share an address. Servers bound what one address may have.
const MEMBERS_PER_ADDRESS: usize = 50;
/// How long one look at the sockets waits at most, so that limits are noticed.
const LOOK: Duration = Duration::from_millis(20);

/// How a crowd behaves.
#[derive(Clone)]
pub struct CrowdPlan {
    /// Whom to connect to.
    pub server: SocketAddr,
    /// What is spoken there.
    pub speech: Speech,
    /// Connections that may be on their way at once. A server's queue of those to accept is bounded.
    pub opening_max: usize,
}

/// One member: a device of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Member(pub usize);

/// What a member hears.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// It is connected and known.
    Up,
    /// The answer to a command.
    Reply {
        /// The number of the command.
        id: u32,
        /// Whether it was refused.
        is_error: bool,
        /// The whole line.
        line: &'a [u8],
    },
    /// A line that was not asked for, or any message where nothing but messages is spoken.
    Message(&'a [u8]),
    /// The connection is over.
    Down(&'a Ending),
}

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The server said goodbye with this code.
    Code(u16),
    /// The server answered the upgrade with this HTTP status.
    Refused(u16),
    /// The server refused the connect command, with this line.
    Unwelcome(String),
    /// It broke, or was never made.
    Broken,
}

/// What a crowd has heard and done in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pings answered.
    pub pings: u64,
    /// Ping control frames answered.
    pub probes: u64,
    /// Messages that were not asked for.
    pub messages: u64,
    /// Bytes of frames.
    pub bytes: u64,
}

struct Seat {
    who: Identity,
    /// Whom to connect to; nobody in particular means the crowd's server.
    server: Option<SocketAddr>,
    /// Whether it is to be connected, or is.
    is_wanted: bool,
    /// Whether it leaves unread what the server says.
    is_silent: bool,
    connection: Option<Connection>,
}

/// Everybody.
pub struct Crowd {
    server: SocketAddr,
    poll: Poll,
    events: Events,
    seats: Vec<Seat>,
    to_open: VecDeque<usize>,
    /// Members that have something to read for which no event comes again.
    to_attend: Vec<usize>,
    opening: usize,
    opening_max: usize,
    up: usize,
    means: Means,
    watch: Stopwatch,
}

impl Crowd {
    /// Nobody yet.
    pub fn new(plan: CrowdPlan) -> Result<Crowd, LoadError> {
        Ok(Crowd {
            server: plan.server,
            poll: Poll::new().map_err(LoadError::io("opening epoll"))?,
            events: Events::with_capacity(4096),
            seats: Vec::new(),
            to_open: VecDeque::new(),
            to_attend: Vec::new(),
            opening: 0,
            opening_max: plan.opening_max.max(1),
            up: 0,
            means: Means::new(plan.speech, plan.server),
            watch: Stopwatch::start(),
        })
    }

    /// A further member, not yet connected.
    pub fn join(&mut self, user: u64, device: u32) -> Member {
        let who = Identity { user, device };
        self.seats.push(Seat { who, server: None, is_wanted: false, is_silent: false, connection: None });
        Member(self.seats.len() - 1)
    }

    /// From the next time it is opened, a member connects to this server.
    pub fn send_to(&mut self, member: Member, server: SocketAddr) {
        self.seats[member.0].server = Some(server);
    }

    /// A member falls silent: its connection stays open, and nothing is read, answered or told any more.
    pub fn silence(&mut self, member: Member) {
        self.seats[member.0].is_silent = true;
    }

    /// A silent member goes on, beginning with what it has not read.
    pub fn resume(&mut self, member: Member) {
        if std::mem::take(&mut self.seats[member.0].is_silent) {
            self.to_attend.push(member.0);
        }
    }

    /// Whom a member stands for.
    pub fn user(&self, member: Member) -> u64 {
        self.seats[member.0].who.user
    }

    /// Lets a member connect, as soon as it is its turn.
    pub fn open(&mut self, member: Member) {
        if !std::mem::replace(&mut self.seats[member.0].is_wanted, true) {
            self.to_open.push_back(member.0);
        }
    }

    /// Ends a member's connection: with a goodbye, or as a crash does. It hears nothing of it. One that waits for its turn
    /// stays away.
    pub fn close(&mut self, member: Member, says_goodbye: bool) {
        let Some(connection) = self.leave(member.0) else { return };
        connection.end(says_goodbye, &mut self.means);
    }

    /// Sends a line. Nothing happens if the member is not connected.
    pub fn send(&mut self, member: Member, line: &str) -> Result<(), LoadError> {
        let seat = &mut self.seats[member.0];
        let Some(connection) = seat.connection.as_mut().filter(|connection| connection.is_up()) else {
            return Ok(());
        };
        match connection.send(Opcode::Text, line.as_bytes(), &mut self.means) {
            Err(Stop::Failed(error)) => Err(error),
            // Reading will tell of the end.
            Err(Stop::Ended(_)) | Ok(()) => Ok(()),
        }
    }

    /// Members that are connected and known.
    pub fn up(&self) -> usize {
        self.up
    }

    /// Whether a member is connected and known.
    pub fn is_up(&self, member: Member) -> bool {
        self.seats[member.0].connection.as_ref().is_some_and(Connection::is_up)
    }

    /// Members that are on their way.
    pub fn on_their_way(&self) -> usize {
        self.to_open.len() + self.opening
    }

    /// Everybody who has joined.
    pub fn members(&self) -> impl Iterator<Item = Member> + use<> {
        (0..self.seats.len()).map(Member)
    }

    /// What was heard and done so far.
    pub fn counts(&self) -> Counts {
        self.means.counts
    }

    /// The time since the crowd began; what stamps are made of.
    pub fn now(&self) -> Duration {
        self.watch.elapsed()
    }

    /// Looks at the sockets once, waiting at most so long, and tells what was heard.
    pub fn turn(&mut self, wait: Duration, hear: &mut dyn FnMut(Member, Event<'_>)) -> Result<(), LoadError> {
        self.open_some(hear)?;
        for number in std::mem::take(&mut self.to_attend) {
            self.attend(number, true, hear)?;
        }
        match self.poll.poll(&mut self.events, Some(wait)) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(LoadError::io("waiting for the crowd")(error)),
        }
        let mut events = std::mem::replace(&mut self.events, Events::with_capacity(0));
        let result =
            events.iter().try_for_each(|event| self.attend(event.token().0, event.is_read_closed(), hear));
        events.clear();
        self.events = events;
        result
    }

    /// Turns until `enough` says so; false if the limit came first.
    pub fn turn_until(
        &mut self,
        limit: Duration,
        mut enough: impl FnMut(&Crowd) -> bool,
        hear: &mut dyn FnMut(Member, Event<'_>),
    ) -> Result<bool, LoadError> {
        let watch = Stopwatch::start();
        while !enough(self) {
            if watch.elapsed() >= limit {
                return Ok(false);
            }
            self.turn(LOOK, hear)?;
        }
        Ok(true)
    }

    /// Turns for so long.
    pub fn turn_for(
        &mut self,
        length: Duration,
        hear: &mut dyn FnMut(Member, Event<'_>),
    ) -> Result<(), LoadError> {
        self.turn_until(length, |_| false, hear).map(|_| ())
    }

    fn open_some(&mut self, hear: &mut dyn FnMut(Member, Event<'_>)) -> Result<(), LoadError> {
        while self.opening < self.opening_max
            && let Some(number) = self.to_open.pop_front()
        {
            let seat = &mut self.seats[number];
            // Closed before it was its turn, and perhaps opened again since.
            if !seat.is_wanted || seat.connection.is_some() {
                continue;
            }
            let server = seat.server.unwrap_or(self.server);
            let mut connection = match Connection::begin(address_of(number), server) {
                Ok(connection) => connection,
                // A server that is away refuses at once.
                Err(LoadError::Io { source, .. }) if source.kind() == ErrorKind::ConnectionRefused => {
                    seat.is_wanted = false;
                    hear(Member(number), Event::Down(&Ending::Broken));
                    continue;
                }
                Err(error) => return Err(error),
            };
            self.poll
                .registry()
                .register(&mut connection.stream, Token(number), Interest::READABLE | Interest::WRITABLE)
                .map_err(LoadError::io("watching a connection"))?;
            seat.connection = Some(connection);
            self.opening += 1;
        }
        Ok(())
    }

    fn attend(
        &mut self,
        number: usize,
        is_read_closed: bool,
        hear: &mut dyn FnMut(Member, Event<'_>),
    ) -> Result<(), LoadError> {
        let seat = &mut self.seats[number];
        if seat.is_silent {
            return Ok(());
        }
        // Closed earlier in this very turn.
        let Some(connection) = &mut seat.connection else { return Ok(()) };
        let was_up = connection.is_up();
        let result = connection.go_on(seat.who, &mut self.means, is_read_closed, &mut |event| {
            hear(Member(number), event);
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
                hear(Member(number), Event::Down(&ending));
                Ok(())
            }
        }
    }

    /// Takes the connection from its seat, and keeps count.
    fn leave(&mut self, number: usize) -> Option<Connection> {
        let seat = &mut self.seats[number];
        seat.is_wanted = false;
        seat.is_silent = false;
        let connection = seat.connection.take()?;
        if connection.is_up() {
            self.up -= 1;
        } else {
            self.opening -= 1;
        }
        Some(connection)
    }
}

/// Where a member comes from.
fn address_of(number: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(FIRST_ADDRESS.to_bits() + (number / MEMBERS_PER_ADDRESS) as u32)
}

//! One connection of a member: from the first packet to the last line.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};

use fastrand::Rng;
use mio::net::TcpStream;
use socket2::{Domain, Protocol, Socket, Type};
use world::frames::{self, BadFrame, Frame, Opcode};

use super::speech::{Line, Speech, Upgraded, upgrade_request};
use super::{Counts, Ending, Event};
use crate::error::LoadError;

/// What one call reads at the most; shared by all connections, so that an idle one has no buffer.
const READ_BYTES: usize = 64 * 1024;
/// A normal goodbye (RFC 6455).
const NORMAL: u16 = 1000;

/// What all connections share.
pub(super) struct Means {
    pub(super) speech: Speech,
    pub(super) counts: Counts,
    upgrade: Vec<u8>,
    masks: Rng,
    buffer: Vec<u8>,
}

impl Means {
    pub(super) fn new(speech: Speech, server: SocketAddr) -> Means {
        Means {
            speech,
            counts: Counts::default(),
            upgrade: upgrade_request(&server.to_string()).into_bytes(),
            masks: Rng::with_seed(1),
            buffer: vec![0; READ_BYTES],
        }
    }
}

/// Who speaks.
#[derive(Clone, Copy)]
pub(super) struct Identity {
    pub(super) user: u64,
    pub(super) device: u32,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Connecting,
    Upgrading,
    Greeting,
    Up,
}

pub(super) struct Connection {
    pub(super) stream: TcpStream,
    stage: Stage,
    /// The beginning of what is not all here yet.
    inbox: Vec<u8>,
    /// What the kernel did not take yet.
    outbox: Vec<u8>,
}

/// Why a connection is not read any further.
pub(super) enum Stop {
    Ended(Ending),
    Failed(LoadError),
}

impl From<LoadError> for Stop {
    fn from(error: LoadError) -> Stop {
        Stop::Failed(error)
    }
}

impl From<BadFrame> for Stop {
    fn from(frame: BadFrame) -> Stop {
        Stop::Failed(LoadError::NotAReply(frame.to_string()))
    }
}

type Hear<'a> = &'a mut dyn FnMut(Event<'_>);

impl Connection {
    /// Begins to connect from an address of this machine.
    pub(super) fn begin(from: Ipv4Addr, server: SocketAddr) -> Result<Connection, LoadError> {
        let begun = || -> std::io::Result<TcpStream> {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
            socket.bind(&SocketAddr::from((from, 0)).into())?;
            socket.set_tcp_nodelay(true)?;
            socket.set_nonblocking(true)?;
            match socket.connect(&server.into()) {
                Err(error) if error.raw_os_error() != Some(nix::errno::Errno::EINPROGRESS as i32) => {
                    Err(error)
                }
                _ => Ok(TcpStream::from_std(socket.into())),
            }
        };
        let stream = begun().map_err(LoadError::io(format!("connecting from {from} to {server}")))?;
        Ok(Connection { stream, stage: Stage::Connecting, inbox: Vec::new(), outbox: Vec::new() })
    }

    pub(super) fn is_up(&self) -> bool {
        self.stage == Stage::Up
    }

    /// Something may be read or written.
    pub(super) fn go_on(
        &mut self,
        who: Identity,
        means: &mut Means,
        is_read_closed: bool,
        hear: Hear<'_>,
    ) -> Result<(), Stop> {
        if self.stage == Stage::Connecting && !self.is_connected(means)? {
            return Ok(());
        }
        self.flush()?;
        let mut buffer = std::mem::take(&mut means.buffer);
        let result = self.read(&mut buffer, is_read_closed, |connection, bytes| {
            connection.understand(bytes, who, means, hear)
        });
        means.buffer = buffer;
        result
    }

    fn is_connected(&mut self, means: &Means) -> Result<bool, Stop> {
        if !matches!(self.stream.take_error(), Ok(None)) {
            return Err(Stop::Ended(Ending::Broken));
        }
        if self.stream.peer_addr().is_err() {
            return Ok(false);
        }
        self.stage = Stage::Upgrading;
        self.outbox.extend_from_slice(&means.upgrade);
        Ok(true)
    }

    /// Reads what is there. `understand` says how many bytes it has done with.
    fn read(
        &mut self,
        buffer: &mut [u8],
        is_read_closed: bool,
        mut understand: impl FnMut(&mut Connection, &[u8]) -> Result<usize, Stop>,
    ) -> Result<(), Stop> {
        loop {
            let count = match self.stream.read(buffer) {
                Ok(0) => return Err(Stop::Ended(Ending::Broken)),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Err(Stop::Ended(Ending::Broken)),
            };
            if self.inbox.is_empty() {
                let done = understand(self, &buffer[..count])?;
                self.inbox.extend_from_slice(&buffer[done..count]);
            } else {
                let mut inbox = std::mem::take(&mut self.inbox);
                inbox.extend_from_slice(&buffer[..count]);
                let done = understand(self, &inbox)?;
                // What is all done with gives its memory back: most connections are idle most of the time.
                if done < inbox.len() {
                    inbox.drain(..done);
                    self.inbox = inbox;
                }
            }
            // A short read has emptied the socket, unless the end is to be read as well.
            if count < buffer.len() && !is_read_closed {
                return Ok(());
            }
        }
    }

    fn understand(
        &mut self,
        bytes: &[u8],
        who: Identity,
        means: &mut Means,
        hear: Hear<'_>,
    ) -> Result<usize, Stop> {
        let mut done = 0;
        if self.stage == Stage::Upgrading {
            match Upgraded::read(bytes)? {
                Upgraded::NotYet => return Ok(0),
                Upgraded::Refused(status) => return Err(Stop::Ended(Ending::Refused(status))),
                Upgraded::From(position) => done = position,
            }
            self.greet(who, means, hear)?;
        }
        while let Some(frame) = Frame::find(&bytes[done..])? {
            done += frame.length;
            means.counts.bytes += frame.length as u64;
            self.take(&frame, means, hear)?;
        }
        Ok(done)
    }

    fn greet(&mut self, who: Identity, means: &mut Means, hear: Hear<'_>) -> Result<(), Stop> {
        let Speech::Centrifuge(key) = &means.speech else {
            self.stage = Stage::Up;
            hear(Event::Up);
            return Ok(());
        };
        let command = key.connect_command(who.user, who.device)?;
        self.stage = Stage::Greeting;
        self.send(Opcode::Text, command.as_bytes(), means)
    }

    fn take(&mut self, frame: &Frame<'_>, means: &mut Means, hear: Hear<'_>) -> Result<(), Stop> {
        match frame.opcode {
            Opcode::Text | Opcode::Binary if matches!(means.speech, Speech::Plain) => {
                means.counts.messages += 1;
                hear(Event::Message(frame.payload));
                Ok(())
            }
            Opcode::Text | Opcode::Binary => {
                let mut lines = frame.payload.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
                lines.try_for_each(|line| self.take_line(line, means, hear))
            }
            Opcode::Ping => {
                means.counts.probes += 1;
                self.send(Opcode::Pong, frame.payload, means)
            }
            Opcode::Pong => Ok(()),
            Opcode::Close => Err(Stop::Ended(Ending::Code(frame.close_code().unwrap_or(NORMAL)))),
        }
    }

    fn take_line(&mut self, line: &[u8], means: &mut Means, hear: Hear<'_>) -> Result<(), Stop> {
        match Line::of(line)? {
            Line::Ping => {
                means.counts.pings += 1;
                return self.send(Opcode::Text, b"{}", means);
            }
            Line::Reply { is_error: true, .. } if self.stage == Stage::Greeting => {
                let why = String::from_utf8_lossy(line).into_owned();
                return Err(Stop::Ended(Ending::Unwelcome(why)));
            }
            Line::Reply { .. } if self.stage == Stage::Greeting => {
                self.stage = Stage::Up;
                hear(Event::Up);
            }
            Line::Reply { id, is_error } => hear(Event::Reply { id, is_error, line }),
            Line::Push => {
                means.counts.messages += 1;
                hear(Event::Message(line));
            }
        }
        Ok(())
    }

    pub(super) fn send(&mut self, opcode: Opcode, payload: &[u8], means: &mut Means) -> Result<(), Stop> {
        frames::write(opcode, payload, means.masks.u32(..), &mut self.outbox);
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Stop> {
        while !self.outbox.is_empty() {
            match self.stream.write(&self.outbox) {
                Ok(0) => return Err(Stop::Ended(Ending::Broken)),
                Ok(written) if written == self.outbox.len() => self.outbox = Vec::new(),
                Ok(written) => drop(self.outbox.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // What the server said before it went is still to be read: reading tells of the end.
                Err(_) => self.outbox = Vec::new(),
            }
        }
        Ok(())
    }

    /// Ends it, with a goodbye or without.
    pub(super) fn end(mut self, says_goodbye: bool, means: &mut Means) {
        if says_goodbye && self.stage == Stage::Up {
            // A connection that is over by now needs no goodbye.
            let _ = self.send(Opcode::Close, &NORMAL.to_be_bytes(), means);
        }
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

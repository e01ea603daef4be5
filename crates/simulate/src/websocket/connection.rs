//! One connection of a client.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};

use fastrand::Rng;
use mio::net::TcpStream;
use socket2::{Domain, Protocol as SocketProtocol, Socket, Type};

use super::frames::{self, BadFrame, Frame, Opcode};
use super::protocol::{Line, Protocol, Upgraded, connect_command, upgrade_request};
use super::{CloseReason, Counts, Event};
use crate::error::SimulationError;

/// Read buffer, shared by all connections.
const READ_BYTES: usize = 64 * 1024;
/// Close code of RFC 6455.
const NORMAL: u16 = 1000;

/// Buffers and keys that all connections share.
pub(super) struct SharedState {
    pub(super) protocol: Protocol,
    pub(super) counts: Counts,
    upgrade: Vec<u8>,
    masks: Rng,
    buffer: Vec<u8>,
}

impl SharedState {
    pub(super) fn new(protocol: Protocol, server: SocketAddr) -> SharedState {
        SharedState {
            protocol,
            counts: Counts::default(),
            upgrade: upgrade_request(&server.to_string()).into_bytes(),
            masks: Rng::with_seed(1),
            buffer: vec![0; READ_BYTES],
        }
    }
}

/// A device of a user.
pub(super) struct Identity {
    pub(super) user: u64,
    pub(super) device: Box<str>,
    pub(super) platform: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionState {
    Connecting,
    Upgrading,
    Greeting,
    Up,
}

pub(super) struct Connection {
    pub(super) stream: TcpStream,
    stage: ConnectionState,
    /// The beginning of an incomplete frame.
    inbox: Vec<u8>,
    /// Bytes that the kernel has not accepted yet.
    outbox: Vec<u8>,
}

/// Why reading stopped.
pub(super) enum Stop {
    Ended(CloseReason),
    Failed(SimulationError),
}

impl From<SimulationError> for Stop {
    fn from(error: SimulationError) -> Stop {
        Stop::Failed(error)
    }
}

impl From<BadFrame> for Stop {
    fn from(frame: BadFrame) -> Stop {
        Stop::Failed(SimulationError::NotAReply(frame.to_string()))
    }
}

type OnEvent<'a> = &'a mut dyn FnMut(Event<'_>);

impl Connection {
    /// Starts to connect from this local address.
    pub(super) fn begin(from: Ipv4Addr, server: SocketAddr) -> Result<Connection, SimulationError> {
        let begun = || -> std::io::Result<TcpStream> {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(SocketProtocol::TCP))?;
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
        let stream = begun().map_err(SimulationError::io(format!("connecting from {from} to {server}")))?;
        Ok(Connection { stream, stage: ConnectionState::Connecting, inbox: Vec::new(), outbox: Vec::new() })
    }

    pub(super) fn is_up(&self) -> bool {
        self.stage == ConnectionState::Up
    }

    /// Handles readiness of the socket.
    pub(super) fn go_on(
        &mut self,
        identity: &Identity,
        shared: &mut SharedState,
        is_read_closed: bool,
        on_event: OnEvent<'_>,
    ) -> Result<(), Stop> {
        if self.stage == ConnectionState::Connecting && !self.is_connected(shared)? {
            return Ok(());
        }
        self.flush()?;
        let mut buffer = std::mem::take(&mut shared.buffer);
        let result = self.read(&mut buffer, is_read_closed, |connection, bytes| {
            connection.understand(bytes, identity, shared, on_event)
        });
        shared.buffer = buffer;
        result
    }

    fn is_connected(&mut self, shared: &SharedState) -> Result<bool, Stop> {
        if !matches!(self.stream.take_error(), Ok(None)) {
            return Err(Stop::Ended(CloseReason::Broken));
        }
        if self.stream.peer_addr().is_err() {
            return Ok(false);
        }
        self.stage = ConnectionState::Upgrading;
        self.outbox.extend_from_slice(&shared.upgrade);
        Ok(true)
    }

    /// Reads available data. `understand` returns how many bytes it consumed.
    fn read(
        &mut self,
        buffer: &mut [u8],
        is_read_closed: bool,
        mut understand: impl FnMut(&mut Connection, &[u8]) -> Result<usize, Stop>,
    ) -> Result<(), Stop> {
        loop {
            let count = match self.stream.read(buffer) {
                Ok(0) => return Err(Stop::Ended(CloseReason::Broken)),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Err(Stop::Ended(CloseReason::Broken)),
            };
            if self.inbox.is_empty() {
                let done = understand(self, &buffer[..count])?;
                self.inbox.extend_from_slice(&buffer[done..count]);
            } else {
                let mut inbox = std::mem::take(&mut self.inbox);
                inbox.extend_from_slice(&buffer[..count]);
                let done = understand(self, &inbox)?;
                // An empty buffer frees its memory: most connections are idle.
                if done < inbox.len() {
                    inbox.drain(..done);
                    self.inbox = inbox;
                }
            }
            // A short read has emptied the socket, unless it is closed for reading.
            if count < buffer.len() && !is_read_closed {
                return Ok(());
            }
        }
    }

    fn understand(
        &mut self,
        bytes: &[u8],
        identity: &Identity,
        shared: &mut SharedState,
        on_event: OnEvent<'_>,
    ) -> Result<usize, Stop> {
        let mut done = 0;
        if self.stage == ConnectionState::Upgrading {
            match Upgraded::read(bytes)? {
                Upgraded::NotYet => return Ok(0),
                Upgraded::Refused(status) => return Err(Stop::Ended(CloseReason::Refused(status))),
                Upgraded::From(position) => done = position,
            }
            self.greet(identity, shared, on_event)?;
        }
        while let Some(frame) = Frame::find(&bytes[done..])? {
            done += frame.length;
            shared.counts.bytes += frame.length as u64;
            self.take(&frame, shared, on_event)?;
        }
        Ok(done)
    }

    fn greet(
        &mut self,
        identity: &Identity,
        shared: &mut SharedState,
        on_event: OnEvent<'_>,
    ) -> Result<(), Stop> {
        let Protocol::Centrifuge(tokens) = &shared.protocol else {
            self.stage = ConnectionState::Up;
            on_event(Event::Up);
            return Ok(());
        };
        let command = connect_command(tokens, identity)?;
        self.stage = ConnectionState::Greeting;
        self.send(Opcode::Text, command.as_bytes(), shared)
    }

    fn take(
        &mut self,
        frame: &Frame<'_>,
        shared: &mut SharedState,
        on_event: OnEvent<'_>,
    ) -> Result<(), Stop> {
        match frame.opcode {
            Opcode::Text | Opcode::Binary if matches!(shared.protocol, Protocol::Plain) => {
                shared.counts.messages += 1;
                on_event(Event::Message(frame.payload));
                Ok(())
            }
            Opcode::Text | Opcode::Binary => {
                let mut lines = frame.payload.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
                lines.try_for_each(|line| self.take_line(line, shared, on_event))
            }
            Opcode::Ping => {
                shared.counts.probes += 1;
                self.send(Opcode::Pong, frame.payload, shared)
            }
            Opcode::Pong => Ok(()),
            Opcode::Close => Err(Stop::Ended(CloseReason::Code(frame.close_code().unwrap_or(NORMAL)))),
        }
    }

    fn take_line(
        &mut self,
        line: &[u8],
        shared: &mut SharedState,
        on_event: OnEvent<'_>,
    ) -> Result<(), Stop> {
        match Line::of(line)? {
            Line::Ping => {
                shared.counts.pings += 1;
                return self.send(Opcode::Text, b"{}", shared);
            }
            Line::Reply { is_error: true, .. } if self.stage == ConnectionState::Greeting => {
                let why = String::from_utf8_lossy(line).into_owned();
                return Err(Stop::Ended(CloseReason::ConnectRefused(why)));
            }
            Line::Reply { .. } if self.stage == ConnectionState::Greeting => {
                self.stage = ConnectionState::Up;
                on_event(Event::Up);
            }
            Line::Reply { id, is_error } => on_event(Event::Reply { id, is_error, line }),
            Line::Push => {
                shared.counts.messages += 1;
                on_event(Event::Message(line));
            }
        }
        Ok(())
    }

    pub(super) fn send(
        &mut self,
        opcode: Opcode,
        payload: &[u8],
        shared: &mut SharedState,
    ) -> Result<(), Stop> {
        frames::write(opcode, payload, shared.masks.u32(..), &mut self.outbox);
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Stop> {
        while !self.outbox.is_empty() {
            match self.stream.write(&self.outbox) {
                Ok(0) => return Err(Stop::Ended(CloseReason::Broken)),
                Ok(written) if written == self.outbox.len() => self.outbox = Vec::new(),
                Ok(written) => drop(self.outbox.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Data that the server sent before it closed is still to be read; the read reports the end.
                Err(_) => self.outbox = Vec::new(),
            }
        }
        Ok(())
    }

    /// Ends it, with a close frame or without.
    pub(super) fn end(mut self, with_close_frame: bool, shared: &mut SharedState) {
        if with_close_frame && self.stage == ConnectionState::Up {
            // A broken connection needs no close frame.
            let _ = self.send(Opcode::Close, &NORMAL.to_be_bytes(), shared);
        }
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

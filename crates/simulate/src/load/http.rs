//! The HTTP client: keep-alive connections on one thread, a fixed number of requests in flight on each.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use domain::clock::Stopwatch;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use super::{
    HttpRequests, LoadClient, LoadResult, SILENCE_S_MAX, Schedule, ScheduledAnnounce, Until, Waiting,
};
use crate::error::SimulationError;
use crate::reply::HttpReply;

/// Larger than any reply to `numwant=50`.
const REPLY_BYTES_MAX: usize = 16 * 1024;

/// A server that closes does so within this time after its reply.
const CLOSED_WITHIN: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug)]
pub struct HttpShape {
    pub connections: usize,
    /// Requests in flight on each.
    pub pipeline: usize,
    pub waiting: Waiting,
    /// Whether the server keeps connections open; otherwise each announce opens one of its own, with nothing else in
    /// flight.
    pub keep_alive: bool,
}

/// A client with its connections open.
pub struct HttpClient {
    server: SocketAddr,
    pub(super) requests: Arc<HttpRequests>,
    poll: Poll,
    pub(super) events: Events,
    pub(super) connections: Vec<Connection>,
    shape: HttpShape,
}

pub(super) struct Connection {
    stream: TcpStream,
    received: Box<[u8]>,
    filled: usize,
    outgoing: Vec<u8>,
    in_flight: usize,
}

impl HttpClient {
    pub fn connect(
        address: SocketAddr,
        requests: Arc<HttpRequests>,
        shape: HttpShape,
    ) -> Result<Self, SimulationError> {
        let poll = Poll::new().map_err(SimulationError::io("opening epoll"))?;
        let connect = |number| {
            let stream = open(address, &poll, number)?;
            let (received, outgoing) = (vec![0; REPLY_BYTES_MAX].into(), Vec::new());
            Ok(Connection { stream, received, filled: 0, outgoing, in_flight: 0 })
        };
        let connections = (0..shape.connections).map(connect).collect::<std::io::Result<_>>();
        let connections = connections.map_err(SimulationError::io(format!("connecting to {address}")))?;
        let events = Events::with_capacity(shape.connections.max(1));
        Ok(HttpClient { server: address, requests, poll, events, connections, shape })
    }

    /// What has happened on the connections within this time.
    pub(super) fn look(&mut self, wait: Duration) -> Result<(), SimulationError> {
        let timeout = match self.shape.waiting {
            Waiting::Spin => Duration::ZERO,
            Waiting::Sleep => wait,
        };
        match self.poll.poll(&mut self.events, Some(timeout)) {
            Err(error) if error.kind() != ErrorKind::Interrupted => {
                Err(SimulationError::io("waiting for replies")(error))
            }
            _ => Ok(()),
        }
    }

    fn wait(&mut self, watch: &Stopwatch, in_flight: usize) -> Result<(), SimulationError> {
        let silence_max = Duration::from_secs(SILENCE_S_MAX);
        let began = watch.elapsed();
        loop {
            self.look(silence_max)?;
            if !self.events.is_empty() {
                return Ok(());
            }
            if watch.elapsed() - began >= silence_max {
                return Err(SimulationError::Timeout { waited_s: SILENCE_S_MAX, in_flight });
            }
        }
    }
}

impl LoadClient for HttpClient {
    fn run(&mut self, schedule: &mut Schedule, until: Until) -> Result<LoadResult, SimulationError> {
        let mut tally = LoadResult::default();
        let watch = Stopwatch::start();
        let mut sent = 0;
        for connection in &mut self.connections {
            for _ in 0..self.shape.pipeline {
                if until.may_send(sent) {
                    connection.queue(&self.requests, schedule);
                    sent += 1;
                }
            }
            connection.flush(&tally)?;
        }
        while tally.replies < sent {
            let enough = until.reached(sent, &watch);
            self.wait(&watch, (sent - tally.replies) as usize)?;
            for event in &self.events {
                let connection = &mut self.connections[event.token().0];
                let answered = connection.receive(&mut tally)?;
                if answered > 0 && !self.shape.keep_alive {
                    connection.stream = open(self.server, &self.poll, event.token().0)
                        .map_err(SimulationError::io("connecting again"))?;
                }
                for _ in 0..answered {
                    if !enough && until.may_send(sent) {
                        connection.queue(&self.requests, schedule);
                        sent += 1;
                    }
                }
                connection.flush(&tally)?;
            }
        }
        tally.elapsed = watch.elapsed();
        Ok(tally)
    }
}

/// Connecting in blocking mode keeps half-open connections out of the loop.
fn open(server: SocketAddr, poll: &Poll, number: usize) -> std::io::Result<TcpStream> {
    let stream = std::net::TcpStream::connect(server)?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    let mut stream = TcpStream::from_std(stream);
    poll.registry().register(&mut stream, Token(number), Interest::READABLE | Interest::WRITABLE)?;
    Ok(stream)
}

/// Whether a server keeps its connection open after it has answered this request; none if it does not answer.
pub fn keeps_alive(server: SocketAddr, request: &[u8]) -> Option<bool> {
    let ask = || -> std::io::Result<bool> {
        let mut stream = std::net::TcpStream::connect(server)?;
        stream.set_read_timeout(Some(CLOSED_WITHIN))?;
        stream.write_all(request)?;
        let (mut received, mut chunk) = (Vec::new(), [0; 4096]);
        while !matches!(HttpReply::find(&received), Ok(Some(_))) {
            match stream.read(&mut chunk)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                count => received.extend_from_slice(&chunk[..count]),
            }
        }
        // A timeout: it is still open.
        Ok(!matches!(stream.read(&mut chunk), Ok(0)))
    };
    ask().ok()
}

impl Connection {
    fn queue(&mut self, requests: &HttpRequests, schedule: &mut Schedule) {
        requests.write(schedule.next_announce(), &mut self.outgoing);
        self.in_flight += 1;
    }

    pub(super) fn send(
        &mut self,
        requests: &HttpRequests,
        scheduled: ScheduledAnnounce,
        tally: &LoadResult,
    ) -> Result<(), SimulationError> {
        requests.write(scheduled, &mut self.outgoing);
        self.in_flight += 1;
        self.flush(tally)
    }

    /// Sends queued bytes as far as the kernel accepts them; the rest when the socket is writable again.
    pub(super) fn flush(&mut self, tally: &LoadResult) -> Result<(), SimulationError> {
        while !self.outgoing.is_empty() {
            match self.stream.write(&self.outgoing) {
                Ok(0) => return Err(SimulationError::Closed { replies: tally.replies }),
                Ok(written) if written == self.outgoing.len() => self.outgoing.clear(),
                Ok(written) => drop(self.outgoing.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(SimulationError::io("sending an announce")(error)),
            }
        }
        Ok(())
    }

    /// Reads available bytes and counts the replies in them.
    pub(super) fn receive(&mut self, tally: &mut LoadResult) -> Result<usize, SimulationError> {
        let mut answered = 0;
        while self.in_flight > 0 {
            let room = self.received.len() - self.filled;
            let count = match self.stream.read(&mut self.received[self.filled..]) {
                Ok(0) => return Err(SimulationError::Closed { replies: tally.replies }),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(SimulationError::io("receiving a reply")(error)),
            };
            self.filled += count;
            answered += self.take_replies(tally)?;
            // A short read has emptied the socket: another call would only return `WouldBlock`.
            if count < room {
                break;
            }
        }
        Ok(answered)
    }

    fn take_replies(&mut self, tally: &mut LoadResult) -> Result<usize, SimulationError> {
        let (mut start, mut answered) = (0, 0);
        while let Some(reply) = HttpReply::find(&self.received[start..self.filled])? {
            let bytes = &self.received[start..start + reply.length];
            let body = &bytes[reply.body_start..];
            if body.starts_with(b"d14:failure") || !bytes.starts_with(b"HTTP/1.1 200") {
                tally.add_failure(bytes);
                tally.told_to_retry += u64::from(memchr::memmem::find(body, b"8:retry in").is_some());
            }
            tally.replies += 1;
            tally.reply_bytes += reply.length as u64;
            start += reply.length;
            answered += 1;
        }
        self.received.copy_within(start..self.filled, 0);
        self.filled -= start;
        if self.filled == self.received.len() {
            return Err(SimulationError::NotAReply(format!("longer than {REPLY_BYTES_MAX} bytes")));
        }
        self.in_flight = self
            .in_flight
            .checked_sub(answered)
            .ok_or_else(|| SimulationError::NotAReply("more replies than requests".to_owned()))?;
        Ok(answered)
    }
}

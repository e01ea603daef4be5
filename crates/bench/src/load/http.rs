//! The HTTP client: keep-alive connections on one thread, a fixed number of requests in flight on each.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use domain::clock::Stopwatch;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::error::BenchError;
use crate::load::http_requests::HttpRequests;
use crate::load::{LoadResult, SILENCE_S_MAX, Until, WARNING_SAMPLE, Waiting};
use crate::schedule::Schedule;

/// Larger than any reply to `numwant=50`.
const REPLY_BYTES_MAX: usize = 16 * 1024;

#[derive(Clone, Copy, Debug)]
pub struct HttpShape {
    pub connections: usize,
    /// Requests in flight on each.
    pub pipeline: usize,
    pub waiting: Waiting,
}

/// A client with its connections open.
pub struct HttpClient {
    poll: Poll,
    events: Events,
    connections: Vec<Connection>,
    pipeline: usize,
    waiting: Waiting,
}

struct Connection {
    stream: TcpStream,
    received: Box<[u8]>,
    filled: usize,
    outgoing: Vec<u8>,
    in_flight: usize,
}

impl HttpClient {
    pub fn connect(address: SocketAddr, shape: HttpShape) -> Result<Self, BenchError> {
        let poll = Poll::new().map_err(BenchError::io("opening epoll"))?;
        let mut connections = Vec::with_capacity(shape.connections);
        for number in 0..shape.connections {
            // Connecting in blocking mode keeps half-open connections out of the loop below.
            let stream = std::net::TcpStream::connect(address)
                .and_then(|stream| stream.set_nodelay(true).map(|()| stream))
                .and_then(|stream| stream.set_nonblocking(true).map(|()| stream))
                .map_err(BenchError::io(format!("connecting to {address}")))?;
            let mut stream = TcpStream::from_std(stream);
            poll.registry()
                .register(&mut stream, Token(number), Interest::READABLE | Interest::WRITABLE)
                .map_err(BenchError::io("watching a connection"))?;
            connections.push(Connection {
                stream,
                received: vec![0; REPLY_BYTES_MAX].into(),
                filled: 0,
                outgoing: Vec::with_capacity(1024 * shape.pipeline),
                in_flight: 0,
            });
        }
        let events = Events::with_capacity(shape.connections.max(1));
        Ok(HttpClient { poll, events, connections, pipeline: shape.pipeline, waiting: shape.waiting })
    }

    /// Announces until it is enough, then waits for what is in flight.
    ///
    /// `tick` is called after every poll with the replies so far: keep it cheap.
    pub fn run(
        &mut self,
        requests: &HttpRequests,
        schedule: &mut Schedule,
        until: Until,
        mut tick: impl FnMut(u64),
    ) -> Result<LoadResult, BenchError> {
        let mut tally = LoadResult::default();
        let watch = Stopwatch::start();
        let mut sent = 0;
        for connection in &mut self.connections {
            for _ in 0..self.pipeline {
                if !matches!(until, Until::Announces(announces) if sent >= announces) {
                    connection.queue(requests, schedule);
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
                for _ in 0..answered {
                    if !enough && !matches!(until, Until::Announces(announces) if sent >= announces) {
                        connection.queue(requests, schedule);
                        sent += 1;
                    }
                }
                connection.flush(&tally)?;
            }
            tick(tally.replies);
        }
        tally.elapsed = watch.elapsed();
        Ok(tally)
    }

    fn wait(&mut self, watch: &Stopwatch, in_flight: usize) -> Result<(), BenchError> {
        let silence_max = Duration::from_secs(SILENCE_S_MAX);
        let timeout = match self.waiting {
            Waiting::Spin => Duration::ZERO,
            Waiting::Sleep => silence_max,
        };
        let began = watch.elapsed();
        loop {
            match self.poll.poll(&mut self.events, Some(timeout)) {
                Ok(()) if !self.events.is_empty() => return Ok(()),
                Ok(()) if watch.elapsed() - began >= silence_max => {
                    return Err(BenchError::Timeout { waited_s: SILENCE_S_MAX, in_flight });
                }
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(BenchError::io("waiting for replies")(error)),
            }
        }
    }
}

impl Connection {
    fn queue(&mut self, requests: &HttpRequests, schedule: &mut Schedule) {
        requests.write(schedule.next_announce(), &mut self.outgoing);
        self.in_flight += 1;
    }

    /// Sends queued bytes as far as the kernel accepts them; the rest when the socket is writable again.
    fn flush(&mut self, tally: &LoadResult) -> Result<(), BenchError> {
        while !self.outgoing.is_empty() {
            match self.stream.write(&self.outgoing) {
                Ok(0) => return Err(BenchError::Closed { replies: tally.replies }),
                Ok(written) if written == self.outgoing.len() => self.outgoing.clear(),
                Ok(written) => drop(self.outgoing.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(BenchError::io("sending an announce")(error)),
            }
        }
        Ok(())
    }

    /// Reads available bytes and counts the replies in them.
    fn receive(&mut self, tally: &mut LoadResult) -> Result<usize, BenchError> {
        let mut answered = 0;
        while self.in_flight > 0 {
            let room = self.received.len() - self.filled;
            let count = match self.stream.read(&mut self.received[self.filled..]) {
                Ok(0) => return Err(BenchError::Closed { replies: tally.replies }),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(BenchError::io("receiving a reply")(error)),
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

    fn take_replies(&mut self, tally: &mut LoadResult) -> Result<usize, BenchError> {
        let (mut start, mut answered) = (0, 0);
        while let Some(reply) = Reply::find(&self.received[start..self.filled])? {
            let bytes = &self.received[start..start + reply.length];
            let body = &bytes[reply.body_start..];
            if body.starts_with(b"d14:failure") || !bytes.starts_with(b"HTTP/1.1 200") {
                tally.failures += 1;
                tally.first_failure.get_or_insert_with(|| String::from_utf8_lossy(bytes).into_owned());
            }
            if tally.replies.is_multiple_of(WARNING_SAMPLE)
                && memchr::memmem::find(body, b"15:warning message").is_some()
            {
                tally.warnings_sampled += 1;
            }
            tally.replies += 1;
            tally.reply_bytes += reply.length as u64;
            start += reply.length;
            answered += 1;
        }
        self.received.copy_within(start..self.filled, 0);
        self.filled -= start;
        if self.filled == self.received.len() {
            return Err(BenchError::NotAReply(format!("longer than {REPLY_BYTES_MAX} bytes")));
        }
        self.in_flight = self
            .in_flight
            .checked_sub(answered)
            .ok_or_else(|| BenchError::NotAReply("more replies than requests".to_owned()))?;
        Ok(answered)
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Reply {
    body_start: usize,
    length: usize,
}

impl Reply {
    /// The reply at the beginning of `bytes`; none if it is incomplete.
    fn find(bytes: &[u8]) -> Result<Option<Reply>, BenchError> {
        let Some(head_length) = memchr::memmem::find(bytes, b"\r\n\r\n") else { return Ok(None) };
        let head = &bytes[..head_length];
        let body_length = content_length(head)
            .ok_or_else(|| BenchError::NotAReply(String::from_utf8_lossy(head).into_owned()))?;
        let body_start = head_length + 4;
        let length = body_start + body_length;
        Ok((length <= bytes.len()).then_some(Reply { body_start, length }))
    }
}

fn content_length(head: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"content-length:";
    let line = head
        .split(|byte| *byte == b'\n')
        .find(|line| line.len() > NAME.len() && line[..NAME.len()].eq_ignore_ascii_case(NAME))?;
    std::str::from_utf8(&line[NAME.len()..]).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_ends_where_its_content_length_says() {
        let one = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nd1e".as_slice();
        assert_eq!(Reply::find(one).unwrap(), Some(Reply { body_start: one.len() - 3, length: one.len() }));
        let two = [one, one].concat();
        assert_eq!(Reply::find(&two).unwrap().map(|reply| reply.length), Some(one.len()));
        for cut in 0..one.len() {
            assert_eq!(Reply::find(&one[..cut]).unwrap(), None, "cut at {cut}");
        }
    }

    #[test]
    fn a_reply_of_unknown_length_is_an_error() {
        assert!(Reply::find(b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n").is_err());
    }
}

//! A fixed-response HTTP keep-alive server on epoll.

use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

/// Read buffer for one or several pipelined requests.
const READ_BYTES: usize = 16 * 1024;
const LISTENER: Token = Token(usize::MAX);

struct Connection {
    stream: TcpStream,
    /// The last bytes read before, which may contain the beginning of a request's end.
    last_bytes: [u8; 3],
    unsent: Vec<u8>,
}

/// Serves until it is over.
pub fn serve(mut listener: TcpListener, reply_bytes: usize, is_over: &AtomicBool) -> anyhow::Result<()> {
    let reply = fixed_reply(reply_bytes);
    let mut poll = Poll::new().context("opening epoll")?;
    let mut events = Events::with_capacity(1024);
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE).context("watching the listener")?;
    let mut connections: Vec<Option<Connection>> = Vec::new();
    let mut buffer = vec![0; READ_BYTES];
    while !is_over.load(Ordering::Relaxed) {
        match poll.poll(&mut events, Some(super::LOOK_EVERY)) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error).context("waiting for requests"),
        }
        for event in &events {
            if event.token() == LISTENER {
                accept_all(&listener, &poll, &mut connections)?;
                continue;
            }
            let slot = &mut connections[event.token().0];
            if slot.as_mut().is_some_and(|connection| !connection.answer(&mut buffer, &reply)) {
                *slot = None;
            }
        }
    }
    Ok(())
}

fn accept_all(
    listener: &TcpListener,
    poll: &Poll,
    connections: &mut Vec<Option<Connection>>,
) -> anyhow::Result<()> {
    loop {
        let mut stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error).context("accepting"),
        };
        // Freed slots are reused, so the table is as long as the most concurrent connections.
        let number = connections.iter().position(Option::is_none).unwrap_or(connections.len());
        stream.set_nodelay(true).context("setting TCP_NODELAY")?;
        poll.registry()
            .register(&mut stream, Token(number), Interest::READABLE | Interest::WRITABLE)
            .context("watching a connection")?;
        let connection = Connection { stream, last_bytes: [0; 3], unsent: Vec::new() };
        if number == connections.len() {
            connections.push(Some(connection));
        } else {
            connections[number] = Some(connection);
        }
    }
}

impl Connection {
    /// Answers available requests. False once the connection has ended.
    fn answer(&mut self, buffer: &mut [u8], reply: &[u8]) -> bool {
        loop {
            let count = match self.stream.read(buffer) {
                Ok(0) => return false,
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return self.flush(),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return false,
            };
            let requests = self.requests_ended(&buffer[..count]);
            if !self.reply_to(requests, reply) {
                return false;
            }
            if count < buffer.len() {
                return true;
            }
        }
    }

    fn requests_ended(&mut self, bytes: &[u8]) -> usize {
        let mut seam = [0; 6];
        seam[..3].copy_from_slice(&self.last_bytes);
        let seam_end = 3 + bytes.len().min(3);
        seam[3..seam_end].copy_from_slice(&bytes[..seam_end - 3]);
        let across_the_seam = memchr::memmem::find_iter(&seam[..seam_end], b"\r\n\r\n").count();
        let kept = seam_end.min(3);
        match bytes.last_chunk::<3>() {
            Some(last) => self.last_bytes = *last,
            None => self.last_bytes.copy_from_slice(&seam[seam_end - kept..seam_end]),
        }
        across_the_seam + memchr::memmem::find_iter(bytes, b"\r\n\r\n").count()
    }

    fn reply_to(&mut self, requests: usize, reply: &[u8]) -> bool {
        if requests == 1 && self.unsent.is_empty() {
            return match self.stream.write(reply) {
                Ok(written) => {
                    self.unsent.extend_from_slice(&reply[written..]);
                    true
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.unsent.extend_from_slice(reply);
                    true
                }
                Err(_) => false,
            };
        }
        for _ in 0..requests {
            self.unsent.extend_from_slice(reply);
        }
        self.flush()
    }

    fn flush(&mut self) -> bool {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(written) => drop(self.unsent.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }
}

/// A reply of this many bytes in all, or the shortest valid one.
fn fixed_reply(reply_bytes: usize) -> Vec<u8> {
    let head = |body_bytes: usize| format!("HTTP/1.1 200 OK\r\nContent-Length: {body_bytes}\r\n\r\n");
    // The head's length depends on the digits of the content length; the second pass is exact.
    let mut body_bytes = reply_bytes.saturating_sub(head(0).len());
    body_bytes = reply_bytes.saturating_sub(head(body_bytes).len());
    let mut reply = head(body_bytes).into_bytes();
    reply.resize(reply.len() + body_bytes, b'e');
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_have_the_size_asked_for() {
        for size in [60, 137, 300, 1046] {
            assert_eq!(fixed_reply(size).len(), size);
        }
    }
}

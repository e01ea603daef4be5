//! Messages between two processes, some of which carry sockets (`SCM_RIGHTS`).
//!
//! A message is JSON behind its length in four bytes. Sockets are attached to its first byte, so a complete message
//! always has them. Buffers are bounded, whatever the other process sends.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde_json::Value as Json;
use tokio::io::Interest;
use tokio::net::UnixStream;

/// Per message; Linux allows 253.
pub const SOCKETS_PER_MESSAGE: usize = 64;
/// Received for a message that is still incomplete.
const SOCKETS_MAX: usize = 2 * SOCKETS_PER_MESSAGE;
const MESSAGE_BYTES_MAX: usize = 64 << 10;
const LENGTH_BYTES: usize = 4;

#[derive(Debug)]
pub struct Channel {
    stream: UnixStream,
    received: Vec<u8>,
    sockets: VecDeque<OwnedFd>,
}

#[derive(Debug)]
pub struct Message {
    pub text: Json,
    pub sockets: Vec<OwnedFd>,
}

impl Message {
    pub fn message_type(&self) -> &str {
        self.text["say"].as_str().unwrap_or_default()
    }
}

impl Channel {
    pub fn new(stream: UnixStream) -> Self {
        Channel { stream, received: Vec::new(), sockets: VecDeque::new() }
    }

    /// The sender keeps its own descriptors.
    pub async fn send(&mut self, text: &Json, sockets: &[BorrowedFd<'_>]) -> io::Result<()> {
        let body = text.to_string();
        let length = u32::try_from(body.len()).map_err(io::Error::other)?;
        let message = [&length.to_be_bytes()[..], body.as_bytes()].concat();
        let mut sent = 0;
        while sent < message.len() {
            let sockets = if sent == 0 { sockets } else { &[] };
            let rest = &message[sent..];
            sent +=
                self.stream.async_io(Interest::WRITABLE, || send_some(&self.stream, rest, sockets)).await?;
        }
        Ok(())
    }

    /// None if the channel was closed. Cancel-safe.
    pub async fn receive(&mut self) -> io::Result<Option<Message>> {
        loop {
            if let Some(message) = self.take_message()? {
                return Ok(Some(message));
            }
            let mut buffer = [0; 4096];
            let received =
                self.stream.async_io(Interest::READABLE, || receive_some(&self.stream, &mut buffer));
            let (count, sockets) = received.await?;
            if count == 0 {
                return match self.received.is_empty() {
                    true => Ok(None),
                    false => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
            self.received.extend_from_slice(&buffer[..count]);
            self.sockets.extend(sockets);
            if self.sockets.len() > SOCKETS_MAX {
                return Err(io::Error::other("too many sockets at once"));
            }
        }
    }

    fn take_message(&mut self) -> io::Result<Option<Message>> {
        let Some((length, rest)) = self.received.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if length > MESSAGE_BYTES_MAX {
            return Err(io::Error::other("a message is too long"));
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let text: Json = serde_json::from_slice(body).map_err(io::Error::other)?;
        self.received.drain(..LENGTH_BYTES + length);
        let count = usize::try_from(text["sockets"].as_u64().unwrap_or(0)).unwrap_or(usize::MAX);
        if count > self.sockets.len() {
            return Err(io::Error::other("a socket is missing"));
        }
        Ok(Some(Message { text, sockets: self.sockets.drain(..count).collect() }))
    }
}

fn send_some(stream: &UnixStream, bytes: &[u8], sockets: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_PER_MESSAGE))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !sockets.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(sockets)) {
        return Err(io::Error::other("too many sockets for one message"));
    }
    Ok(sendmsg(stream, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL)?)
}

fn receive_some(stream: &UnixStream, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_PER_MESSAGE))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(stream, &mut [IoSliceMut::new(buffer)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let mut sockets = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(some) = message {
            sockets.extend(some);
        }
    }
    if received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(io::Error::other("sockets were truncated: raise the limit on open files"));
    }
    Ok((received.bytes, sockets))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsFd;

    use serde_json::json;

    use super::*;

    fn pair() -> (Channel, Channel) {
        let (one, other) = UnixStream::pair().unwrap();
        (Channel::new(one), Channel::new(other))
    }

    #[tokio::test]
    async fn messages_arrive_in_order_each_with_its_sockets() {
        let (mut one, mut other) = pair();
        let listeners: Vec<TcpListener> =
            (0..SOCKETS_PER_MESSAGE).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let borrowed: Vec<_> = listeners.iter().map(AsFd::as_fd).collect();
        one.send(&json!({"say": "first", "long": "x".repeat(20_000), "sockets": 0}), &[]).await.unwrap();
        one.send(&json!({"say": "second", "sockets": 3}), &borrowed[..3]).await.unwrap();
        one.send(&json!({"say": "third", "sockets": borrowed.len()}), &borrowed).await.unwrap();
        drop(one);
        let first = other.receive().await.unwrap().unwrap();
        assert_eq!((first.message_type(), first.sockets.len()), ("first", 0));
        let second = other.receive().await.unwrap().unwrap();
        let addresses: Vec<_> = second
            .sockets
            .into_iter()
            .map(|socket| TcpListener::from(socket).local_addr().unwrap())
            .collect();
        let expected: Vec<_> = listeners[..3].iter().map(|l| l.local_addr().unwrap()).collect();
        assert_eq!(addresses, expected);
        assert_eq!(other.receive().await.unwrap().unwrap().sockets.len(), SOCKETS_PER_MESSAGE);
        assert!(other.receive().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn malformed_messages_are_errors() {
        for bytes in [&b"\xff\xff\xff\xff"[..], b"\0\0\0\x01{", b"\0\0\0\x0d{\"sockets\":1}", b"\0\0\0\x09{"]
        {
            let (one, mut other) = pair();
            one.stream.try_write(bytes).unwrap();
            drop(one);
            assert!(other.receive().await.is_err(), "{bytes:?}");
        }
    }
}

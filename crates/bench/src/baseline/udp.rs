//! A batched UDP echo: action and transaction are copied, the rest of the reply is fixed.

use std::io::{IoSlice, IoSliceMut};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrIn, recvmmsg, sendmmsg};

/// Datagrams taken and answered in one call each.
const BATCH: usize = 64;
/// A connect request; the reply has the same size.
const CONNECT_BYTES: usize = 16;
const REQUEST_BYTES_MAX: usize = 2048;

struct Request {
    from: Option<SockaddrIn>,
    length: usize,
}

/// Serves until it is over.
pub fn serve(socket: &UdpSocket, reply_bytes: usize, is_over: &AtomicBool) -> anyhow::Result<()> {
    socket.set_read_timeout(Some(super::LOOK_EVERY))?;
    let reply_bytes = reply_bytes.max(CONNECT_BYTES);
    let mut receiving = MultiHeaders::<SockaddrIn>::preallocate(BATCH, None);
    let mut sending = MultiHeaders::<SockaddrIn>::preallocate(BATCH, None);
    let mut incoming = vec![0; BATCH * REQUEST_BYTES_MAX];
    let mut outgoing = vec![0; BATCH * reply_bytes];
    let mut requests = Vec::with_capacity(BATCH);
    while !is_over.load(Ordering::Relaxed) {
        receive(socket, &mut receiving, &mut incoming, &mut requests)?;
        let packets = incoming.chunks(REQUEST_BYTES_MAX);
        for (reply, packet) in outgoing.chunks_mut(reply_bytes).zip(packets).take(requests.len()) {
            reply[..8].copy_from_slice(&packet[8..16]);
        }
        send(socket, &mut sending, &outgoing, reply_bytes, &requests)?;
    }
    Ok(())
}

fn receive(
    socket: &UdpSocket,
    headers: &mut MultiHeaders<SockaddrIn>,
    incoming: &mut [u8],
    requests: &mut Vec<Request>,
) -> anyhow::Result<()> {
    requests.clear();
    let mut chunks = incoming.chunks_mut(REQUEST_BYTES_MAX);
    let mut slices: [[IoSliceMut<'_>; 1]; BATCH] =
        std::array::from_fn(|_| [IoSliceMut::new(chunks.next().unwrap_or_default())]);
    match recvmmsg(socket.as_raw_fd(), headers, slices.iter_mut(), MsgFlags::MSG_WAITFORONE, None) {
        Ok(messages) => {
            requests.extend(messages.map(|message| Request { from: message.address, length: message.bytes }));
            Ok(())
        }
        Err(Errno::EAGAIN | Errno::EINTR) => Ok(()),
        Err(errno) => Err(errno).context("receiving"),
    }
}

fn send(
    socket: &UdpSocket,
    headers: &mut MultiHeaders<SockaddrIn>,
    outgoing: &[u8],
    reply_bytes: usize,
    requests: &[Request],
) -> anyhow::Result<()> {
    if requests.is_empty() {
        return Ok(());
    }
    let addresses: [Option<SockaddrIn>; BATCH] =
        std::array::from_fn(|slot| requests.get(slot).and_then(|request| request.from));
    let slices: [[IoSlice<'_>; 1]; BATCH] = std::array::from_fn(|slot| {
        let length = match requests.get(slot) {
            Some(Request { length: CONNECT_BYTES, .. }) => CONNECT_BYTES,
            _ => reply_bytes,
        };
        let start = slot * reply_bytes;
        [IoSlice::new(&outgoing[start..start + length])]
    });
    // A blocking call sends all or fails; after a partial send, the client counts the rest as lost.
    let slices = &slices[..requests.len()];
    match sendmmsg(socket.as_raw_fd(), headers, slices, addresses, [], MsgFlags::empty()) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(errno).context("sending"),
    }
}

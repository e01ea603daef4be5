//! Many packets per system call: `recvmmsg` and `sendmmsg`.
//!
//! The only module with unsafe code: one call for many packets gives nearly half again the throughput, and std does
//! not have it. Everything the kernel gets a pointer to lives in a [`Batch`] and outlives the call; returned lengths
//! are checked before use.
#![expect(unsafe_code, reason = "two system calls that std does not have")]

use std::io;
use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr;

/// Per call. More gains nothing and delays the first of them.
const PACKETS: usize = 64;
/// Requests are far shorter; longer packets are truncated and refused.
const PACKET_BYTES: usize = 2048;

/// Buffers of one batch of packets and replies, reused for the next.
pub(super) struct Batch {
    packets: Vec<[u8; PACKET_BYTES]>,
    senders: Vec<libc::sockaddr_storage>,
    lengths: Vec<usize>,
    replies: Vec<Vec<u8>>,
    iovecs: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

impl Batch {
    pub(super) fn new() -> Self {
        Batch {
            packets: vec![[0; PACKET_BYTES]; PACKETS],
            senders: vec![no_sender(); PACKETS],
            lengths: Vec::with_capacity(PACKETS),
            replies: (0..PACKETS).map(|_| Vec::with_capacity(PACKET_BYTES)).collect(),
            iovecs: Vec::with_capacity(PACKETS),
            headers: Vec::with_capacity(PACKETS),
        }
    }

    /// Zero if no packet arrived within the socket's read timeout.
    pub(super) fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        self.lengths.clear();
        self.iovecs.clear();
        self.headers.clear();
        for packet in &mut self.packets {
            self.iovecs.push(libc::iovec { iov_base: packet.as_mut_ptr().cast(), iov_len: PACKET_BYTES });
        }
        for (iovec, sender) in self.iovecs.iter_mut().zip(&mut self.senders) {
            self.headers.push(header(iovec, ptr::from_mut(sender), mem::size_of_val(sender)));
        }
        // SAFETY: `headers` holds PACKETS valid headers; each points at one iovec and one address of this batch, and
        // each iovec at one packet buffer of the stated length. None of these vectors changes during the call.
        let received = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                PACKETS as libc::c_uint,
                libc::MSG_WAITFORONE as _,
                ptr::null_mut(),
            )
        };
        let Ok(received) = usize::try_from(received) else {
            return none_if_timed_out(io::Error::last_os_error());
        };
        self.lengths.extend(
            self.headers.iter().take(received).map(|header| (header.msg_len as usize).min(PACKET_BYTES)),
        );
        Ok(received)
    }

    /// A reply that `answer` leaves empty is not sent.
    pub(super) fn answer_each(&mut self, mut answer: impl FnMut(&[u8], SocketAddr, &mut Vec<u8>)) {
        for (index, length) in self.lengths.iter().enumerate() {
            self.replies[index].clear();
            if let Some(from) = socket_address(&self.senders[index]) {
                answer(&self.packets[index][..*length], from, &mut self.replies[index]);
            }
        }
    }

    /// Returns how many could not be sent. Clients retry, so they are not queued.
    pub(super) fn send(&mut self, socket: &UdpSocket) -> usize {
        self.iovecs.clear();
        self.headers.clear();
        let answered = self.lengths.len();
        for reply in &mut self.replies[..answered] {
            self.iovecs.push(libc::iovec { iov_base: reply.as_mut_ptr().cast(), iov_len: reply.len() });
        }
        for (iovec, sender) in self.iovecs.iter_mut().zip(&mut self.senders) {
            if iovec.iov_len > 0 {
                let length = address_length(sender);
                self.headers.push(header(iovec, ptr::from_mut(sender), length));
            }
        }
        let mut sent = 0;
        let mut unsent = 0;
        while sent + unsent < self.headers.len() {
            let rest = &mut self.headers[sent + unsent..];
            // SAFETY: `rest` holds `rest.len()` valid headers; each points at one iovec and one address of this
            // batch, and each iovec at one reply of the stated length. None of them changes during the call.
            let taken = unsafe {
                libc::sendmmsg(socket.as_raw_fd(), rest.as_mut_ptr(), rest.len() as libc::c_uint, 0)
            };
            match usize::try_from(taken) {
                Ok(taken) if taken > 0 => sent += taken,
                // The first of the rest cannot be sent: its client is unreachable. The others may be.
                _ => unsent += 1,
            }
        }
        unsent
    }
}

fn none_if_timed_out(error: io::Error) -> io::Result<usize> {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => Ok(0),
        _ => Err(error),
    }
}

fn header(iovec: &mut libc::iovec, sender: *mut libc::sockaddr_storage, length: usize) -> libc::mmsghdr {
    // SAFETY: a header is plain data, for which all zeros is a valid value (it has padding that cannot be named).
    let mut header: libc::mmsghdr = unsafe { mem::zeroed() };
    header.msg_hdr.msg_name = sender.cast();
    header.msg_hdr.msg_namelen = length as libc::socklen_t;
    header.msg_hdr.msg_iov = ptr::from_mut(iovec);
    header.msg_hdr.msg_iovlen = 1;
    header
}

fn no_sender() -> libc::sockaddr_storage {
    // SAFETY: an address is plain data, for which all zeros is a valid value: no family.
    unsafe { mem::zeroed() }
}

fn address_length(sender: &libc::sockaddr_storage) -> usize {
    match i32::from(sender.ss_family) {
        libc::AF_INET => size_of::<libc::sockaddr_in>(),
        _ => size_of::<libc::sockaddr_in6>(),
    }
}

fn socket_address(sender: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match i32::from(sender.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that the storage, which is large enough and aligned for any address, holds an
            // IPv4 address.
            let v4 = unsafe { &*ptr::from_ref(sender).cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Some(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: likewise an IPv6 address.
            let v6 = unsafe { &*ptr::from_ref(sender).cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            Some(SocketAddrV6::new(ip, u16::from_be(v6.sin6_port), 0, v6.sin6_scope_id).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn packets_are_answered_to_their_senders_over_both_families() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let server = UdpSocket::bind(address).unwrap();
            server.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let clients: Vec<UdpSocket> = (0..3).map(|_| UdpSocket::bind(address).unwrap()).collect();
            for (number, client) in clients.iter().enumerate() {
                client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
                client.send_to(&[number as u8; 100], server.local_addr().unwrap()).unwrap();
            }
            let mut batch = Batch::new();
            let mut received = 0;
            while received < 3 {
                received += batch.receive(&server).unwrap();
                batch.answer_each(|packet, _, reply| {
                    assert_eq!(packet.len(), 100);
                    reply.extend_from_slice(&[packet[0] + 10; 7]);
                });
                assert_eq!(batch.send(&server), 0);
            }
            for (number, client) in clients.iter().enumerate() {
                let mut reply = [0; 100];
                assert_eq!(client.recv(&mut reply).unwrap(), 7);
                assert_eq!(reply[0], number as u8 + 10);
            }
        }
    }

    #[test]
    fn silence_times_out_without_an_error() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        server.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        assert_eq!(Batch::new().receive(&server).unwrap(), 0);
    }
}

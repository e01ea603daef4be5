//! The UDP client: one socket, a window of announces in flight, sent and received in batches.

use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

use domain::clock::Stopwatch;
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrIn, recvmmsg, sendmmsg, setsockopt, sockopt};

use crate::error::BenchError;
use crate::load::udp_packets::{
    ACTION_ANNOUNCE, ACTION_ERROR, PACKET_BYTES, UdpPackets, action_and_transaction, connect_request,
    connection_id,
};
use crate::load::{LoadResult, SILENCE_S_MAX, Until, Waiting};
use crate::schedule::Schedule;

/// Announces sent, and replies received, in one call.
pub const BATCH: usize = 32;
/// Larger than any reply to `numwant=50`.
const REPLY_BYTES_MAX: usize = 1024;
/// Time after which a reply counts as lost. Loopback answers within microseconds.
const LOSS_AFTER: Duration = Duration::from_millis(250);
/// Retries of the connect request, as clients do, but faster.
const CONNECT_TRIES: u32 = 20;

#[derive(Clone, Copy, Debug)]
pub struct UdpShape {
    /// Batches in flight. They must fit the server's receive buffer (212,992 bytes by default, where a small datagram
    /// takes up to 1,280): four batches of 32 do.
    pub batches_in_flight: usize,
    pub waiting: Waiting,
}

/// A client with its socket bound.
pub struct UdpClient {
    socket: UdpSocket,
    shape: UdpShape,
    next_transaction: u32,
    sending: MultiHeaders<SockaddrIn>,
    receiving: MultiHeaders<SockaddrIn>,
    outgoing: Vec<[u8; PACKET_BYTES]>,
    replies: Vec<u8>,
    reply_lengths: Vec<usize>,
}

impl UdpClient {
    /// Binds a socket that talks to one server.
    pub fn bind(server: SocketAddr, shape: UdpShape) -> Result<Self, BenchError> {
        let socket = UdpSocket::bind("127.0.0.1:0")
            .and_then(|socket| socket.connect(server).map(|()| socket))
            .and_then(|socket| socket.set_read_timeout(Some(LOSS_AFTER)).map(|()| socket))
            .map_err(BenchError::io("binding a UDP socket"))?;
        // A larger receive buffer is optional: the window bounds its content.
        let _ = setsockopt(&socket, sockopt::RcvBuf, &(1 << 20));
        Ok(UdpClient {
            socket,
            shape,
            next_transaction: 1,
            sending: MultiHeaders::preallocate(BATCH, None),
            receiving: MultiHeaders::preallocate(BATCH, None),
            outgoing: vec![[0; PACKET_BYTES]; BATCH],
            replies: vec![0; BATCH * REPLY_BYTES_MAX],
            reply_lengths: Vec::with_capacity(BATCH),
        })
    }

    /// Gets a connection id, then announces until it is enough and waits for what is in flight.
    pub fn run(
        &mut self,
        packets: &UdpPackets,
        schedule: &mut Schedule,
        until: Until,
        mut tick: impl FnMut(u64),
    ) -> Result<LoadResult, BenchError> {
        let id = self.connect()?;
        let mut tally = LoadResult::default();
        let watch = Stopwatch::start();
        let mut last_reply = Duration::ZERO;
        let first_transaction = self.next_transaction;
        let mut sent: u64 = 0;
        loop {
            while (sent - tally.replies - tally.lost) as usize + BATCH <= self.shape.batches_in_flight * BATCH
                && !until.reached(sent, &watch)
            {
                let count = match until {
                    Until::Announces(announces) => (announces - sent).min(BATCH as u64) as usize,
                    Until::Elapsed(_) => BATCH,
                };
                self.send_batch(packets, schedule, id, count)?;
                sent += count as u64;
            }
            let in_flight = (sent - tally.replies - tally.lost) as usize;
            if in_flight == 0 {
                break;
            }
            if self.receive_batch()? {
                last_reply = watch.elapsed();
                self.count_replies(first_transaction, &mut tally)?;
            } else if (watch.elapsed() - last_reply).as_secs() >= SILENCE_S_MAX {
                return Err(BenchError::Timeout { waited_s: SILENCE_S_MAX, in_flight });
            } else {
                tally.lost += in_flight as u64;
            }
            tick(tally.replies);
        }
        // Waiting for a lost reply is not part of the measurement.
        tally.elapsed = last_reply;
        Ok(tally)
    }

    fn connect(&mut self) -> Result<u64, BenchError> {
        let mut reply = [0; 64];
        for _ in 0..CONNECT_TRIES {
            let transaction = self.take_transaction();
            self.socket.send(&connect_request(transaction)).map_err(BenchError::io("sending a connect"))?;
            // Late replies of an earlier run may come first.
            loop {
                match self.socket.recv(&mut reply) {
                    Ok(length) => {
                        if let Some(id) = connection_id(&reply[..length], transaction) {
                            return Ok(id);
                        }
                    }
                    Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                        break;
                    }
                    Err(error) => return Err(BenchError::io("receiving a connection id")(error)),
                }
            }
        }
        let waited = LOSS_AFTER * CONNECT_TRIES;
        Err(BenchError::Timeout { waited_s: waited.as_secs(), in_flight: 1 })
    }

    fn take_transaction(&mut self) -> u32 {
        let transaction = self.next_transaction;
        self.next_transaction = self.next_transaction.wrapping_add(1);
        transaction
    }

    fn send_batch(
        &mut self,
        packets: &UdpPackets,
        schedule: &mut Schedule,
        id: u64,
        count: usize,
    ) -> Result<(), BenchError> {
        for slot in 0..count {
            let transaction = self.take_transaction();
            packets.write(schedule.next_announce(), id, transaction, &mut self.outgoing[slot]);
        }
        let slices: [[IoSlice<'_>; 1]; BATCH] =
            std::array::from_fn(|slot| [IoSlice::new(&self.outgoing[slot])]);
        let fd = self.socket.as_raw_fd();
        // A blocking call sends all or fails; after a partial send, the rest counts as lost.
        match sendmmsg(fd, &mut self.sending, &slices[..count], [None; BATCH], [], MsgFlags::empty()) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(errno) => Err(BenchError::io("sending announces")(errno.into())),
        }
    }

    /// Takes available replies, or waits for one. False after a timeout.
    fn receive_batch(&mut self) -> Result<bool, BenchError> {
        let flags = match self.shape.waiting {
            Waiting::Spin => MsgFlags::MSG_DONTWAIT,
            Waiting::Sleep => MsgFlags::MSG_WAITFORONE,
        };
        let watch = Stopwatch::start();
        loop {
            self.receive_once(flags)?;
            let has_replies = !self.reply_lengths.is_empty();
            if has_replies || self.shape.waiting == Waiting::Sleep || watch.elapsed() >= LOSS_AFTER {
                return Ok(has_replies);
            }
            std::hint::spin_loop();
        }
    }

    fn receive_once(&mut self, flags: MsgFlags) -> Result<(), BenchError> {
        self.reply_lengths.clear();
        let mut chunks = self.replies.chunks_mut(REPLY_BYTES_MAX);
        let mut slices: [[IoSliceMut<'_>; 1]; BATCH] =
            std::array::from_fn(|_| [IoSliceMut::new(chunks.next().unwrap_or_default())]);
        match recvmmsg(self.socket.as_raw_fd(), &mut self.receiving, &mut slices, flags, None) {
            Ok(messages) => self.reply_lengths.extend(messages.map(|message| message.bytes)),
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(errno) => return Err(BenchError::io("receiving replies")(errno.into())),
        }
        Ok(())
    }

    fn count_replies(&self, first_transaction: u32, tally: &mut LoadResult) -> Result<(), BenchError> {
        for (chunk, length) in self.replies.chunks(REPLY_BYTES_MAX).zip(&self.reply_lengths) {
            let reply = &chunk[..*length];
            let (action, transaction) = action_and_transaction(reply)
                .ok_or_else(|| BenchError::NotAReply(format!("a datagram of {length} bytes")))?;
            let ours = transaction.wrapping_sub(first_transaction)
                < self.next_transaction.wrapping_sub(first_transaction);
            if !ours {
                continue;
            }
            match action {
                ACTION_ANNOUNCE => {}
                ACTION_ERROR => {
                    tally.failures += 1;
                    tally
                        .first_failure
                        .get_or_insert_with(|| String::from_utf8_lossy(&reply[8..]).into_owned());
                }
                other => return Err(BenchError::NotAReply(format!("action {other}"))),
            }
            tally.replies += 1;
            tally.reply_bytes += *length as u64;
        }
        Ok(())
    }
}

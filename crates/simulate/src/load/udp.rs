//! The UDP client: one socket, a window of announces in flight, sent and received in batches.

use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use domain::clock::Stopwatch;
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrIn, recvmmsg, sendmmsg, setsockopt, sockopt};

use super::{LoadClient, LoadResult, Peers, SILENCE_S_MAX, Schedule, ScheduledAnnounce, Until, Waiting};
use crate::announce::fill_packet;
use crate::error::SimulationError;
use crate::reply::{ACTION_ANNOUNCE, ACTION_ERROR, action_and_transaction, connect_request, connection_id};

/// Announces sent, and replies received, in one call.
const BATCH: usize = 32;
/// Larger than any reply to `numwant=50`.
const REPLY_BYTES_MAX: usize = 1024;
/// Time after which a reply counts as lost. Loopback answers within microseconds.
const LOSS_AFTER: Duration = Duration::from_millis(250);
/// Retries of the connect request, as clients do, but faster.
const CONNECT_TRIES: u32 = 20;

/// The packets of all peers, concatenated. Connection id, transaction, counter and event are filled in when sent.
pub struct UdpPackets {
    packets: Vec<u8>,
    packet_bytes: usize,
}

impl UdpPackets {
    pub fn new(peers: &Peers) -> Self {
        let packet_bytes = peers.get(0).announce.packet(0, 0).len();
        let packets: Vec<u8> =
            (0..peers.count()).flat_map(|number| peers.get(number).announce.packet(0, 0)).collect();
        assert_eq!(packets.len(), packet_bytes * peers.count() as usize, "all passkeys are of one length");
        UdpPackets { packets, packet_bytes }
    }

    fn write(&self, scheduled: ScheduledAnnounce, ids: (u64, u32), out: &mut [u8]) {
        let start = scheduled.peer as usize * self.packet_bytes;
        out.copy_from_slice(&self.packets[start..start + self.packet_bytes]);
        fill_packet(out, ids, scheduled.uploaded, scheduled.event);
    }
}

#[derive(Clone, Copy, Debug)]
pub struct UdpShape {
    /// Batches in flight. They must fit the server's receive buffer (212,992 bytes by default, where a small datagram
    /// takes up to 1,280): four batches of 32 do.
    pub batches_in_flight: usize,
    pub waiting: Waiting,
}

/// A client with its socket bound.
pub struct UdpClient {
    packets: Arc<UdpPackets>,
    socket: UdpSocket,
    shape: UdpShape,
    next_transaction: u32,
    sending: MultiHeaders<SockaddrIn>,
    receiving: MultiHeaders<SockaddrIn>,
    outgoing: Vec<u8>,
    replies: Vec<u8>,
    reply_lengths: Vec<usize>,
}

impl UdpClient {
    /// Binds a socket that talks to one server.
    pub fn bind(
        server: SocketAddr,
        packets: Arc<UdpPackets>,
        shape: UdpShape,
    ) -> Result<Self, SimulationError> {
        let bind = || {
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            socket.connect(server)?;
            socket.set_read_timeout(Some(LOSS_AFTER))?;
            Ok(socket)
        };
        let socket = bind().map_err(SimulationError::io("binding a UDP socket"))?;
        // A larger receive buffer is optional: the window bounds its content.
        let _ = setsockopt(&socket, sockopt::RcvBuf, &(1 << 20));
        Ok(UdpClient {
            socket,
            shape,
            next_transaction: 1,
            sending: MultiHeaders::preallocate(BATCH, None),
            receiving: MultiHeaders::preallocate(BATCH, None),
            outgoing: vec![0; BATCH * packets.packet_bytes],
            packets,
            replies: vec![0; BATCH * REPLY_BYTES_MAX],
            reply_lengths: Vec::with_capacity(BATCH),
        })
    }

    fn connect(&mut self) -> Result<u64, SimulationError> {
        let mut reply = [0; 64];
        for _ in 0..CONNECT_TRIES {
            let transaction = self.take_transaction();
            self.socket
                .send(&connect_request(transaction))
                .map_err(SimulationError::io("sending a connect"))?;
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
                    Err(error) => return Err(SimulationError::io("receiving a connection id")(error)),
                }
            }
        }
        let waited = LOSS_AFTER * CONNECT_TRIES;
        Err(SimulationError::Timeout { waited_s: waited.as_secs(), in_flight: 1 })
    }

    fn take_transaction(&mut self) -> u32 {
        let transaction = self.next_transaction;
        self.next_transaction = self.next_transaction.wrapping_add(1);
        transaction
    }

    fn send_batch(&mut self, schedule: &mut Schedule, id: u64, count: usize) -> Result<(), SimulationError> {
        let packet_bytes = self.packets.packet_bytes;
        for slot in 0..count {
            let ids = (id, self.take_transaction());
            let out = &mut self.outgoing[slot * packet_bytes..][..packet_bytes];
            self.packets.write(schedule.next_announce(), ids, out);
        }
        let slices: [[IoSlice<'_>; 1]; BATCH] =
            std::array::from_fn(|slot| [IoSlice::new(&self.outgoing[slot * packet_bytes..][..packet_bytes])]);
        let fd = self.socket.as_raw_fd();
        // A blocking call sends all or fails; after a partial send, the rest counts as lost.
        match sendmmsg(fd, &mut self.sending, &slices[..count], [None; BATCH], [], MsgFlags::empty()) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(errno) => Err(SimulationError::io("sending announces")(errno.into())),
        }
    }

    /// Takes available replies, or waits for one. False after a timeout.
    fn receive_batch(&mut self) -> Result<bool, SimulationError> {
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

    fn receive_once(&mut self, flags: MsgFlags) -> Result<(), SimulationError> {
        self.reply_lengths.clear();
        let mut chunks = self.replies.chunks_mut(REPLY_BYTES_MAX);
        let mut slices: [[IoSliceMut<'_>; 1]; BATCH] =
            std::array::from_fn(|_| [IoSliceMut::new(chunks.next().unwrap_or_default())]);
        match recvmmsg(self.socket.as_raw_fd(), &mut self.receiving, &mut slices, flags, None) {
            Ok(messages) => self.reply_lengths.extend(messages.map(|message| message.bytes)),
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(errno) => return Err(SimulationError::io("receiving replies")(errno.into())),
        }
        Ok(())
    }

    fn count_replies(&self, first_transaction: u32, tally: &mut LoadResult) -> Result<(), SimulationError> {
        for (chunk, length) in self.replies.chunks(REPLY_BYTES_MAX).zip(&self.reply_lengths) {
            let reply = &chunk[..*length];
            let (action, transaction) =
                action_and_transaction(reply).ok_or_else(|| SimulationError::not_a_reply(reply))?;
            let ours = transaction.wrapping_sub(first_transaction)
                < self.next_transaction.wrapping_sub(first_transaction);
            match (ours, action) {
                (false, _) => continue,
                (true, ACTION_ANNOUNCE) => {}
                (true, ACTION_ERROR) => tally.add_failure(&reply[8..]),
                (true, other) => return Err(SimulationError::NotAReply(format!("action {other}"))),
            }
            tally.replies += 1;
            tally.reply_bytes += *length as u64;
        }
        Ok(())
    }
}

impl LoadClient for UdpClient {
    fn run(&mut self, schedule: &mut Schedule, until: Until) -> Result<LoadResult, SimulationError> {
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
                self.send_batch(schedule, id, count)?;
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
                return Err(SimulationError::Timeout { waited_s: SILENCE_S_MAX, in_flight });
            } else {
                tally.lost += in_flight as u64;
            }
        }
        // Waiting for a lost reply is not part of the measurement.
        tally.elapsed = last_reply;
        Ok(tally)
    }
}

/// Whether a connect request to this address is answered, within [`LOSS_AFTER`].
pub fn udp_answers(server: SocketAddr) -> bool {
    let answer = || -> std::io::Result<bool> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(server)?;
        socket.set_read_timeout(Some(LOSS_AFTER))?;
        socket.send(&connect_request(1))?;
        let mut reply = [0; 64];
        let length = socket.recv(&mut reply)?;
        Ok(connection_id(&reply[..length], 1).is_some())
    };
    answer().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use domain::AnnounceEvent;

    use super::*;
    use crate::announce::Announce;
    use crate::load::Shape;

    #[test]
    fn a_filled_packet_is_that_of_the_announce() {
        let peers = Peers::new(Shape { torrents: 2, peers: 4 });
        let packets = UdpPackets::new(&peers);
        let scheduled = ScheduledAnnounce { peer: 3, uploaded: 77, event: AnnounceEvent::None };
        let mut packet = vec![0; packets.packet_bytes];
        packets.write(scheduled, (8, 9), &mut packet);
        let announce = Announce { uploaded: 77, event: AnnounceEvent::None, ..peers.get(3).announce };
        assert_eq!(packet, announce.packet(8, 9));
    }
}

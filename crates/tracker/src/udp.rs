//! Announces and scrapes over UDP (BEP 15, BEP 41): batches of packets, connection ids without state.
//!
//! # Layout
//!
//! - `batch`: many packets a system call; the only unsafe code of the project
//! - [`connection_id`]: ids that need no memory
//! - `packet`: one packet → the bytes of its answer
//! - `repeated_errors`: clients that repeat what was refused are told a few times only
//!
//! Before a connection id has been shown to be genuine, no reply is longer than a `connect` reply (16 bytes): a forged
//! sender address gains an attacker nothing.

mod batch;
pub mod connection_id;
mod packet;
mod repeated_errors;

use std::net::UdpSocket;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tracing::{error, warn};

pub use connection_id::ConnectionIds;

use crate::ending::{Ending, Orders, Phase};
use crate::pipeline::Tracker;
use batch::Batch;

/// More than the system queues for a socket, so that an end comes however fast packets do.
const LAST_BATCHES_MAX: usize = 1024;

/// How long to wait after an error, so that one that does not pass is not repeated a million times a second.
const ERROR_PAUSE: Duration = Duration::from_millis(50);

/// Starts the thread that serves one socket.
pub(crate) fn start(
    socket: UdpSocket,
    tracker: Arc<Tracker>,
    ids: ConnectionIds,
    orders: Arc<Orders>,
) -> std::io::Result<JoinHandle<()>> {
    let socket = Arc::new(socket);
    thread::Builder::new().name("udp".into()).spawn(move || serve(&socket, &tracker, ids, &orders))
}

/// Answers packets until told to stop, then those that are queued by then, unless they are somebody else's.
fn serve(socket: &Arc<UdpSocket>, tracker: &Arc<Tracker>, ids: ConnectionIds, orders: &Orders) {
    let mut batch = Batch::new();
    let mut answerer = packet::Answerer::new(tracker, ids, Arc::clone(socket));
    let ending = loop {
        match orders.phase() {
            Phase::Serve => {}
            Phase::StandStill => {
                orders.stand_still();
                continue;
            }
            Phase::End(ending) => break ending,
        }
        if let Err(reason) = answer_batch(socket, &mut batch, &mut answerer, tracker) {
            return error!(%reason, "a UDP socket is no longer usable");
        }
    };
    if ending == Ending::HandOver {
        // The other process waits on the same socket: what is set on it here would hold there, too.
        return;
    }
    // A busy tracker always has a packet on the way: nothing is waited for any more.
    if socket.set_nonblocking(true).is_err() {
        return;
    }
    for _ in 0..LAST_BATCHES_MAX {
        let Ok(1..) = answer_batch(socket, &mut batch, &mut answerer, tracker) else { return };
    }
}

/// Takes the packets that are there, waiting as long as the socket is set to, and answers them; returns how many.
fn answer_batch(
    socket: &UdpSocket,
    batch: &mut Batch,
    answerer: &mut packet::Answerer<'_>,
    tracker: &Tracker,
) -> std::io::Result<usize> {
    match batch.receive(socket) {
        Ok(received) => {
            tracker.counters().packets.add(received as u64);
            batch.answer_each(|packet, from, reply| answerer.answer(packet, from, reply));
            let unsent = batch.send(socket);
            tracker.counters().replies_unsent.add(unsent as u64);
            Ok(received)
        }
        Err(reason) if is_passing(&reason) => {
            warn!(%reason, "packets could not be received");
            thread::sleep(ERROR_PAUSE);
            Ok(0)
        }
        Err(reason) => Err(reason),
    }
}

/// Whether receiving can go on. An unreachable client of an earlier reply shows up here too.
fn is_passing(reason: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    !matches!(reason.kind(), ErrorKind::InvalidInput | ErrorKind::NotConnected)
        && reason.raw_os_error() != Some(libc::EBADF)
}

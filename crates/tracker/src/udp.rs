//! Announces and scrapes over UDP (BEP 15, BEP 41): batches of packets, connection ids without state.
//!
//! # Layout
//!
//! - `batch`: many packets a system call; the only unsafe code of the project
//! - [`connection_id`]: ids that need no memory
//! - `packet`: one packet → the bytes of its answer
//!
//! Before a connection id has been shown to be genuine, no reply is longer than a `connect` reply (16 bytes): a forged
//! sender address gains an attacker nothing.

mod batch;
pub mod connection_id;
mod packet;

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use tracing::{error, warn};

pub use connection_id::ConnectionIds;

use crate::pipeline::Tracker;
use batch::Batch;

/// Starts the thread that serves one socket.
pub(crate) fn start(
    socket: UdpSocket,
    tracker: Arc<Tracker>,
    ids: ConnectionIds,
    stop: Arc<AtomicBool>,
) -> std::io::Result<JoinHandle<()>> {
    thread::Builder::new().name("udp".into()).spawn(move || serve(&socket, &tracker, ids, &stop))
}

/// Answers packets until told to stop and nothing is left to answer.
fn serve(socket: &UdpSocket, tracker: &Tracker, ids: ConnectionIds, stop: &AtomicBool) {
    let mut batch = Batch::new();
    let mut answerer = packet::Answerer::new(tracker, ids);
    loop {
        match batch.receive(socket) {
            Ok(0) if stop.load(Ordering::Acquire) => return,
            Ok(received) => {
                tracker.counters().packets.add(received as u64);
                batch.answer_each(|packet, from, reply| answerer.answer(packet, from, reply));
                let unsent = batch.send(socket);
                tracker.counters().replies_unsent.add(unsent as u64);
            }
            Err(reason) if is_passing(&reason) => warn!(%reason, "packets could not be received"),
            Err(reason) => return error!(%reason, "a UDP socket is no longer usable"),
        }
    }
}

/// Whether receiving can go on. An unreachable client of an earlier reply shows up here too.
fn is_passing(reason: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    !matches!(reason.kind(), ErrorKind::InvalidInput | ErrorKind::NotConnected)
        && reason.raw_os_error() != Some(libc::EBADF)
}

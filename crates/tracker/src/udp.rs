//! Announces and scrapes over UDP (BEP 15, BEP 41): batches of packets, connection ids without state.
//!
//! # Layout
//!
//! - `batch`: many packets per system call; the only unsafe code of the project
//! - [`connection_id`]: stateless connection ids
//! - `packet`: one packet → the bytes of its reply
//! - `repeated_errors`: limits error replies to clients that repeat a refused packet
//!
//! Until a connection id is verified, no reply is longer than a `connect` reply (16 bytes), so a forged sender
//! address gives no amplification.

mod batch;
pub mod connection_id;
mod packet;
mod repeated_errors;

use std::net::UdpSocket;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use net::ShutdownMode;
use net::accept_gate::{ListenerState, Phase};
use tracing::{error, warn};

pub use connection_id::ConnectionIds;

use crate::pipeline::Tracker;
use batch::Batch;

/// More than the kernel queues for a socket, so that draining ends even under load.
const DRAIN_BATCHES_MAX: usize = 1024;

/// Keeps a persistent error from spinning the thread.
const ERROR_PAUSE: Duration = Duration::from_millis(50);

/// Starts the thread that serves one socket.
pub(crate) fn start(
    socket: UdpSocket,
    tracker: Arc<Tracker>,
    ids: ConnectionIds,
    listener_state: Arc<ListenerState>,
) -> std::io::Result<JoinHandle<()>> {
    let socket = Arc::new(socket);
    thread::Builder::new().name("udp".into()).spawn(move || serve(&socket, &tracker, ids, &listener_state))
}

/// Answers packets until shutdown, then those queued by then, unless another process inherits the socket.
fn serve(
    socket: &Arc<UdpSocket>,
    tracker: &Arc<Tracker>,
    ids: ConnectionIds,
    listener_state: &ListenerState,
) {
    let mut batch = Batch::new();
    let mut answerer = packet::Answerer::new(tracker, ids, Arc::clone(socket));
    let mode = loop {
        match listener_state.phase() {
            Phase::Serve => {}
            Phase::Paused => {
                listener_state.wait_while_paused();
                continue;
            }
            Phase::ShuttingDown(mode) => break mode,
        }
        if let Err(reason) = answer_batch(socket, &mut batch, &mut answerer, tracker) {
            return error!(%reason, "UDP socket failed; this thread stops");
        }
    };
    if mode == ShutdownMode::HandOver {
        // The other process reads the same socket: options set here would apply there too.
        return;
    }
    // Only what is queued is answered: a busy tracker would otherwise always receive another packet.
    if socket.set_nonblocking(true).is_err() {
        return;
    }
    for _ in 0..DRAIN_BATCHES_MAX {
        let Ok(1..) = answer_batch(socket, &mut batch, &mut answerer, tracker) else { return };
    }
}

/// Receives and answers one batch, within the socket's read timeout; returns its size.
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
            tracker.hand_over();
            let unsent = batch.send(socket);
            tracker.counters().replies_unsent.add(unsent as u64);
            Ok(received)
        }
        Err(reason) if is_retryable(&reason) => {
            warn!(%reason, "receiving UDP packets failed; retrying");
            thread::sleep(ERROR_PAUSE);
            Ok(0)
        }
        Err(reason) => Err(reason),
    }
}

/// False if the socket itself is unusable. An unreachable client of an earlier reply also shows up as an error here.
fn is_retryable(reason: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    !matches!(reason.kind(), ErrorKind::InvalidInput | ErrorKind::NotConnected)
        && reason.raw_os_error() != Some(libc::EBADF)
}

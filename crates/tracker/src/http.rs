//! Announces and scrapes over HTTP and HTTPS: one single-threaded runtime per core, with its own request loop.
//!
//! # Layout
//!
//! - `connection`: one connection and its deadlines
//! - `request`: one request head → the bytes of its reply
//! - `request_line`: the first line of a head, which may hold raw bytes
//! - `response`: status lines and headers

mod connection;
mod request;
mod request_line;
mod response;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use net::accept::{AcceptErrors, accept};
use net::accept_gate::{ListenerState, Phase};
use net::{ShutdownMode, TlsAcceptor};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::error;

use crate::pipeline::Tracker;

/// Queued connections that are still accepted when the server drains.
const QUEUE_WHEN_DRAINING: usize = 4096;

#[derive(Clone)]
pub(crate) struct HttpServer {
    pub(crate) tracker: Arc<Tracker>,
    pub(crate) phase: watch::Receiver<Phase>,
    /// The same, for the check of every request.
    pub(crate) listener_state: Arc<ListenerState>,
    pub(crate) drain_timeout: Duration,
    pub(crate) accept_errors: Arc<AcceptErrors>,
}

pub(crate) struct Listener {
    pub(crate) socket: std::net::TcpListener,
    pub(crate) tls: Option<TlsAcceptor>,
}

pub(crate) fn start_worker(listeners: Vec<Listener>, server: HttpServer) -> io::Result<JoinHandle<()>> {
    let tracker = Arc::clone(&server.tracker);
    let of_runtime = Arc::clone(&tracker);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Called when no task is ready any more, before the thread waits for the network.
        .on_thread_park(move || of_runtime.hand_over())
        .build()?;
    thread::Builder::new().name("http".into()).spawn(move || {
        runtime.block_on(serve(listeners, server));
        tracker.hand_over();
    })
}

async fn serve(listeners: Vec<Listener>, server: HttpServer) {
    let mut accepting = JoinSet::new();
    for listener in listeners {
        accepting.spawn(serve_listener(listener, server.clone()));
    }
    while accepting.join_next().await.is_some() {}
}

/// Accepts until shutdown, then waits for open connections, up to the drain timeout.
async fn serve_listener(listener: Listener, server: HttpServer) {
    let socket = match TcpListener::from_std(listener.socket) {
        Ok(socket) => socket,
        Err(reason) => return error!(%reason, "cannot use a listener; its address is not served"),
    };
    let mut open = JoinSet::new();
    let mut phase = server.phase.clone();
    let refused = &server.tracker.counters().refused;
    loop {
        let (stream, from) = tokio::select! {
            biased;
            new_phase = phase_change(&mut phase, Phase::Serve) => match new_phase {
                Phase::Serve | Phase::Paused => {
                    let _paused = server.listener_state.mark_paused();
                    phase_change(&mut phase, Phase::Paused).await;
                    continue;
                }
                Phase::ShuttingDown(_) => break,
            },
            accepted = accept(&socket, &server.accept_errors, refused) => accepted,
        };
        admit_connection(stream, from, listener.tls.clone(), &server, &mut open);
        while open.try_join_next().is_some() {}
    }
    // A process that inherits the socket also inherits its queue.
    if server.listener_state.phase() != Phase::ShuttingDown(ShutdownMode::HandOver) {
        // Queued connections arrived in time. The runtime polls the network before it resumes a task that yielded.
        tokio::task::yield_now().await;
        for _ in 0..QUEUE_WHEN_DRAINING {
            let queued =
                tokio::time::timeout(Duration::ZERO, accept(&socket, &server.accept_errors, refused));
            let Ok((stream, from)) = queued.await else { break };
            admit_connection(stream, from, listener.tls.clone(), &server, &mut open);
        }
    }
    drop(socket);
    let all_closed = async { while open.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(server.drain_timeout, all_closed).await;
}

/// Returns when idle connections are to be closed.
///
/// On drain, after one poll of the network, so that requests received by then are seen. After a hand-over, half of
/// the drain timeout later: a client that is about to use its connection should not find it closed, and the reply to
/// its next request says `Connection: close`.
async fn drain_started(phase: &mut watch::Receiver<Phase>, drain_timeout: Duration) {
    loop {
        match phase_change(phase, Phase::Serve).await {
            Phase::ShuttingDown(ShutdownMode::HandOver) => {
                return tokio::time::sleep(drain_timeout / 2).await;
            }
            Phase::ShuttingDown(ShutdownMode::Drain) => return tokio::task::yield_now().await,
            Phase::Serve | Phase::Paused => {
                phase_change(phase, Phase::Paused).await;
            }
        }
    }
}

/// Waits for any phase but `this`. A dropped sender counts as a drain.
async fn phase_change(phase: &mut watch::Receiver<Phase>, this: Phase) -> Phase {
    phase
        .wait_for(|phase| *phase != this)
        .await
        .map_or(Phase::ShuttingDown(ShutdownMode::Drain), |phase| *phase)
}

/// Spawns the connection, or refuses it.
fn admit_connection(
    stream: TcpStream,
    from: SocketAddr,
    tls: Option<TlsAcceptor>,
    server: &HttpServer,
    open: &mut JoinSet<()>,
) {
    let live = server.tracker.live();
    let limits = &live.limits;
    let permit = server.tracker.connections().admit(
        from.ip(),
        &live.proxies,
        limits.connections_max,
        limits.connections_per_address_max,
    );
    match permit {
        Ok(permit) => {
            server.tracker.counters().connections.increment();
            let server = server.clone();
            open.spawn(async move {
                connection::serve(stream, from, tls, &server).await;
                drop(permit);
            });
        }
        Err(reason) => {
            server.tracker.counters().refused.count(reason.label());
            if tls.is_none() {
                // Best effort: a refused connection gets no buffer.
                let _ = stream.try_write(response::TOO_MANY_CONNECTIONS);
            }
        }
    }
}

//! Announces and scrapes over HTTP and HTTPS: one single-threaded runtime per core, with its own request loop.
//!
//! # Layout
//!
//! - `connection`: one connection and its deadlines
//! - `request`: one request head → the bytes of its reply
//! - `request_line`: the first line of a head, which may hold raw bytes
//! - `response`: status lines and headers
//! - [`proxy`]: the client's address behind proxies
//! - [`proxy_protocol`]: the PROXY header, versions 1 and 2
//! - [`tls`]: certificates, reloaded while running

mod connection;
pub mod proxy;
pub mod proxy_protocol;
mod request;
mod request_line;
mod response;
pub mod tls;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use domain::LogThrottle;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tracing::{error, warn};

use crate::accept_gate::{ListenerState, Phase, ShutdownMode};
use crate::limits::{ConnectionPermit, Connections};
use crate::pipeline::Tracker;

/// Delay before the next accept when file descriptors are exhausted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Queued connections that are still accepted when the server drains.
const QUEUE_WHEN_DRAINING: usize = 4096;

#[derive(Clone)]
pub(crate) struct HttpServer {
    pub(crate) tracker: Arc<Tracker>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) phase: watch::Receiver<Phase>,
    /// The same, for the check of every request.
    pub(crate) listener_state: Arc<ListenerState>,
    pub(crate) drain_timeout: Duration,
    /// At the limit of open files every attempt fails.
    pub(crate) accept_failures: Arc<LogThrottle>,
}

pub(crate) struct Listener {
    pub(crate) socket: std::net::TcpListener,
    pub(crate) tls: Option<TlsAcceptor>,
}

pub(crate) fn start_worker(listeners: Vec<Listener>, server: HttpServer) -> io::Result<JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::Builder::new().name("http".into()).spawn(move || {
        runtime.block_on(serve(listeners, server));
    })
}

async fn serve(listeners: Vec<Listener>, server: HttpServer) {
    let mut accepting = JoinSet::new();
    for listener in listeners {
        accepting.spawn(accept(listener, server.clone()));
    }
    while accepting.join_next().await.is_some() {}
}

/// Accepts until shutdown, then waits for open connections, up to the drain timeout.
async fn accept(listener: Listener, server: HttpServer) {
    let socket = match TcpListener::from_std(listener.socket) {
        Ok(socket) => socket,
        Err(reason) => return error!(%reason, "cannot use a listener; its address is not served"),
    };
    let mut open = JoinSet::new();
    let mut phase = server.phase.clone();
    loop {
        let accepted = tokio::select! {
            biased;
            new_phase = phase_change(&mut phase, Phase::Serve) => match new_phase {
                Phase::Serve | Phase::Paused => {
                    let _paused = server.listener_state.mark_paused();
                    phase_change(&mut phase, Phase::Paused).await;
                    continue;
                }
                Phase::ShuttingDown(_) => break,
            },
            accepted = socket.accept() => accepted,
        };
        match accepted {
            Ok((stream, from)) => admit_connection(stream, from, listener.tls.clone(), &server, &mut open),
            // The client disconnected before it was accepted.
            Err(reason) if reason.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(reason) => {
                server.tracker.counters().refused.count("accept_failed");
                if let Some(left_out) = server.accept_failures.admit(server.tracker.now()) {
                    warn!(%reason, failures = left_out + 1, "accept failed; logged once a minute");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
        while open.try_join_next().is_some() {}
    }
    // A process that inherits the socket also inherits its queue.
    if server.listener_state.phase() != Phase::ShuttingDown(ShutdownMode::HandOver) {
        // Queued connections arrived in time. The runtime polls the network before it resumes a task that yielded.
        tokio::task::yield_now().await;
        for _ in 0..QUEUE_WHEN_DRAINING {
            match tokio::time::timeout(Duration::ZERO, socket.accept()).await {
                Ok(Ok((stream, from))) => {
                    admit_connection(stream, from, listener.tls.clone(), &server, &mut open)
                }
                _ => break,
            }
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
    let from = proxy::unmapped(from);
    match acquire_permit(from, server) {
        Ok(permit) => {
            server.tracker.counters().connections.increment();
            let server = server.clone();
            open.spawn(async move {
                connection::serve(stream, from, tls, &server).await;
                drop(permit);
            });
        }
        Err(reason) => {
            server.tracker.counters().refused.count(reason);
            if tls.is_none() {
                // Best effort: a refused connection gets no buffer.
                let _ = stream.try_write(response::TOO_MANY_CONNECTIONS);
            }
        }
    }
}

fn acquire_permit(from: SocketAddr, server: &HttpServer) -> Result<ConnectionPermit, &'static str> {
    let live = server.tracker.live();
    // A trusted proxy carries connections of many clients.
    let per_address_max = match proxy::is_trusted(from.ip(), &live.proxies) {
        true => 0,
        false => live.limits.connections_per_address_max,
    };
    server
        .connections
        .open(from.ip(), live.limits.connections_max, per_address_max)
        .map_err(|reason| reason.label())
}

//! Announces and scrapes over HTTP and HTTPS: one single-threaded runtime per core, an own request loop.
//!
//! # Layout
//!
//! - `connection`: one connection, from its first byte to its last; deadlines
//! - `request`: one request head → the bytes of its answer
//! - `request_line`: the first line of a head, raw bytes and all
//! - `response`: status lines and headers
//! - [`proxy`]: whose address it is, behind proxies
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

use crate::ending::{Ending, Orders, Phase};
use crate::limits::{ConnectionPermit, Connections};
use crate::pipeline::Tracker;

/// How long to wait before accepting again when the system has no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Connections that are still accepted once the server drains.
const QUEUE_WHEN_DRAINING: usize = 4096;

/// What all HTTP threads share.
#[derive(Clone)]
pub(crate) struct HttpServer {
    pub(crate) tracker: Arc<Tracker>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) phase: watch::Receiver<Phase>,
    /// The same, for whoever looks at every request.
    pub(crate) orders: Arc<Orders>,
    pub(crate) drain_timeout: Duration,
    /// Of connections that could not be accepted: at the limit of open files, each attempt fails.
    pub(crate) accept_failures: Arc<LogThrottle>,
}

/// A socket, and how to speak over it.
pub(crate) struct Listener {
    pub(crate) socket: std::net::TcpListener,
    pub(crate) tls: Option<TlsAcceptor>,
}

/// Starts one thread that serves these listeners.
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

/// Accepts until told to stop, then waits for the connections that are still being answered.
async fn accept(listener: Listener, server: HttpServer) {
    let socket = match TcpListener::from_std(listener.socket) {
        Ok(socket) => socket,
        Err(reason) => return error!(%reason, "a listener could not be used"),
    };
    let mut open = JoinSet::new();
    let mut phase = server.phase.clone();
    loop {
        let accepted = tokio::select! {
            biased;
            told = other_than(&mut phase, Phase::Serve) => match told {
                Phase::Serve | Phase::StandStill => {
                    let _still = server.orders.count_still();
                    other_than(&mut phase, Phase::StandStill).await;
                    continue;
                }
                Phase::End(_) => break,
            },
            accepted = socket.accept() => accepted,
        };
        match accepted {
            Ok((stream, from)) => welcome(stream, from, listener.tls.clone(), &server, &mut open),
            // The client changed its mind before it was its turn.
            Err(reason) if reason.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(reason) => {
                server.tracker.counters().refused.count("accept_failed");
                if let Some(left_out) = server.accept_failures.admit(server.tracker.now()) {
                    warn!(%reason, failures = left_out + 1, "connections could not be accepted; logged once a minute");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
        while open.try_join_next().is_some() {}
    }
    // Whoever serves this socket from now on has its queue, too.
    if server.orders.phase() != Phase::End(Ending::HandOver) {
        // Who is in the queue was there in time. The runtime looks at the network before it comes back to who yields.
        tokio::task::yield_now().await;
        for _ in 0..QUEUE_WHEN_DRAINING {
            match tokio::time::timeout(Duration::ZERO, socket.accept()).await {
                Ok(Ok((stream, from))) => welcome(stream, from, listener.tls.clone(), &server, &mut open),
                _ => break,
            }
        }
    }
    drop(socket);
    let everyone_answered = async { while open.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(server.drain_timeout, everyone_answered).await;
}

/// Waits until connections that nobody uses are to be closed.
///
/// When the server drains, that is as soon as whatever the network has brought by then can be seen: the runtime looks at
/// the network before it comes back to somebody who yields. When it has handed its sockets over, a client that is just
/// about to use its connection should not find it closed: the answer to its next request tells it. Who asks nothing for
/// half of the time that there is goes without.
async fn last_call(phase: &mut watch::Receiver<Phase>, drain_timeout: Duration) {
    loop {
        match other_than(phase, Phase::Serve).await {
            Phase::End(Ending::HandOver) => return tokio::time::sleep(drain_timeout / 2).await,
            Phase::End(Ending::Drain) => return tokio::task::yield_now().await,
            Phase::Serve | Phase::StandStill => {
                other_than(phase, Phase::StandStill).await;
            }
        }
    }
}

/// Waits until the server is told something else. Without a sender it is gone, which ends everything.
async fn other_than(phase: &mut watch::Receiver<Phase>, this: Phase) -> Phase {
    phase.wait_for(|phase| *phase != this).await.map_or(Phase::End(Ending::Drain), |phase| *phase)
}

/// Gives a new connection its place, or turns it away.
fn welcome(
    stream: TcpStream,
    from: SocketAddr,
    tls: Option<TlsAcceptor>,
    server: &HttpServer,
    open: &mut JoinSet<()>,
) {
    let from = proxy::unmapped(from);
    match permit(from, server) {
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
                // Best effort: whoever has too many connections gets no buffer of ours to wait in.
                let _ = stream.try_write(response::TOO_MANY_CONNECTIONS);
            }
        }
    }
}

fn permit(from: SocketAddr, server: &HttpServer) -> Result<ConnectionPermit, &'static str> {
    let live = server.tracker.live();
    // A trusted proxy brings everyone's connections.
    let per_address_max = match proxy::is_trusted(from.ip(), &live.proxies) {
        true => 0,
        false => live.limits.connections_per_address_max,
    };
    server
        .connections
        .open(from.ip(), live.limits.connections_max, per_address_max)
        .map_err(|reason| reason.label())
}

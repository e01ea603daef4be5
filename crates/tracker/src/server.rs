//! Starts the listeners, reloads settings, drains.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use net::accept::AcceptErrors;
use net::{AcceptGate, BindError, Certificate, ShutdownMode, TlsError};
use tracing::warn;

use crate::bound_sockets::BoundSockets;
use crate::housekeeping;
use crate::http::{self, HttpServer, Listener};
use crate::pipeline::Tracker;
use crate::settings::{LiveSettings, Settings};
use crate::udp::{self, ConnectionIds};

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error(
        "https addresses are set, but no certificate: set tracker.tls_cert_file and tracker.tls_key_file"
    )]
    NoCertificate,
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("cannot start a thread: {0}")]
    Thread(#[from] io::Error),
}

/// Bound addresses, port 0 resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    pub http: Vec<SocketAddr>,
    pub https: Vec<SocketAddr>,
    pub udp: Vec<SocketAddr>,
}

pub struct Running {
    tracker: Arc<Tracker>,
    addresses: Addresses,
    certificate: Option<Arc<Certificate>>,
    ids: ConnectionIds,
    accept_gate: AcceptGate,
    threads: Vec<JoinHandle<()>>,
    housekeeping: JoinHandle<()>,
    drain_timeout: Duration,
}

/// A tracker without sockets.
pub struct Prepared {
    tracker: Arc<Tracker>,
    certificate: Option<Arc<Certificate>>,
    drain_timeout: Duration,
}

impl Prepared {
    /// Reads the certificate; binds and starts nothing.
    pub fn new(settings: &Settings, tracker: Arc<Tracker>) -> Result<Prepared, StartError> {
        let certificate = match &settings.tls {
            Some(files) => Some(Arc::new(Certificate::load(files)?)),
            None if !settings.https_addresses.is_empty() => return Err(StartError::NoCertificate),
            None => None,
        };
        Ok(Prepared { tracker, certificate, drain_timeout: settings.drain_timeout })
    }

    pub fn certificate(&self) -> Option<&Arc<Certificate>> {
        self.certificate.as_ref()
    }

    pub fn tracker(&self) -> &Arc<Tracker> {
        &self.tracker
    }

    /// `ids` may come from another process: connection ids issued under the same secret stay valid.
    pub fn start(self, ports: BoundSockets, ids: ConnectionIds) -> Result<Running, StartError> {
        let Prepared { tracker, certificate, drain_timeout } = self;
        let addresses = ports.addresses()?;
        let accept_gate = AcceptGate::new(ports.count());
        let listener_state = Arc::clone(accept_gate.listener_state());
        let http_server = HttpServer {
            tracker: Arc::clone(&tracker),
            phase: accept_gate.phase(),
            listener_state: Arc::clone(&listener_state),
            drain_timeout,
            accept_errors: Arc::new(AcceptErrors::of("tracker")),
        };
        let mut threads = start_http(ports.http, ports.https, certificate.as_ref(), &http_server)?;
        for socket in ports.udp.into_iter().flatten() {
            threads.push(udp::start(socket, Arc::clone(&tracker), ids, Arc::clone(&listener_state))?);
        }
        let housekeeping = housekeeping::start(Arc::clone(&tracker), certificate.clone(), listener_state)?;
        Ok(Running {
            tracker,
            addresses,
            certificate,
            ids,
            accept_gate,
            threads,
            housekeeping,
            drain_timeout,
        })
    }
}

impl Running {
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    pub fn certificate(&self) -> Option<&Arc<Certificate>> {
        self.certificate.as_ref()
    }

    pub fn tracker(&self) -> &Arc<Tracker> {
        &self.tracker
    }

    /// Applies live settings and reads the certificate files again.
    pub fn reload(&self, live: LiveSettings) {
        self.tracker.set_live(live);
        if let Some(certificate) = &self.certificate {
            certificate.reload();
        }
    }

    pub fn accept_gate(&self) -> &AcceptGate {
        &self.accept_gate
    }

    pub fn connection_ids(&self) -> ConnectionIds {
        self.ids
    }

    /// Stops accepting, answers what has arrived, and ends within the drain timeout.
    ///
    /// With [`ShutdownMode::HandOver`], what is queued in the sockets is left to the other process, and keep-alive
    /// connections are closed with their next reply.
    pub fn drain(self, mode: ShutdownMode) {
        self.accept_gate.shut_down(mode);
        self.housekeeping.thread().unpark();
        let threads: Vec<JoinHandle<()>> = self.threads.into_iter().chain([self.housekeeping]).collect();
        join_within(threads, self.drain_timeout + Duration::from_secs(1));
        housekeeping::log_summary(&self.tracker);
    }
}

/// Threads that do not end in time are abandoned.
fn join_within(threads: Vec<JoinHandle<()>>, timeout: Duration) {
    let (done, all_done) = std::sync::mpsc::channel();
    let joiner = thread::Builder::new().name("drain".into()).spawn(move || {
        for thread in threads {
            let _ = thread.join();
        }
        let _ = done.send(());
    });
    if joiner.is_err() || all_done.recv_timeout(timeout).is_err() {
        warn!("drain timeout: some requests were not answered");
    }
}

/// One thread per worker, each with its own listener of every address.
fn start_http(
    http: Vec<Vec<TcpListener>>,
    https: Vec<Vec<TcpListener>>,
    certificate: Option<&Arc<Certificate>>,
    server: &HttpServer,
) -> io::Result<Vec<JoinHandle<()>>> {
    let mut of_worker: Vec<Vec<Listener>> = Vec::new();
    let plain = http.into_iter().map(|group| (group, None));
    let secure = https.into_iter().map(|group| (group, certificate.map(|c| c.acceptor())));
    for (group, tls) in plain.chain(secure) {
        of_worker.resize_with(of_worker.len().max(group.len()), Vec::new);
        for (listeners, socket) in of_worker.iter_mut().zip(group) {
            listeners.push(Listener { socket, tls: tls.clone() });
        }
    }
    of_worker.into_iter().map(|listeners| http::start_worker(listeners, server.clone())).collect()
}

//! Starts the listeners, reloads, drains.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::watch;
use tracing::warn;

use crate::ending::{Ending, Orders, Phase, Valve};
use crate::housekeeping;
use crate::http::tls::{Certificate, TlsError};
use crate::http::{self, HttpServer, Listener};
use crate::pipeline::Tracker;
use crate::ports::Ports;
use crate::secrets::Secrets;
use crate::settings::{LiveSettings, Settings};
use crate::udp::{self, ConnectionIds};

/// Why the tracker does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address is taken, or not ours.
    #[error("cannot listen on {address} ({protocol}): {}", explain_bind(.reason))]
    Bind {
        /// Where.
        address: SocketAddr,
        /// `HTTP`, `HTTPS` or `UDP`.
        protocol: &'static str,
        /// Why.
        reason: io::Error,
    },
    /// HTTPS addresses are set, but no certificate.
    #[error(
        "https addresses are set, but no certificate: set tracker.tls_cert_file and tracker.tls_key_file"
    )]
    NoCertificate,
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The system gives no threads or no runtime.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] io::Error),
}

/// Why an address cannot be used, and what to do.
pub fn explain_bind(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "the port is taken; stop the program that has it, or configure another one; to replace a running server, \
             start with --take-over on its data folder"
                .to_owned()
        }
        io::ErrorKind::AddrNotAvailable => "this machine does not have that address".to_owned(),
        io::ErrorKind::PermissionDenied => "not permitted; ports below 1024 need privileges".to_owned(),
        _ => error.to_string(),
    }
}

/// Where the tracker really listens, port 0 resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// Plain HTTP.
    pub http: Vec<SocketAddr>,
    /// HTTPS.
    pub https: Vec<SocketAddr>,
    /// UDP.
    pub udp: Vec<SocketAddr>,
}

/// A tracker that runs.
pub struct Running {
    tracker: Arc<Tracker>,
    addresses: Addresses,
    certificate: Option<Arc<Certificate>>,
    ids: ConnectionIds,
    valve: Valve,
    threads: Vec<JoinHandle<()>>,
    housekeeping: JoinHandle<()>,
    drain_timeout: Duration,
}

/// A tracker that has everything but its sockets.
pub struct Prepared {
    tracker: Arc<Tracker>,
    certificate: Option<Arc<Certificate>>,
    drain_timeout: Duration,
}

/// Opens all sockets, then starts all threads: a port that is taken leaves nothing half started.
pub fn start(settings: &Settings, tracker: Arc<Tracker>, secrets: &Secrets) -> Result<Running, StartError> {
    let prepared = Prepared::new(settings, tracker)?;
    prepared.start(Ports::open(settings)?, secrets.connection_ids())
}

impl Prepared {
    /// Reads the certificate; opens and starts nothing.
    pub fn new(settings: &Settings, tracker: Arc<Tracker>) -> Result<Prepared, StartError> {
        let certificate = match &settings.tls {
            Some(files) => Some(Arc::new(Certificate::load(files)?)),
            None if !settings.https_addresses.is_empty() => return Err(StartError::NoCertificate),
            None => None,
        };
        Ok(Prepared { tracker, certificate, drain_timeout: settings.drain_timeout })
    }

    /// The certificate that it will show over HTTPS.
    pub fn certificate(&self) -> Option<&Arc<Certificate>> {
        self.certificate.as_ref()
    }

    /// The tracker itself.
    pub fn tracker(&self) -> &Arc<Tracker> {
        &self.tracker
    }

    /// Starts all threads. Connection ids that others gave under the same secret are good here, too.
    pub fn start(self, ports: Ports, ids: ConnectionIds) -> Result<Running, StartError> {
        let Prepared { tracker, certificate, drain_timeout } = self;
        let addresses = ports.addresses()?;
        let orders = Arc::new(Orders::default());
        let (tell, phase) = watch::channel(Phase::Serve);
        let http_server = HttpServer {
            tracker: Arc::clone(&tracker),
            connections: Arc::clone(tracker.connections()),
            phase,
            orders: Arc::clone(&orders),
            drain_timeout,
            accept_failures: Arc::default(),
        };
        let listeners = ports.count();
        let mut threads = start_http(ports.http, ports.https, certificate.as_ref(), &http_server)?;
        for socket in ports.udp.into_iter().flatten() {
            threads.push(udp::start(socket, Arc::clone(&tracker), ids, Arc::clone(&orders))?);
        }
        let housekeeping =
            housekeeping::start(Arc::clone(&tracker), certificate.clone(), Arc::clone(&orders))?;
        let valve = Valve { orders, tell, listeners };
        Ok(Running { tracker, addresses, certificate, ids, valve, threads, housekeeping, drain_timeout })
    }
}

impl Running {
    /// Where it listens.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// The certificate that it shows over HTTPS.
    pub fn certificate(&self) -> Option<&Arc<Certificate>> {
        self.certificate.as_ref()
    }

    /// The tracker itself.
    pub fn tracker(&self) -> &Arc<Tracker> {
        &self.tracker
    }

    /// Takes over what may change while the server runs, and reads the certificate files again.
    pub fn reload(&self, live: LiveSettings) {
        self.tracker.set_live(live);
        if let Some(certificate) = &self.certificate {
            certificate.reload();
        }
    }

    /// Keeps what comes waiting in the sockets, for a while.
    pub fn valve(&self) -> &Valve {
        &self.valve
    }

    /// Gives and checks connection ids over UDP.
    pub fn connection_ids(&self) -> ConnectionIds {
        self.ids
    }

    /// Stops accepting, answers what has arrived, and ends within the drain timeout.
    ///
    /// Where another process serves the same sockets ([`Ending::HandOver`]), what waits in them is left to it, and
    /// connections that are kept alive are closed with their next answer: whoever is just sending is answered.
    pub fn drain(self, ending: Ending) {
        self.valve.end(ending);
        self.housekeeping.thread().unpark();
        let threads: Vec<JoinHandle<()>> = self.threads.into_iter().chain([self.housekeeping]).collect();
        join_within(threads, self.drain_timeout + Duration::from_secs(1));
        housekeeping::log_summary(&self.tracker);
    }
}

/// Waits for the threads, but not for ever: what hangs is left behind when the process ends.
fn join_within(threads: Vec<JoinHandle<()>>, timeout: Duration) {
    let (done, all_done) = std::sync::mpsc::channel();
    let joiner = thread::Builder::new().name("drain".into()).spawn(move || {
        for thread in threads {
            let _ = thread.join();
        }
        let _ = done.send(());
    });
    if joiner.is_err() || all_done.recv_timeout(timeout).is_err() {
        warn!("not everything was drained in time");
    }
}

/// One thread a worker, which serves that worker's listener of every address.
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

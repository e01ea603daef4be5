//! Starts the listeners, reloads, drains.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::watch;
use tracing::warn;

use crate::housekeeping;
use crate::http::tls::{Certificate, TlsError};
use crate::http::{self, HttpServer, Listener};
use crate::pipeline::Tracker;
use crate::secrets::Secrets;
use crate::settings::{LiveSettings, Settings};
use crate::sockets;
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
            "the port is taken; stop whoever has it, or configure another one".to_owned()
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
    stop: Arc<AtomicBool>,
    stop_http: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
    housekeeping: JoinHandle<()>,
    drain_timeout: Duration,
}

/// Every socket, by address and then by worker.
struct Sockets {
    http: Vec<Vec<TcpListener>>,
    https: Vec<Vec<TcpListener>>,
    udp: Vec<Vec<UdpSocket>>,
}

/// Opens all sockets, then starts all threads: a port that is taken leaves nothing half started.
pub fn start(settings: &Settings, tracker: Arc<Tracker>, secrets: &Secrets) -> Result<Running, StartError> {
    let certificate = match &settings.tls {
        Some(files) => Some(Arc::new(Certificate::load(files)?)),
        None if !settings.https_addresses.is_empty() => return Err(StartError::NoCertificate),
        None => None,
    };
    let sockets = open_sockets(settings)?;
    let addresses = sockets.addresses()?;
    let stop = Arc::new(AtomicBool::new(false));
    let (stop_http, http_stopped) = watch::channel(false);
    let http_server = HttpServer {
        tracker: Arc::clone(&tracker),
        connections: Arc::clone(tracker.connections()),
        stop: http_stopped,
        drain_timeout: settings.drain_timeout,
    };
    let mut threads = start_http(sockets.http, sockets.https, certificate.as_ref(), &http_server)?;
    let ids = ConnectionIds::new(secrets.for_connection_ids());
    for socket in sockets.udp.into_iter().flatten() {
        threads.push(udp::start(socket, Arc::clone(&tracker), ids, Arc::clone(&stop))?);
    }
    let housekeeping = housekeeping::start(Arc::clone(&tracker), certificate.clone(), Arc::clone(&stop))?;
    let drain_timeout = settings.drain_timeout;
    Ok(Running { tracker, addresses, certificate, stop, stop_http, threads, housekeeping, drain_timeout })
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

    /// Stops accepting, answers what has arrived, and ends within the drain timeout.
    pub fn drain(self) {
        self.stop.store(true, Ordering::Release);
        // Nobody listens any more if every HTTP thread has ended, which is as good.
        let _ = self.stop_http.send(true);
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

impl Sockets {
    fn addresses(&self) -> io::Result<Addresses> {
        let tcp = |groups: &[Vec<TcpListener>]| -> io::Result<Vec<SocketAddr>> {
            groups.iter().flat_map(|group| group.first()).map(TcpListener::local_addr).collect()
        };
        let udp = self.udp.iter().flat_map(|group| group.first()).map(UdpSocket::local_addr);
        Ok(Addresses {
            http: tcp(&self.http)?,
            https: tcp(&self.https)?,
            udp: udp.collect::<io::Result<_>>()?,
        })
    }
}

fn open_sockets(settings: &Settings) -> Result<Sockets, StartError> {
    let workers = settings.workers.max(1);
    Ok(Sockets {
        http: open_each(&settings.http_addresses, "HTTP", |at| sockets::listen_tcp(at, workers))?,
        https: open_each(&settings.https_addresses, "HTTPS", |at| sockets::listen_tcp(at, workers))?,
        udp: open_each(&settings.udp_addresses, "UDP", |at| sockets::listen_udp(at, workers))?,
    })
}

fn open_each<T>(
    addresses: &[SocketAddr],
    protocol: &'static str,
    open: impl Fn(SocketAddr) -> io::Result<Vec<T>>,
) -> Result<Vec<Vec<T>>, StartError> {
    let mut groups = Vec::new();
    for address in addresses {
        match open(*address) {
            Ok(group) => groups.push(group),
            Err(error) if addresses.len() > 1 && sockets::is_missing_ipv6(*address, &error) => {
                warn!(%address, protocol, "this machine has no IPv6; listening on the other addresses only");
            }
            Err(reason) => return Err(StartError::Bind { address: *address, protocol, reason }),
        }
    }
    Ok(groups)
}

//! The HTTP server: listens, serves connections, drains.
//!
//! # Guarantees
//!
//! - All sockets are bound before anything is served: a used port leaves nothing half started.
//! - A slow, oversized or malformed request head, a slow TLS handshake and a client that does not read its response end
//!   the connection and are counted.
//! - The number of connections is bounded, in total and per address.
//! - Draining completes requests in flight, within a timeout.

use std::error::Error;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use net::accept::{AcceptErrors, accept};
use net::listen::{self, BindOptions};
use net::{BindError, Certificate, ConnectionPermit, ConnectionPermits, TlsAcceptor, TlsError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::ServiceExt;
use tracing::{error, warn};

use crate::counters::SiteCounters;
use crate::settings::SiteSettings;

mod stream;

pub(crate) use stream::into_socket;
use stream::{MonitoredStream, Traffic};

/// Minimum buffer size of hyper.
const HEAD_BYTES_MIN: usize = 8192;
const HEADERS_MAX: usize = 100;
/// Interval of the check for changed certificate files.
const CERTIFICATE_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Error at the start of the site.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// The address is in use or not local.
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error("site.tls_cert_file, site.tls_key_file: {0}")]
    Tls(#[from] TlsError),
}

/// Remote address of the connection.
#[derive(Clone, Copy, Debug)]
pub struct RemoteAddress(pub SocketAddr);

/// A site with its certificate loaded, before it has sockets.
pub struct UnboundSite {
    certificate: Option<Arc<Certificate>>,
}

pub struct RunningSite {
    addresses: Vec<SocketAddr>,
    certificate: Option<Arc<Certificate>>,
    stop: watch::Sender<bool>,
    accepting: JoinSet<()>,
    drain_timeout: Duration,
}

#[derive(Clone)]
struct Shared {
    app: Router,
    tls: Option<TlsAcceptor>,
    counters: Arc<SiteCounters>,
    permits: Arc<ConnectionPermits>,
    settings: Arc<SiteSettings>,
    stop: watch::Receiver<bool>,
    accept_errors: Arc<AcceptErrors>,
}

/// Binds all addresses or none. Inherited sockets are used where their address is configured.
pub fn listen(
    settings: &SiteSettings,
    mut inherited: Vec<StdListener>,
) -> Result<Vec<StdListener>, BindError> {
    let options = BindOptions { listener: "site", count: 1, share_ports: false };
    let sockets = listen::open(&settings.addresses, &mut inherited, options)?;
    listen::close_unused(inherited);
    Ok(sockets.into_iter().flatten().collect())
}

impl UnboundSite {
    pub fn new(settings: &SiteSettings) -> Result<UnboundSite, SiteError> {
        let certificate = settings.tls.as_ref().map(Certificate::load).transpose()?.map(Arc::new);
        Ok(UnboundSite { certificate })
    }

    pub fn certificate(&self) -> Option<&Arc<Certificate>> {
        self.certificate.as_ref()
    }

    /// Starts to serve on these sockets.
    pub fn serve(
        self,
        listeners: Vec<StdListener>,
        settings: SiteSettings,
        app: Router,
        counters: Arc<SiteCounters>,
    ) -> io::Result<RunningSite> {
        let addresses = listeners.iter().map(StdListener::local_addr).collect::<io::Result<_>>()?;
        let (stop, stopped) = watch::channel(false);
        let drain_timeout = settings.drain_timeout;
        let shared = Shared {
            app,
            tls: self.certificate.as_ref().map(|certificate| certificate.acceptor()),
            counters,
            permits: Arc::default(),
            settings: Arc::new(settings),
            stop: stopped.clone(),
            accept_errors: Arc::new(AcceptErrors::of("site")),
        };
        let mut accepting = JoinSet::new();
        for listener in listeners {
            accepting.spawn(serve_listener(listener, shared.clone()));
        }
        if let Some(certificate) = &self.certificate {
            accepting.spawn(reload_certificates(Arc::clone(certificate), stopped));
        }
        Ok(RunningSite { addresses, certificate: self.certificate, stop, accepting, drain_timeout })
    }
}

impl RunningSite {
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    pub fn is_secure(&self) -> bool {
        self.certificate.is_some()
    }

    /// Reloads the certificate.
    pub fn reload(&self) {
        if let Some(certificate) = &self.certificate {
            certificate.reload();
        }
    }

    /// Stops accepting and completes requests in flight, within the drain timeout.
    pub async fn drain(mut self) {
        let _ = self.stop.send(true);
        let ending = async { while self.accepting.join_next().await.is_some() {} };
        if tokio::time::timeout(self.drain_timeout, ending).await.is_err() {
            warn!("drain timeout: some requests to the site were aborted");
        }
    }
}

/// Reloads changed certificate files periodically.
async fn reload_certificates(certificate: Arc<Certificate>, mut stop: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            _ = stop.wait_for(|stopped| *stopped) => return,
            () = tokio::time::sleep(CERTIFICATE_CHECK_INTERVAL) => certificate.reload_if_changed(),
        }
    }
}

async fn serve_listener(listener: StdListener, shared: Shared) {
    let socket = match TcpListener::from_std(listener) {
        Ok(socket) => socket,
        Err(reason) => return error!(%reason, "cannot use a listener of the site"),
    };
    let mut open = JoinSet::new();
    let mut stop = shared.stop.clone();
    loop {
        let (stream, from) = tokio::select! {
            biased;
            _ = stop.wait_for(|stopped| *stopped) => break,
            accepted = accept(&socket, &shared.accept_errors, &shared.counters.connections_refused) => accepted,
        };
        admit_connection(stream, from, &shared, &mut open);
        while open.try_join_next().is_some() {}
    }
    drop(socket);
    while open.join_next().await.is_some() {}
}

/// Serves a new connection, or refuses it above the limits.
fn admit_connection(stream: TcpStream, from: SocketAddr, shared: &Shared, open: &mut JoinSet<()>) {
    let limits = &shared.settings.limits;
    let permit = shared.permits.admit(
        from.ip(),
        &shared.settings.proxies,
        limits.connections_max,
        limits.connections_per_address_max,
    );
    match permit {
        Ok(permit) => {
            shared.counters.connections.increment();
            open.spawn(connection(stream, from, shared.clone(), permit));
        }
        Err(reason) => {
            shared.counters.connections_refused.count(reason.label());
            if shared.tls.is_none() {
                // Best effort, without waiting for the socket to become writable.
                let _ = stream.try_write(
                    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
                );
            }
        }
    }
}

async fn connection(stream: TcpStream, from: SocketAddr, shared: Shared, _permit: ConnectionPermit) {
    let open = &shared.counters.connections_open;
    open.fetch_add(1, Ordering::Relaxed);
    let _ = stream.set_nodelay(true);
    match &shared.tls {
        None => serve(stream, from, &shared).await,
        Some(acceptor) => {
            let handshake = acceptor.accept(stream);
            match tokio::time::timeout(shared.settings.limits.header_timeout, handshake).await {
                Ok(Ok(stream)) => serve(stream, from, &shared).await,
                Ok(Err(_)) => shared.counters.connections_refused.count("handshake_failed"),
                Err(_) => shared.counters.connections_refused.count("handshake_slow"),
            }
        }
    }
    open.fetch_sub(1, Ordering::Relaxed);
}

/// Serves the requests of one connection.
async fn serve<S>(stream: S, from: SocketAddr, shared: &Shared)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = &shared.settings.limits;
    let traffic = Arc::new(Traffic::default());
    let stream = MonitoredStream::new(stream, Arc::clone(&traffic), limits.request_timeout);
    let app = shared.app.clone();
    let answering = Arc::clone(&traffic);
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(RemoteAddress(from));
        let (answer, traffic) = (app.clone().oneshot(request), Arc::clone(&answering));
        async move {
            let answer = answer.await;
            traffic.record_answer();
            answer
        }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(limits.header_bytes_max.max(HEAD_BYTES_MIN))
        .max_headers(HEADERS_MAX);
    let mut connection =
        std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service).with_upgrades());
    let mut stop = shared.stop.clone();
    let draining = async {
        let _ = stop.wait_for(|stopped| *stopped).await;
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = draining => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended
        && let Some(reason) = reason_of(&error, &traffic)
    {
        shared.counters.connections_refused.count(reason);
    }
}

/// Reason for the counter; none for a normal end or an idle keep-alive connection.
fn reason_of(error: &hyper::Error, traffic: &Traffic) -> Option<&'static str> {
    if error.is_timeout() {
        return (!traffic.is_idle()).then_some("slow_head");
    }
    if error.is_parse_too_large() {
        return Some("head_too_large");
    }
    let cause = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    if cause.is_some_and(|cause| cause.kind() == io::ErrorKind::TimedOut) {
        return Some("slow_reader");
    }
    error.is_parse().then_some("bad_http")
}

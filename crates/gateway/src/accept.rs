//! Accepts WebSocket connections: the handshake of RFC 6455, connection limits, and the drain at shutdown.
//!
//! # Guarantees
//!
//! - Pages of other origins get no connection, whatever cookies or tokens they have: browsers send `Origin`. Clients
//!   that are not browsers send none, and are accepted.
//! - Open connections are bounded, in total and by address, from the handshake on.
//! - At shutdown, connections are closed a few at a time, so that clients do not all reconnect at once.
//!
//! # Deliberately absent
//!
//! HTTP: the HTTP server passes the request in, and unwraps the socket.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use domain::LogThrottle;
use domain::clock::{Clock, Stopwatch};
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use net::Socket;
use tokio::time::sleep;
use tracing::{debug, warn};

use crate::counters::{GatewayCounters, UpgradeRefusal};
use crate::hub::Hub;
use crate::outbox::Outbox;
use crate::protocol::CloseCode;
use crate::session::{Session, SessionShared};
use crate::settings::GatewaySettings;
use crate::token::Tokens;

mod handshake;
mod permits;

use handshake::Offered;
pub(crate) use permits::SessionPermit;
use permits::SessionPermits;

/// Interval between two groups of connections closed during the drain.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);
/// Connections that are closed at once, at the least: a gateway with few of them stops quickly.
const DRAIN_STEP_MIN: usize = 20;
/// Characters of the offered subprotocols that are logged.
const OFFERED_CHARS_MAX: usize = 80;
/// Time limit of the drain.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(3);

/// Takes the socket out of an upgraded HTTP connection, with the bytes read already. None if the stream is of another
/// type.
pub type Unwrap = fn(Upgraded) -> Option<(Socket, Vec<u8>)>;

pub struct Acceptor {
    shared: Arc<SessionShared>,
    permits: Arc<SessionPermits>,
    subprotocol_log: LogThrottle,
}

/// Where an upgrade request comes from.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionRequest {
    pub from: IpAddr,
    /// The HTTP server knows that the request comes from a page of this server; behind a proxy the headers alone may
    /// not show it. If false, the `Origin` header is checked.
    pub is_from_our_page: bool,
}

pub struct AcceptorParts {
    pub hub: Arc<Hub>,
    pub tokens: Arc<Tokens>,
    pub clock: Arc<dyn Clock>,
    pub counters: Arc<GatewayCounters>,
}

impl Acceptor {
    pub fn new(settings: &GatewaySettings, parts: AcceptorParts) -> Acceptor {
        let AcceptorParts { hub, tokens, clock, counters } = parts;
        let permits = Arc::new(SessionPermits::new(Arc::clone(&counters)));
        let shared = SessionShared {
            hub,
            tokens,
            settings: settings.connections.clone(),
            room_access: settings.limits.room_access,
            counters,
            clock,
            started: Stopwatch::start(),
        };
        Acceptor { shared: Arc::new(shared), permits, subprotocol_log: LogThrottle::default() }
    }

    /// Answers an upgrade request. After the response was sent, the connection runs as a session task on the current
    /// runtime.
    pub fn upgrade<B>(
        &self,
        request: &mut Request<B>,
        request_info: ConnectionRequest,
        unwrap: Unwrap,
    ) -> Result<Response<()>, UpgradeRefusal> {
        self.try_upgrade(request, request_info, unwrap)
            .inspect_err(|refusal| self.shared.counters.accept.refused.count(*refusal))
    }

    fn try_upgrade<B>(
        &self,
        request: &mut Request<B>,
        ConnectionRequest { from, is_from_our_page }: ConnectionRequest,
        unwrap: Unwrap,
    ) -> Result<Response<()>, UpgradeRefusal> {
        let settings = &self.shared.settings;
        let accept = handshake::accept(request)?;
        if !is_from_our_page {
            handshake::check_origin(request.headers(), &settings.allowed_origins)?;
        }
        let offered =
            handshake::offered(request.headers()).inspect_err(|_| self.log_subprotocol(request.headers()))?;
        let upgrade = request.extensions_mut().remove::<OnUpgrade>().ok_or(UpgradeRefusal::NotAWebSocket)?;
        let outbox = Outbox::new(settings, Arc::clone(&self.shared.counters));
        let permit = self.permits.take(from, settings, &outbox)?;
        if offered == Offered::Protobuf {
            self.log_subprotocol(request.headers());
            self.shared.counters.accept.refused.count(UpgradeRefusal::Protocol);
            outbox.close(CloseCode::NotJson);
        }
        tokio::spawn(run_session(upgrade, unwrap, outbox, Arc::clone(&self.shared), permit));
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
        if let Some(protocol) = offered.answer() {
            headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
        }
        self.shared.counters.accept.opened.increment();
        Ok(response)
    }

    fn log_subprotocol(&self, headers: &HeaderMap) {
        let Some(left_out) = self.subprotocol_log.admit(self.shared.clock.now()) else { return };
        let offered = headers.get(SEC_WEBSOCKET_PROTOCOL).and_then(|offered| offered.to_str().ok());
        let offered: String = offered.unwrap_or_default().chars().take(OFFERED_CHARS_MAX).collect();
        warn!(
            offered,
            left_out,
            "client offers no supported WebSocket subprotocol; use the SDK with JSON (centrifuge-json)"
        );
    }

    /// How many connections are open.
    pub fn open_count(&self) -> usize {
        self.permits.count()
    }

    /// Accepts no more connections, and closes all: in steps, so that clients do not all
    /// reconnect elsewhere at the same moment. Waits until they are closed, within a time limit.
    pub async fn drain(&self) {
        let outboxes = self.permits.close();
        let goodbye = self.shared.settings.goodbye;
        let rounds = (goodbye.as_millis() / DRAIN_INTERVAL.as_millis()).max(1);
        let each = outboxes.len().div_ceil(usize::try_from(rounds).unwrap_or(usize::MAX)).max(DRAIN_STEP_MIN);
        for (round, some) in outboxes.chunks(each).enumerate() {
            if round > 0 && goodbye > Duration::ZERO {
                sleep(DRAIN_INTERVAL).await;
            }
            some.iter().for_each(|outbox| outbox.close(CloseCode::Shutdown));
        }
        drop(outboxes);
        if tokio::time::timeout(DRAIN_TIMEOUT, self.permits.emptied()).await.is_err() {
            debug!(open = self.open_count(), "connections did not answer the close frame in time");
        }
    }
}

/// Waits for the upgrade, then starts the session.
async fn run_session(
    upgrade: OnUpgrade,
    unwrap: Unwrap,
    outbox: Arc<Outbox>,
    shared: Arc<SessionShared>,
    permit: SessionPermit,
) {
    // Boxed, so that this future stays small.
    let socket = Box::pin(tokio::time::timeout(shared.settings.connect_timeout, upgrade)).await;
    let Ok(Ok(upgraded)) = socket else {
        return;
    };
    let Some(parts) = unwrap(upgraded) else {
        debug!("cannot take the socket from HTTP");
        return;
    };
    // A task of its own, so that the memory of this one is freed.
    tokio::spawn(Session::new(parts, outbox, shared, permit));
}

//! Where connections come in: the handshake of RFC 6455, who may have one, and how everybody is sent away at the end.
//!
//! # Guarantees
//!
//! - Pages of other sites get no connection, whatever cookies or tokens they have: a browser says where a page is from.
//!   Programs that are not browsers do not say, and may.
//! - Open connections are bounded, in total and by address, from the handshake on.
//! - At the end, connections are told to come back elsewhere a few at a time, so that they do not all come at once.
//!
//! # Deliberately absent
//!
//! HTTP: whoever serves it hands over the request, and gives back the socket that was beneath it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use domain::clock::{Clock, Stopwatch};
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use tokio::time::sleep;
use tracing::debug;

use crate::counters::{DoorRefusal, GatewayCounters};
use crate::hub::Hub;
use crate::operators::Operators;
use crate::outbox::Outbox;
use crate::protocol::CloseCode;
use crate::session::{Session, Shared, Socket};
use crate::settings::GatewaySettings;
use crate::token::Tokens;

mod handshake;
mod places;

use handshake::PROTOCOL;
pub(crate) use places::Place;
use places::Places;

/// How often, while everybody is sent away, some are.
const GOODBYE_EVERY: Duration = Duration::from_millis(20);
/// How long the last ones may take to go.
const LAST_ONES: Duration = Duration::from_secs(3);

/// Gets the socket out of a connection that HTTP no longer needs, with what was read of it already. None if it is not
/// one that can be used.
pub type Unwrap = fn(Upgraded) -> Option<(Socket, Vec<u8>)>;

/// Where connections come in.
pub struct Door {
    shared: Arc<Shared>,
    places: Arc<Places>,
}

/// Who stands before the door.
#[derive(Clone, Copy, Debug)]
pub struct Comer {
    /// From where.
    pub from: IpAddr,
    /// Whether whoever serves HTTP knows that it was a page of this server that sent them: behind a proxy the headers alone
    /// may not say so. If not, the headers are looked at.
    pub is_from_our_page: bool,
}

/// What a door leads to.
pub struct Behind {
    /// Everybody who is here.
    pub hub: Arc<Hub>,
    /// Whose tokens are taken.
    pub tokens: Arc<Tokens>,
    /// Operators who look on.
    pub operators: Arc<Operators>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// What is counted.
    pub counters: Arc<GatewayCounters>,
}

impl Door {
    /// A door, open.
    pub fn new(settings: &GatewaySettings, behind: Behind) -> Door {
        let Behind { hub, tokens, operators, clock, counters } = behind;
        let places = Arc::new(Places::new(Arc::clone(&counters)));
        let shared = Shared {
            hub,
            tokens,
            operators,
            settings: settings.connections.clone(),
            room_access: settings.people.room_access,
            counters,
            clock,
            started: Stopwatch::start(),
        };
        Door { shared: Arc::new(shared), places }
    }

    /// Answers a request for a WebSocket. When the answer has been sent, the connection goes on as a session of its
    /// own on the present runtime, and HTTP is done with it.
    pub fn answer<B>(
        &self,
        request: &mut Request<B>,
        comer: Comer,
        unwrap: Unwrap,
    ) -> Result<Response<()>, DoorRefusal> {
        self.let_in(request, comer, unwrap)
            .inspect_err(|refusal| self.shared.counters.door.refused.count(*refusal))
    }

    fn let_in<B>(
        &self,
        request: &mut Request<B>,
        Comer { from, is_from_our_page }: Comer,
        unwrap: Unwrap,
    ) -> Result<Response<()>, DoorRefusal> {
        let settings = &self.shared.settings;
        let accept = handshake::accept(request)?;
        if !is_from_our_page {
            handshake::check_origin(request.headers(), &settings.allowed_origins)?;
        }
        let upgrade = request.extensions_mut().remove::<OnUpgrade>().ok_or(DoorRefusal::NotAWebSocket)?;
        let outbox = Outbox::new(settings, Arc::clone(&self.shared.counters));
        let place = self.places.take(from, settings, &outbox)?;
        let protocol = handshake::offers_protocol(request.headers());
        tokio::spawn(take_over(upgrade, unwrap, outbox, Arc::clone(&self.shared), place));
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
        if protocol {
            headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL));
        }
        self.shared.counters.door.opened.increment();
        Ok(response)
    }

    /// How many connections are open.
    pub fn open_count(&self) -> usize {
        self.places.count()
    }

    /// Lets nobody in any more, and sends everybody away: a few at a time, over `gateway.goodbye_ms`. Waits until they
    /// have gone, within a time.
    pub async fn drain(&self) {
        let outboxes = self.places.shut();
        let goodbye = self.shared.settings.goodbye;
        let rounds = (goodbye.as_millis() / GOODBYE_EVERY.as_millis()).max(1);
        let each = outboxes.len().div_ceil(usize::try_from(rounds).unwrap_or(usize::MAX)).max(1);
        for (round, some) in outboxes.chunks(each).enumerate() {
            if round > 0 && goodbye > Duration::ZERO {
                sleep(GOODBYE_EVERY).await;
            }
            some.iter().for_each(|outbox| outbox.close(CloseCode::Shutdown));
        }
        drop(outboxes);
        if tokio::time::timeout(LAST_ONES, self.places.emptied()).await.is_err() {
            debug!(open = self.open_count(), "some connections did not answer the goodbye");
        }
    }
}

/// Goes on with a connection once HTTP is done with it.
async fn take_over(
    upgrade: OnUpgrade,
    unwrap: Unwrap,
    outbox: Arc<Outbox>,
    shared: Arc<Shared>,
    place: Place,
) {
    // Boxed each, so that a session that lives for days is no larger than it must be.
    let socket = Box::pin(tokio::time::timeout(shared.settings.connect_timeout, upgrade)).await;
    let Ok(Ok(upgraded)) = socket else {
        return;
    };
    let Some(parts) = unwrap(upgraded) else {
        debug!("a connection could not be taken over from HTTP");
        return;
    };
    // A task of its own: what this one needed is let go.
    tokio::spawn(Session::new(parts, outbox, shared, place));
}

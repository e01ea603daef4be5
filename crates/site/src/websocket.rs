//! `GET /connection/websocket`: upgrades a connection and hands it to the gateway.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use gateway::accept::ConnectionRequest;
use gateway::counters::UpgradeRefusal;
use http::StatusCode;
use http::header::{CONNECTION, SEC_WEBSOCKET_VERSION, UPGRADE};

use crate::app::Routes;
use crate::auth::ClientAddress;
use crate::problem::Problem;
use crate::server;
use crate::session::request_origin::RequestOrigin;
use crate::site::Site;

/// Not part of the OpenAPI description.
pub(crate) fn routes() -> Routes {
    Routes::new().route("/connection/websocket", get(connect))
}

async fn connect(
    State(site): State<Arc<Site>>,
    Extension(ClientAddress(from)): Extension<ClientAddress>,
    Extension(origin): Extension<RequestOrigin>,
    mut request: Request,
) -> Result<Response, Problem> {
    let gateway = site.parts.gateway.as_ref().ok_or_else(|| {
        Problem::not_found("no_gateway", "no WebSocket here: this server does not have the role gateway")
    })?;
    // The same origin check as at sign-in.
    let connection = ConnectionRequest { from, is_from_our_page: origin.is_same_origin(request.headers()) };
    match gateway.acceptor.upgrade(&mut request, connection, server::into_socket) {
        Ok(answer) => Ok(answer.map(|()| Body::empty())),
        // Plain HTTP requests get the headers of an upgrade.
        Err(refusal @ UpgradeRefusal::NotAWebSocket) => {
            let upgrade_headers =
                [(UPGRADE, "websocket"), (CONNECTION, "upgrade"), (SEC_WEBSOCKET_VERSION, "13")];
            Ok((upgrade_headers, problem_of(refusal)).into_response())
        }
        Err(refusal) => Err(problem_of(refusal)),
    }
}

fn problem_of(refusal: UpgradeRefusal) -> Problem {
    let (status, code, detail) = match refusal {
        UpgradeRefusal::NotAWebSocket => (
            StatusCode::UPGRADE_REQUIRED,
            "not_a_websocket",
            "a WebSocket (version 13) with the Centrifuge protocol is required: see docs/presence.md",
        ),
        UpgradeRefusal::Origin => (
            StatusCode::FORBIDDEN,
            "origin",
            "pages of this origin may not connect: add it to gateway.allowed_origins",
        ),
        UpgradeRefusal::Protocol => (
            StatusCode::BAD_REQUEST,
            "subprotocol",
            "none of the offered subprotocols is supported: offer centrifuge-json, or none",
        ),
        UpgradeRefusal::Full => (
            StatusCode::SERVICE_UNAVAILABLE,
            "full",
            "too many open connections (gateway.connections_max): try again later",
        ),
        UpgradeRefusal::AddressFull => (
            StatusCode::TOO_MANY_REQUESTS,
            "address_full",
            "too many open connections from your address (gateway.connections_per_address_max)",
        ),
        UpgradeRefusal::Stopping => {
            (StatusCode::SERVICE_UNAVAILABLE, "stopping", "the server is stopping: reconnect in a moment")
        }
    };
    Problem::new(status, code, detail)
}

//! The whole at a glance.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::app::Routes;
use crate::problem::ProblemBody;
use crate::site::Site;

pub(super) fn read_routes() -> Routes {
    Routes::new().routes(routes!(stats))
}

/// The whole at a glance.
#[derive(Serialize, ToSchema)]
struct Stats {
    /// Which version this is.
    version: String,
    /// How many users there are, enabled or not.
    users: u64,
    /// How many torrents there are, enabled or not.
    torrents: u64,
    /// What this process's tracker does; null if it has none.
    tracker: Option<TrackerStats>,
}

/// What a tracker does.
#[derive(Serialize, ToSchema)]
struct TrackerStats {
    /// Peers on all torrents.
    peers: u64,
    /// Announces accepted since the start.
    announces: u64,
    /// Requests refused since the start, for any reason.
    refused: u64,
    /// Torrents scraped since the start.
    scrapes: u64,
    /// Bytes uploaded since the start, as credited to raw accounts.
    #[schema(pattern = "^[0-9]+$")]
    uploaded: String,
    /// Bytes downloaded since the start, likewise.
    #[schema(pattern = "^[0-9]+$")]
    downloaded: String,
}

/// The whole at a glance
#[utoipa::path(
    get, path = "/api/v1/stats", tag = "health",
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "Figures of this process", body = Stats),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn stats(State(site): State<Arc<Site>>) -> Json<Stats> {
    let parts = &site.parts;
    let tracker = parts.tracker.as_ref().map(|tracker| {
        let counters = tracker.counters();
        TrackerStats {
            peers: tracker.swarms().totals().peers as u64,
            announces: counters.announces(),
            refused: counters.refused.total(),
            scrapes: counters.scrapes.get(),
            uploaded: counters.uploaded_bytes.get().to_string(),
            downloaded: counters.downloaded_bytes.get().to_string(),
        }
    });
    Json(Stats {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        users: parts.gate.user_count() as u64,
        torrents: parts.gate.torrent_count() as u64,
        tracker,
    })
}

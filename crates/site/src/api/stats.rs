//! Totals of this process.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::app::Routes;
use crate::site::Site;

pub(super) fn read_routes() -> Routes {
    Routes::new().routes(routes!(stats))
}

/// Totals of this process.
#[derive(Serialize, ToSchema)]
struct Stats {
    version: String,
    /// Enabled and disabled.
    users: u64,
    /// Enabled and disabled.
    torrents: u64,
    /// Null if this process has no tracker.
    tracker: Option<TrackerStats>,
}

/// Counters of a tracker since its start.
#[derive(Serialize, ToSchema)]
struct TrackerStats {
    peers: u64,
    /// Accepted announces.
    announces: u64,
    /// Refused requests.
    refused: u64,
    /// Scraped torrents.
    scrapes: u64,
    /// Raw bytes.
    #[schema(pattern = "^[0-9]+$")]
    uploaded: String,
    /// Raw bytes.
    #[schema(pattern = "^[0-9]+$")]
    downloaded: String,
}

/// Get totals of this process
#[utoipa::path(
    get, path = "/api/v1/stats", tag = "health",
    responses(
        (status = 200, description = "The totals", body = Stats),
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

//! Risk events (J8): announces that claim more than can be believed.

use std::sync::Arc;

use access::keys::{Authenticated, Scope};
use axum::extract::State;
use axum::{Extension, Json};
use journal::{EntryId, Lane, Stored};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::Page;
use crate::app::Routes;
use crate::extract::{Asked, PageAsked};
use crate::problem::{Problem, ProblemBody};
use crate::site::Site;

pub(super) fn readable() -> Routes {
    Routes::new().routes(routes!(list))
}

/// An announce that claimed more than can be believed.
#[derive(Serialize, ToSchema)]
pub(super) struct Risk {
    /// Its place among its like.
    id: String,
    /// Who announced.
    user: Option<u64>,
    /// Which torrent.
    torrent: Option<u64>,
    /// Its infohash.
    infohash: String,
    /// The client's id, in hexadecimal digits.
    peer_id: String,
    /// From where; only for keys with `admin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<String>,
    /// When.
    at: Option<u32>,
    /// Seconds since the announce before.
    elapsed_s: Option<u64>,
    /// Bytes that were claimed to be uploaded.
    uploaded_claimed: String,
    /// Bytes that were credited instead.
    uploaded_credited: String,
    /// Bytes that were claimed to be downloaded.
    downloaded_claimed: String,
    /// Bytes that were credited instead.
    downloaded_credited: String,
    /// The rate above which nobody is believed, in bytes a second.
    ceiling_bytes_per_s: String,
    /// How many more of this user went unreported before this one.
    unreported: Option<u64>,
}

impl Risk {
    pub(super) fn of(stored: &Stored, with_address: bool) -> Risk {
        let text =
            |name: &str| String::from_utf8_lossy(stored.fields.get(name).unwrap_or_default()).into_owned();
        Risk {
            id: stored.id.to_string(),
            user: text("user").parse().ok(),
            torrent: text("torrent").parse().ok(),
            infohash: text("infohash"),
            peer_id: text("peer_id"),
            ip: with_address.then(|| text("ip")),
            at: text("ts").parse().ok(),
            elapsed_s: text("dt").parse().ok(),
            uploaded_claimed: text("du_claimed"),
            uploaded_credited: text("du_credited"),
            downloaded_claimed: text("dd_claimed"),
            downloaded_credited: text("dd_credited"),
            ceiling_bytes_per_s: text("ceiling_bytes_per_s"),
            unreported: text("unreported").parse().ok(),
        }
    }
}

/// Announces that claimed more than can be believed
#[utoipa::path(
    get, path = "/api/v1/risks", tag = "risks", params(PageAsked<EntryId>),
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "A page, newest first", body = Page<Risk>),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn list(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    Asked(asked): Asked<PageAsked<EntryId>>,
) -> Result<Json<Page<Risk>>, Problem> {
    let limit = asked.limit()? as usize;
    let before = asked.cursor()?.unwrap_or(EntryId::MAX);
    let stored = site.parts.journal.list_newest(Lane::Risk, before, limit + 1).await?;
    let with_address = caller.scopes.allow(Scope::Admin);
    let show = |stored: &Stored| Risk::of(stored, with_address);
    Ok(Json(Page::of(stored, limit, |stored| stored.id.to_string(), show)))
}

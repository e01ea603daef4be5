//! Multipliers: periods in which bytes count more or less.

use std::sync::Arc;

use admin::audit::Subject;
use admin::keys::Authenticated;
use axum::extract::State;
use axum::{Extension, Json};
use http::StatusCode;
use ledger::Multiplier;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::{Change, Page, recorded};
use crate::app::Routes;
use crate::extract::{JsonBody, PathParams};
use crate::problem::Problem;
use crate::site::Site;

mod create;

use create::{CreateMultiplier, CreateMultiplierSchema};

pub(super) fn read_routes() -> Routes {
    Routes::new().routes(routes!(list))
}

pub(super) fn write_routes() -> Routes {
    Routes::new().routes(routes!(add)).routes(routes!(remove))
}

/// A period in which bytes count more or less.
#[derive(Serialize, ToSchema)]
#[schema(as = Multiplier)]
struct MultiplierJson {
    id: u64,
    /// `site`, `torrent` or `user`.
    #[schema(example = "site")]
    scope: String,
    /// Torrent or user id; 0 for the site.
    subject: u64,
    /// Share of uploaded bytes that is credited.
    upload_percent: u32,
    /// Share of downloaded bytes that is credited.
    download_percent: u32,
    starts_at: u32,
    /// Null if it lasts until it is removed.
    ends_at: Option<u32>,
    note: String,
}

impl MultiplierJson {
    fn of(multiplier: &Multiplier) -> MultiplierJson {
        let terms = &multiplier.terms;
        MultiplierJson {
            id: multiplier.id,
            scope: terms.scope.name().to_owned(),
            subject: terms.scope.subject(),
            upload_percent: terms.upload.get(),
            download_percent: terms.download.get(),
            starts_at: terms.starts_at.0,
            ends_at: terms.ends_at.map(|at| at.0),
            note: terms.note.clone(),
        }
    }
}

/// List multipliers: past, current and future
#[utoipa::path(
    get, path = "/api/v1/multipliers", tag = "multipliers",
    responses(
        (status = 200, description = "All multipliers, sorted by id", body = Page<MultiplierJson>),
    )
)]
async fn list(State(site): State<Arc<Site>>) -> Result<Json<Page<MultiplierJson>>, Problem> {
    let multipliers = site.parts.ledger.multipliers().await?;
    Ok(Json(Page::whole(multipliers.iter().map(MultiplierJson::of).collect())))
}

/// Add a multiplier
#[utoipa::path(
    post, path = "/api/v1/multipliers", tag = "multipliers", request_body = CreateMultiplierSchema,
    responses(
        (status = 201, description = "The multiplier", body = MultiplierJson),
    )
)]
async fn add(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    JsonBody(body): JsonBody<CreateMultiplier>,
) -> Result<(StatusCode, Json<MultiplierJson>), Problem> {
    let terms = body.terms(site.parts.clock.now())?;
    let change = Change::new("multiplier.add", Subject::new("multiplier", terms.scope))
        .with("upload_percent", terms.upload.get())
        .with("download_percent", terms.download.get());
    let multiplier = recorded(&site, &caller, change, site.parts.ledger.add_multiplier(terms)).await?;
    Ok((StatusCode::CREATED, Json(MultiplierJson::of(&multiplier))))
}

/// End a multiplier; credited bytes stay, and it remains listed
#[utoipa::path(
    delete, path = "/api/v1/multipliers/{id}", tag = "multipliers",
    params(("id" = u64, Path, description = "Multiplier id")),
    responses(
        (status = 204, description = "Removed"),
    )
)]
async fn remove(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    PathParams(id): PathParams<u64>,
) -> Result<StatusCode, Problem> {
    let change = Change::new("multiplier.remove", Subject::new("multiplier", id));
    let operation = async {
        match site.parts.ledger.end_multiplier(id).await? {
            true => Ok(()),
            false => {
                Err(Problem::not_found("unknown_multiplier", format!("no active or future multiplier {id}")))
            }
        }
    };
    recorded(&site, &caller, change, operation).await?;
    Ok(StatusCode::NO_CONTENT)
}

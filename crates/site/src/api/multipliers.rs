//! Multipliers: times in which bytes count more or less than they are.

use std::sync::Arc;

use access::audit::Subject;
use access::keys::Authenticated;
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
use crate::problem::{Problem, ProblemBody};
use crate::site::Site;

mod create;

use create::{CreateMultiplier, CreateMultiplierSchema};

pub(super) fn read_routes() -> Routes {
    Routes::new().routes(routes!(list))
}

pub(super) fn write_routes() -> Routes {
    Routes::new().routes(routes!(add)).routes(routes!(remove))
}

/// A time in which bytes count more or less than they are.
#[derive(Serialize, ToSchema)]
#[schema(as = Multiplier)]
struct MultiplierJson {
    /// Its number.
    id: u64,
    /// What it is for: `site`, `torrent` or `user`.
    #[schema(example = "site")]
    scope: String,
    /// The number of the torrent or user; 0 for the site.
    subject: u64,
    /// How much of what is uploaded counts.
    upload_percent: u32,
    /// How much of what is downloaded counts.
    download_percent: u32,
    /// From when on.
    starts_at: u32,
    /// Until when; null until it is removed.
    ends_at: Option<u32>,
    /// Why.
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

/// All multipliers, also those whose time is over or has not come
#[utoipa::path(
    get, path = "/api/v1/multipliers", tag = "multipliers",
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "All of them, by number", body = Page<MultiplierJson>),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn list(State(site): State<Arc<Site>>) -> Result<Json<Page<MultiplierJson>>, Problem> {
    let multipliers = site.parts.ledger.multipliers().await?;
    Ok(Json(Page::whole(multipliers.iter().map(MultiplierJson::of).collect())))
}

/// Lets bytes count more or less for a while
#[utoipa::path(
    post, path = "/api/v1/multipliers", tag = "multipliers", request_body = CreateMultiplierSchema,
    security(("api_key" = ["admin"]), ("bearer" = ["admin"])),
    responses(
        (status = 201, description = "The multiplier", body = MultiplierJson),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
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

/// Ends a multiplier; what it has added stays, and so does its row, with its end
#[utoipa::path(
    delete, path = "/api/v1/multipliers/{id}", tag = "multipliers",
    params(("id" = u64, Path, description = "Its number")),
    security(("api_key" = ["admin"]), ("bearer" = ["admin"])),
    responses(
        (status = 204, description = "Done"),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
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
            false => Err(Problem::not_found(
                "unknown_multiplier",
                format!("there is no multiplier {id} that has not ended"),
            )),
        }
    };
    recorded(&site, &caller, change, operation).await?;
    Ok(StatusCode::NO_CONTENT)
}

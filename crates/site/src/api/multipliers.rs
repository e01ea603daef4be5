//! Multipliers: times in which bytes count more or less than they are.

use std::sync::Arc;

use access::audit::Subject;
use access::keys::Authenticated;
use axum::extract::State;
use axum::{Extension, Json};
use domain::UnixTime;
use http::StatusCode;
use ledger::{Multiplier, NewMultiplier, Percent, Scope};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::{Change, recorded};
use crate::app::Routes;
use crate::extract::{Named, Said, whole};
use crate::problem::{Problem, ProblemBody};
use crate::site::Site;

pub(super) fn readable() -> Routes {
    Routes::new().routes(routes!(list))
}

pub(super) fn changeable() -> Routes {
    Routes::new().routes(routes!(add)).routes(routes!(remove))
}

/// A time in which bytes count more or less than they are.
#[derive(Serialize, ToSchema)]
#[schema(as = Multiplier)]
struct MultiplierShown {
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

impl MultiplierShown {
    fn of(multiplier: &Multiplier) -> MultiplierShown {
        let terms = &multiplier.terms;
        MultiplierShown {
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

/// A multiplier to be added.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct MultiplierSaid {
    /// What it is for: `site`, `torrent` or `user`.
    #[schema(example = "torrent", pattern = "^(site|torrent|user)$")]
    scope: String,
    /// The number of the torrent or user; left out for the site.
    #[serde(default, deserialize_with = "whole")]
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    subject: Option<u64>,
    /// How much of what is uploaded counts.
    #[serde(default, deserialize_with = "whole")]
    #[schema(minimum = 0, maximum = 10000, default = 100)]
    upload_percent: Option<u32>,
    /// How much of what is downloaded counts. 0 is freeleech.
    #[serde(default, deserialize_with = "whole")]
    #[schema(minimum = 0, maximum = 10000, default = 100)]
    download_percent: Option<u32>,
    /// From when on; now if left out.
    #[serde(default, deserialize_with = "whole")]
    #[schema(format = Int64, minimum = 0, maximum = 4294967295_u64)]
    starts_at: Option<u32>,
    /// Until when; until it is removed if left out.
    #[serde(default, deserialize_with = "whole")]
    #[schema(format = Int64, minimum = 0, maximum = 4294967295_u64)]
    ends_at: Option<u32>,
    /// Why.
    #[serde(default)]
    #[schema(max_length = 500, pattern = "^[^\\x00]*$")]
    note: String,
}

impl MultiplierSaid {
    fn terms(self, now: UnixTime) -> Result<NewMultiplier, Problem> {
        let percent = |name: &str, percent: Option<u32>| {
            let percent = Percent::new(percent.unwrap_or(100));
            percent.ok_or_else(|| Problem::bad_request(format!("{name} must be from 0 to 10000")))
        };
        let subject = self.subject.unwrap_or(0);
        let scope = Scope::from_parts(&self.scope, subject).filter(|scope| scope.subject() == subject);
        if self.note.contains('\0') {
            return Err(Problem::bad_request("note must be without NUL"));
        }
        Ok(NewMultiplier {
            scope: scope.ok_or_else(|| {
                Problem::bad_request(
                    "scope must be \"site\", or \"torrent\" or \"user\" with its number as subject",
                )
            })?,
            upload: percent("upload_percent", self.upload_percent)?,
            download: percent("download_percent", self.download_percent)?,
            starts_at: self.starts_at.map_or(now, UnixTime),
            ends_at: self.ends_at.map(UnixTime),
            note: self.note,
        })
    }
}

/// All multipliers, also those whose time is over or has not come
#[utoipa::path(
    get, path = "/api/v1/multipliers", tag = "multipliers",
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "All of them, by number", body = Vec<MultiplierShown>),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn list(State(site): State<Arc<Site>>) -> Result<Json<Vec<MultiplierShown>>, Problem> {
    let multipliers = site.parts.ledger.multipliers().await?;
    Ok(Json(multipliers.iter().map(MultiplierShown::of).collect()))
}

/// Lets bytes count more or less for a while
#[utoipa::path(
    post, path = "/api/v1/multipliers", tag = "multipliers", request_body = MultiplierSaid,
    security(("api_key" = ["admin"]), ("bearer" = ["admin"])),
    responses(
        (status = 201, description = "The multiplier", body = MultiplierShown),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn add(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    Said(said): Said<MultiplierSaid>,
) -> Result<(StatusCode, Json<MultiplierShown>), Problem> {
    let terms = said.terms(site.parts.clock.now())?;
    let change = Change::new("multiplier.add", Subject::new("multiplier", terms.scope))
        .with("upload_percent", terms.upload.get())
        .with("download_percent", terms.download.get());
    let multiplier = recorded(&site, &caller, change, site.parts.ledger.add_multiplier(terms)).await?;
    Ok((StatusCode::CREATED, Json(MultiplierShown::of(&multiplier))))
}

/// Ends a multiplier; what it has added stays
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
    Named(id): Named<u64>,
) -> Result<StatusCode, Problem> {
    let change = Change::new("multiplier.remove", Subject::new("multiplier", id));
    let doing = async {
        match site.parts.ledger.remove_multiplier(id).await? {
            true => Ok(()),
            false => Err(Problem::not_found("unknown_multiplier", format!("there is no multiplier {id}"))),
        }
    };
    recorded(&site, &caller, change, doing).await?;
    Ok(StatusCode::NO_CONTENT)
}

//! The audit trail (W7): who changed what.

use std::sync::Arc;

use access::audit::{AuditQuery, Entry};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use super::Page;
use crate::app::Routes;
use crate::extract::{Asked, LIMIT_DEFAULT, page_limit};
use crate::problem::{Problem, ProblemBody};
use crate::site::Site;

/// The longest action that is looked for.
const ACTION_CHARS_MAX: usize = 100;

/// For keys with `admin`: the trail tells what other keys did.
pub(super) fn routes() -> Routes {
    Routes::new().routes(routes!(list))
}

/// Which records.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AuditAsked {
    /// How many, at the most.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
    /// `next_cursor` of the page before; left out for the first page.
    #[param(minimum = 0, maximum = 9223372036854775807_u64)]
    cursor: Option<u64>,
    /// Only this action, such as `user.add`; with a dot at its end, all that begin with it.
    #[param(max_length = 100)]
    action: Option<String>,
}

/// A record of the audit trail, as its file has it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AuditRecord {
    /// What was done.
    #[schema(example = "passkey.add")]
    action: String,
    /// Who did it.
    #[schema(example = "key:1a2b3c4d")]
    actor_id: String,
    /// What kind of thing it is about.
    subject_type: String,
    /// Which of them; a passkey by its first digits and a hash.
    subject_id: String,
    /// How it ended.
    #[schema(example = "ok")]
    result: String,
    /// What else is worth knowing.
    #[schema(value_type = Object)]
    details: serde_json::Value,
    /// When.
    #[schema(example = "2026-11-15T12:00:00.000Z")]
    at: String,
    /// Its number.
    seq: u64,
    /// The hash of the record before.
    prev: String,
    /// The hash of this record.
    hash: String,
}

impl AuditRecord {
    fn of(entry: Entry) -> AuditRecord {
        AuditRecord {
            action: entry.action,
            actor_id: entry.actor_id,
            subject_type: entry.subject_type,
            subject_id: entry.subject_id,
            result: entry.result.as_str().to_owned(),
            details: entry.details.into(),
            at: entry.at,
            seq: entry.seq,
            prev: entry.prev.to_string(),
            hash: entry.hash.to_string(),
        }
    }
}

/// Who changed what
#[utoipa::path(
    get, path = "/api/v1/audit", tag = "audit", params(AuditAsked),
    security(("api_key" = ["admin"]), ("bearer" = ["admin"])),
    responses(
        (status = 200, description = "A page, newest first; it may be short and still not be the last", body = Page<AuditRecord>),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn list(
    State(site): State<Arc<Site>>,
    Asked(asked): Asked<AuditAsked>,
) -> Result<Json<Page<AuditRecord>>, Problem> {
    let limit = page_limit(asked.limit.unwrap_or(LIMIT_DEFAULT))? as usize;
    if asked.cursor.is_some_and(|cursor| cursor > i64::MAX as u64) {
        return Err(Problem::bad_request("cursor is not one of ours: send next_cursor of the page before"));
    }
    if asked.action.as_ref().is_some_and(|action| action.chars().count() > ACTION_CHARS_MAX) {
        return Err(Problem::bad_request(format!(
            "action: no action has more than {ACTION_CHARS_MAX} characters"
        )));
    }
    let query = AuditQuery { before: asked.cursor, limit, action: asked.action };
    let page = site.parts.audit.read_newest(query).await;
    let page = page.map_err(|error| Problem::internal("the audit trail", &error))?;
    let items = page.entries.into_iter().map(AuditRecord::of).collect();
    Ok(Json(Page { items, next_cursor: page.next.map(|seq| seq.to_string()) }))
}

//! The audit trail (W7).

use std::sync::Arc;

use admin::audit::verify::verify_trail;
use admin::audit::{AuditError, AuditQuery, Entry, Verdict};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use super::Page;
use crate::app::Routes;
use crate::extract::{LIMIT_DEFAULT, QueryParams, page_limit};
use crate::problem::Problem;
use crate::site::Site;

/// Maximum length of an action filter.
const ACTION_CHARS_MAX: usize = 100;

/// Lifetime of a cached verification.
const VERIFICATION_MS: u64 = 2000;

/// Needs `admin`: the trail shows the changes of other keys.
pub(super) fn read_routes() -> Routes {
    Routes::new().routes(routes!(list)).routes(routes!(verify))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AuditParams {
    /// Maximum number of items.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
    /// `next` of the previous page.
    #[param(minimum = 0, maximum = 9223372036854775807_u64)]
    cursor: Option<u64>,
    /// Only this action, such as `user.add`; with a trailing dot, all actions with this prefix.
    #[param(max_length = 100)]
    action: Option<String>,
}

/// A record of the audit trail, as in its file.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AuditRecord {
    #[schema(example = "passkey.add")]
    action: String,
    #[schema(example = "key:1a2b3c4d")]
    actor_id: String,
    subject_type: String,
    /// A passkey appears as its first digits and a hash.
    subject_id: String,
    #[schema(example = "ok")]
    result: String,
    #[schema(value_type = Object)]
    details: serde_json::Value,
    #[schema(example = "2026-11-15T12:00:00.000Z")]
    at: String,
    /// Sequence number.
    seq: u64,
    /// Hash of the previous record.
    prev: String,
    /// Hash of this record.
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

/// List audit records
#[utoipa::path(
    get, path = "/api/v1/audit", tag = "audit", params(AuditParams),
    responses(
        (status = 200, description = "A page, newest first; may be short while `next` is not null", body = Page<AuditRecord>),
    )
)]
async fn list(
    State(site): State<Arc<Site>>,
    QueryParams(params): QueryParams<AuditParams>,
) -> Result<Json<Page<AuditRecord>>, Problem> {
    let limit = page_limit(params.limit.unwrap_or(LIMIT_DEFAULT))? as usize;
    if params.cursor.is_some_and(|cursor| cursor > i64::MAX as u64) {
        return Err(Problem::bad_request("malformed cursor: send `next` of the previous page"));
    }
    if params.action.as_ref().is_some_and(|action| action.chars().count() > ACTION_CHARS_MAX) {
        return Err(Problem::bad_request(format!("action: at most {ACTION_CHARS_MAX} characters")));
    }
    let query = AuditQuery { before: params.cursor, limit, action: params.action };
    let page = site.parts.audit.read_newest(query).await;
    let page = page.map_err(|error| Problem::internal("the audit trail", &error))?;
    let items = page.entries.into_iter().map(AuditRecord::of).collect();
    Ok(Json(Page { items, next: page.next.map(|seq| seq.to_string()) }))
}

/// Result of checking the hash chain.
#[derive(Serialize, ToSchema)]
struct AuditVerification {
    /// Whether the chain is intact.
    valid: bool,
    /// Intact records, up to the first fault.
    records: u64,
    /// Incomplete lines after a crash or on a full disk, each noted by the record that follows.
    torn: u64,
    /// Sequence number of the first missing or altered record; null if the chain is intact.
    broken_at: Option<u64>,
    /// The fault; null if the chain is intact.
    reason: Option<String>,
    /// Sequence number of the last intact record; null if there is none.
    last: Option<u64>,
    /// Hash of that record. Keep a copy elsewhere: nothing else shows that the end was cut off.
    last_hash: Option<String>,
}

impl AuditVerification {
    fn of(verdict: &Verdict) -> AuditVerification {
        let last = verdict.last.as_ref();
        let fault = verdict.fault.as_ref();
        AuditVerification {
            valid: fault.is_none(),
            records: verdict.records,
            torn: verdict.torn,
            broken_at: fault.map(|_| last.map_or(1, |last| last.seq.saturating_add(1))),
            reason: fault.map(ToString::to_string),
            last: last.map(|last| last.seq),
            last_hash: last.map(|last| last.hash.to_string()),
        }
    }
}

/// Verify the audit trail
///
/// Reads the whole trail; concurrent requests share one read.
#[utoipa::path(
    get, path = "/api/v1/audit/verify", tag = "audit",
    responses(
        (status = 200, description = "The result", body = AuditVerification),
    )
)]
async fn verify(State(site): State<Arc<Site>>) -> Result<Json<AuditVerification>, Problem> {
    let mut verified = Arc::clone(&site.verified).lock_owned().await;
    let now_ms = site.parts.clock.now_ms();
    if let Some((at_ms, verdict)) = &*verified
        && now_ms.abs_diff(*at_ms) < VERIFICATION_MS
    {
        return Ok(Json(AuditVerification::of(verdict)));
    }
    let settings = site.parts.audit.settings().clone();
    let clock = Arc::clone(&site.parts.clock);
    // Continues when the caller disconnects, still holding the lock: otherwise each retry would start another read.
    let verifying = tokio::task::spawn_blocking(move || {
        let verdict = verify_trail(&settings.file, None)?;
        let shown = AuditVerification::of(&verdict);
        *verified = Some((clock.now_ms(), verdict));
        Ok(shown)
    });
    let shown = verifying.await.map_err(|error| Problem::internal("the audit trail", &error))?;
    shown.map(Json).map_err(|error: AuditError| Problem::internal("the audit trail", &error))
}

//! The audit trail (W7): who changed what.

use std::path::Path;
use std::sync::Arc;

use access::audit::verify::verify_trail;
use access::audit::{AuditError, AuditQuery, Entry, Verdict};
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

/// How long a verdict is good for: whoever asks again meanwhile costs nothing.
const VERDICT_MS: u64 = 2000;

/// For keys with `admin`: the trail tells what other keys did.
pub(super) fn readable() -> Routes {
    Routes::new().routes(routes!(list)).routes(routes!(verify))
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

/// Whether the chain of the trail holds.
#[derive(Serialize, ToSchema)]
struct AuditVerdict {
    /// Whether it does.
    holds: bool,
    /// Records that fit, up to the first that does not.
    records: u64,
    /// Half-written lines that a crash or a full disk left behind, each told of by the record behind it.
    torn: u64,
    /// The number of the first record that should stand where something else does; null if the chain holds.
    broken_at: Option<u64>,
    /// What is wrong there; null if the chain holds.
    reason: Option<String>,
    /// The number of the last record that fits; null if there is none.
    last: Option<u64>,
    /// Its hash: what to write down elsewhere, so that a trail that was cut off together with its anchor shows.
    last_hash: Option<String>,
    /// The number of the record that the anchor beside the trail names: none up to it is missing if the chain holds.
    /// Those after it were written within the last moments, or the anchor could not be written; null without an anchor.
    anchored: Option<u64>,
}

impl AuditVerdict {
    fn of(verdict: &Verdict) -> AuditVerdict {
        let last = verdict.last.as_ref();
        let fault = verdict.fault.as_ref();
        AuditVerdict {
            holds: fault.is_none(),
            records: verdict.records,
            torn: verdict.torn,
            broken_at: fault.map(|_| last.map_or(1, |last| last.seq.saturating_add(1))),
            reason: fault.map(|fault| match fault.line {
                0 => fault.reason.clone(),
                line => format!("line {line} of {}: {}", file_name_of(&fault.file), fault.reason),
            }),
            last: last.map(|last| last.seq),
            anchored: verdict.anchored,
            last_hash: last.map(|last| last.hash.to_string()),
        }
    }
}

/// Where the server keeps its files is nobody's business.
fn file_name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Whether anybody touched the trail
///
/// Reads all of it, one time for everybody who asks at once.
#[utoipa::path(
    get, path = "/api/v1/audit/verify", tag = "audit",
    security(("api_key" = ["admin"]), ("bearer" = ["admin"])),
    responses(
        (status = 200, description = "The verdict", body = AuditVerdict),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn verify(State(site): State<Arc<Site>>) -> Result<Json<AuditVerdict>, Problem> {
    let mut verified = Arc::clone(&site.verified).lock_owned().await;
    let now_ms = site.parts.clock.now_ms();
    if let Some((at_ms, verdict)) = &*verified
        && now_ms.abs_diff(*at_ms) < VERDICT_MS
    {
        return Ok(Json(AuditVerdict::of(verdict)));
    }
    let settings = site.parts.audit.settings().clone();
    let clock = Arc::clone(&site.parts.clock);
    // It goes on when its caller hangs up, and so does the turn: else each who tries again would begin one more.
    let verifying = tokio::task::spawn_blocking(move || {
        let verdict = verify_trail(&settings.file, None)?;
        let shown = AuditVerdict::of(&verdict);
        *verified = Some((clock.now_ms(), verdict));
        Ok(shown)
    });
    let shown = verifying.await.map_err(|error| Problem::internal("the audit trail", &error))?;
    shown.map(Json).map_err(|error: AuditError| Problem::internal("the audit trail", &error))
}

//! API keys.
//!
//! A revoked key stays in the table, because the audit trail refers to it.

use std::sync::Arc;

use admin::audit::Subject;
use admin::keys::{ApiKey, ApiKeys, Authenticated, KeyId, Scope, Scopes};
use axum::extract::State;
use axum::{Extension, Json};
use domain::UnixTime;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use tracing::warn;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use super::{Change, Page, recorded, recorded_with};
use crate::app::Routes;
use crate::extract::{JsonBody, LIMIT_DEFAULT, PathParams, QueryParams, page_limit};
use crate::problem::{Problem, ProblemBody};
use crate::site::Site;

/// Maximum number of scopes in a request.
const SCOPES_MAX: usize = Scope::ALL.len();

/// Needs `admin`: lists the other keys.
pub(super) fn read_routes() -> Routes {
    Routes::new().routes(routes!(list))
}

pub(super) fn write_routes() -> Routes {
    Routes::new().routes(routes!(create)).routes(routes!(revoke))
}

/// Scope of a key.
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Scope)]
enum ScopeName {
    /// `GET /passkey/verify` only.
    Verify,
    /// Read everything except secrets.
    Read,
    /// Everything.
    Admin,
}

impl ScopeName {
    fn of(scope: Scope) -> ScopeName {
        match scope {
            Scope::Verify => ScopeName::Verify,
            Scope::Read => ScopeName::Read,
            Scope::Admin => ScopeName::Admin,
        }
    }

    fn scope(self) -> Scope {
        match self {
            ScopeName::Verify => Scope::Verify,
            ScopeName::Read => Scope::Read,
            ScopeName::Admin => Scope::Admin,
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = Key)]
struct KeyJson {
    /// The part of the key after `rck_`.
    #[schema(example = "1a2b3c4d")]
    id: String,
    name: String,
    scopes: Vec<ScopeName>,
    created_at: u32,
    /// To the minute; null if never used.
    last_used_at: Option<u32>,
    /// Null if the key is valid.
    revoked_at: Option<u32>,
}

impl KeyJson {
    fn of(key: &ApiKey) -> KeyJson {
        KeyJson {
            id: key.id.to_string(),
            name: key.name.clone(),
            scopes: key.scopes.iter().map(ScopeName::of).collect(),
            created_at: key.created_at.0,
            last_used_at: key.last_used_at.map(|at| at.0),
            revoked_at: key.revoked_at.map(|at| at.0),
        }
    }
}

/// A new key with its secret.
#[derive(Serialize, ToSchema)]
struct CreatedKey {
    /// The part of the key after `rck_`.
    id: String,
    name: String,
    scopes: Vec<ScopeName>,
    created_at: u32,
    /// The complete key. Returned only here.
    #[schema(example = "rck_1a2b3c4d_0123456789abcdef0123456789abcdef01234567")]
    key: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CreateKey {
    /// Who or what uses the key.
    #[schema(min_length = 1, max_length = 100, pattern = "^(?=.*\\S)[^\\x00-\\x1f\\x7f-\\x9f]+$")]
    name: String,
    #[schema(min_items = 1, max_items = 3)]
    scopes: Vec<ScopeName>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct KeyListParams {
    /// Maximum number of items.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
    /// `next` of the previous page.
    #[param(pattern = "^[0-9]{1,10}-[0-9a-f]{8}$")]
    cursor: Option<String>,
    /// Include revoked keys.
    #[param(default = false)]
    revoked: Option<bool>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RevokeParams {
    /// Allow to revoke the key of this request.
    #[param(default = false)]
    force: Option<bool>,
}

/// Position in the list: newest first, then by id.
type KeyCursor = (u64, String);

fn cursor_of(key: &ApiKey) -> KeyCursor {
    (key.created_at.0.into(), key.id.to_string())
}

fn read_cursor(text: &str) -> Result<KeyCursor, Problem> {
    let read = || {
        let (at, id) = text.split_once('-')?;
        let is_number = (1..=10).contains(&at.len()) && at.bytes().all(|byte| byte.is_ascii_digit());
        let id: KeyId = id.parse().ok()?;
        Some((at.parse().ok().filter(|_| is_number)?, id.to_string()))
    };
    read().ok_or_else(|| Problem::bad_request("malformed cursor: send `next` of the previous page"))
}

fn is_after(key: &ApiKey, (at, id): &KeyCursor) -> bool {
    let (key_at, key_id) = cursor_of(key);
    key_at < *at || (key_at == *at && key_id > *id)
}

/// List keys
#[utoipa::path(
    get, path = "/api/v1/keys", tag = "keys", params(KeyListParams),
    responses(
        (status = 200, description = "A page, newest first", body = Page<KeyJson>),
    )
)]
async fn list(
    State(site): State<Arc<Site>>,
    QueryParams(params): QueryParams<KeyListParams>,
) -> Result<Json<Page<KeyJson>>, Problem> {
    let limit = page_limit(params.limit.unwrap_or(LIMIT_DEFAULT))? as usize;
    let after = params.cursor.as_deref().map(read_cursor).transpose()?;
    let with_revoked = params.revoked.unwrap_or(false);
    let mut keys = ApiKeys::on(site.parts.store.database()).list().await?;
    keys.retain(|key| with_revoked || key.revoked_at.is_none());
    keys.retain(|key| after.as_ref().is_none_or(|cursor| is_after(key, cursor)));
    keys.sort_by_key(|key| (std::cmp::Reverse(key.created_at.0), key.id));
    keys.truncate(limit + 1);
    let cursor = |key: &ApiKey| {
        let (at, id) = cursor_of(key);
        format!("{at}-{id}")
    };
    Ok(Json(Page::of(keys, limit, cursor, KeyJson::of)))
}

/// Create a key
///
/// The secret is returned only in this response.
#[utoipa::path(
    post, path = "/api/v1/keys", tag = "keys", request_body = CreateKey,
    responses(
        (status = 201, description = "The key with its secret", body = CreatedKey),
    )
)]
async fn create(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    JsonBody(body): JsonBody<CreateKey>,
) -> Result<(StatusCode, Json<CreatedKey>), Problem> {
    if body.scopes.len() > SCOPES_MAX {
        return Err(Problem::bad_request(format!("scopes: at most {SCOPES_MAX}")));
    }
    let scopes: Scopes = body.scopes.iter().map(|name| name.scope()).collect();
    let now: UnixTime = site.parts.clock.now();
    let keys = ApiKeys::on(site.parts.store.database());
    let change = Change::new("key.create", Subject::key(""))
        .with("name", &*body.name)
        .with("scopes", scopes.to_string());
    let creating = keys.create(&body.name, scopes, now);
    let made =
        recorded_with(&site, &caller, change, creating, |record, key| record.about(Subject::key(key.id)))
            .await?;
    reload_keys(&site).await;
    let shown = CreatedKey {
        id: made.id.to_string(),
        name: body.name,
        scopes: scopes.iter().map(ScopeName::of).collect(),
        created_at: now.0,
        key: made.text,
    };
    Ok((StatusCode::CREATED, Json(shown)))
}

/// Revoke a key
///
/// Takes effect within a second, also for sessions started with the key. The key of this request is revoked only with
/// `force=true`, so that one with `admin` remains.
#[utoipa::path(
    delete, path = "/api/v1/keys/{id}", tag = "keys",
    params(("id" = String, Path, description = "Key id", pattern = "^[0-9a-f]{8}$"), RevokeParams),
    responses(
        (status = 204, description = "Revoked"),
        (status = 409, description = "It is the key of this request", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn revoke(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    PathParams(id): PathParams<String>,
    QueryParams(params): QueryParams<RevokeParams>,
) -> Result<StatusCode, Problem> {
    let id: KeyId = id.parse().map_err(|error| Problem::bad_request(format!("id: {error}")))?;
    if id == caller.key_id && !params.force.unwrap_or(false) {
        let detail = "this is the key of this request, and possibly the last one with admin: repeat with force=true to revoke it";
        return Err(Problem::conflict("own_key", detail));
    }
    let keys = ApiKeys::on(site.parts.store.database());
    let revoking = keys.revoke(id, site.parts.clock.now());
    recorded(&site, &caller, Change::new("key.revoke", Subject::key(id)), revoking).await?;
    reload_keys(&site).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Applies a change of keys to this process at once; other processes poll every second.
async fn reload_keys(site: &Site) {
    if let Err(error) = site.parts.keys.reload().await {
        warn!(%error, "keys not reloaded; the change takes effect with the next poll");
    }
    if let Err(error) = site.parts.sessions.sweep(site.parts.clock.now()).await {
        warn!(%error, "sessions of a revoked key not removed yet; they are refused already");
    }
}

//! Keys of the API: who may ask what of the site.
//!
//! A key that is removed is revoked: it stays in the list of all keys, because the audit trail names it.

use std::sync::Arc;

use access::audit::Subject;
use access::keys::{ApiKey, ApiKeys, Authenticated, KeyId, Scope, Scopes};
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

/// Scopes there are; none need be said twice.
const SCOPES_MAX: usize = Scope::ALL.len();

/// For keys with `admin`: they tell who else there is.
pub(super) fn read_routes() -> Routes {
    Routes::new().routes(routes!(list))
}

/// Likewise.
pub(super) fn write_routes() -> Routes {
    Routes::new().routes(routes!(create)).routes(routes!(revoke))
}

/// What a key may do.
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Scope)]
enum ScopeName {
    /// Ask whether a passkey may announce.
    Verify,
    /// Read everything but secrets.
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

/// A key, without its secret.
#[derive(Serialize, ToSchema)]
#[schema(as = Key)]
struct KeyJson {
    /// Its id: the first part of its text.
    #[schema(example = "1a2b3c4d")]
    id: String,
    /// What people call it.
    name: String,
    /// What it may do.
    scopes: Vec<ScopeName>,
    /// When it was made.
    created_at: u32,
    /// When it was used last, to the minute; null if never.
    last_used_at: Option<u32>,
    /// When it was revoked; null if it works.
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

/// A key that was made just now.
#[derive(Serialize, ToSchema)]
struct CreatedKey {
    /// Its id: the first part of its text.
    id: String,
    /// What people call it.
    name: String,
    /// What it may do.
    scopes: Vec<ScopeName>,
    /// When it was made.
    created_at: u32,
    /// All of it: what whoever uses it must send. It is shown this once and cannot be found out again.
    #[schema(example = "rck_1a2b3c4d_0123456789abcdef0123456789abcdef01234567")]
    key: String,
}

/// A key to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CreateKey {
    /// Who or what will use it.
    #[schema(min_length = 1, max_length = 100, pattern = "^(?=.*\\S)[^\\x00-\\x1f\\x7f-\\x9f]+$")]
    name: String,
    /// What it may do.
    #[schema(min_items = 1, max_items = 3)]
    scopes: Vec<ScopeName>,
}

/// Which keys.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct KeyListParams {
    /// How many, at the most.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
    /// `next` of the page before; left out for the first page.
    #[param(pattern = "^[0-9]{1,10}-[0-9a-f]{8}$")]
    cursor: Option<String>,
    /// Also those that were revoked.
    #[param(default = false)]
    revoked: Option<bool>,
}

/// Whether it is meant.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RevokeParams {
    /// Revokes also the key that asks.
    #[param(default = false)]
    force: Option<bool>,
}

/// A place in the list: newest first, then by id.
type PageCursor = (u64, String);

fn place_of(key: &ApiKey) -> PageCursor {
    (key.created_at.0.into(), key.id.to_string())
}

fn read_cursor(text: &str) -> Result<PageCursor, Problem> {
    let read = || {
        let (at, id) = text.split_once('-')?;
        let is_number = (1..=10).contains(&at.len()) && at.bytes().all(|byte| byte.is_ascii_digit());
        let id: KeyId = id.parse().ok()?;
        Some((at.parse().ok().filter(|_| is_number)?, id.to_string()))
    };
    read().ok_or_else(|| Problem::bad_request("cursor is not one of ours: send next of the page before"))
}

/// Whether a key stands behind a place.
fn is_behind(key: &ApiKey, (at, id): &PageCursor) -> bool {
    let (key_at, key_id) = place_of(key);
    key_at < *at || (key_at == *at && key_id > *id)
}

/// Who may use the API
#[utoipa::path(
    get, path = "/api/v1/keys", tag = "keys", params(KeyListParams),
    security(("api_key" = ["admin"]), ("bearer" = ["admin"])),
    responses(
        (status = 200, description = "A page, newest first", body = Page<KeyJson>),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn list(
    State(site): State<Arc<Site>>,
    QueryParams(params): QueryParams<KeyListParams>,
) -> Result<Json<Page<KeyJson>>, Problem> {
    let limit = page_limit(params.limit.unwrap_or(LIMIT_DEFAULT))? as usize;
    let after = params.cursor.as_deref().map(read_cursor).transpose()?;
    let with_revoked = params.revoked.unwrap_or(false);
    let mut keys = ApiKeys::on(&site.parts.store).list().await?;
    keys.retain(|key| with_revoked || key.revoked_at.is_none());
    keys.retain(|key| after.as_ref().is_none_or(|place| is_behind(key, place)));
    keys.sort_by_key(|key| (std::cmp::Reverse(key.created_at.0), key.id));
    keys.truncate(limit + 1);
    let cursor = |key: &ApiKey| {
        let (at, id) = place_of(key);
        format!("{at}-{id}")
    };
    Ok(Json(Page::of(keys, limit, cursor, KeyJson::of)))
}

/// Makes a key
///
/// Its text is in the answer, and nowhere else from then on.
#[utoipa::path(
    post, path = "/api/v1/keys", tag = "keys", request_body = CreateKey,
    security(("api_key" = ["admin"]), ("bearer" = ["admin"])),
    responses(
        (status = 201, description = "The key, this once", body = CreatedKey),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn create(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    JsonBody(body): JsonBody<CreateKey>,
) -> Result<(StatusCode, Json<CreatedKey>), Problem> {
    if body.scopes.len() > SCOPES_MAX {
        return Err(Problem::bad_request(format!("scopes: there are no more than {SCOPES_MAX}")));
    }
    let scopes: Scopes = body.scopes.iter().map(|name| name.scope()).collect();
    let now: UnixTime = site.parts.clock.now();
    let keys = ApiKeys::on(&site.parts.store);
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

/// Revokes a key
///
/// It stops working within a second, and with it every session that was begun with it. The key that asks is revoked only
/// with `force=true`: so there is always one with `admin` left, unless that is meant.
#[utoipa::path(
    delete, path = "/api/v1/keys/{id}", tag = "keys",
    params(("id" = String, Path, description = "The key's id", pattern = "^[0-9a-f]{8}$"), RevokeParams),
    security(("api_key" = ["admin"]), ("bearer" = ["admin"])),
    responses(
        (status = 204, description = "It works no longer"),
        (status = 409, description = "It is the key that asks", body = ProblemBody, content_type = "application/problem+json"),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
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
        let detail = "this is the key that you use, and perhaps the last one with admin: add force=true if that is meant";
        return Err(Problem::conflict("own_key", detail));
    }
    let keys = ApiKeys::on(&site.parts.store);
    let revoking = keys.revoke(id, site.parts.clock.now());
    recorded(&site, &caller, Change::new("key.revoke", Subject::key(id)), revoking).await?;
    reload_keys(&site).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Here a change of the keys works at once, elsewhere within a second.
async fn reload_keys(site: &Site) {
    if let Err(error) = site.parts.keys.reload().await {
        warn!(%error, "a change of the keys works a moment later");
    }
    if let Err(error) = site.parts.sessions.sweep(site.parts.clock.now()).await {
        warn!(%error, "sessions of a revoked key are removed a moment later; they are refused all the same");
    }
}

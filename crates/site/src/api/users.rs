//! Users, their traffic and activity (A5).
//!
//! # Layout
//!
//! - this file: a user
//! - `list`: all users, sorted and filtered
//! - `torrents`: accounts, seeding, leeching, hit-and-runs
//! - `account_clients`: an account by client
//! - `entries`: the journal entries of a user

mod account_clients;
mod entries;
mod list;
mod torrents;

use std::sync::Arc;

use access::{LeechSlots, NewUser, User, UserChange, UserName};
use admin::audit::Subject;
use admin::keys::{Authenticated, Scope};
use axum::extract::State;
use axum::{Extension, Json};
use domain::{Passkey, UserId};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::figures::FiguresJson;
use super::{Change, Page, recorded, recorded_with};
use crate::app::Routes;
use crate::extract::{JsonBody, PasskeyText, PathParams, slots, user_name, whole};
use crate::problem::Problem;
use crate::site::Site;

pub(super) fn read_routes() -> Routes {
    Routes::new()
        .merge(list::routes())
        .routes(routes!(look_up))
        .routes(routes!(show))
        .merge(torrents::routes())
        .merge(account_clients::routes())
        .merge(entries::routes())
}

pub(super) fn write_routes() -> Routes {
    Routes::new().routes(routes!(add)).routes(routes!(change, remove)).routes(routes!(rotate))
}

/// A user.
#[derive(Serialize, ToSchema)]
#[schema(as = User)]
struct UserJson {
    id: u64,
    name: Option<String>,
    /// Only for keys with `admin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    passkey: Option<String>,
    /// Whether announces are accepted.
    enabled: bool,
    /// Whether this is an external user: admitted by the passkey whitelist or the verify endpoint.
    external: bool,
    /// Leech slots; -1 is unlimited, null the configured default.
    leech_slots: Option<i64>,
    created_at: u32,
}

impl UserJson {
    fn of(user: &User, caller: &Authenticated) -> UserJson {
        UserJson {
            id: user.id.get(),
            name: user.name.clone(),
            passkey: caller.scopes.allow(Scope::Admin).then(|| user.passkey.to_string()),
            enabled: user.enabled,
            external: user.is_external,
            leech_slots: user.leech_slots.to_number(),
            created_at: user.created_at.0,
        }
    }
}

/// A user with traffic and activity.
#[derive(Serialize, ToSchema)]
struct UserDetails {
    user: UserJson,
    /// Traffic on all torrents; null before the first announce.
    figures: Option<FiguresJson>,
    /// Torrents that the user seeds now.
    seeding: u64,
    /// Torrents that the user leeches now.
    leeching: u64,
}

/// Passkeys to look up.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct LookupPasskeys {
    /// Up to 1000.
    #[schema(max_items = 1000)]
    passkeys: Vec<PasskeyText>,
}

/// A passkey and its user.
#[derive(Serialize, ToSchema)]
struct PasskeyHolder {
    /// As in the request.
    passkey: String,
    /// Id of the user; null if the passkey is unknown.
    user: Option<u64>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CreateUser {
    /// Default: the next free id.
    #[serde(default, deserialize_with = "whole")]
    #[schema(minimum = 1, maximum = 9223372036854775807_u64)]
    id: Option<u64>,
    /// Default: random.
    #[schema(min_length = 8, max_length = 64, pattern = "^[0-9a-fA-F]+$")]
    passkey: Option<String>,
    /// Display name; null for none.
    #[serde(default, deserialize_with = "user_name")]
    #[schema(value_type = Option<String>, max_length = 100)]
    name: Option<Option<UserName>>,
}

/// Fields to change; omitted fields stay as they are.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct UpdateUser {
    /// Whether announces are accepted.
    enabled: Option<bool>,
    /// Leech slots; -1 is unlimited, null the configured default. Does not stop downloads in progress.
    #[serde(default, deserialize_with = "slots")]
    #[schema(value_type = Option<i64>, minimum = -1, maximum = 1000000)]
    leech_slots: Option<LeechSlots>,
    /// Display name, without control characters; null removes it.
    #[serde(default, deserialize_with = "user_name")]
    #[schema(value_type = Option<String>, max_length = 100)]
    name: Option<Option<UserName>>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RotatePasskey {
    /// Default: random.
    #[schema(min_length = 8, max_length = 64, pattern = "^[0-9a-fA-F]+$")]
    passkey: Option<String>,
}

pub(super) fn user_id(number: u64) -> Result<UserId, Problem> {
    UserId::new(number)
        .ok_or_else(|| Problem::bad_request("a user id is an integer from 1 to 9223372036854775807"))
}

fn passkey_of(text: &str) -> Result<Passkey, Problem> {
    text.parse().map_err(|error| Problem::bad_request(format!("passkey: {error}")))
}

pub(super) async fn find(site: &Site, id: u64) -> Result<User, Problem> {
    let id = user_id(id)?;
    let found = site.parts.store.user(id).await?;
    found.ok_or_else(|| Problem::not_found("unknown_user", format!("no user {id}: see GET /api/v1/users")))
}

/// Look up users by passkey
#[utoipa::path(
    post, path = "/api/v1/users/lookup", tag = "users", request_body = LookupPasskeys,
    responses(
        (status = 200, description = "In the order of the request", body = Page<PasskeyHolder>),
    )
)]
async fn look_up(
    State(site): State<Arc<Site>>,
    JsonBody(body): JsonBody<LookupPasskeys>,
) -> Result<Json<Page<PasskeyHolder>>, Problem> {
    if body.passkeys.len() > 1000 {
        return Err(Problem::bad_request("passkeys: at most 1000 per request"));
    }
    let holder = |text: PasskeyText| {
        let passkey = passkey_of(&text.0)?;
        Ok(PasskeyHolder { passkey: text.0, user: site.parts.gate.user_of(&passkey).map(UserId::get) })
    };
    let holders = body.passkeys.into_iter().map(holder).collect::<Result<Vec<_>, Problem>>()?;
    Ok(Json(Page::whole(holders)))
}

/// Get a user
#[utoipa::path(
    get, path = "/api/v1/users/{id}", tag = "users",
    params(("id" = u64, Path, description = "User id", minimum = 1)),
    responses(
        (status = 200, description = "The user", body = UserDetails),
    )
)]
async fn show(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    PathParams(id): PathParams<u64>,
) -> Result<Json<UserDetails>, Problem> {
    let user = find(&site, id).await?;
    let figures = site.parts.ledger.user(user.id).await?;
    let counts = site.parts.activity.counts(&user.passkey).await?;
    Ok(Json(UserDetails {
        user: UserJson::of(&user, &caller),
        figures: figures.as_ref().map(FiguresJson::of),
        seeding: counts.seeding,
        leeching: counts.leeching,
    }))
}

/// Add a user
#[utoipa::path(
    post, path = "/api/v1/users", tag = "users", request_body = CreateUser,
    responses(
        (status = 201, description = "The user, with their passkey", body = UserJson),
    )
)]
async fn add(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    JsonBody(body): JsonBody<CreateUser>,
) -> Result<(StatusCode, Json<UserJson>), Problem> {
    let new = NewUser {
        id: body.id.map(user_id).transpose()?,
        passkey: body.passkey.as_deref().map(passkey_of).transpose()?,
        created_at: site.parts.clock.now(),
    };
    let change = Change::new("user.add", Subject::user(new.id));
    let adding = async {
        match body.name.flatten() {
            Some(name) => site.parts.store.add_named_user(new, name).await,
            None => site.parts.store.add_user(new).await,
        }
    };
    let user = recorded_with(&site, &caller, change, adding, |record, user| {
        record.about(Subject::user(Some(user.id)))
    })
    .await?;
    Ok((StatusCode::CREATED, Json(UserJson::of(&user, &caller))))
}

/// Update a user
#[utoipa::path(
    patch, path = "/api/v1/users/{id}", tag = "users", request_body = UpdateUser,
    params(("id" = u64, Path, description = "User id", minimum = 1)),
    responses(
        (status = 200, description = "The user", body = UserJson),
    )
)]
async fn change(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    PathParams(id): PathParams<u64>,
    JsonBody(body): JsonBody<UpdateUser>,
) -> Result<Json<UserJson>, Problem> {
    let id = user_id(id)?;
    let UpdateUser { enabled, leech_slots, name } = body;
    let is_more = leech_slots.is_some() || name.is_some();
    let action = match (enabled, is_more) {
        (Some(true), false) => "user.enable",
        (Some(false), false) => "user.disable",
        (None, false) => return Ok(Json(UserJson::of(&find(&site, id.get()).await?, &caller))),
        (_, true) => "user.change",
    };
    let mut change = Change::new(action, Subject::user(Some(id)));
    if is_more {
        let slots = leech_slots.map(|slots| ("leech_slots", slots.to_string().into()));
        let named = name.as_ref().map(|name| ("name", name.as_ref().map(UserName::as_str).into()));
        change.details.extend(slots.into_iter().chain(named));
        change.details.extend(enabled.map(|enabled| ("enabled", enabled.into())));
    }
    let operation = site.parts.store.change_user(id, UserChange { enabled, leech_slots, name });
    recorded(&site, &caller, change, operation).await?;
    Ok(Json(UserJson::of(&find(&site, id.get()).await?, &caller)))
}

/// Remove a user; accounts are kept
#[utoipa::path(
    delete, path = "/api/v1/users/{id}", tag = "users",
    params(("id" = u64, Path, description = "User id", minimum = 1)),
    responses(
        (status = 204, description = "Removed"),
    )
)]
async fn remove(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    PathParams(id): PathParams<u64>,
) -> Result<StatusCode, Problem> {
    let id = user_id(id)?;
    let change = Change::new("user.remove", Subject::user(Some(id)));
    recorded(&site, &caller, change, site.parts.store.remove_user(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Replace a user's passkey; the old one stops working
#[utoipa::path(
    post, path = "/api/v1/users/{id}/passkey", tag = "users", request_body = RotatePasskey,
    params(("id" = u64, Path, description = "User id", minimum = 1)),
    responses(
        (status = 200, description = "The user, with the new passkey", body = UserJson),
    )
)]
async fn rotate(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    PathParams(id): PathParams<u64>,
    JsonBody(body): JsonBody<RotatePasskey>,
) -> Result<Json<UserJson>, Problem> {
    let id = user_id(id)?;
    let passkey = body.passkey.as_deref().map(passkey_of).transpose()?;
    let change = Change::new("passkey.rotate", Subject::user(Some(id)));
    recorded(&site, &caller, change, site.parts.store.rotate_passkey(id, passkey)).await?;
    Ok(Json(UserJson::of(&find(&site, id.get()).await?, &caller)))
}

//! Users: who may announce, what they moved, what they seed and leech (A5).
//!
//! # Layout
//!
//! - this file: users themselves
//! - `list`: all users, in order and by state
//! - `lists`: their accounts, what they seed and leech, where they owe seeding
//! - `clients`: why an account is what it is: what each client brought
//! - `entries`: the entries of the journal that made a figure

mod account_clients;
mod entries;
mod list;
mod torrents;

use std::sync::Arc;

use access::audit::Subject;
use access::keys::{Authenticated, Scope};
use access::{LeechSlots, NewUser, User, UserChange, UserName};
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
use crate::problem::{Problem, ProblemBody};
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
    /// Their number.
    id: u64,
    /// The display name; null if there is none.
    name: Option<String>,
    /// Their passkey; only for keys with `admin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    passkey: Option<String>,
    /// Whether they may announce.
    enabled: bool,
    /// Whether they are known only by a passkey that the whitelist or the site's verify endpoint vouches for.
    vouched: bool,
    /// How many torrents they may leech at once: a number, -1 for any number, null for the configured default.
    leech_slots: Option<i64>,
    /// When they were added.
    created_at: u32,
}

impl UserJson {
    fn of(user: &User, caller: &Authenticated) -> UserJson {
        UserJson {
            id: user.id.get(),
            name: user.name.clone(),
            passkey: caller.scopes.allow(Scope::Admin).then(|| user.passkey.to_string()),
            enabled: user.enabled,
            vouched: user.vouched,
            leech_slots: user.leech_slots.to_number(),
            created_at: user.created_at.0,
        }
    }
}

/// A user, and what they moved.
#[derive(Serialize, ToSchema)]
struct UserDetails {
    /// The user.
    user: UserJson,
    /// What they moved in all; null if they were never heard of.
    figures: Option<FiguresJson>,
    /// How many torrents they seed right now.
    seeding: u64,
    /// How many torrents they leech right now.
    leeching: u64,
}

/// Which passkeys are meant.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct LookupPasskeys {
    /// Up to 1000 of them.
    #[schema(max_items = 1000)]
    passkeys: Vec<PasskeyText>,
}

/// Whose passkey it is.
#[derive(Serialize, ToSchema)]
struct PasskeyHolder {
    /// The passkey, as it was sent.
    passkey: String,
    /// The user; null if nobody has it.
    user: Option<u64>,
}

/// A user to be added.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CreateUser {
    /// Their number on your site; left out for the next free one.
    #[serde(default, deserialize_with = "whole")]
    #[schema(minimum = 1, maximum = 9223372036854775807_u64)]
    id: Option<u64>,
    /// Their passkey; left out for a random one.
    #[schema(min_length = 8, max_length = 64, pattern = "^[0-9a-fA-F]+$")]
    passkey: Option<String>,
    /// The display name; left out or null for none.
    #[serde(default, deserialize_with = "user_name")]
    #[schema(value_type = Option<String>, max_length = 100)]
    name: Option<Option<UserName>>,
}

/// What to change about a user. What is left out stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct UpdateUser {
    /// Whether they may announce.
    enabled: Option<bool>,
    /// How many torrents they may leech at once: a number, -1 for any number, null for the configured default. Who
    /// leeches more already goes on.
    #[serde(default, deserialize_with = "slots")]
    #[schema(value_type = Option<i64>, minimum = -1, maximum = 1000000)]
    leech_slots: Option<LeechSlots>,
    /// The display name, without control characters; null removes it.
    #[serde(default, deserialize_with = "user_name")]
    #[schema(value_type = Option<String>, max_length = 100)]
    name: Option<Option<UserName>>,
}

/// A passkey to give.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RotatePasskey {
    /// The new passkey; left out for a random one.
    #[schema(min_length = 8, max_length = 64, pattern = "^[0-9a-fA-F]+$")]
    passkey: Option<String>,
}

/// A user id that can be one.
pub(super) fn user_id(number: u64) -> Result<UserId, Problem> {
    UserId::new(number)
        .ok_or_else(|| Problem::bad_request("a user id is a number from 1 to 9223372036854775807"))
}

fn passkey_of(text: &str) -> Result<Passkey, Problem> {
    text.parse().map_err(|error| Problem::bad_request(format!("passkey: {error}")))
}

pub(super) async fn find(site: &Site, id: u64) -> Result<User, Problem> {
    let id = user_id(id)?;
    let found = site.parts.store.user(id).await?;
    found.ok_or_else(|| {
        Problem::not_found("unknown_user", format!("there is no user {id}: see GET /api/v1/users"))
    })
}

/// Whose passkeys these are
#[utoipa::path(
    post, path = "/api/v1/users/lookup", tag = "users", request_body = LookupPasskeys,
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "In the order asked", body = Page<PasskeyHolder>),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn look_up(
    State(site): State<Arc<Site>>,
    JsonBody(body): JsonBody<LookupPasskeys>,
) -> Result<Json<Page<PasskeyHolder>>, Problem> {
    if body.passkeys.len() > 1000 {
        return Err(Problem::bad_request("passkeys: at most 1000 at a time"));
    }
    let holder = |text: PasskeyText| {
        let passkey = passkey_of(&text.0)?;
        Ok(PasskeyHolder { passkey: text.0, user: site.parts.gate.user_of(&passkey).map(UserId::get) })
    };
    let holders = body.passkeys.into_iter().map(holder).collect::<Result<Vec<_>, Problem>>()?;
    Ok(Json(Page::whole(holders)))
}

/// A user, and what they moved
#[utoipa::path(
    get, path = "/api/v1/users/{id}", tag = "users",
    params(("id" = u64, Path, description = "The user's number", minimum = 1)),
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "The user", body = UserDetails),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
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

/// Lets a user announce
#[utoipa::path(
    post, path = "/api/v1/users", tag = "users", request_body = CreateUser,
    security(("api_key" = ["admin"]), ("bearer" = ["admin"])),
    responses(
        (status = 201, description = "The user, with their passkey", body = UserJson),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
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

/// Disables or enables a user; sets the display name and how much they leech at once
#[utoipa::path(
    patch, path = "/api/v1/users/{id}", tag = "users", request_body = UpdateUser,
    params(("id" = u64, Path, description = "The user's number", minimum = 1)),
    security(("api_key" = ["admin"]), ("bearer" = ["admin"])),
    responses(
        (status = 200, description = "The user", body = UserJson),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
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

/// Removes a user; their accounts stay
#[utoipa::path(
    delete, path = "/api/v1/users/{id}", tag = "users",
    params(("id" = u64, Path, description = "The user's number", minimum = 1)),
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
    let id = user_id(id)?;
    let change = Change::new("user.remove", Subject::user(Some(id)));
    recorded(&site, &caller, change, site.parts.store.remove_user(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Gives a user a new passkey; the old one stops working
#[utoipa::path(
    post, path = "/api/v1/users/{id}/passkey", tag = "users", request_body = RotatePasskey,
    params(("id" = u64, Path, description = "The user's number", minimum = 1)),
    security(("api_key" = ["admin"]), ("bearer" = ["admin"])),
    responses(
        (status = 200, description = "The user, with the new passkey", body = UserJson),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
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

//! Users: who may announce, what they moved, what they seed and leech (A5).
//!
//! # Layout
//!
//! - this file: users themselves
//! - `lists`: their accounts, what they seed and leech, where they owe seeding
//! - `clients`: why an account is what it is: what each client brought
//! - `entries`: the entries of the journal that made a figure

mod clients;
mod entries;
mod lists;

use std::sync::Arc;

use access::audit::Subject;
use access::keys::{Authenticated, Scope};
use access::{LeechSlots, NewUser, User, UserChange};
use axum::extract::State;
use axum::{Extension, Json};
use domain::{Passkey, UserId};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::{ObjectBuilder, Type};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use super::figures::FiguresShown;
use super::{Change, Page, recorded, recorded_with};
use crate::app::Routes;
use crate::extract::{
    Asked, Named, PageAsked, PasskeyText, Said, plain_number, query_parameter, slots, whole,
};
use crate::problem::{Problem, ProblemBody};
use crate::site::Site;

pub(super) fn readable() -> Routes {
    Routes::new()
        .routes(routes!(list))
        .routes(routes!(look_up))
        .routes(routes!(show))
        .merge(lists::routes())
        .merge(clients::routes())
        .merge(entries::routes())
}

pub(super) fn changeable() -> Routes {
    Routes::new().routes(routes!(add)).routes(routes!(change, remove)).routes(routes!(rotate))
}

/// A user.
#[derive(Serialize, ToSchema)]
#[schema(as = User)]
struct UserShown {
    /// Their number.
    id: u64,
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

impl UserShown {
    fn of(user: &User, caller: &Authenticated) -> UserShown {
        UserShown {
            id: user.id.get(),
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
struct UserWithAccounts {
    /// The user.
    user: UserShown,
    /// What they moved in all; null if they were never heard of.
    figures: Option<FiguresShown>,
    /// How many torrents they seed right now.
    seeding: u64,
    /// How many torrents they leech right now.
    leeching: u64,
}

/// Which passkeys are meant.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PasskeysSaid {
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
struct UserSaid {
    /// Their number on your site; left out for the next free one.
    #[serde(default, deserialize_with = "whole")]
    #[schema(minimum = 1, maximum = 9223372036854775807_u64)]
    id: Option<u64>,
    /// Their passkey; left out for a random one.
    #[schema(min_length = 8, max_length = 64, pattern = "^[0-9a-fA-F]+$")]
    passkey: Option<String>,
}

/// What to change about a user. What is left out stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = UserChange)]
struct UserChangeSaid {
    /// Whether they may announce.
    enabled: Option<bool>,
    /// How many torrents they may leech at once: a number, -1 for any number, null for the configured default. Who
    /// leeches more already goes on.
    #[serde(default, deserialize_with = "slots")]
    #[schema(value_type = Option<i64>, minimum = -1, maximum = 1000000)]
    leech_slots: Option<LeechSlots>,
}

/// A passkey to give.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PasskeySaid {
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

/// The longest text by which a user is looked for: a passkey.
const SEARCH_CHARS_MAX: usize = 64;

/// Which users.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UsersAsked {
    limit: Option<u32>,
    cursor: Option<String>,
    search: Option<String>,
}

impl IntoParams for UsersAsked {
    fn into_params(within: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let search = ObjectBuilder::new().schema_type(Type::String).max_length(Some(SEARCH_CHARS_MAX));
        let description =
            "Only the user with this number or, for keys with `admin`, with this whole passkey.";
        let mut parameters = PageAsked::<UserId>::into_params(within);
        parameters.push(query_parameter("search", description, search));
        parameters
    }
}

/// The users that are meant by what was typed: nobody, somebody, or two, since a passkey may look like a number.
async fn look_for(site: &Site, caller: &Authenticated, search: &str) -> Result<Vec<User>, Problem> {
    if search.chars().count() > SEARCH_CHARS_MAX {
        return Err(Problem::bad_request(format!("search: at most {SEARCH_CHARS_MAX} characters")));
    }
    let text = search.trim();
    let mut found = Vec::new();
    let number = plain_number(text);
    if let Some(id) = number.and_then(UserId::new) {
        found.extend(site.parts.store.user(id).await?);
    }
    if let Ok(passkey) = text.parse::<Passkey>() {
        if caller.scopes.allow(Scope::Admin) {
            found.extend(site.parts.store.user_by_passkey(&passkey).await?);
        } else if number.is_none() {
            return Err(Problem::forbidden(Scope::Admin.as_str()));
        }
    }
    found.sort_by_key(|user| user.id);
    found.dedup_by_key(|user| user.id);
    Ok(found)
}

/// All users, or those who are looked for
#[utoipa::path(
    get, path = "/api/v1/users", tag = "users", params(UsersAsked),
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "A page of users, by their numbers", body = Page<UserShown>),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn list(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    Asked(asked): Asked<UsersAsked>,
) -> Result<Json<Page<UserShown>>, Problem> {
    let page = PageAsked::<UserId>::of(asked.limit, asked.cursor);
    let (limit, after) = (page.limit()?, page.cursor()?);
    let users = match asked.search.as_deref() {
        None | Some("") => site.parts.store.list_users(after, limit + 1).await?,
        Some(search) => {
            let mut found = look_for(&site, &caller, search).await?;
            found.retain(|user| after.is_none_or(|after| user.id > after));
            found
        }
    };
    let show = |user: &User| UserShown::of(user, &caller);
    Ok(Json(Page::of(users, limit as usize, |user| user.id.to_string(), show)))
}

/// Whose passkeys these are
#[utoipa::path(
    post, path = "/api/v1/users/lookup", tag = "users", request_body = PasskeysSaid,
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "In the order asked", body = Vec<PasskeyHolder>),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn look_up(
    State(site): State<Arc<Site>>,
    Said(said): Said<PasskeysSaid>,
) -> Result<Json<Vec<PasskeyHolder>>, Problem> {
    if said.passkeys.len() > 1000 {
        return Err(Problem::bad_request("passkeys: at most 1000 at a time"));
    }
    let holder = |text: PasskeyText| {
        let passkey = passkey_of(&text.0)?;
        Ok(PasskeyHolder { passkey: text.0, user: site.parts.gate.user_of(&passkey).map(UserId::get) })
    };
    said.passkeys.into_iter().map(holder).collect::<Result<Vec<_>, Problem>>().map(Json)
}

/// A user, and what they moved
#[utoipa::path(
    get, path = "/api/v1/users/{id}", tag = "users",
    params(("id" = u64, Path, description = "The user's number", minimum = 1)),
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "The user", body = UserWithAccounts),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn show(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    Named(id): Named<u64>,
) -> Result<Json<UserWithAccounts>, Problem> {
    let user = find(&site, id).await?;
    let figures = site.parts.ledger.user(user.id).await?;
    let counts = site.parts.activity.counts(&user.passkey).await?;
    Ok(Json(UserWithAccounts {
        user: UserShown::of(&user, &caller),
        figures: figures.as_ref().map(FiguresShown::of),
        seeding: counts.seeding,
        leeching: counts.leeching,
    }))
}

/// Lets a user announce
#[utoipa::path(
    post, path = "/api/v1/users", tag = "users", request_body = UserSaid,
    security(("api_key" = ["admin"]), ("bearer" = ["admin"])),
    responses(
        (status = 201, description = "The user, with their passkey", body = UserShown),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn add(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    Said(said): Said<UserSaid>,
) -> Result<(StatusCode, Json<UserShown>), Problem> {
    let new = NewUser {
        id: said.id.map(user_id).transpose()?,
        passkey: said.passkey.as_deref().map(passkey_of).transpose()?,
        created_at: site.parts.clock.now(),
    };
    let change = Change::new("user.add", Subject::user(new.id));
    let adding = site.parts.store.add_user(new);
    let user = recorded_with(&site, &caller, change, adding, |record, user| {
        record.about(Subject::user(Some(user.id)))
    })
    .await?;
    Ok((StatusCode::CREATED, Json(UserShown::of(&user, &caller))))
}

/// Shuts a user out, or lets them in again; limits what they leech at once
#[utoipa::path(
    patch, path = "/api/v1/users/{id}", tag = "users", request_body = UserChangeSaid,
    params(("id" = u64, Path, description = "The user's number", minimum = 1)),
    security(("api_key" = ["admin"]), ("bearer" = ["admin"])),
    responses(
        (status = 200, description = "The user", body = UserShown),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn change(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    Named(id): Named<u64>,
    Said(said): Said<UserChangeSaid>,
) -> Result<Json<UserShown>, Problem> {
    let id = user_id(id)?;
    let UserChangeSaid { enabled, leech_slots } = said;
    let action = match (enabled, leech_slots) {
        (Some(true), None) => "user.enable",
        (Some(false), None) => "user.disable",
        (None, None) => return Ok(Json(UserShown::of(&find(&site, id.get()).await?, &caller))),
        (_, Some(_)) => "user.change",
    };
    let mut change = Change::new(action, Subject::user(Some(id)));
    if let Some(slots) = leech_slots {
        change = change.with("leech_slots", slots.to_string());
        change.details.extend(enabled.map(|enabled| ("enabled", enabled.into())));
    }
    let doing = site.parts.store.change_user(id, UserChange { enabled, leech_slots });
    recorded(&site, &caller, change, doing).await?;
    Ok(Json(UserShown::of(&find(&site, id.get()).await?, &caller)))
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
    Named(id): Named<u64>,
) -> Result<StatusCode, Problem> {
    let id = user_id(id)?;
    let change = Change::new("user.remove", Subject::user(Some(id)));
    recorded(&site, &caller, change, site.parts.store.remove_user(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Gives a user a new passkey; the old one stops working
#[utoipa::path(
    post, path = "/api/v1/users/{id}/passkey", tag = "users", request_body = PasskeySaid,
    params(("id" = u64, Path, description = "The user's number", minimum = 1)),
    security(("api_key" = ["admin"]), ("bearer" = ["admin"])),
    responses(
        (status = 200, description = "The user, with the new passkey", body = UserShown),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn rotate(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    Named(id): Named<u64>,
    Said(said): Said<PasskeySaid>,
) -> Result<Json<UserShown>, Problem> {
    let id = user_id(id)?;
    let passkey = said.passkey.as_deref().map(passkey_of).transpose()?;
    let change = Change::new("passkey.rotate", Subject::user(Some(id)));
    recorded(&site, &caller, change, site.parts.store.rotate_passkey(id, passkey)).await?;
    Ok(Json(UserShown::of(&find(&site, id.get()).await?, &caller)))
}

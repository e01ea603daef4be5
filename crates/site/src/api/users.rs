//! Users: who may announce, what they moved, what they seed and leech (A5).

use std::sync::Arc;

use access::audit::Subject;
use access::keys::{Authenticated, Scope};
use access::{LeechSlots, NewUser, User, UserChange};
use axum::extract::State;
use axum::{Extension, Json};
use domain::{Passkey, TorrentId, UserId};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;
use views::{Cursor, Page as ListPage};

use super::figures::{AccountShown, FiguresShown, HitAndRun};
use super::{Change, Page, recorded, recorded_with};
use crate::app::Routes;
use crate::extract::{Asked, Named, PageAsked, PasskeyText, Said, slots, whole};
use crate::problem::{Problem, ProblemBody};
use crate::site::Site;

pub(super) fn readable() -> Routes {
    Routes::new()
        .routes(routes!(list))
        .routes(routes!(look_up))
        .routes(routes!(show))
        .routes(routes!(torrents))
        .routes(routes!(seeding))
        .routes(routes!(leeching))
        .routes(routes!(hit_and_runs))
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

/// A torrent that a user seeds or leeches right now.
#[derive(Serialize, ToSchema)]
struct ActiveTorrent {
    /// The torrent.
    #[schema(example = "0123456789abcdef0123456789abcdef01234567")]
    infohash: String,
    /// The last announce.
    last_announce: u32,
}

/// A page of what a user seeds or leeches, newest announce first.
#[derive(Serialize, ToSchema)]
struct ActivePage {
    /// How many there are in all.
    count: u64,
    /// What is on this page.
    items: Vec<ActiveTorrent>,
    /// Where the next page begins; null if this is the last.
    next_cursor: Option<String>,
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

async fn find(site: &Site, id: u64) -> Result<User, Problem> {
    let id = user_id(id)?;
    let found = site.parts.store.user(id).await?;
    found.ok_or_else(|| {
        Problem::not_found("unknown_user", format!("there is no user {id}: see GET /api/v1/users"))
    })
}

/// All users
#[utoipa::path(
    get, path = "/api/v1/users", tag = "users", params(PageAsked<UserId>),
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "A page of users, by their numbers", body = Page<UserShown>),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn list(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    Asked(asked): Asked<PageAsked<UserId>>,
) -> Result<Json<Page<UserShown>>, Problem> {
    let limit = asked.limit()?;
    let after = asked.cursor()?;
    let users = site.parts.store.list_users(after, limit + 1).await?;
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

/// A user's account on each torrent
#[utoipa::path(
    get, path = "/api/v1/users/{id}/torrents", tag = "users",
    params(("id" = u64, Path, description = "The user's number", minimum = 1), PageAsked<TorrentId>),
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "A page of accounts, by the torrents' numbers", body = Page<AccountShown>),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn torrents(
    State(site): State<Arc<Site>>,
    Named(id): Named<u64>,
    Asked(asked): Asked<PageAsked<TorrentId>>,
) -> Result<Json<Page<AccountShown>>, Problem> {
    let after = asked.cursor()?;
    let limit = asked.limit()?;
    let user = find(&site, id).await?;
    let page = site.parts.ledger.accounts_of(user.id, after, limit).await?;
    let items = page.accounts.iter().map(|(key, account)| {
        let infohash = site.parts.gate.info_hash_of(key.torrent).map(|hash| hash.to_string());
        AccountShown::of(key, account, infohash)
    });
    Ok(Json(Page { items: items.collect(), next_cursor: page.next.map(|torrent| torrent.to_string()) }))
}

/// What a user seeds right now
#[utoipa::path(
    get, path = "/api/v1/users/{id}/seeding", tag = "users",
    params(("id" = u64, Path, description = "The user's number", minimum = 1), PageAsked<Cursor>),
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "Newest announce first", body = ActivePage),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn seeding(
    State(site): State<Arc<Site>>,
    Named(id): Named<u64>,
    Asked(asked): Asked<PageAsked<Cursor>>,
) -> Result<Json<ActivePage>, Problem> {
    active(&site, id, &asked, List::Seeding).await
}

/// What a user leeches right now
#[utoipa::path(
    get, path = "/api/v1/users/{id}/leeching", tag = "users",
    params(("id" = u64, Path, description = "The user's number", minimum = 1), PageAsked<Cursor>),
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "Newest announce first", body = ActivePage),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn leeching(
    State(site): State<Arc<Site>>,
    Named(id): Named<u64>,
    Asked(asked): Asked<PageAsked<Cursor>>,
) -> Result<Json<ActivePage>, Problem> {
    active(&site, id, &asked, List::Leeching).await
}

#[derive(Clone, Copy)]
enum List {
    Seeding,
    Leeching,
}

async fn active(
    site: &Site,
    id: u64,
    asked: &PageAsked<Cursor>,
    list: List,
) -> Result<Json<ActivePage>, Problem> {
    let after = asked.cursor()?;
    let page = ListPage { after, limit: asked.limit()? as usize };
    let passkey = find(site, id).await?.passkey;
    let activity = &site.parts.activity;
    let listing = match list {
        List::Seeding => activity.seeding(&passkey, &page).await?,
        List::Leeching => activity.leeching(&passkey, &page).await?,
    };
    let counts = activity.counts(&passkey).await?;
    let shown = |torrent: &views::ActiveTorrent| ActiveTorrent {
        infohash: torrent.info_hash.to_string(),
        last_announce: torrent.at.0,
    };
    Ok(Json(ActivePage {
        count: match list {
            List::Seeding => counts.seeding,
            List::Leeching => counts.leeching,
        },
        items: listing.torrents.iter().map(shown).collect(),
        next_cursor: listing.next.map(|cursor| cursor.to_string()),
    }))
}

/// Where a user owes seeding
#[utoipa::path(
    get, path = "/api/v1/users/{id}/hit-and-runs", tag = "users",
    params(("id" = u64, Path, description = "The user's number", minimum = 1), PageAsked<TorrentId>),
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "A page, by the torrents' numbers; it may be short, or empty, and still not be the last",
            body = Page<HitAndRun>),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn hit_and_runs(
    State(site): State<Arc<Site>>,
    Named(id): Named<u64>,
    Asked(asked): Asked<PageAsked<TorrentId>>,
) -> Result<Json<Page<HitAndRun>>, Problem> {
    let after = asked.cursor()?;
    let limit = asked.limit()?;
    let user = find(&site, id).await?;
    let now = site.parts.clock.now();
    // One page of accounts is looked at, however many of them owe something: a request has a bound.
    let page = site.parts.ledger.accounts_of(user.id, after, limit).await?;
    let items = page.accounts.iter().filter_map(|(key, account)| {
        let standing = ledger::standing(account, &site.parts.hit_and_run, now);
        let infohash = site.parts.gate.info_hash_of(key.torrent).map(|hash| hash.to_string());
        HitAndRun::of(AccountShown::of(key, account, infohash), &standing)
    });
    Ok(Json(Page { items: items.collect(), next_cursor: page.next.map(|torrent| torrent.to_string()) }))
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

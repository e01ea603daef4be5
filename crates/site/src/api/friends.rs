//! Friendships and privacy settings.
//!
//! User ids need not exist in the tracker's table of users.

use std::sync::Arc;

use admin::audit::Subject;
use admin::keys::Authenticated;
use axum::extract::State;
use axum::{Extension, Json};
use domain::UserId;
use friends::{Friend, FriendStore};
use http::StatusCode;
use presence::{Audience, Privacy};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::schema::{ArrayBuilder, Schema};
use utoipa::openapi::{KnownFormat, ObjectBuilder, RefOr, SchemaFormat, Type};
use utoipa_axum::routes;

use super::users::user_id;
use super::{Change, Page, recorded, recorded_with};
use crate::app::Routes;
use crate::extract::{JsonBody, PageParams, PathParams, QueryParams, UserIdJson};
use crate::problem::Problem;
use crate::site::Site;

/// Maximum number of pairs in a request.
const PAIRS_MAX: usize = 10_000;

pub(super) fn read_routes() -> Routes {
    Routes::new().routes(routes!(list)).routes(routes!(privacy))
}

pub(super) fn write_routes() -> Routes {
    Routes::new().routes(routes!(put, remove)).routes(routes!(import)).routes(routes!(set_privacy))
}

#[derive(Serialize, ToSchema)]
#[schema(as = Friend)]
struct FriendJson {
    id: u64,
    /// Start of the friendship.
    since: u32,
}

impl FriendJson {
    fn of(friend: &Friend) -> FriendJson {
        FriendJson { id: friend.id.get(), since: friend.since.0 }
    }
}

/// Ids of two users, such as `[7, 9]`.
#[derive(Deserialize)]
#[serde(try_from = "Vec<UserIdJson>")]
struct FriendPair(UserIdJson, UserIdJson);

impl TryFrom<Vec<UserIdJson>> for FriendPair {
    type Error = &'static str;

    fn try_from(ids: Vec<UserIdJson>) -> Result<FriendPair, &'static str> {
        match ids.as_slice() {
            [one, other] => Ok(FriendPair(*one, *other)),
            _ => Err("a pair is two user ids, such as [7, 9]"),
        }
    }
}

impl ToSchema for FriendPair {
    fn name() -> std::borrow::Cow<'static, str> {
        "FriendPair".into()
    }
}

impl utoipa::PartialSchema for FriendPair {
    fn schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
            .minimum(Some(1))
            .maximum(Some(i64::MAX));
        ArrayBuilder::new()
            .items(number)
            .min_items(Some(2))
            .max_items(Some(2))
            .description(Some("Ids of two users, such as `[7, 9]`"))
            .into()
    }
}

/// Friendships to import.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ImportFriends {
    /// Up to 10000.
    #[schema(max_items = 10000)]
    pairs: Vec<FriendPair>,
}

#[derive(Serialize, ToSchema)]
struct ImportFriendsReply {
    /// New friendships.
    added: u64,
    /// Pairs that were friends already, and duplicates.
    existing: u64,
}

/// Who may see something of a user.
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Audience)]
enum AudienceName {
    Everyone,
    Friends,
    Nobody,
}

impl AudienceName {
    fn of(visibility: Audience) -> AudienceName {
        match visibility {
            Audience::Everyone => AudienceName::Everyone,
            Audience::Friends => AudienceName::Friends,
            Audience::Nobody => AudienceName::Nobody,
        }
    }

    fn read(self) -> Audience {
        match self {
            AudienceName::Everyone => Audience::Everyone,
            AudienceName::Friends => Audience::Friends,
            AudienceName::Nobody => Audience::Nobody,
        }
    }
}

/// Privacy settings of a user.
#[derive(Serialize, ToSchema)]
#[schema(as = Privacy)]
struct PrivacyJson {
    /// Audience of status, text, devices and activity.
    status: AudienceName,
    /// Audience of the last-seen time, among those who may see the status.
    last_seen: AudienceName,
    /// Users that see nothing.
    never: Vec<u64>,
}

impl PrivacyJson {
    fn of(privacy: &Privacy) -> PrivacyJson {
        PrivacyJson {
            status: AudienceName::of(privacy.status),
            last_seen: AudienceName::of(privacy.last_seen),
            never: privacy.never.iter().map(|user| user.get()).collect(),
        }
    }
}

/// Privacy settings of a user.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SetPrivacy {
    /// Audience of status, text, devices and activity.
    status: AudienceName,
    /// Audience of the last-seen time, among those who may see the status.
    last_seen: AudienceName,
    /// Up to 1000 users that see nothing.
    #[serde(default)]
    #[schema(max_items = 1000)]
    never: Vec<UserIdJson>,
}

/// List a user's friends
///
/// Empty for an unknown user.
#[utoipa::path(
    get, path = "/api/v1/users/{id}/friends", tag = "friends",
    params(("id" = u64, Path, description = "User id", minimum = 1), PageParams<UserId>),
    responses(
        (status = 200, description = "A page, sorted by user id", body = Page<FriendJson>),
    )
)]
async fn list(
    State(site): State<Arc<Site>>,
    PathParams(id): PathParams<u64>,
    QueryParams(params): QueryParams<PageParams<UserId>>,
) -> Result<Json<Page<FriendJson>>, Problem> {
    let (limit, after) = (params.limit()?, params.cursor()?);
    let friends = site.parts.friends.friends_of(user_id(id)?, after, limit + 1).await?;
    Ok(Json(Page::of(friends, limit as usize, |friend| friend.id.to_string(), FriendJson::of)))
}

/// Make two users friends
///
/// Idempotent. Connected clients are updated within a second.
#[utoipa::path(
    put, path = "/api/v1/users/{id}/friends/{other}", tag = "friends",
    params(
        ("id" = u64, Path, description = "User id", minimum = 1),
        ("other" = u64, Path, description = "User id", minimum = 1),
    ),
    responses(
        (status = 204, description = "The users are friends"),
    )
)]
async fn put(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    PathParams((id, other)): PathParams<(u64, u64)>,
) -> Result<StatusCode, Problem> {
    let (id, other) = (user_id(id)?, user_id(other)?);
    let change = Change::new("friend.add", Subject::user(Some(id))).with("friend", other.get());
    let pair = [(id, other)];
    let operation = site.parts.friends.add_friends(&pair, site.parts.clock.now());
    recorded_with(&site, &caller, change, operation, |record, done| record.with("added", done.added)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// End a friendship
#[utoipa::path(
    delete, path = "/api/v1/users/{id}/friends/{other}", tag = "friends",
    params(
        ("id" = u64, Path, description = "User id", minimum = 1),
        ("other" = u64, Path, description = "User id", minimum = 1),
    ),
    responses(
        (status = 204, description = "Removed"),
    )
)]
async fn remove(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    PathParams((id, other)): PathParams<(u64, u64)>,
) -> Result<StatusCode, Problem> {
    let (id, other) = (user_id(id)?, user_id(other)?);
    let change = Change::new("friend.remove", Subject::user(Some(id))).with("friend", other.get());
    let operation = async {
        match site.parts.friends.remove_friends(&[(id, other)]).await? {
            0 => {
                let detail =
                    format!("users {id} and {other} are not friends: see GET /api/v1/users/{id}/friends");
                Err(Problem::not_found("unknown_friendship", detail))
            }
            _ => Ok(()),
        }
    };
    recorded(&site, &caller, change, operation).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Import friendships
///
/// All or none. Idempotent.
#[utoipa::path(
    post, path = "/api/v1/friends/import", tag = "friends", request_body = ImportFriends,
    responses(
        (status = 200, description = "Number of new and existing friendships", body = ImportFriendsReply),
    )
)]
async fn import(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    JsonBody(body): JsonBody<ImportFriends>,
) -> Result<Json<ImportFriendsReply>, Problem> {
    if body.pairs.len() > PAIRS_MAX {
        return Err(Problem::bad_request(format!(
            "at most {PAIRS_MAX} pairs per request: send several requests"
        )));
    }
    let pairs: Vec<(UserId, UserId)> =
        body.pairs.iter().map(|FriendPair(one, other)| (one.0, other.0)).collect();
    let change = Change::new("friend.import", Subject::new("friends", "all")).with("pairs", pairs.len());
    let operation = site.parts.friends.add_friends(&pairs, site.parts.clock.now());
    let done = recorded_with(&site, &caller, change, operation, |record, done| {
        record.with("added", done.added).with("existing", done.already)
    })
    .await?;
    Ok(Json(ImportFriendsReply { added: done.added, existing: done.already }))
}

/// Get a user's privacy settings
///
/// Default: `presence.default_visibility`.
#[utoipa::path(
    get, path = "/api/v1/users/{id}/privacy", tag = "friends",
    params(("id" = u64, Path, description = "User id", minimum = 1)),
    responses(
        (status = 200, description = "The settings", body = PrivacyJson),
    )
)]
async fn privacy(
    State(site): State<Arc<Site>>,
    PathParams(id): PathParams<u64>,
) -> Result<Json<PrivacyJson>, Problem> {
    Ok(Json(PrivacyJson::of(&site.parts.friends.privacy(user_id(id)?).await?)))
}

/// Set a user's privacy settings
///
/// Replaces all settings. Connected clients are updated within a second.
#[utoipa::path(
    put, path = "/api/v1/users/{id}/privacy", tag = "friends", request_body = SetPrivacy,
    params(("id" = u64, Path, description = "User id", minimum = 1)),
    responses(
        (status = 200, description = "The settings", body = PrivacyJson),
    )
)]
async fn set_privacy(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    PathParams(id): PathParams<u64>,
    JsonBody(body): JsonBody<SetPrivacy>,
) -> Result<Json<PrivacyJson>, Problem> {
    let id = user_id(id)?;
    let privacy = Privacy {
        status: body.status.read(),
        last_seen: body.last_seen.read(),
        never: body.never.iter().map(|user| user.0).collect(),
    };
    let change = Change::new("privacy.set", Subject::user(Some(id)))
        .with("status", privacy.status.name())
        .with("last_seen", privacy.last_seen.name())
        .with("never", privacy.never.len());
    let friends: &FriendStore = &site.parts.friends;
    recorded(&site, &caller, change, friends.set_privacy(id, &privacy)).await?;
    Ok(Json(PrivacyJson::of(&friends.privacy(id).await?)))
}

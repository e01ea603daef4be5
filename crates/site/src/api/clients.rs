//! Which BitTorrent programs may announce.

use std::sync::Arc;

use access::audit::Subject;
use access::keys::Authenticated;
use access::{ClientPrefix, ClientRule};
use axum::extract::State;
use axum::{Extension, Json};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::{Change, Page, recorded};
use crate::app::Routes;
use crate::extract::{JsonBody, PathParams};
use crate::problem::{Problem, ProblemBody};
use crate::site::Site;

/// The longest name that is taken.
const NAME_CHARS_MAX: usize = 200;

pub(super) fn read_routes() -> Routes {
    Routes::new().routes(routes!(list))
}

pub(super) fn write_routes() -> Routes {
    Routes::new().routes(routes!(put, remove))
}

/// Programs whose peer ids begin alike.
#[derive(Serialize, ToSchema)]
#[schema(as = ClientRule)]
struct ClientRuleJson {
    /// The first characters of their peer ids, such as `-TR3`; `hex:` and digits for anything else.
    prefix: String,
    /// What they are called.
    name: String,
    /// Whether they may announce.
    allowed: bool,
}

impl ClientRuleJson {
    fn of(rule: &ClientRule) -> ClientRuleJson {
        ClientRuleJson { prefix: rule.prefix.to_string(), name: rule.name.clone(), allowed: rule.allowed }
    }
}

/// What becomes of programs with a prefix.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SetClientRule {
    /// Whether they may announce.
    allowed: bool,
    /// What they are called.
    #[serde(default)]
    #[schema(max_length = 200, pattern = "^[^\\x00]*$")]
    name: String,
}

fn prefix_of(text: &str) -> Result<ClientPrefix, Problem> {
    text.parse().map_err(|error| Problem::bad_request(format!("prefix: {error}")))
}

/// Which programs may announce
///
/// Once one is allowed, all others are refused; of several prefixes that fit, the longest decides.
#[utoipa::path(
    get, path = "/api/v1/clients", tag = "clients",
    security(("api_key" = ["read"]), ("bearer" = ["read"])),
    responses(
        (status = 200, description = "All of them", body = Page<ClientRuleJson>),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn list(State(site): State<Arc<Site>>) -> Result<Json<Page<ClientRuleJson>>, Problem> {
    let rules = site.parts.store.list_clients().await?;
    Ok(Json(Page::whole(rules.iter().map(ClientRuleJson::of).collect())))
}

/// Allows or forbids programs
#[utoipa::path(
    put, path = "/api/v1/clients/{prefix}", tag = "clients", request_body = SetClientRule,
    params(("prefix" = String, Path, description = "The first characters of their peer ids, such as `-TR3`",
        pattern = "^(hex:([0-9a-fA-F]{2}){1,20}|(?!hex:)[ -~]{1,20})$")),
    security(("api_key" = ["admin"]), ("bearer" = ["admin"])),
    responses(
        (status = 200, description = "What holds now", body = ClientRuleJson),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn put(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    PathParams(prefix): PathParams<String>,
    JsonBody(body): JsonBody<SetClientRule>,
) -> Result<Json<ClientRuleJson>, Problem> {
    let prefix = prefix_of(&prefix)?;
    if body.name.chars().count() > NAME_CHARS_MAX || body.name.contains('\0') {
        return Err(Problem::bad_request(format!(
            "name must be at most {NAME_CHARS_MAX} characters, without NUL"
        )));
    }
    let store = &site.parts.store;
    let action = if body.allowed { "client.allow" } else { "client.forbid" };
    let operation = async {
        match body.allowed {
            true => store.allow_client(prefix, &body.name).await,
            false => store.forbid_client(prefix, &body.name).await,
        }
    };
    recorded(&site, &caller, Change::new(action, Subject::new("client", prefix)), operation).await?;
    Ok(Json(ClientRuleJson { prefix: prefix.to_string(), name: body.name, allowed: body.allowed }))
}

/// Takes a prefix off the list
#[utoipa::path(
    delete, path = "/api/v1/clients/{prefix}", tag = "clients",
    params(("prefix" = String, Path, description = "The first characters of their peer ids, such as `-TR3`",
        pattern = "^(hex:([0-9a-fA-F]{2}){1,20}|(?!hex:)[ -~]{1,20})$")),
    security(("api_key" = ["admin"]), ("bearer" = ["admin"])),
    responses(
        (status = 204, description = "Done"),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn remove(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    PathParams(prefix): PathParams<String>,
) -> Result<StatusCode, Problem> {
    let prefix = prefix_of(&prefix)?;
    let change = Change::new("client.remove", Subject::new("client", prefix));
    recorded(&site, &caller, change, site.parts.store.remove_client(prefix)).await?;
    Ok(StatusCode::NO_CONTENT)
}

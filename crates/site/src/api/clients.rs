//! Rules for BitTorrent clients, by peer id prefix.

use std::sync::Arc;

use access::{ClientPrefix, ClientRule};
use admin::audit::Subject;
use admin::keys::Authenticated;
use axum::extract::State;
use axum::{Extension, Json};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::{Change, Page, recorded};
use crate::app::Routes;
use crate::extract::{JsonBody, PathParams};
use crate::problem::Problem;
use crate::site::Site;

/// Maximum length of a name.
const NAME_CHARS_MAX: usize = 200;

pub(super) fn read_routes() -> Routes {
    Routes::new().routes(routes!(list))
}

pub(super) fn write_routes() -> Routes {
    Routes::new().routes(routes!(put, remove))
}

/// A rule for all clients with a peer id prefix.
#[derive(Serialize, ToSchema)]
#[schema(as = ClientRule)]
struct ClientRuleJson {
    /// Peer id prefix, such as `-TR3`; `hex:` and digits if it is not printable ASCII.
    prefix: String,
    name: String,
    /// Whether announces are accepted.
    allowed: bool,
}

impl ClientRuleJson {
    fn of(rule: &ClientRule) -> ClientRuleJson {
        ClientRuleJson { prefix: rule.prefix.to_string(), name: rule.name.clone(), allowed: rule.allowed }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SetClientRule {
    /// Whether announces are accepted.
    allowed: bool,
    #[serde(default)]
    #[schema(max_length = 200, pattern = "^[^\\x00]*$")]
    name: String,
}

fn prefix_of(text: &str) -> Result<ClientPrefix, Problem> {
    text.parse().map_err(|error| Problem::bad_request(format!("prefix: {error}")))
}

/// List client rules
///
/// If any prefix is allowed, all other clients are refused. The longest matching prefix applies.
#[utoipa::path(
    get, path = "/api/v1/clients", tag = "clients",
    responses(
        (status = 200, description = "All rules", body = Page<ClientRuleJson>),
    )
)]
async fn list(State(site): State<Arc<Site>>) -> Result<Json<Page<ClientRuleJson>>, Problem> {
    let rules = site.parts.store.list_clients().await?;
    Ok(Json(Page::whole(rules.iter().map(ClientRuleJson::of).collect())))
}

/// Allow or forbid clients with a prefix
#[utoipa::path(
    put, path = "/api/v1/clients/{prefix}", tag = "clients", request_body = SetClientRule,
    params(("prefix" = String, Path, description = "Peer id prefix, such as `-TR3`",
        pattern = "^(hex:([0-9a-fA-F]{2}){1,20}|(?!hex:)[ -~]{1,20})$")),
    responses(
        (status = 200, description = "The rule", body = ClientRuleJson),
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

/// Remove a client rule
#[utoipa::path(
    delete, path = "/api/v1/clients/{prefix}", tag = "clients",
    params(("prefix" = String, Path, description = "Peer id prefix, such as `-TR3`",
        pattern = "^(hex:([0-9a-fA-F]{2}){1,20}|(?!hex:)[ -~]{1,20})$")),
    responses(
        (status = 204, description = "Removed"),
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

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

use super::{Change, recorded};
use crate::app::Routes;
use crate::extract::{Named, Said};
use crate::problem::{Problem, ProblemBody};
use crate::site::Site;

/// The longest name that is taken.
const NAME_CHARS_MAX: usize = 200;

pub(super) fn readable() -> Routes {
    Routes::new().routes(routes!(list))
}

pub(super) fn changeable() -> Routes {
    Routes::new().routes(routes!(put, remove))
}

/// Programs whose peer ids begin alike.
#[derive(Serialize, ToSchema)]
#[schema(as = Client)]
struct ClientShown {
    /// The first characters of their peer ids, such as `-TR3`; `hex:` and digits for anything else.
    prefix: String,
    /// What they are called.
    name: String,
    /// Whether they may announce.
    allowed: bool,
}

impl ClientShown {
    fn of(rule: &ClientRule) -> ClientShown {
        ClientShown { prefix: rule.prefix.to_string(), name: rule.name.clone(), allowed: rule.allowed }
    }
}

/// What becomes of programs with a prefix.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ClientSaid {
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
        (status = 200, description = "All of them", body = Vec<ClientShown>),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn list(State(site): State<Arc<Site>>) -> Result<Json<Vec<ClientShown>>, Problem> {
    Ok(Json(site.parts.store.list_clients().await?.iter().map(ClientShown::of).collect()))
}

/// Allows or forbids programs
#[utoipa::path(
    put, path = "/api/v1/clients/{prefix}", tag = "clients", request_body = ClientSaid,
    params(("prefix" = String, Path, description = "The first characters of their peer ids, such as `-TR3`",
        pattern = "^(hex:([0-9a-fA-F]{2}){1,20}|(?!hex:)[ -~]{1,20})$")),
    security(("api_key" = ["admin"]), ("bearer" = ["admin"])),
    responses(
        (status = 200, description = "What holds now", body = ClientShown),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn put(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Authenticated>,
    Named(prefix): Named<String>,
    Said(said): Said<ClientSaid>,
) -> Result<Json<ClientShown>, Problem> {
    let prefix = prefix_of(&prefix)?;
    if said.name.chars().count() > NAME_CHARS_MAX || said.name.contains('\0') {
        return Err(Problem::bad_request(format!(
            "name must be at most {NAME_CHARS_MAX} characters, without NUL"
        )));
    }
    let store = &site.parts.store;
    let action = if said.allowed { "client.allow" } else { "client.forbid" };
    let doing = async {
        match said.allowed {
            true => store.allow_client(prefix, &said.name).await,
            false => store.forbid_client(prefix, &said.name).await,
        }
    };
    recorded(&site, &caller, Change::new(action, Subject::new("client", prefix)), doing).await?;
    Ok(Json(ClientShown { prefix: prefix.to_string(), name: said.name, allowed: said.allowed }))
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
    Named(prefix): Named<String>,
) -> Result<StatusCode, Problem> {
    let prefix = prefix_of(&prefix)?;
    let change = Change::new("client.remove", Subject::new("client", prefix));
    recorded(&site, &caller, change, site.parts.store.remove_client(prefix)).await?;
    Ok(StatusCode::NO_CONTENT)
}

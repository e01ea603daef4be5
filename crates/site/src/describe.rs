//! The API describes itself: OpenAPI 3.1 at `/openapi.json`, and the same for people at `/docs`.

use std::sync::Arc;

use axum::Router;
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use serde_json::{Value as Json, json};
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

use crate::app::Routes;
use crate::session::cookie;
use crate::site::Site;

mod page;

/// How the description names the session of somebody who is signed in.
const SESSION: &str = "session";

/// What stands before the routes.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Rollcall",
        description = "Who is here right now, and what did they move?\n\n\
            Send a key as `X-API-Key`, or as `Authorization: Bearer`; the dashboard exchanges one for a cookie (`POST \
            /session`), and then sends `X-CSRF-Token` with every change. `rollcall key create` makes one; its scopes are \
            `verify` (ask whether a passkey may announce), `read` (see everything but addresses, passkeys, what people \
            hide and the audit trail) and `admin` (everything). Heartbeats and `/api/v1/me` take a token of the person \
            instead, as connections do.\n\n\
            Numbers of bytes are texts of decimal digits, because they outgrow what many programs hold exactly. Times \
            are seconds since 1970. Lists come in pages: send `next_cursor` as `cursor` to get the next one. Errors are \
            `application/problem+json`; `detail` says what to do.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    modifiers(&Schemes),
    tags(
        (name = "verify", description = "For other trackers: may this passkey announce?"),
        (name = "users", description = "Who may announce, what they moved, what they seed and leech"),
        (name = "friends", description = "Who knows whom, and who may see what of a person"),
        (name = "torrents", description = "What may be announced, and who is on it"),
        (name = "whitelist", description = "Passkeys of users in a database of your own"),
        (name = "clients", description = "Which BitTorrent programs may announce, and on which ports they may not listen"),
        (name = "presence", description = "Who is here, on which devices, and since when not"),
        (name = "multipliers", description = "Times in which bytes count more or less"),
        (name = "journal", description = "The log of every announce: how far its views are, and what they could not take"),
        (name = "risks", description = "Announces that look like cheating, by kind"),
        (name = "staff", description = "What waits for the site's staff, in one queue"),
        (name = "audit", description = "Who changed what"),
        (name = "keys", description = "Who may use the API"),
        (name = "session", description = "Signing in to the dashboard"),
        (name = "health", description = "How the server is"),
    )
)]
struct Beginning;

/// How keys are sent.
struct Schemes;

impl Modify for Schemes {
    fn modify(&self, document: &mut Document) {
        let components = document.components.get_or_insert_with(Default::default);
        let header = SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("X-API-Key")));
        let bearer = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
        components.add_security_scheme("api_key", header);
        components.add_security_scheme("bearer", bearer);
        let person = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("JWT")
            .description(Some("A token that the site made for its member: sub is the user's number."))
            .build();
        let cookie = ApiKeyValue::with_description(
            cookie::NAME,
            "What POST /session sets; over HTTPS its name begins with `__Host-`. Changes need X-CSRF-Token besides it.",
        );
        components.add_security_scheme(SESSION, SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
        components.add_security_scheme("person", SecurityScheme::Http(person));
    }
}

/// A description without routes yet.
pub(crate) fn document() -> Routes {
    Routes::with_openapi(Beginning::openapi())
}

/// What the site can do, whole.
#[derive(Debug)]
pub struct Description {
    json: Json,
    html: String,
}

impl Description {
    /// Of routes that each say what key they take.
    pub(crate) fn of(document: Document) -> Description {
        let html = page::render(&document);
        let mut json = serde_json::to_value(&document).unwrap_or_default();
        for (path, methods) in json["paths"].as_object_mut().into_iter().flatten() {
            for (method, operation) in methods.as_object_mut().into_iter().flatten() {
                operation["operationId"] = operation_id(method, path).into();
                allow_session(operation);
            }
        }
        Description { json, html }
    }

    /// As OpenAPI has it.
    pub fn to_json(&self) -> &Json {
        &self.json
    }
}

/// What programs call an operation: no two have the same method and path, whatever the functions are called.
fn operation_id(method: &str, path: &str) -> String {
    let path = path.strip_prefix("/api/v1").unwrap_or(path);
    let mut id = method.to_owned();
    for part in path.split(['/', '.', '-']).filter(|part| !part.is_empty()) {
        id.push('_');
        match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
            Some(name) => {
                id.push_str("by_");
                id.push_str(name);
            }
            None => id.push_str(part),
        }
    }
    id
}

/// Whatever takes a key takes the session of one as well.
fn allow_session(operation: &mut Json) {
    let Some(ways) = operation.get_mut("security").and_then(Json::as_array_mut) else { return };
    if let Some(scopes) = ways.iter().find_map(|way| way.get("api_key")).cloned() {
        ways.push(json!({ SESSION: scopes }));
    }
}

/// The two pages that show it. They are made once: what they say does not change while the server runs.
pub(crate) fn routes(description: &Description) -> Router<Arc<Site>> {
    let json = description.json.to_string();
    let html = description.html.clone();
    let describe = move || async move {
        ([(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "public, max-age=300")], json).into_response()
    };
    let explain = move || async move {
        let mut response = Html(html).into_response();
        // The page has styles of its own and nothing else.
        let policy =
            HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
        response
    };
    Router::new().route("/openapi.json", get(describe)).route("/docs", get(explain))
}

#[cfg(test)]
mod tests {
    use super::*;

    // That no two are alike is asked of the printed description, in the server's own tests: asked here, it would compile
    // every route a second time.
    #[test]
    fn an_operation_is_called_after_its_method_and_path() {
        assert_eq!(
            operation_id("put", "/api/v1/users/{id}/multipliers/{from}"),
            "put_users_by_id_multipliers_by_from"
        );
        assert_eq!(operation_id("post", "/passkey/verify"), "post_passkey_verify");
    }
}

//! The OpenAPI 3.1 description at `/openapi.json`, and as a page at `/docs`.

use std::sync::Arc;

use admin::keys::Scope;
use axum::Router;
use axum::extract::RawQuery;
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use http::header::{
    ACCEPT_LANGUAGE, CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, VARY,
};
use http::{HeaderMap, HeaderValue};
use serde_json::{Value as Json, json};
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::{Modify, OpenApi};

use crate::app::Routes;
use crate::problem::ProblemBody;
use crate::session::cookie;
use crate::site::Site;

mod docs_page;
mod language;

use language::Language;

/// Security scheme of an operator session.
const SESSION: &str = "session";

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Rollcall",
        description = "Private BitTorrent tracker, accounting and presence.\n\n\
            Send a key as `X-API-Key`, or as `Authorization: Bearer`. The dashboard exchanges a key for a cookie (`POST \
            /session`) and sends `X-CSRF-Token` with every change. `rollcall key create` makes a key; its scopes are \
            `verify` (verify passkeys), `read` (read everything except addresses, passkeys, invisible users \
            and the audit trail) and `admin` (everything). Heartbeats and `/api/v1/me` take the user's presence token \
            instead.\n\n\
            Amounts of bytes are decimal strings, because they may exceed 64 bits. Times \
            are unix seconds. Collections have `items` and `next`: send `next` as `cursor` to get the next page. Errors are \
            `application/problem+json` with a stable `code`.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    modifiers(&Schemes),
    components(schemas(ProblemBody)),
    tags(
        (name = "verify", description = "Passkey verification for other trackers"),
        (name = "users", description = "Users, their traffic and activity"),
        (name = "friends", description = "Friendships and privacy settings"),
        (name = "torrents", description = "Torrents and swarms"),
        (name = "whitelist", description = "The passkey whitelist: passkeys of external users"),
        (name = "clients", description = "Client rules and banned ports"),
        (name = "presence", description = "Online users, devices and events"),
        (name = "multipliers", description = "Periods in which bytes count more or less"),
        (name = "journal", description = "The journal, its views and dead letters"),
        (name = "risks", description = "Announces that look like cheating"),
        (name = "staff", description = "The staff queue"),
        (name = "audit", description = "The audit trail"),
        (name = "keys", description = "API keys"),
        (name = "session", description = "Sign-in to the dashboard"),
        (name = "health", description = "State of the server"),
    )
)]
struct ApiInfo;

struct Schemes;

impl Modify for Schemes {
    fn modify(&self, document: &mut Document) {
        let components = document.components.get_or_insert_with(Default::default);
        let header = SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("X-API-Key")));
        let bearer = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
        components.add_security_scheme("api_key", header);
        components.add_security_scheme("bearer", bearer);
        let user_token = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("JWT")
            .description(Some("Presence token issued by the site: sub is the user id."))
            .build();
        let cookie = ApiKeyValue::with_description(
            cookie::NAME,
            "Set by POST /session; over HTTPS its name begins with `__Host-`. Changes also need X-CSRF-Token.",
        );
        components.add_security_scheme(SESSION, SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
        components.add_security_scheme("user_token", SecurityScheme::Http(user_token));
    }
}

pub(crate) fn document() -> Routes {
    Routes::with_openapi(ApiInfo::openapi())
}

/// Describes `routes` as routes for keys with this scope.
pub(crate) fn scoped(mut routes: Routes, scope: Scope) -> Routes {
    for item in routes.get_openapi_mut().paths.paths.values_mut() {
        let methods = [&mut item.get, &mut item.put, &mut item.post, &mut item.patch, &mut item.delete];
        for operation in methods.into_iter().flatten() {
            operation.security = Some(vec![SecurityRequirement::new("api_key", [scope.as_str()])]);
        }
    }
    routes
}

/// The description as JSON, and as a page in each language.
#[derive(Debug)]
pub struct Description {
    json: Json,
    pages: [String; Language::ALL.len()],
}

impl Description {
    pub(crate) fn of(document: Document) -> Description {
        let mut json = serde_json::to_value(&document).unwrap_or_default();
        rename_pages(&mut json);
        let pages = Language::ALL.map(|language| docs_page::render(&json, language));
        for (path, methods) in json["paths"].as_object_mut().into_iter().flatten() {
            for (method, operation) in methods.as_object_mut().into_iter().flatten() {
                operation["operationId"] = operation_id(method, path).into();
                allow_other_credentials(operation);
                describe_errors(operation);
            }
        }
        Description { json, pages }
    }

    pub fn to_json(&self) -> &Json {
        &self.json
    }
}

/// utoipa names `Page<User>` `Page_User`; clients see `UserPage`.
fn rename_pages(json: &mut Json) {
    let page_name = |name: &str| name.strip_prefix("Page_").map(|item| format!("{item}Page"));
    match json {
        Json::Object(fields) => {
            for (name, value) in std::mem::take(fields) {
                fields.insert(page_name(&name).unwrap_or(name), value);
            }
            if let Some(Json::String(reference)) = fields.get_mut("$ref")
                && let Some((path, name)) = reference.rsplit_once('/')
                && let Some(name) = page_name(name)
            {
                *reference = format!("{path}/{name}");
            }
            fields.values_mut().for_each(rename_pages);
        }
        Json::Array(items) => items.iter_mut().for_each(rename_pages),
        _ => {}
    }
}

/// Operation ids from method and path, which are unique; handler names are not.
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

/// A route that takes a key also takes it as a bearer token, or the session of one.
fn allow_other_credentials(operation: &mut Json) {
    let Some(ways) = operation.get_mut("security").and_then(Json::as_array_mut) else { return };
    if let Some(scopes) = ways.iter().find_map(|way| way.get("api_key")).cloned() {
        ways.extend([json!({ "bearer": scopes }), json!({ SESSION: scopes })]);
    }
}

/// Any route may answer with a problem.
fn describe_errors(operation: &mut Json) {
    let Some(responses) = operation.get_mut("responses").and_then(Json::as_object_mut) else { return };
    responses.entry("default").or_insert_with(|| {
        let schema = json!({ "$ref": "#/components/schemas/Problem" });
        json!({ "description": "Error", "content": { "application/problem+json": { "schema": schema } } })
    });
}

/// The documents are rendered once.
pub(crate) fn routes(description: &Description) -> Router<Arc<Site>> {
    let json = description.json.to_string();
    let pages = description.pages.clone();
    let describe = move || async move {
        ([(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "public, max-age=300")], json).into_response()
    };
    let explain = move |RawQuery(query): RawQuery, headers: HeaderMap| async move {
        let language = Language::of_request(query.as_deref(), headers.get(ACCEPT_LANGUAGE));
        let [english, chinese] = pages;
        let page = if language == Language::English { english } else { chinese };
        let mut response = Html(page).into_response();
        // The page has inline styles and nothing else.
        let policy =
            HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
        let headers = response.headers_mut();
        headers.insert(CONTENT_SECURITY_POLICY, policy);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
        headers.insert(CONTENT_LANGUAGE, HeaderValue::from_static(language.tag()));
        headers.insert(VARY, HeaderValue::from_static("accept-language"));
        response
    };
    Router::new().route("/openapi.json", get(describe)).route("/docs", get(explain))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Uniqueness is tested on the output of `rollcall openapi`: here it would compile every route a second time.
    #[test]
    fn an_operation_id_is_made_of_method_and_path() {
        assert_eq!(
            operation_id("put", "/api/v1/users/{id}/multipliers/{from}"),
            "put_users_by_id_multipliers_by_from"
        );
        assert_eq!(operation_id("post", "/passkey/verify"), "post_passkey_verify");
    }
}

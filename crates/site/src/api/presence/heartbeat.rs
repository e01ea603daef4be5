//! `POST /api/v1/presence/heartbeat`: for pages and apps that hold no connection (P8), with the person's own token.
//!
//! A heartbeat says the same as a connection does when it begins. Who says goodbye is gone at once; who is silent is gone
//! by the rules for their app's state. Keys of the API are not taken here: a key has no person behind it.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use gateway::hub::Identity;
use presence::{AppState, Declared, DeviceId, Hello, Platform, Policy};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::{device_of, gateway_of};
use crate::app::Routes;
use crate::extract::JsonBody;
use crate::problem::{Problem, ProblemBody};
use crate::site::Site;

/// Where heartbeats go. Pages of other origins than the API's may use it.
pub(crate) const PATH: &str = "/api/v1/presence/heartbeat";

pub(crate) fn routes() -> Routes {
    Routes::new().routes(routes!(heartbeat))
}

/// What a device says of itself.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Heartbeat {
    /// Its name: the same each time.
    #[schema(min_length = 1, max_length = 64, pattern = "^[!-~]+$")]
    device: String,
    /// What kind of device it is; web if left out.
    #[schema(example = "phone", value_type = Option<PlatformName>)]
    platform: Option<String>,
    /// Whether somebody looks at the app; foreground if left out.
    #[schema(example = "background", value_type = Option<AppStateName>)]
    app_state: Option<String>,
    /// What the person says of themselves while this device is here.
    #[schema(value_type = Option<DeclaredStatus>)]
    status: Option<String>,
    /// The last heartbeat: the device is gone at once.
    #[serde(default)]
    #[schema(default = false)]
    goodbye: bool,
}

/// What kind of device it is.
#[derive(ToSchema)]
#[schema(as = Platform, rename_all = "snake_case")]
#[expect(dead_code, reason = "the names, for the description")]
pub(super) enum PlatformName {
    Phone,
    Computer,
    Web,
}

/// Whether somebody looks at the app.
#[derive(ToSchema)]
#[schema(as = AppState, rename_all = "snake_case")]
#[expect(dead_code, reason = "the names, for the description")]
enum AppStateName {
    Foreground,
    Background,
    Inactive,
}

/// What a person can say of themselves.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "the names, for the description")]
enum DeclaredStatus {
    Online,
    Away,
    Busy,
    Invisible,
}

/// When to come again.
#[derive(Serialize, ToSchema)]
struct HeartbeatReply {
    /// After so many seconds; null after a goodbye.
    next_s: Option<u32>,
}

/// A device that holds no connection is here
///
/// With a token of the person, as for a connection; not with an API key.
#[utoipa::path(
    post, path = "/api/v1/presence/heartbeat", tag = "presence", request_body = Heartbeat,
    security(("user_token" = [])),
    responses(
        (status = 200, description = "It was heard", body = HeartbeatReply),
        (status = "default", description = "What is wrong", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
async fn heartbeat(
    State(site): State<Arc<Site>>,
    Extension(person): Extension<Identity>,
    JsonBody(body): JsonBody<Heartbeat>,
) -> Result<Json<HeartbeatReply>, Problem> {
    let hub = &gateway_of(&site)?.hub;
    let device = device_of(&body.device)?;
    let hello = hello_of(&body, device)?;
    if body.goodbye {
        hub.http_goodbye(person.user, hello.device);
        return Ok(Json(HeartbeatReply { next_s: None }));
    }
    let next_s = next_s(&hub.policy(), hello.app);
    hub.http_heartbeat(person.user, hello).await?;
    Ok(Json(HeartbeatReply { next_s: Some(next_s) }))
}

/// When the next heartbeat is to come: well before it is missed, for it takes its time on the way.
fn next_s(policy: &Policy, app: AppState) -> u32 {
    let missed = match app {
        AppState::Foreground => policy.heartbeat,
        AppState::Background | AppState::Inactive => policy.background_away,
    };
    // Fifths first: however long the time is, this does not overflow.
    (missed.0 - missed.0.div_ceil(5)).max(1)
}

fn hello_of(body: &Heartbeat, device: DeviceId) -> Result<Hello, Problem> {
    let platform =
        one_of("platform", body.platform.as_deref(), Platform::from_name, "phone, computer or web")?;
    let app = one_of(
        "app_state",
        body.app_state.as_deref(),
        AppState::from_name,
        "foreground, background or inactive",
    )?;
    let declared =
        one_of("status", body.status.as_deref(), Declared::from_name, "online, away, busy or invisible")?;
    Ok(Hello { device, platform: platform.unwrap_or_default(), app: app.unwrap_or_default(), declared })
}

pub(super) fn one_of<T>(
    field: &str,
    body: Option<&str>,
    read: impl Fn(&str) -> Option<T>,
    known: &str,
) -> Result<Option<T>, Problem> {
    let Some(name) = body else { return Ok(None) };
    read(name).map(Some).ok_or_else(|| Problem::bad_request(format!("{field}: one of {known}")))
}

#[cfg(test)]
mod tests {
    use domain::Seconds;

    use super::*;

    #[test]
    fn p8_who_comes_when_told_to_is_never_late() {
        let policy = Policy { heartbeat: Seconds(30), background_away: Seconds(300), ..Policy::default() };
        assert_eq!(next_s(&policy, AppState::Foreground), 24);
        assert_eq!(next_s(&policy, AppState::Background), 240);
        assert_eq!(next_s(&policy, AppState::Inactive), 240);
        let policy = Policy { heartbeat: Seconds(1), background_away: Seconds(u32::MAX), ..policy };
        assert_eq!(next_s(&policy, AppState::Foreground), 1);
        assert!(next_s(&policy, AppState::Background) < u32::MAX);
    }
}

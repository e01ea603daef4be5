//! `POST /api/v1/presence/heartbeat`: for pages and apps without a WebSocket (P8), authenticated by the user's token.
//!
//! A heartbeat has the fields of a `connect` command. With `goodbye` the device goes offline at once; without further
//! heartbeats, after the timeouts of its app state. API keys are not accepted: a key has no user.

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
use crate::problem::Problem;
use crate::site::Site;

/// Pages of `gateway.allowed_origins` may call it.
pub(crate) const PATH: &str = "/api/v1/presence/heartbeat";

pub(crate) fn routes() -> Routes {
    Routes::new().routes(routes!(heartbeat))
}

/// State of a device.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Heartbeat {
    /// Device id, stable across heartbeats.
    #[schema(min_length = 1, max_length = 64, pattern = "^[!-~]+$")]
    device: String,
    /// Default: web.
    #[schema(example = "phone", value_type = Option<PlatformName>)]
    platform: Option<String>,
    /// Default: foreground.
    #[schema(example = "background", value_type = Option<AppStateName>)]
    app_state: Option<String>,
    /// Status declared by the user, while this device is online.
    #[schema(value_type = Option<DeclaredStatus>)]
    status: Option<String>,
    /// Last heartbeat: the device goes offline at once.
    #[serde(default)]
    #[schema(default = false)]
    goodbye: bool,
}

#[derive(ToSchema)]
#[schema(as = Platform, rename_all = "snake_case")]
#[expect(dead_code, reason = "only for the OpenAPI schema")]
pub(super) enum PlatformName {
    Phone,
    Computer,
    Web,
}

#[derive(ToSchema)]
#[schema(as = AppState, rename_all = "snake_case")]
#[expect(dead_code, reason = "only for the OpenAPI schema")]
enum AppStateName {
    Foreground,
    Background,
    Inactive,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "only for the OpenAPI schema")]
enum DeclaredStatus {
    Online,
    Away,
    Busy,
    Invisible,
}

#[derive(Serialize, ToSchema)]
struct HeartbeatReply {
    /// Seconds until the next heartbeat; null after a goodbye.
    next_s: Option<u32>,
}

/// Send a heartbeat of a device without a WebSocket
///
/// Takes the user's token, as for a connection; not an API key.
#[utoipa::path(
    post, path = "/api/v1/presence/heartbeat", tag = "presence", request_body = Heartbeat,
    security(("user_token" = [])),
    responses(
        (status = 200, description = "Accepted", body = HeartbeatReply),
    )
)]
async fn heartbeat(
    State(site): State<Arc<Site>>,
    Extension(identity): Extension<Identity>,
    JsonBody(body): JsonBody<Heartbeat>,
) -> Result<Json<HeartbeatReply>, Problem> {
    let hub = &gateway_of(&site)?.hub;
    let device = device_of(&body.device)?;
    let hello = hello_of(&body, device)?;
    if body.goodbye {
        hub.http_goodbye(identity.user, hello.device);
        return Ok(Json(HeartbeatReply { next_s: None }));
    }
    let next_s = next_s(hub.users.policy(), hello.app);
    hub.http_heartbeat(identity.user, hello).await?;
    Ok(Json(HeartbeatReply { next_s: Some(next_s) }))
}

/// Seconds until the next heartbeat: 80 % of the timeout, to allow for network delay.
fn next_s(policy: &Policy, app: AppState) -> u32 {
    let timeout = match app {
        AppState::Foreground => policy.heartbeat,
        AppState::Background | AppState::Inactive => policy.background_away,
    };
    // Subtracting a fifth cannot overflow.
    (timeout.0 - timeout.0.div_ceil(5)).max(1)
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
    fn p8_the_next_heartbeat_is_due_before_the_timeout() {
        let policy = Policy { heartbeat: Seconds(30), background_away: Seconds(300), ..Policy::default() };
        assert_eq!(next_s(&policy, AppState::Foreground), 24);
        assert_eq!(next_s(&policy, AppState::Background), 240);
        assert_eq!(next_s(&policy, AppState::Inactive), 240);
        let policy = Policy { heartbeat: Seconds(1), background_away: Seconds(u32::MAX), ..policy };
        assert_eq!(next_s(&policy, AppState::Foreground), 1);
        assert!(next_s(&policy, AppState::Background) < u32::MAX);
    }
}

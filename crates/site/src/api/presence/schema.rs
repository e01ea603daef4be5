//! JSON of presence, in the same form as in the feed.

use std::fmt;

use domain::UserId;
use friends::PresenceEventKind;
use friends::RecordedEvent;
use gateway::hub::OnlineCount;
use presence::{DeviceView, NodeDevice, Platform, SessionView, Status, View};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::openapi::schema::{OneOfBuilder, Type};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use views::activity::Counts;

/// Public presence of a user.
#[derive(Serialize, ToSchema)]
#[schema(as = Presence)]
pub(crate) struct PresenceJson {
    /// User id, as a string.
    #[schema(example = "7")]
    id: String,
    /// offline, pending, away, online or busy.
    #[schema(example = "online")]
    status: &'static str,
    /// Increases with every change; 0 if the user was never online.
    version: u64,
    /// Null if unknown.
    last_seen: Option<u32>,
    /// Empty if offline.
    devices: Vec<DeviceJson>,
    /// Status text of the user.
    text: Option<String>,
    /// Time at which the declared status expires.
    until: Option<u32>,
    /// Torrents that the user seeds now.
    seeding: u32,
    /// Torrents that the user leeches now.
    leeching: u32,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Device)]
struct DeviceJson {
    /// Chosen by the client.
    id: String,
    /// phone, computer or web.
    #[schema(example = "web")]
    platform: &'static str,
    /// foreground, background or inactive.
    #[schema(example = "foreground")]
    state: &'static str,
    /// online or away.
    #[schema(example = "online")]
    status: &'static str,
}

impl PresenceJson {
    pub(crate) fn of(view: &View) -> PresenceJson {
        let device = |device: &DeviceView| DeviceJson {
            id: device.id.to_string(),
            platform: device.platform.name(),
            state: device.app.name(),
            status: device.status.name(),
        };
        PresenceJson {
            id: view.user.to_string(),
            status: view.status.name(),
            version: view.version,
            last_seen: view.last_seen.map(|at| at.0),
            devices: view.devices.iter().map(device).collect(),
            text: view.text.as_deref().map(str::to_owned),
            until: view.until.map(|at| at.0),
            seeding: view.seeding,
            leeching: view.leeching,
        }
    }

    pub(super) fn set_active(&mut self, counts: Counts) {
        let clamp = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        (self.seeding, self.leeching) = (clamp(counts.seeding), clamp(counts.leeching));
    }
}

/// A session, for keys with `admin`.
#[derive(Serialize, ToSchema)]
#[schema(as = Session)]
pub(crate) struct SessionJson {
    device: String,
    /// phone, computer or web.
    #[schema(example = "web")]
    platform: &'static str,
    /// foreground, background or inactive.
    #[schema(example = "foreground")]
    state: &'static str,
    /// online or away.
    #[schema(example = "online")]
    status: &'static str,
    /// Whether it has a WebSocket; otherwise it sends heartbeats over HTTP.
    connected: bool,
    /// Start of the session.
    since: u32,
    /// Last ten heartbeats, latest first, in unix milliseconds.
    heartbeats_ms: Vec<u64>,
    /// Gateway, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "gw-a")]
    node: Option<String>,
}

/// A device at another gateway.
#[derive(Serialize, ToSchema)]
#[schema(as = RemoteDevice)]
pub(super) struct RemoteDeviceJson {
    device: String,
    /// phone, computer or web.
    #[schema(example = "web")]
    platform: &'static str,
    /// foreground, background or inactive.
    #[schema(example = "foreground")]
    state: &'static str,
    /// online or away.
    #[schema(example = "online")]
    status: &'static str,
    #[schema(example = "gw-b")]
    node: String,
}

impl RemoteDeviceJson {
    pub(super) fn of(node: String, device: &NodeDevice) -> RemoteDeviceJson {
        let status = if device.online { Status::Online } else { Status::Away };
        RemoteDeviceJson {
            device: device.id.to_string(),
            platform: device.platform.name(),
            state: device.app.name(),
            status: status.name(),
            node,
        }
    }
}

impl SessionJson {
    pub(crate) fn of(session: &SessionView, node: Option<String>) -> SessionJson {
        SessionJson {
            device: session.device.to_string(),
            platform: session.platform.name(),
            state: session.app.name(),
            status: session.status.name(),
            connected: session.conn.is_some(),
            since: session.since.0,
            heartbeats_ms: session.heartbeats.iter().map(|at| at.0).collect(),
            node,
        }
    }
}

/// Counts of users and connections.
#[derive(Clone, Serialize, ToSchema)]
pub(crate) struct PresenceCount {
    /// Users that are online and not invisible.
    pub(crate) online: u32,
    /// Users by status.
    users: UsersByStatus,
    /// Sessions with a WebSocket, including invisible users. Needs `admin`, as do the next two fields: together with the
    /// visible devices they would reveal the number of invisible users.
    connections: Option<u32>,
    /// Connections by platform.
    platforms: Option<ConnectionsByPlatform>,
    /// Sessions with heartbeats over HTTP.
    without_connection: Option<u32>,
}

#[derive(Clone, Serialize, ToSchema)]
struct UsersByStatus {
    online: u32,
    away: u32,
    busy: u32,
    /// Appear offline to others. Needs `admin`.
    invisible: Option<u32>,
    /// Online before a restart and expected to reconnect.
    pending: u32,
}

/// Connections by platform.
#[derive(Clone, Serialize, ToSchema)]
struct ConnectionsByPlatform {
    phone: u64,
    computer: u64,
    web: u64,
}

impl PresenceCount {
    pub(crate) fn of(count: &OnlineCount) -> PresenceCount {
        let tally = &count.tally;
        let on = |platform: Platform| count.connections[platform as usize];
        PresenceCount {
            online: tally.visible(),
            users: UsersByStatus {
                online: tally.of(Status::Online),
                away: tally.of(Status::Away),
                busy: tally.of(Status::Busy),
                invisible: Some(tally.of(Status::Invisible)),
                pending: tally.of(Status::Pending),
            },
            connections: Some(tally.connections),
            platforms: Some(ConnectionsByPlatform {
                phone: on(Platform::Phone),
                computer: on(Platform::Computer),
                web: on(Platform::Web),
            }),
            without_connection: Some(tally.without_connection),
        }
    }

    /// Without the counts that include invisible users.
    pub(crate) fn without_hidden(mut self) -> PresenceCount {
        self.users.invisible = None;
        (self.connections, self.platforms, self.without_connection) = (None, None, None);
        self
    }
}

/// An event in a user's history.
#[derive(Serialize, ToSchema)]
#[schema(as = PresenceEvent)]
pub(super) struct PresenceEventJson {
    /// Increases with time.
    id: u64,
    /// Unix milliseconds.
    at_ms: u64,
    /// arrived (first device in), left (last device out) or transition (another status).
    #[schema(example = "transition")]
    event: &'static str,
    /// Status before a transition, as the user's own devices see it.
    from: Option<&'static str>,
    /// Status after a transition.
    to: Option<&'static str>,
    #[schema(example = "silence")]
    cause: Option<&'static str>,
    device: Option<String>,
}

impl PresenceEventJson {
    pub(super) fn of(recorded: &RecordedEvent) -> PresenceEventJson {
        let event = &recorded.event;
        let (from, to) = match event.kind {
            PresenceEventKind::Transition { from, to } => (Some(from.name()), Some(to.name())),
            PresenceEventKind::Arrived | PresenceEventKind::Left => (None, None),
        };
        PresenceEventJson {
            id: recorded.id.0,
            at_ms: event.at_ms,
            event: event.kind.name(),
            from,
            to,
            cause: event.cause.map(presence::Cause::name),
            device: event.device.as_ref().map(ToString::to_string),
        }
    }
}

/// A user id as an integer or, as in the feed, as a string.
#[derive(Clone, Copy)]
pub(super) struct UserIdOrString(pub UserId);

impl<'de> Deserialize<'de> for UserIdOrString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<UserIdOrString, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl NumberVisitor {
    fn user<E: Error>(number: Option<u64>) -> Result<UserIdOrString, E> {
        let user = number.and_then(UserId::new).map(UserIdOrString);
        user.ok_or_else(|| E::custom("a user id is an integer from 1 to 9223372036854775807"))
    }
}

impl Visitor<'_> for NumberVisitor {
    type Value = UserIdOrString;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a user id")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<UserIdOrString, E> {
        Self::user(Some(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<UserIdOrString, E> {
        // 5.0 is the integer 5; up to here floating-point numbers are exact.
        let is_whole = number.fract() == 0.0 && (1.0..=9_007_199_254_740_992.0).contains(&number);
        Self::user(is_whole.then_some(number as u64))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<UserIdOrString, E> {
        Self::user(crate::extract::plain_number(text))
    }
}

impl PartialSchema for UserIdOrString {
    fn schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(1))
            .maximum(Some(9_223_372_036_854_775_807_u64));
        // Any 18 digits fit into an id.
        let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[1-9][0-9]{0,17}$"));
        OneOfBuilder::new().item(number).item(text).into()
    }
}

impl ToSchema for UserIdOrString {}

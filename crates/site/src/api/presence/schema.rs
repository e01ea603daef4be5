//! People as the API writes them: as in their feed, so that a program needs to know one form.

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

/// A person, as others see them.
#[derive(Serialize, ToSchema)]
#[schema(as = Presence)]
pub(crate) struct PresenceJson {
    /// Their number, as a text.
    #[schema(example = "7")]
    id: String,
    /// offline, pending, away, online or busy.
    #[schema(example = "online")]
    status: &'static str,
    /// Grows with every change; 0 if nobody ever heard of them.
    version: u64,
    /// When they were last here; null if that is not known.
    last_seen: Option<u32>,
    /// Their devices, if they are here.
    devices: Vec<DeviceJson>,
    /// What they wrote beside their status.
    text: Option<String>,
    /// When what they declared ends by itself.
    until: Option<u32>,
    /// Torrents they seed right now.
    seeding: u32,
    /// Torrents they leech right now.
    leeching: u32,
}

/// A device of a person.
#[derive(Serialize, ToSchema)]
#[schema(as = Device)]
struct DeviceJson {
    /// Its name, as its client chose it.
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

/// A session of a person, for keys with `admin`.
#[derive(Serialize, ToSchema)]
#[schema(as = Session)]
pub(crate) struct SessionJson {
    /// The device.
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
    /// Whether it holds a connection; otherwise it sends heartbeats over HTTP.
    connected: bool,
    /// When it began.
    since: u32,
    /// When it was heard, the latest first, ten times at the most; in milliseconds since 1970.
    heartbeats_ms: Vec<u64>,
    /// The gateway, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "gw-a")]
    node: Option<String>,
}

/// A device of a person at another gateway.
#[derive(Serialize, ToSchema)]
#[schema(as = RemoteDevice)]
pub(super) struct RemoteDeviceJson {
    /// The device.
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
    /// The gateway.
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

/// How many are here.
#[derive(Clone, Serialize, ToSchema)]
pub(crate) struct PresenceCount {
    /// People who are here and can be seen.
    pub(crate) online: u32,
    /// People by status, as others see them.
    people: UsersByStatus,
    /// Sessions with a connection, also of people who hide. Null to keys without `admin`, as are the next two: compared
    /// with the devices of those who are seen, they would tell how many hide.
    connections: Option<u32>,
    /// Connections by platform.
    platforms: Option<ConnectionsByPlatform>,
    /// Sessions that live by heartbeats over HTTP.
    without_connection: Option<u32>,
}

/// People by status.
#[derive(Clone, Serialize, ToSchema)]
struct UsersByStatus {
    online: u32,
    away: u32,
    busy: u32,
    /// Hidden: to others they are offline. Null to keys without `admin`: beside who comes and goes it would tell who hides.
    invisible: Option<u32>,
    /// Were here before a restart, and have a while to come back.
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
            people: UsersByStatus {
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

    /// The same, for those who must not know who hides.
    pub(crate) fn without_hidden(mut self) -> PresenceCount {
        self.people.invisible = None;
        (self.connections, self.platforms, self.without_connection) = (None, None, None);
        self
    }
}

/// Something that happened to a person.
#[derive(Serialize, ToSchema)]
#[schema(as = PresenceEvent)]
pub(super) struct PresenceEventJson {
    /// Its number; later ones have higher numbers.
    id: u64,
    /// When, in milliseconds since 1970.
    at_ms: u64,
    /// arrived (first device in), left (last device out) or transition (another status).
    #[schema(example = "transition")]
    event: &'static str,
    /// The status before a transition, as their own devices saw it.
    from: Option<&'static str>,
    /// The status after it.
    to: Option<&'static str>,
    /// Why.
    #[schema(example = "silence")]
    cause: Option<&'static str>,
    /// By which device.
    device: Option<String>,
}

impl PresenceEventJson {
    pub(super) fn of(recorded: &RecordedEvent) -> PresenceEventJson {
        let told = &recorded.event;
        let (from, to) = match told.kind {
            PresenceEventKind::Transition { from, to } => (Some(from.name()), Some(to.name())),
            PresenceEventKind::Arrived | PresenceEventKind::Left => (None, None),
        };
        PresenceEventJson {
            id: recorded.id.0,
            at_ms: told.at_ms,
            event: told.kind.name(),
            from,
            to,
            cause: told.cause.map(presence::Cause::name),
            device: told.device.as_ref().map(ToString::to_string),
        }
    }
}

/// A user's number, as a number or, as in the feed, as a text.
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
        user.ok_or_else(|| E::custom("a user id is a number from 1 to 9223372036854775807"))
    }
}

impl Visitor<'_> for NumberVisitor {
    type Value = UserIdOrString;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a user's number")
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
        // Every text of up to 18 digits is a number that fits.
        let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[1-9][0-9]{0,17}$"));
        OneOfBuilder::new().item(number).item(text).into()
    }
}

impl ToSchema for UserIdOrString {}

//! What is published each second.

use serde::Serialize;
use utoipa::ToSchema;

use crate::api::PresenceCount;
use crate::health::DependencyHealth;

/// Everything at a glance, as of one second.
#[derive(Clone, Serialize, ToSchema)]
pub struct Overview {
    /// When it was put together, in milliseconds since 1970.
    pub at_ms: u64,
    /// Which version this is.
    pub version: String,
    /// The name of this process among others.
    #[schema(example = "node-a")]
    pub node: String,
    /// When this process began, in seconds since 1970.
    pub started_at: u32,
    /// Who is here, over all gateways; null if this process has no gateway.
    #[schema(value_type = Option<PresenceCount>)]
    pub(crate) people: Option<PresenceCount>,
    /// What this process's gateway does; null if it has none.
    pub gateway: Option<GatewayOverview>,
    /// What this process's tracker does; null if it has none.
    pub tracker: Option<TrackerOverview>,
    /// How the journal is; null while it does not answer.
    pub journal: Option<JournalOverview>,
    /// What the server depends on.
    pub health: Vec<DependencyHealth>,
    /// What is wrong, what is critical first.
    pub alerts: Vec<Alert>,
}

/// What a gateway does.
#[derive(Clone, Serialize, ToSchema)]
pub struct GatewayOverview {
    /// Connections that people made, a second.
    pub connects_per_s: f64,
    /// Connections of people that ended, a second.
    pub disconnects_per_s: f64,
    /// Connections of people that ended since the start, by cause.
    pub disconnects: Vec<DisconnectCause>,
    /// From a ping to its answer, over the last minute; null if nobody answered one.
    pub heartbeat_delay_ms: Option<HeartbeatDelay>,
    /// Webhooks that are not delivered yet.
    pub webhooks_waiting: u64,
}

/// How often connections ended for one cause.
#[derive(Clone, Serialize, ToSchema)]
pub struct DisconnectCause {
    /// The cause.
    #[schema(value_type = String, example = "dropped")]
    pub cause: &'static str,
    /// How often.
    pub count: u64,
}

/// How long something took, in milliseconds.
#[derive(Clone, Serialize, ToSchema)]
pub struct HeartbeatDelay {
    /// Half of them took no longer.
    pub p50: f64,
    /// Of a hundred one took longer.
    pub p99: f64,
    /// Whether half of them took more than `p50`, which is then the longest time that is measured.
    pub p50_exceeds: bool,
    /// Whether more than one of a hundred took more than `p99`, likewise.
    pub p99_exceeds: bool,
}

/// What a tracker does.
#[derive(Clone, Serialize, ToSchema)]
pub struct TrackerOverview {
    /// Torrents that have, or had, peers since the start.
    pub torrents_active: u64,
    /// Torrents that have a seeder now.
    pub torrents_seeded: u64,
    /// Torrents that have a leecher now.
    pub torrents_leeched: u64,
    /// Peers on all torrents.
    pub peers: u64,
    /// Those of them that have the whole torrent.
    pub seeders: u64,
    /// Those that do not.
    pub leechers: u64,
    /// Announces accepted since the start.
    pub announces: u64,
    /// Announces accepted, a second.
    pub announces_per_s: f64,
    /// Requests refused, a second.
    pub refused_per_s: f64,
    /// Bytes uploaded since the start, as credited to raw accounts.
    #[schema(pattern = "^[0-9]+$")]
    pub uploaded: String,
    /// Bytes downloaded since the start, likewise.
    #[schema(pattern = "^[0-9]+$")]
    pub downloaded: String,
    /// Bytes uploaded, a second. Clients tell of them when they announce, so they come in lumps.
    pub upload_bytes_per_s: f64,
    /// Bytes downloaded, a second, likewise.
    pub download_bytes_per_s: f64,
}

/// How the journal is.
#[derive(Clone, Serialize, ToSchema)]
pub struct JournalOverview {
    /// Entries it holds.
    pub entries: u64,
    /// Whether that is more than `journal.length_alarm`.
    pub too_long: bool,
    /// Entries ever appended.
    pub appended: u64,
    /// Entries appended, a second.
    pub appended_per_s: f64,
    /// Dead letters, which are tried again.
    pub dlq: u64,
    /// Entries that were given up.
    pub failed: u64,
    /// Risk events.
    pub risks: u64,
    /// The views, each with how far it is.
    pub views: Vec<ViewOverview>,
}

/// How far a view is.
#[derive(Clone, Serialize, ToSchema)]
pub struct ViewOverview {
    #[schema(example = "ledger")]
    pub view: String,
    /// The group in which it reads the journal.
    pub group: String,
    /// Entries that it does not show yet.
    pub lag: u64,
    /// How old the oldest of them is, in seconds.
    pub behind_s: f64,
    /// Entries that it took, a second.
    pub rate_per_s: f64,
    /// Whether an operator has paused it.
    pub paused: bool,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Somebody or something does not work.
    Critical,
    /// To be looked at before it becomes worse.
    Warning,
}

/// Something that is wrong.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Alert {
    /// What it is, for programs.
    #[schema(example = "view_paused")]
    pub code: String,
    /// What it is about: a view, a dependency; null where there is only one of its kind.
    #[schema(example = "ledger")]
    pub subject: Option<String>,
    /// How bad it is.
    pub severity: Severity,
    /// Since when, in seconds since 1970.
    pub since: u32,
    /// What is wrong and what to do, in words.
    pub detail: String,
    /// Dependencies and views that fail because of it, by name. They have no alerts of their own.
    pub affected: Vec<String>,
}

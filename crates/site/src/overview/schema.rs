//! JSON of the overview.

use serde::Serialize;
use utoipa::ToSchema;

use crate::api::PresenceCount;
use crate::health::DependencyHealth;

/// State of the server, computed once a second.
#[derive(Clone, Serialize, ToSchema)]
#[cfg_attr(test, derive(Default))]
pub struct Overview {
    /// Unix milliseconds.
    pub at_ms: u64,
    pub version: String,
    /// Name of this process.
    #[schema(example = "node-a")]
    pub node: String,
    /// Start of this process, in unix seconds.
    pub started_at: u32,
    /// Online users over all gateways; null without a gateway.
    #[schema(value_type = Option<PresenceCount>)]
    pub(crate) presence: Option<PresenceCount>,
    /// Null without a gateway.
    pub gateway: Option<GatewayOverview>,
    /// Null without a tracker.
    pub tracker: Option<TrackerOverview>,
    /// Null while the journal is unavailable.
    pub journal: Option<JournalOverview>,
    /// Dependencies.
    pub health: Vec<DependencyHealth>,
    /// Critical alerts first.
    pub alerts: Vec<Alert>,
}

/// State of the gateway.
#[derive(Clone, Serialize, ToSchema)]
pub struct GatewayOverview {
    /// New sessions.
    pub connects_per_s: f64,
    /// Ended sessions.
    pub disconnects_per_s: f64,
    /// Ended sessions since the start, by cause.
    pub disconnects: Vec<DisconnectCause>,
    /// Time from ping to pong over the last minute; null without pongs.
    pub heartbeat_delay_ms: Option<HeartbeatDelay>,
    /// Undelivered webhooks.
    pub webhooks_waiting: u64,
}

/// Sessions that ended for one cause.
#[derive(Clone, Serialize, ToSchema)]
pub struct DisconnectCause {
    #[schema(value_type = String, example = "dropped")]
    pub cause: &'static str,
    pub count: u64,
}

/// Quantiles in milliseconds.
#[derive(Clone, Serialize, ToSchema)]
pub struct HeartbeatDelay {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Whether the median exceeds `p50`, which is then the upper bound of the measurement.
    pub p50_exceeds: bool,
    /// As `p50_exceeds`, for `p99`.
    pub p99_exceeds: bool,
}

/// State of the tracker.
#[derive(Clone, Serialize, ToSchema)]
pub struct TrackerOverview {
    /// Torrents with peers since the start.
    pub torrents_active: u64,
    /// Torrents with a seeder.
    pub torrents_seeded: u64,
    /// Torrents with a leecher.
    pub torrents_leeched: u64,
    pub peers: u64,
    pub seeders: u64,
    pub leechers: u64,
    /// Accepted announces since the start.
    pub announces: u64,
    /// Accepted announces.
    pub announces_per_s: f64,
    /// Refused requests.
    pub refused_per_s: f64,
    /// Raw bytes since the start.
    #[schema(pattern = "^[0-9]+$")]
    pub uploaded: String,
    /// Raw bytes since the start.
    #[schema(pattern = "^[0-9]+$")]
    pub downloaded: String,
    /// Uneven, because bytes are known only when clients announce.
    pub upload_bytes_per_s: f64,
    pub download_bytes_per_s: f64,
}

/// State of the journal.
#[derive(Clone, Serialize, ToSchema)]
pub struct JournalOverview {
    /// Entries in the journal.
    pub entries: u64,
    /// Whether `entries` exceeds `journal.length_alarm`.
    pub too_long: bool,
    pub appended: u64,
    pub appended_per_s: f64,
    /// Dead letters.
    pub dlq: u64,
    /// Dead letters after their last retry.
    pub failed: u64,
    pub risks: u64,
    pub views: Vec<ViewOverview>,
}

/// Progress of a view.
#[derive(Clone, Serialize, ToSchema)]
pub struct ViewOverview {
    #[schema(example = "ledger")]
    pub view: String,
    /// Consumer group.
    pub group: String,
    /// Entries that are not applied yet.
    pub lag: u64,
    /// Age of the oldest of them, in seconds.
    pub behind_s: f64,
    /// Applied entries.
    pub rate_per_s: f64,
    /// Whether an operator paused the view.
    pub paused: bool,
}

/// Severity of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Something does not work.
    Critical,
    /// Something will stop working if nothing is done.
    Warning,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Alert {
    /// Stable code for programs.
    #[schema(example = "view_paused")]
    pub code: String,
    /// The view or dependency; null if the code has no subject.
    #[schema(example = "ledger")]
    pub subject: Option<String>,
    pub severity: Severity,
    /// Unix seconds.
    pub since: u32,
    /// Problem and remedy.
    pub detail: String,
    /// Dependencies and views that fail because of it, by name. They have no alerts of their own.
    pub affected: Vec<String>,
}

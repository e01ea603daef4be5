//! Settings as plain values; the binary makes them from its configuration.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use domain::Seconds;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoomAccess {
    /// Every connected user.
    #[default]
    Everyone,
    /// Users with a token for the room.
    Token,
}

/// A secret that is never logged.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(word: impl Into<String>) -> Self {
        Secret(word.into())
    }

    /// For signing and verifying only.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Everything that can be set.
#[derive(Clone, Debug, Default)]
pub struct GatewaySettings {
    pub tokens: TokenSettings,
    pub connections: ConnectionSettings,
    pub limits: UserLimits,
    /// None sends no webhooks.
    pub webhook: Option<WebhookSettings>,
}

/// At least one of the three keys is set.
#[derive(Clone, Debug, Default)]
pub struct TokenSettings {
    /// The secret of tokens signed with HS256.
    pub hmac_secret: Option<Secret>,
    /// The public key (PEM) of tokens signed with RS256 or ES256.
    pub public_key_file: Option<PathBuf>,
    /// Public keys (JWKS) of tokens signed with RS256 or ES256.
    pub jwks_file: Option<PathBuf>,
    /// Required claim `aud`.
    pub audience: Option<String>,
    /// Required claim `iss`.
    pub issuer: Option<String>,
    /// Whether tokens without `exp` are accepted. A leaked one would never expire.
    pub allow_without_expiry: bool,
}

#[derive(Clone, Debug)]
pub struct ConnectionSettings {
    /// Origins that may connect, besides the site's own.
    pub allowed_origins: Vec<String>,
    pub connections_max: usize,
    /// Open connections from one address; zero means no limit.
    pub connections_per_address_max: u32,
    /// Time limit of `connect`.
    pub connect_timeout: Duration,
    /// Time limit of a write.
    pub write_timeout: Duration,
    /// The longest message of a client.
    pub message_bytes_max: usize,
    /// Commands a second; the burst is five seconds of it.
    pub commands_per_s: u32,
    /// Bytes that may wait for one connection.
    pub outbox_bytes_max: usize,
    /// Ping interval, also sent to clients.
    pub ping: Duration,
    /// Changes that are not urgent are batched for this long.
    pub batch: Duration,
    /// At shutdown, connections are closed over this long.
    pub goodbye: Duration,
    /// How long a connection lives after its token expired, so that the client can refresh it.
    pub expiry_grace: Seconds,
}

impl Default for ConnectionSettings {
    fn default() -> Self {
        ConnectionSettings {
            allowed_origins: Vec::new(),
            connections_max: 100_000,
            connections_per_address_max: 200,
            connect_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(10),
            message_bytes_max: 64 * 1024,
            commands_per_s: 20,
            outbox_bytes_max: 1024 * 1024,
            ping: Duration::from_secs(25),
            batch: Duration::from_millis(100),
            goodbye: Duration::from_millis(2000),
            expiry_grace: Seconds(25),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct UserLimits {
    /// Users that one connection may track besides its friends.
    pub tracked_max: u32,
    /// Rooms that one connection may be in.
    pub rooms_max: u32,
    pub room_access: RoomAccess,
    /// The longest text beside a status.
    pub text_bytes_max: u32,
    /// How long "is typing" is shown unless it is repeated.
    pub typing: Duration,
    /// How many days changes of status are kept; zero keeps none.
    pub history_days: u32,
    /// One in this many connections is probed each minute; zero probes none.
    pub sample_one_in: u32,
}

impl Default for UserLimits {
    fn default() -> Self {
        UserLimits {
            tracked_max: 1000,
            rooms_max: 100,
            room_access: RoomAccess::Everyone,
            text_bytes_max: 256,
            typing: Duration::from_secs(6),
            history_days: 30,
            sample_one_in: 100,
        }
    }
}

/// Webhooks for arrivals and departures.
#[derive(Clone, Debug)]
pub struct WebhookSettings {
    pub url: String,
    /// Certificates that the receiver may be signed by, as PEM; none for those of the system.
    pub ca_file: Option<PathBuf>,
    /// The secret with which messages are signed; empty signs none.
    pub secret: Secret,
    /// How long a delivery is retried before it fails permanently.
    pub give_up: Duration,
}

//! What can be set, as plain values; the binary makes them from its configuration.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use domain::Seconds;

/// Who may enter a room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoomAccess {
    /// Everyone who is signed in.
    #[default]
    Everyone,
    /// Who has a token for it.
    Token,
}

/// A word that is never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a word.
    pub fn new(word: impl Into<String>) -> Self {
        Secret(word.into())
    }

    /// The word, for the one who signs or checks with it.
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
    /// Whose tokens are taken.
    pub tokens: TokenSettings,
    /// Bounds of connections.
    pub connections: ConnectionSettings,
    /// Bounds of what people do over them.
    pub people: PeopleSettings,
    /// Who is told of arrivals and departures; none tells nobody.
    pub webhook: Option<WebhookSettings>,
}

/// Whose tokens are taken. At least one of the three keys is there.
#[derive(Clone, Debug, Default)]
pub struct TokenSettings {
    /// The secret of tokens signed with HS256.
    pub hmac_secret: Option<Secret>,
    /// The public key (PEM) of tokens signed with RS256 or ES256.
    pub public_key_file: Option<PathBuf>,
    /// Public keys (JWKS) of tokens signed with RS256 or ES256.
    pub jwks_file: Option<PathBuf>,
    /// What tokens must say in `aud`.
    pub audience: Option<String>,
    /// What tokens must say in `iss`.
    pub issuer: Option<String>,
    /// Whether tokens without `exp` are accepted. One that leaked would be good for ever.
    pub allow_without_expiry: bool,
}

/// Bounds of connections.
#[derive(Clone, Debug)]
pub struct ConnectionSettings {
    /// Origins whose pages may connect, besides those of the site itself.
    pub allowed_origins: Vec<String>,
    /// Open connections in total.
    pub connections_max: usize,
    /// Open connections from one address; zero means no limit.
    pub connections_per_address_max: u32,
    /// Operators who may look on at a time; they have no places of people.
    pub operators_max: usize,
    /// How long a new connection may take to say who it is.
    pub connect_timeout: Duration,
    /// How long a client may take to read what is written to it.
    pub write_timeout: Duration,
    /// The longest message of a client.
    pub message_bytes_max: usize,
    /// Commands a second; five seconds' worth may come at once.
    pub commands_per_s: u32,
    /// What may wait to be written to one connection.
    pub outbox_bytes_max: usize,
    /// How often the server pings, which clients are told.
    pub ping: Duration,
    /// Changes that are not urgent are put together for this long.
    pub batch: Duration,
    /// At the end, connections are told to go elsewhere over this long.
    pub goodbye: Duration,
    /// How long after its token a connection lives, so that a client may bring another one.
    pub expiry_grace: Seconds,
}

impl Default for ConnectionSettings {
    fn default() -> Self {
        ConnectionSettings {
            allowed_origins: Vec::new(),
            connections_max: 100_000,
            connections_per_address_max: 200,
            operators_max: 64,
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

/// Bounds of what people do over their connections.
#[derive(Clone, Copy, Debug)]
pub struct PeopleSettings {
    /// Users that one connection may track besides its friends.
    pub tracked_max: u32,
    /// Rooms that one connection may be in.
    pub rooms_max: u32,
    /// Who may enter a room.
    pub room_access: RoomAccess,
    /// The longest text beside a status.
    pub text_bytes_max: u32,
    /// How long "is typing" is shown unless it is said again.
    pub typing: Duration,
    /// How many days changes of status are kept; zero keeps none.
    pub history_days: u32,
    /// Of so many connections one is probed each minute; zero probes none.
    pub sample_one_in: u32,
}

impl Default for PeopleSettings {
    fn default() -> Self {
        PeopleSettings {
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

/// Who is told of arrivals and departures.
#[derive(Clone, Debug)]
pub struct WebhookSettings {
    /// Where.
    pub url: String,
    /// Certificates that the receiver may be signed by, as PEM; none for those of the system.
    pub ca_file: Option<PathBuf>,
    /// The secret with which messages are signed; empty signs none.
    pub secret: Secret,
    /// How long a message is tried again before it is given up.
    pub give_up: Duration,
}

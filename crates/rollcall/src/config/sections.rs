//! The sections. The doc comments here are what operators read in `rollcall config print`.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use access::OnVerifyFailure;
use gateway::RoomAccess;
use ipnet::IpNet;
use presence::Audience;
use tracker::settings::Acknowledge;

use super::kinds::{DatabaseUrl, HeaderName, LogFilter, LogFormat, Sharing};
use super::names::{Name, RedisUrl, Secret, Word};
use super::section::config_section;
use super::web::{HttpUrl, WebOrigin};

const DAY_S: u32 = 24 * 60 * 60;
const WEEK_S: u32 = 7 * DAY_S;

/// The default of the site.
fn loopback_8080() -> Vec<SocketAddr> {
    vec![(Ipv4Addr::LOCALHOST, 8080).into(), (Ipv6Addr::LOCALHOST, 8080).into()]
}

/// The customary port of trackers, on loopback.
fn loopback_6969() -> Vec<SocketAddr> {
    vec![(Ipv4Addr::LOCALHOST, 6969).into(), (Ipv6Addr::LOCALHOST, 6969).into()]
}

fn default_forwarded_headers() -> Vec<HeaderName> {
    HeaderName::new("x-forwarded-for").into_iter().collect()
}

fn default_log_filter() -> LogFilter {
    LogFilter::new("info").expect("a level is a filter")
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a default is a name")
}

config_section! {
    /// The tracker: addresses, intervals, replies.
    Tracker as "tracker" {
        /// Addresses for announces over HTTP: one string with commas, or a list. "" disables HTTP.
        /// Loopback by default: "0.0.0.0:6969,[::]:6969" listens on all interfaces, and requires allow_plaintext.
        http_addr: Vec<SocketAddr> = loopback_6969(),
        /// Addresses for announces over UDP, in the same form. "" disables UDP.
        udp_addr: Vec<SocketAddr> = loopback_6969(),
        /// Addresses for announces over HTTPS, in the same form. Requires the two files below.
        https_addr: Vec<SocketAddr> = Vec::new(),
        /// Certificate chain for HTTPS, PEM. Reloaded when it changes.
        tls_cert_file: Option<PathBuf> = None,
        /// Private key for HTTPS, PEM. Reloaded when it changes.
        tls_key_file: Option<PathBuf> = None,
        /// Allows plain HTTP on other addresses than loopback. Passkeys can then be read on the network: use it behind a
        /// proxy that terminates HTTPS.
        allow_plaintext: bool = false,
        /// Threads that answer announces. 0: one per core.
        workers: u32 [0..=1024] = 0,
        /// Announce interval of clients.
        announce_interval_s: u32 [1..=WEEK_S] = 1800,
        /// Announces within this interval are credited but get no peers. At most announce_interval_s.
        min_announce_interval_s: u32 [0..=WEEK_S] = 900,
        /// A silent peer expires this long after its next announce was due. Clients built on libtorrent announce over UDP no
        /// more often than every 30 s, also if the interval is shorter.
        peer_grace_s: u32 [0..=WEEK_S] = 600,
        /// Maximum number of peers in a reply. A client that sends no numwant gets up to 50.
        numwant_max: u32 [1..=swarm::WANTED_MAX as u32] = 100,
        /// Concurrent clients of one user on one torrent.
        peers_per_user_and_torrent_max: u32 [1..=swarm::CLIENTS_PER_USER_MAX as u32] = 5,
        /// Address ranges of proxies whose forwarded client addresses are trusted: ["10.0.0.0/8"].
        trusted_proxies: Vec<IpNet> = Vec::new(),
        /// Headers in which trusted proxies send the client address. The first one present counts.
        forwarded_headers: Vec<HeaderName> = default_forwarded_headers(),
        /// If true, connections from trusted proxies must start with a PROXY header (version 1 or 2).
        proxy_protocol: bool = false,
        /// Lets several servers on this machine listen on the same addresses (SO_REUSEPORT). Each needs its own data folder,
        /// and all of them the same Redis. Not needed for "rollcall serve --take-over".
        share_ports: bool = false,
        /// Time to answer requests in flight at shutdown.
        drain_timeout_s: u32 [0..=3600] = 10,
    }
}

config_section! {
    /// The journal: the log of accepted announces, from which accounts and lists are computed. In the file journal.db of the
    /// data folder, or in Redis if [redis] is configured.
    Journal as "journal" {
        /// Which announces are answered only after they are stored: "events" (started, completed, stopped, and
        /// claims above the rate ceiling), "all" or "none". A
        /// regular announce repeats the totals of the one before.
        ack: Acknowledge = Acknowledge::Events,
        /// How long an announce waits for the journal (see ack) before the client is told to retry.
        ack_timeout_ms: u32 [10..=600_000] = 5000,
        /// Redis replicas that must have an entry before it counts as stored (WAIT). With 0, a failover may lose what the old
        /// master had just confirmed; the bytes are credited with the next announce of each client. With 1 or more, entries
        /// wait while replicas are missing: give each master one more replica than this.
        wait_replicas: u32 [0..=10] = 0,
        /// Announces that may wait for the journal, about 100 bytes each. Beyond it, clients are told to retry.
        queue_max: u32 [100..=10_000_000] = 100_000,
        /// Redis stream (also TRACKER_STREAM_KEY). The stream of risk events has this name with ":risk" appended.
        stream_key: Name = name("tracker:traffic"),
        /// Redis stream of dead letters: rejected entries, which are retried (also TRACKER_DLQ_KEY).
        dlq_key: Name = name("tracker:traffic:dlq"),
        /// Redis stream of failed entries: dead letters after their last retry (also TRACKER_FAILED_KEY).
        failed_key: Name = name("tracker:traffic:failed"),
        /// Retries of a dead letter (also TRACKER_RETRY_MAX).
        retry_max: u32 [1..=100] = 3,
        /// Delay before the first retry. Each further delay is six times as long.
        retry_delay_s: u32 [0..=DAY_S] = 10,
        /// Entries per second that each view of this process applies. 0: unlimited. Reloaded by SIGHUP.
        entries_per_s_max: u32 [0..=10_000_000] = 0,
        /// How long entries are kept after every view has applied them, for replays.
        keep_s: u32 [0..=52 * WEEK_S] = DAY_S,
        /// Number of entries above which there is an alert. No entries are removed because of it.
        length_alarm: u32 [1..=4_000_000_000] = 10_000_000,
        /// How long risk events are kept.
        risk_keep_days: u32 [1..=3650] = 30,
        /// Name of this process among the consumers. "": generated once and kept in the data folder.
        node_name: Option<Name> = None,
    }
}

config_section! {
    /// Redis, for several machines or for other programs that read or write the journal. Leave url empty to keep everything in
    /// the data folder.
    Redis as "redis" {
        /// redis://HOST:PORT/DB, rediss:// for TLS, redis+sentinel://HOST:PORT,HOST:PORT/MASTER or
        /// redis+cluster://HOST:PORT,HOST:PORT, with USER:PASSWORD@ before the host if needed. The environment variables
        /// REDIS_HOST, REDIS_PORT and REDIS_DB set it too.
        url: RedisUrl = RedisUrl::default(),
        /// Password, if url has none (also REDIS_PASSWORD).
        password: Secret = Secret::default(),
        /// CA certificates for rediss://, PEM. "": those of the system.
        tls_ca_file: Option<PathBuf> = None,
        /// Timeout of a Redis command.
        response_timeout_ms: u32 [50..=600_000] = 5000,
    }
}

config_section! {
    /// The ledger: accounts of users and torrents.
    Ledger as "ledger" {
        /// Consumer group.
        group: Name = name("ztorrent"),
        /// Batches applied concurrently. Reloaded by SIGHUP.
        consumers: u32 [1..=64] = 1,
        /// Entries in a batch. Reloaded by SIGHUP.
        batch_max: u32 [1..=10_000] = 1000,
        /// Hit-and-run: a user who leeched a torrent and stopped after less than this total time active on it. The same rule
        /// applies to t:u:<user>:hnr in Redis. 0 disables it.
        hit_and_run_active_s: u32 [0..=3650 * DAY_S] = 14 * DAY_S,
    }
}

config_section! {
    /// Activity lists: what each user seeds and leeches now. A torrent leaves them after tracker.announce_interval_s +
    /// tracker.peer_grace_s without an announce.
    Activity as "activity" {
        /// Batches applied concurrently. Reloaded by SIGHUP.
        consumers: u32 [1..=64] = 1,
        /// Entries in a batch. Reloaded by SIGHUP.
        batch_max: u32 [1..=10_000] = 1000,
    }
}

config_section! {
    /// Who may announce: users in the database; with Redis also users with a key t:user:<passkey> (docs/redis.md) and passkeys
    /// on the whitelist; then passkeys that the site's verify endpoint accepts. Torrents and clients of the database and
    /// of Redis count together.
    Access as "access" {
        /// The site's verify endpoint for unknown passkeys, such as "https://pt.example.com/passkey/verify". "" disables
        /// it. Plain http:// is allowed on loopback only.
        verify_url: HttpUrl = HttpUrl::default(),
        /// Value of the header X-API-Key. "": site.tracker_api_key.
        verify_api_key: Secret = Secret::default(),
        /// CA certificates for the endpoint, PEM. "": those of the system.
        verify_ca_file: Option<PathBuf> = None,
        /// Timeout of a call.
        verify_timeout_ms: u32 [50..=60_000] = 2000,
        /// While the endpoint fails: "known-only" admits whitelisted and previously verified passkeys, "refuse" admits only users
        /// of the database.
        on_verify_failure: OnVerifyFailure = OnVerifyFailure::KnownOnly,
        /// How long a valid passkey is cached.
        cache_valid_s: u32 [1..=DAY_S] = 300,
        /// How long an invalid passkey is cached. A passkey added to the whitelist after a refusal works when this has passed.
        cache_invalid_s: u32 [1..=DAY_S] = 5,
        /// First id for external users: users known only by passkey, who get an account when they announce. Choose it above all
        /// ids of the site. If the endpoint reports one id below it for two passkeys, both are the same user.
        external_id_min: u32 [1..=4_000_000_000] = 1_000_000_000,
        /// File of the audit trail, relative to the data folder.
        audit_file: PathBuf = PathBuf::from("logs/audit.log"),
    }
}

config_section! {
    /// The site: dashboard, HTTP API, verify endpoint for other trackers, metrics and health.
    Site as "site" {
        /// Addresses: one string with commas, or a list. "" disables the site. HTTPS if the two files below are set; otherwise
        /// loopback only, unless allow_plaintext is set.
        addr: Vec<SocketAddr> = loopback_8080(),
        /// Certificate chain, PEM. Reloaded when it changes.
        tls_cert_file: Option<PathBuf> = None,
        /// Private key, PEM. Reloaded when it changes.
        tls_key_file: Option<PathBuf> = None,
        /// Allows plain HTTP on other addresses than loopback. API keys can then be read on the network: use it behind a proxy
        /// that terminates HTTPS.
        allow_plaintext: bool = false,
        /// Address ranges of proxies that are trusted to report client address, scheme and host: ["10.0.0.0/8"].
        trusted_proxies: Vec<IpNet> = Vec::new(),
        /// Headers in which trusted proxies send the client address. The first one present counts.
        forwarded_headers: Vec<HeaderName> = default_forwarded_headers(),
        /// A key with the scope "verify" only (also TRACKER_API_KEY), in addition to those of "rollcall key create".
        tracker_api_key: Secret = Secret::default(),
        /// Origins whose scripts may use the API: ["https://pt.example.com"].
        cors_origins: Vec<WebOrigin> = Vec::new(),
        /// Origins that may show the member page (/me) in a frame. None by default.
        embed_origins: Vec<WebOrigin> = Vec::new(),
        /// Lifetime of an operator's session in the dashboard.
        session_minutes: u32 [1..=43_200] = 480,
        /// Serves /metrics without a key. Otherwise it needs a key with the scope "read".
        metrics_open: bool = false,
        /// Requests per second of one key; ten seconds' worth may come at once. 0: unlimited.
        requests_per_key_per_s: u32 [0..=1_000_000] = 500,
        /// Requests per second of one address, likewise.
        requests_per_address_per_s: u32 [0..=1_000_000] = 100,
        /// Open connections.
        connections_max: u32 [1..=1_000_000] = 2000,
        /// Timeout of a request. Uploads may take longer while they progress.
        request_timeout_s: u32 [1..=3600] = 30,
        /// Size limit of a whitelist refresh over the API; a passkey takes 33 bytes.
        upload_mib_max: u32 [1..=1_000_000] = 1024,
    }
}

config_section! {
    /// Presence: which users are online, on which devices, and what others see of them.
    Presence as "presence" {
        /// Expected interval of messages from a device. A silent device is probed, and offline after three intervals.
        heartbeat_s: u32 [3..=3600] = 30,
        /// Interval of the server's pings, which every client answers by itself. Less than heartbeat_s.
        ping_s: u32 [1..=3600] = 25,
        /// Silence after which a device in the background is away.
        background_away_s: u32 [30..=86_400] = 300,
        /// Silence after which a device in the background is offline.
        background_gone_s: u32 [60..=604_800] = 1800,
        /// After a restart, how long users that were online have to reconnect before they are offline.
        pending_s: u32 [1..=86_400] = 300,
        /// Flap damping: a user whose connection keeps breaking is shown offline after this delay, which doubles with each flap
        /// up to thirty times its length. 0 disables it.
        flap_grace_s: u32 [0..=600] = 2,
        /// How long changes between statuses other than offline are collected before friends receive them.
        batch_ms: u32 [0..=10_000] = 100,
        /// Default audience of a user's status: "everyone", "friends" or "nobody".
        default_visibility: Audience = Audience::Friends,
        /// How long presence events are kept. 0: none are kept.
        history_days: u32 [0..=3650] = 30,
        /// "auto": with Redis, all gateways share presence. "off": this gateway does not.
        share: Sharing = Sharing::Auto,
        /// A gateway that has not renewed its lease in Redis for this long is dead for the others, and its users are pending.
        lease_s: u32 [3..=60] = 10,
    }
}

config_section! {
    /// The gateway: WebSocket connections of members, at /connection/websocket of the site.
    Gateway as "gateway" {
        /// Secret with which the site signs tokens (HS256), at least 32 characters. Without this, token_public_key_file and
        /// token_jwks_file, one is generated in the data folder: see "rollcall token".
        token_hmac_secret: Secret = Secret::default(),
        /// Public key (PEM) for tokens signed with RS256 or ES256. Reloaded when it changes.
        token_public_key_file: Option<PathBuf> = None,
        /// Public keys (JWKS) for tokens signed with RS256 or ES256. Reloaded when it changes.
        token_jwks_file: Option<PathBuf> = None,
        /// Required "aud" of tokens. "" accepts any.
        token_audience: Word = Word::default(),
        /// Required "iss" of tokens. "" accepts any.
        token_issuer: Word = Word::default(),
        /// Accepts tokens without "exp". A leaked one is valid until the key changes.
        allow_tokens_without_expiry: bool = false,
        /// Origins of pages that may connect: ["https://pt.example.com"]. Programs other than browsers send no origin and may
        /// connect, as may pages of the site itself.
        allowed_origins: Vec<WebOrigin> = Vec::new(),
        /// Open connections of members.
        connections_max: u32 [1..=10_000_000] = 100_000,
        /// Open connections of one address.
        connections_per_address_max: u32 [1..=10_000_000] = 200,
        /// Time for a new connection to authenticate.
        connect_timeout_s: u32 [1..=600] = 10,
        /// Commands per second of one connection; five seconds' worth may come at once.
        commands_per_s: u32 [1..=100_000] = 20,
        /// Who may enter a room: "everyone" who is connected, or holders of a "token" for the room.
        room_access: RoomAccess = RoomAccess::Everyone,
        /// Receives a webhook when a user comes online or goes offline. "" disables webhooks.
        webhook_url: HttpUrl = HttpUrl::default(),
        /// CA certificates for the receiver, PEM. "": those of the system.
        webhook_ca_file: Option<PathBuf> = None,
        /// Secret with which webhooks are signed.
        webhook_secret: Secret = Secret::default(),
    }
}

config_section! {
    /// The database of users, torrents, clients and accounts.
    Database as "database" {
        /// "sqlite:PATH", "postgres://USER:PASSWORD@HOST/NAME" or "mysql://USER:PASSWORD@HOST/NAME" (also MariaDB). The database
        /// of a server must exist and contain nothing else. "": rollcall.db in the data folder.
        url: DatabaseUrl = DatabaseUrl::default(),
    }
}

config_section! {
    /// Limits of the tracker: connections, requests, claimed rates.
    Limits as "limits" {
        /// Open HTTP and HTTPS connections.
        connections_max: u32 [1..=10_000_000] = 20_000,
        /// Open HTTP and HTTPS connections of one address. At most connections_max.
        connections_per_address_max: u32 [1..=10_000_000] = 200,
        /// Time to send the head of a request.
        header_timeout_s: u32 [1..=3600] = 10,
        /// Requests per second of one address, over HTTP and UDP; ten seconds' worth may come at once. 0: unlimited.
        requests_per_address_per_s: u32 [0..=10_000_000] = 200,
        /// Announces per second of one user, from any address, after the burst. 0: unlimited. A client announces each torrent
        /// once per tracker.announce_interval_s and address family. "stopped" does not count.
        announces_per_user_per_s: u32 [0..=10_000_000] = 20,
        /// Announces one user may send at once, such as for all torrents of a starting client. At least
        /// announces_per_user_per_s. 0: unlimited.
        announce_burst_per_user: u32 [0..=10_000_000] = 10_000,
        /// Peer ids under which one user may announce a torrent per hour. Beyond it, the client is told to retry. 0: unlimited.
        peer_ids_per_user_and_torrent_per_hour: u32 [0..=250] = 30,
        /// Highest credited rate of one client, averaged since its first announce. The excess is reported as a risk event.
        peer_rate_max_mbit_per_s: u32 [1..=10_000_000] = 10_000,
        /// The same for all clients of one user on all torrents.
        user_rate_max_mbit_per_s: u32 [1..=10_000_000] = 20_000,
        /// Credits upload that a client claims although no other user leeched the torrent since its previous announce. It is
        /// reported as a risk event either way.
        credit_upload_without_leechers: bool = true,
        /// Torrents that a user may leech at once, unless the user has a limit of their own ("rollcall user set"). 0: unlimited.
        /// Torrents that are already leeched continue.
        leeches_per_user_max: u32 [0..=access::LeechSlots::MAX] = 0,
        /// Peers that may leech a torrent at once, unless the torrent has a limit of its own ("rollcall torrent set"). 0:
        /// unlimited. Peers that already leech it continue.
        leeches_per_torrent_max: u32 [0..=access::LeechSlots::MAX] = 0,
    }
}

config_section! {
    /// The log, on standard error.
    Log as "log" {
        /// off, error, warn, info, debug, trace, or a filter such as "info,traffic=debug", which logs every announce with its
        /// transfer.
        level: LogFilter = default_log_filter(),
        /// "human", "json", or "auto": human on a terminal, JSON otherwise.
        format: LogFormat = LogFormat::Auto,
    }
}

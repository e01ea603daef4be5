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

/// Where the site is until an operator opens it.
fn loopback_8080() -> Vec<SocketAddr> {
    vec![(Ipv4Addr::LOCALHOST, 8080).into(), (Ipv6Addr::LOCALHOST, 8080).into()]
}

/// The default port of trackers, on loopback until an operator opens it.
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
    /// Where announces are heard and how they are answered.
    Tracker as "tracker" {
        /// Addresses for announces over HTTP: one text with commas, or a list. "" turns HTTP off.
        /// Loopback until you open it: "0.0.0.0:6969,[::]:6969" listens everywhere, and needs allow_plaintext.
        http_addr: Vec<SocketAddr> = loopback_6969(),
        /// Addresses for announces over UDP, written likewise. "" turns UDP off.
        udp_addr: Vec<SocketAddr> = loopback_6969(),
        /// Addresses for announces over HTTPS, written likewise. Needs the two files below.
        https_addr: Vec<SocketAddr> = Vec::new(),
        /// The certificate chain for HTTPS, as PEM. Read again when it changes.
        tls_cert_file: Option<PathBuf> = None,
        /// The private key for HTTPS, as PEM. Read again when it changes.
        tls_key_file: Option<PathBuf> = None,
        /// Plain HTTP on other addresses than loopback, where everybody on the way can read the passkeys. Meant for a
        /// proxy in front that speaks HTTPS.
        allow_plaintext: bool = false,
        /// Threads that answer announces. 0 means one for each core.
        workers: u32 [0..=1024] = 0,
        /// How often clients are asked to announce.
        announce_interval_s: u32 [1..=WEEK_S] = 1800,
        /// Clients that announce more often are credited, but get no peers. At most announce_interval_s.
        min_announce_interval_s: u32 [0..=WEEK_S] = 900,
        /// A silent peer is forgotten this long after its announce was due. Clients built on libtorrent announce
        /// over UDP every 30 s at the most, whatever they are told.
        peer_grace_s: u32 [0..=WEEK_S] = 600,
        /// Peers in a reply at most. A client that does not say how many it wants gets up to 50.
        numwant_max: u32 [1..=swarm::WANTED_MAX as u32] = 100,
        /// How many clients one user may run on one torrent at the same time.
        peers_per_user_and_torrent_max: u32 [1..=swarm::CLIENTS_PER_USER_MAX as u32] = 5,
        /// Proxies whose word on a client's address is taken, as address ranges: ["10.0.0.0/8"]. None by default.
        trusted_proxies: Vec<IpNet> = Vec::new(),
        /// Headers in which trusted proxies pass on the client's address. The first one present counts.
        forwarded_headers: Vec<HeaderName> = default_forwarded_headers(),
        /// Expect the PROXY protocol (version 1 or 2) on connections from trusted proxies.
        proxy_protocol: bool = false,
        /// Let several servers on this machine listen on the same addresses; the system spreads the load. Each needs a
        /// data folder of its own, and all of them one Redis. Not needed for "rollcall serve --take-over".
        share_ports: bool = false,
        /// How long a stopping server may take to answer what is in flight.
        drain_timeout_s: u32 [0..=3600] = 10,
    }
}

config_section! {
    /// The log of every accepted announce, from which accounts and lists follow. Kept in the file journal.db in the
    /// data folder, or in Redis once [redis] names one.
    Journal as "journal" {
        /// Which announces are answered only once they are stored: "events" (started, completed and stopped), "all",
        /// or "none". What a plain heartbeat says, the next one says again.
        ack: Acknowledge = Acknowledge::Events,
        /// How long such an announce may wait before the client is told to come back.
        ack_timeout_ms: u32 [10..=600_000] = 5000,
        /// An entry counts as stored once so many replicas of Redis have it, too (WAIT). 0 waits for none: then a
        /// failover may lose what the dead master had just confirmed; the bytes in it count with each client's next
        /// announce. With 1 or more, entries wait while fewer replicas are there: give each master one more than this.
        wait_replicas: u32 [0..=10] = 0,
        /// Announces that may wait for the journal. With more, clients are told to come back (each takes about 300
        /// bytes).
        queue_max: u32 [100..=10_000_000] = 100_000,
        /// The stream in Redis (also TRACKER_STREAM_KEY). With ":risk" behind it: announces that claim more than
        /// limits.peer_rate_max_mbit_per_s.
        stream_key: Name = name("tracker:traffic"),
        /// The stream of entries that could not be taken, to be tried again (also TRACKER_DLQ_KEY).
        dlq_key: Name = name("tracker:traffic:dlq"),
        /// The stream of entries that were given up (also TRACKER_FAILED_KEY).
        failed_key: Name = name("tracker:traffic:failed"),
        /// How often an entry is tried again before it is given up (also TRACKER_RETRY_MAX).
        retry_max: u32 [1..=100] = 3,
        /// How long after its failure an entry is tried again; each further time it is six times as long.
        retry_delay_s: u32 [0..=DAY_S] = 10,
        /// Entries that each view of this process takes a second, at most. 0 means no limit. Changes while the server runs.
        entries_per_s_max: u32 [0..=10_000_000] = 0,
        /// Entries that every view has are kept for this long, for replays.
        keep_s: u32 [0..=52 * WEEK_S] = DAY_S,
        /// With more entries than this, the log and "journal status" raise an alarm. Nothing is removed for it.
        length_alarm: u32 [1..=4_000_000_000] = 10_000_000,
        /// Risk events are kept for this long.
        risk_keep_days: u32 [1..=3650] = 30,
        /// The name of this process among the readers. "" means one that is made up once and kept in the data folder.
        node_name: Option<Name> = None,
    }
}

config_section! {
    /// Redis, for several machines, or for other programs that read or write the journal. Leave url empty to keep
    /// everything in the data folder.
    Redis as "redis" {
        /// redis://HOST:PORT/DB, rediss:// for TLS, redis+sentinel://HOST:PORT,HOST:PORT/MASTER or
        /// redis+cluster://HOST:PORT,HOST:PORT. USER:PASSWORD may stand before an @. The environment variables
        /// REDIS_HOST, REDIS_PORT and REDIS_DB set this too.
        url: RedisUrl = RedisUrl::default(),
        /// The password, if url has none (also REDIS_PASSWORD).
        password: Secret = Secret::default(),
        /// Certificates that a rediss:// server may be signed by, as PEM. "" means those of the system.
        tls_ca_file: Option<PathBuf> = None,
        /// How long Redis may take to answer.
        response_timeout_ms: u32 [50..=600_000] = 5000,
    }
}

config_section! {
    /// The accounts: who moved what, who seeded how long.
    Ledger as "ledger" {
        /// The consumer group of the ledger.
        group: Name = name("ztorrent"),
        /// Batches that are worked on at once. Changes while the server runs.
        consumers: u32 [1..=64] = 1,
        /// Entries in a batch. Changes while the server runs.
        batch_max: u32 [1..=10_000] = 1000,
        /// Hit and run: who leeched a torrent and left after being active on it for less than this in all. The same rule
        /// holds for t:u:<user>:hnr in Redis. 0 turns it off.
        hit_and_run_active_s: u32 [0..=3650 * DAY_S] = 14 * DAY_S,
    }
}

config_section! {
    /// Who seeds and who leeches right now. Members leave after tracker.announce_interval_s + tracker.peer_grace_s.
    Activity as "activity" {
        /// Batches that are worked on at once. Changes while the server runs.
        consumers: u32 [1..=64] = 1,
        /// Entries in a batch. Changes while the server runs.
        batch_max: u32 [1..=10_000] = 1000,
    }
}

config_section! {
    /// Who may announce: users in the database; with Redis also those with a key t:user:<passkey> (docs/redis.md) and
    /// passkeys on the whitelist; then those whom the site's verify endpoint knows. Torrents and clients likewise: the
    /// database and the site's keys count together.
    Access as "access" {
        /// The site's verify endpoint, such as "https://pt.example.com/passkey/verify". It is asked about passkeys that
        /// nobody here knows. "" asks nobody. Plain http:// only on loopback.
        verify_url: HttpUrl = HttpUrl::default(),
        /// What is sent as X-API-Key. "" means site.tracker_api_key.
        verify_api_key: Secret = Secret::default(),
        /// Certificates that the endpoint may be signed by, as PEM. "" means those of the system.
        verify_ca_file: Option<PathBuf> = None,
        /// How long the endpoint may take to answer.
        verify_timeout_ms: u32 [50..=60_000] = 2000,
        /// While the endpoint fails: "known-only" lets in who is on the whitelist or was vouched for before, "refuse"
        /// lets in nobody but users in the database.
        on_verify_failure: OnVerifyFailure = OnVerifyFailure::KnownOnly,
        /// How long a passkey that was found good is not asked about again.
        cache_valid_s: u32 [1..=DAY_S] = 300,
        /// How long a passkey that was found wrong is not asked about again. One that is added to the whitelist after a
        /// refusal works when this is over.
        cache_invalid_s: u32 [1..=DAY_S] = 5,
        /// Who announces with a passkey that is not a user's gets an account with a number from here on. Keep it above
        /// every number of the site's own: below it, whoever comes with another passkey and the same number is the
        /// same user, who keeps account and ban.
        adopted_id_min: u32 [1..=4_000_000_000] = 1_000_000_000,
        /// Where changes are recorded, in the data folder unless it begins with "/".
        audit_file: PathBuf = PathBuf::from("logs/audit.log"),
    }
}

config_section! {
    /// The dashboard, the HTTP API, the verify endpoint, metrics and health.
    Site as "site" {
        /// Addresses of the site: one text with commas, or a list. "" turns it off. HTTPS once the two files below are
        /// set; without them it stays on loopback, unless allow_plaintext is set.
        addr: Vec<SocketAddr> = loopback_8080(),
        /// The certificate chain, as PEM. Read again when it changes.
        tls_cert_file: Option<PathBuf> = None,
        /// The private key, as PEM. Read again when it changes.
        tls_key_file: Option<PathBuf> = None,
        /// Plain HTTP on other addresses than loopback, where everybody on the way can read the keys. Meant for a proxy
        /// in front that speaks HTTPS.
        allow_plaintext: bool = false,
        /// Proxies whose word is taken on a client's address, on whether it came over HTTPS and under which name, as
        /// address ranges: ["10.0.0.0/8"]. None by default.
        trusted_proxies: Vec<IpNet> = Vec::new(),
        /// Headers in which trusted proxies pass on the client's address. The first one present counts.
        forwarded_headers: Vec<HeaderName> = default_forwarded_headers(),
        /// A key that may verify passkeys and nothing else (also TRACKER_API_KEY), besides those made with
        /// "rollcall key create".
        tracker_api_key: Secret = Secret::default(),
        /// Pages of other sites whose scripts may use the API in a browser: ["https://pt.example.com"].
        cors_origins: Vec<WebOrigin> = Vec::new(),
        /// Pages of other sites that may show a member's page (/me) within theirs. Nobody by default.
        embed_origins: Vec<WebOrigin> = Vec::new(),
        /// How long an operator stays signed in to the dashboard.
        session_minutes: u32 [1..=43_200] = 480,
        /// Lets everybody read /metrics. Otherwise it takes a key with the scope "read".
        metrics_open: bool = false,
        /// Requests a second with one key; ten seconds' worth may come at once. 0 means no limit.
        requests_per_key_per_s: u32 [0..=1_000_000] = 500,
        /// Requests a second from one address, likewise.
        requests_per_address_per_s: u32 [0..=1_000_000] = 100,
        /// Open connections.
        connections_max: u32 [1..=1_000_000] = 2000,
        /// How long an answer may take. Uploads may take longer, as long as they go on.
        request_timeout_s: u32 [1..=3600] = 30,
        /// The longest refresh of the whitelist over the API; a passkey takes 33 bytes.
        upload_mib_max: u32 [1..=1_000_000] = 1024,
    }
}

config_section! {
    /// People: who is here, on which devices, and what is shown of them.
    Presence as "presence" {
        /// Expected interval of messages from a device: a silent one is probed, and offline after three intervals.
        heartbeat_s: u32 [3..=3600] = 30,
        /// The server pings each connection this often, which every client answers by itself. Less than heartbeat_s.
        ping_s: u32 [1..=3600] = 25,
        /// A device whose app is in the background is shown as away when it was silent for this long.
        background_away_s: u32 [30..=86_400] = 300,
        /// And as offline when it was silent for this long.
        background_gone_s: u32 [60..=604_800] = 1800,
        /// After a restart, how long those who were here have to come back before they are offline.
        pending_s: u32 [1..=86_400] = 300,
        /// Flap damping: a user whose connection keeps breaking is shown offline after this delay, which doubles with each
        /// flap up to thirty times its length. 0 turns it off.
        flap_grace_s: u32 [0..=600] = 2,
        /// Changes that are not urgent are put together for this long before friends are told.
        batch_ms: u32 [0..=10_000] = 100,
        /// Who sees a person's status who has not chosen: "everyone", "friends" or "nobody".
        default_visibility: Audience = Audience::Friends,
        /// How long a person's changes of status are kept. 0 keeps none.
        history_days: u32 [0..=3650] = 30,
        /// Where Redis is configured, every process with the role gateway is one of many, and people see each other
        /// whichever they are connected to: "auto". "off" keeps this one to itself.
        share: Sharing = Sharing::Auto,
        /// A gateway that was not heard of by Redis for this long is taken for dead by the others, and its people are
        /// pending.
        lease_s: u32 [3..=60] = 10,
    }
}

config_section! {
    /// Connections of people: WebSockets at /connection/websocket of the site.
    Gateway as "gateway" {
        /// The secret with which the site signs the tokens of its members (HS256), at least 32 characters. Without this,
        /// token_public_key_file and token_jwks_file, one is made and kept in the data folder: see "rollcall token".
        token_hmac_secret: Secret = Secret::default(),
        /// The public key (PEM) of tokens signed with RS256 or ES256. Read again when it changes.
        token_public_key_file: Option<PathBuf> = None,
        /// A set of public keys (JWKS) of tokens signed with RS256 or ES256. Read again when it changes.
        token_jwks_file: Option<PathBuf> = None,
        /// What tokens must say in "aud". "" takes any.
        token_audience: Word = Word::default(),
        /// What tokens must say in "iss". "" takes any.
        token_issuer: Word = Word::default(),
        /// Whether tokens without "exp" are accepted. One that leaks is good until the key is changed.
        allow_tokens_without_expiry: bool = false,
        /// Pages that may connect, by their origin: ["https://pt.example.com"]. Programs that are not browsers send none
        /// and may. Pages of the site itself may always.
        allowed_origins: Vec<WebOrigin> = Vec::new(),
        /// Open connections of people.
        connections_max: u32 [1..=10_000_000] = 100_000,
        /// From one address.
        connections_per_address_max: u32 [1..=10_000_000] = 200,
        /// How long a new connection may take to say who it is.
        connect_timeout_s: u32 [1..=600] = 10,
        /// Commands a second from one connection; five seconds' worth may come at once.
        commands_per_s: u32 [1..=100_000] = 20,
        /// Who may enter a room: "everyone" who is signed in, or who has a "token" for it.
        room_access: RoomAccess = RoomAccess::Everyone,
        /// Where to tell when somebody comes (first device in) and goes (last device out). "" tells nobody.
        webhook_url: HttpUrl = HttpUrl::default(),
        /// Certificates that the receiver may be signed by, as PEM. "" means those of the system.
        webhook_ca_file: Option<PathBuf> = None,
        /// The secret with which such messages are signed.
        webhook_secret: Secret = Secret::default(),
    }
}

config_section! {
    /// Where users, torrents, clients and accounts are kept.
    Database as "database" {
        /// "sqlite:PATH", "postgres://USER:PASSWORD@HOST/NAME" or "mysql://USER:PASSWORD@HOST/NAME" (MariaDB as well).
        /// A server's database must exist, and hold nothing else. "" means the file rollcall.db in the data folder.
        url: DatabaseUrl = DatabaseUrl::default(),
    }
}

config_section! {
    /// What one server, and one address, may use up.
    Limits as "limits" {
        /// Open HTTP and HTTPS connections in total.
        connections_max: u32 [1..=10_000_000] = 20_000,
        /// Open HTTP and HTTPS connections from one address. At most connections_max.
        connections_per_address_max: u32 [1..=10_000_000] = 200,
        /// How long a client may take to send the head of a request.
        header_timeout_s: u32 [1..=3600] = 10,
        /// Requests per second from one address, over HTTP and UDP; ten seconds' worth may come at once. 0 means no
        /// limit.
        requests_per_address_per_s: u32 [0..=10_000_000] = 200,
        /// Announces a second of one user, from any address, once their burst is used up. 0 means no limit. A client
        /// announces each torrent once in tracker.announce_interval_s, over each address family. A "stopped" is free.
        announces_per_user_per_s: u32 [0..=10_000_000] = 20,
        /// Announces one user may send at once, such as for all torrents of a client that starts. At least
        /// announces_per_user_per_s. 0 means no limit.
        announce_burst_per_user: u32 [0..=10_000_000] = 10_000,
        /// Peer ids that one user may announce a torrent under within an hour, such as by restarting a client. Beyond it the
        /// client is told to come back. 0 means no limit.
        peer_ids_per_user_and_torrent_per_hour: u32 [0..=250] = 30,
        /// What one client claims to move faster than this, measured over the time since it was first heard, is reported
        /// as a risk and not credited.
        peer_rate_max_mbit_per_s: u32 [1..=10_000_000] = 10_000,
        /// Likewise for all clients of one user together, on all torrents.
        user_rate_max_mbit_per_s: u32 [1..=10_000_000] = 20_000,
        /// Whether upload is credited that a client claims although no other user leeched the torrent since its last
        /// announce. It is reported as a risk either way.
        credit_upload_without_leechers: bool = true,
        /// How many torrents a user may leech at once, unless the user has a number of their own ("rollcall user set").
        /// 0 means no limit. Who leeches more already goes on.
        leeches_per_user_max: u32 [0..=access::LeechSlots::MAX] = 0,
        /// How many peers may leech a torrent at once, unless the torrent has a number of its own ("rollcall torrent
        /// set"). 0 means no limit. Who leeches it already goes on.
        leeches_per_torrent_max: u32 [0..=access::LeechSlots::MAX] = 0,
    }
}

config_section! {
    /// What the server says about itself, on standard error.
    Log as "log" {
        /// off, error, warn, info, debug, trace, or a filter such as "info,traffic=debug", which also writes
        /// every announce with what it moved.
        level: LogFilter = default_log_filter(),
        /// "human", "json", or "auto": human on a terminal, JSON otherwise.
        format: LogFormat = LogFormat::Auto,
    }
}

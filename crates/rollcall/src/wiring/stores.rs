//! Opens the stores: in the data folder, or in Redis and the configured database.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use access::{RedisWhitelist, SqlWhitelist, Store, Whitelist};
use admin::AuditSettings;
use anyhow::Context;
use database::Database;
use domain::clock::{Clock, SystemClock};
use domain::{Seconds, SilenceLimit};
use friends::{FriendStore, FriendsSettings};
use journal::{Journal, LeaderLease, RedisJournal, Replicas, SqliteJournal};
use keyspace::{BaseNames, KeyNames, Lease, Redis, RedisSettings, TlsFiles};
use ledger::{Directory, HitAndRunPolicy, Ledger, LedgerSettings, RiskSink};
use views::{Activity, ActivitySettings};

use crate::config::Config;

/// Without renewal for this long, another process becomes the writer of a view.
pub const LEASE_LENGTH: Duration = Duration::from_secs(10);
/// Users per sweep of the activity view.
const SWEEP_USERS_MAX: usize = 1000;
/// How long replicas may take to confirm an entry before it is checked again.
const REPLICA_WAIT_MAX: Duration = Duration::from_secs(1);
/// How long the counters of a client that left are kept: what it moved meanwhile counts if it comes back within this time.
const SESSION_RETENTION: Seconds = Seconds(30 * 24 * 60 * 60);

impl Config {
    /// None if everything is in the data folder.
    pub fn redis_settings(&self) -> anyhow::Result<Option<RedisSettings>> {
        let redis = &self.redis;
        let password = redis.password.reveal();
        let Some(url) = redis.url.as_str() else { return Ok(None) };
        let mut settings = RedisSettings::from_url(url)?;
        let credentials = &mut settings.credentials;
        if let (Some(password), None) = (password, &credentials.password) {
            credentials.password = Some(keyspace::Secret::new(password));
        }
        if let Some(ca) = &redis.tls_ca_file {
            settings.tls.get_or_insert_with(TlsFiles::default).ca = Some(ca.clone());
        }
        settings.response_timeout = Duration::from_millis(redis.response_timeout_ms.into());
        Ok(Some(settings))
    }

    fn base_names(&self) -> BaseNames {
        let journal = &self.journal;
        BaseNames {
            stream: journal.stream_key.as_str().to_owned(),
            dead_letters: journal.dlq_key.as_str().to_owned(),
            failed: journal.failed_key.as_str().to_owned(),
            ..BaseNames::default()
        }
    }

    pub fn replicas(&self) -> Replicas {
        // Less than the time that Redis has for its answer, or Redis would seem to be down whenever a replica is.
        let timeout = Duration::from_millis(self.redis.response_timeout_ms.into()) / 5;
        let timeout = timeout.min(REPLICA_WAIT_MAX);
        Replicas { count: self.journal.wait_replicas, timeout }
    }

    pub fn audit_settings(&self, data: &Path) -> AuditSettings {
        let access = &self.access;
        AuditSettings { file: data.join(&access.audit_file), is_synced: true }
    }

    pub fn silence_limit(&self) -> SilenceLimit {
        let tracker = &self.tracker;
        SilenceLimit { interval: Seconds(tracker.announce_interval_s), grace: Seconds(tracker.peer_grace_s) }
    }

    pub fn activity_settings(&self) -> ActivitySettings {
        ActivitySettings { silence: self.silence_limit(), sweep_users_max: SWEEP_USERS_MAX }
    }
}

impl Config {
    fn ledger_settings(&self) -> LedgerSettings {
        LedgerSettings {
            ceiling: self.ceiling(),
            user_ceiling: self.user_ceiling(),
            silence: self.silence_limit(),
            session_retention: SESSION_RETENTION,
        }
    }

    pub fn hit_and_run_policy(&self) -> HitAndRunPolicy {
        HitAndRunPolicy { active_min: Seconds(self.ledger.hit_and_run_active_s) }
    }
}

/// A connection that is established when Redis is reachable, and the names of the keys.
#[derive(Clone)]
pub struct RedisBackend {
    pub redis: Redis,
    pub names: KeyNames,
}

/// None if Redis is not configured.
pub fn redis_backend(config: &Config) -> anyhow::Result<Option<RedisBackend>> {
    let Some(settings) = config.redis_settings()? else {
        return Ok(None);
    };
    let names = KeyNames::new(&config.base_names(), settings.mode)?;
    Ok(Some(RedisBackend { redis: Redis::new(settings)?, names }))
}

/// A store and its Redis connection, if it uses one.
pub struct Opened<T> {
    pub store: T,
    pub redis: Option<Redis>,
}

/// Redis need not be reachable yet.
pub async fn open_journal(config: &Config, data: &Path) -> anyhow::Result<Opened<Arc<dyn Journal>>> {
    if let Some(RedisBackend { redis, names }) = redis_backend(config)? {
        let journal = Arc::new(RedisJournal::new(redis.clone(), names).with_replicas(config.replicas()));
        return Ok(Opened { store: journal, redis: Some(redis) });
    }
    let path = data.join("journal.db");
    let journal = SqliteJournal::open(&path, system_clock())
        .await
        .with_context(|| format!("cannot open the journal {}", path.display()))?;
    Ok(Opened { store: Arc::new(journal), redis: None })
}

/// Without Redis the lists are in memory and empty: a [`views::Rebuild`] fills them.
pub fn open_activity(config: &Config) -> anyhow::Result<Opened<Activity>> {
    let settings = config.activity_settings();
    if let Some(RedisBackend { redis, names }) = redis_backend(config)? {
        let activity = Activity::on_redis(redis.clone(), names, settings, system_clock());
        return Ok(Opened { store: activity, redis: Some(redis) });
    }
    Ok(Opened { store: Activity::in_memory(settings, system_clock()), redis: None })
}

/// Activity lists for the process that writes them.
pub struct OpenedWriter {
    pub opened: Opened<Activity>,
    /// On Redis, where its holder is the only writer.
    pub lease: Option<Arc<dyn LeaderLease>>,
}

/// As [`open_activity`], for a process that writes the lists.
pub fn open_activity_writer(config: &Config, holder: String) -> anyhow::Result<OpenedWriter> {
    let Some(RedisBackend { redis, names }) = redis_backend(config)? else {
        return Ok(OpenedWriter { opened: open_activity(config)?, lease: None });
    };
    let lease = Lease::new(redis.clone(), names.users_lease().to_owned(), holder, LEASE_LENGTH);
    let lease: Arc<dyn LeaderLease> = Arc::new(lease);
    let settings = config.activity_settings();
    let activity =
        Activity::on_redis_under(Arc::clone(&lease), redis.clone(), names, settings, system_clock());
    Ok(OpenedWriter { opened: Opened { store: activity, redis: Some(redis) }, lease: Some(lease) })
}

/// The set in Redis, or a table of the database. Redis need not be reachable yet.
pub fn open_whitelist(config: &Config, store: &Store) -> anyhow::Result<Opened<Arc<dyn Whitelist>>> {
    Ok(match redis_backend(config)? {
        Some(RedisBackend { redis, names }) => {
            Opened { store: Arc::new(RedisWhitelist::new(redis.clone(), names)), redis: Some(redis) }
        }
        None => Opened { store: Arc::new(SqlWhitelist::new(store.clone())), redis: None },
    })
}

pub async fn open_friends(config: &Config, store: &Store) -> anyhow::Result<FriendStore> {
    let settings = FriendsSettings {
        default_audience: config.presence.default_visibility,
        ..FriendsSettings::default()
    };
    FriendStore::open(store.database().clone(), settings).await.context("cannot open the friends store")
}

/// Connections of the ledger's own; on SQLite those of the store: one connection writes, and the ledger reads again what
/// another connection may have written.
pub async fn ledger_database(config: &Config, data: &Path, store: &Store) -> anyhow::Result<Database> {
    match store.database() {
        Database::Sqlite(_) => Ok(store.database().clone()),
        Database::Postgres(_) | Database::MySql(_) => Ok(Database::open(&config.database_url(data)).await?),
    }
}

pub async fn open_ledger(
    config: &Config,
    database: Database,
    directory: Arc<dyn Directory>,
    risks: Arc<dyn RiskSink>,
) -> anyhow::Result<Ledger> {
    Ok(Ledger::open(database, config.ledger_settings(), directory, system_clock(), risks).await?)
}

pub fn system_clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

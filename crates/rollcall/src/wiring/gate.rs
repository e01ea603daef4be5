//! The gate follows the database and the Redis source; and the database is copied to Redis for other readers of those
//! keys (M1 to M3).

use std::sync::Arc;

use access::redis_source::{Copier, CopierParts, CopyQueue, RedisSourceReader};
use access::{Change, FollowCounters, Follower, Gate, RedisSource, RedisSourceFollower, Store};
use keyspace::{Redis, RedisSourceChannels};
use site::metrics::RedisSourceFigures;

use super::background::Background;
use super::stores::{self, system_clock};
use crate::config::Config;
use crate::roles::{Role, Roles};

/// None without Redis.
pub fn redis_source(config: &Config) -> anyhow::Result<Option<RedisSource>> {
    let Some(settings) = config.redis_settings()? else { return Ok(None) };
    Ok(Some(RedisSource::new(Redis::new(settings)?, RedisSourceChannels::default())))
}

pub struct GateFollowers {
    database: Follower,
    /// None without Redis.
    site: Option<Box<RedisSourceFollower>>,
    gate: Arc<Gate>,
}

impl GateFollowers {
    /// Fills `gate` from the database and `site` from the Redis source. If Redis is unreachable, it is read later.
    pub async fn load(
        config: &Config,
        store: &Store,
        gate: &Arc<Gate>,
        site: Option<&Arc<Gate>>,
    ) -> anyhow::Result<GateFollowers> {
        let database = access::load(store.clone(), Arc::clone(gate)).await?;
        let site = match (redis_source(config)?, site) {
            (Some(keys), Some(site)) => {
                Some(Box::new(RedisSourceFollower::load(keys, Arc::clone(site)).await))
            }
            _ => None,
        };
        Ok(GateFollowers { database, site, gate: Arc::clone(gate) })
    }

    /// Reads single keys of the Redis source on demand.
    pub fn reader(&self) -> Option<RedisSourceReader> {
        self.site.as_ref().map(|site| site.reader())
    }

    pub fn counters(&self) -> Arc<FollowCounters> {
        self.database.counters()
    }

    pub fn figures(&self, notes: Option<&CopyQueue>) -> RedisSourceFigures {
        let site = self.site.as_deref();
        RedisSourceFigures {
            source: site.map(RedisSourceFollower::counters),
            copy: notes.map(CopyQueue::counters),
            listening: site.map(|site| ("redis_source", site.listen_counters())).into_iter().collect(),
        }
    }

    pub async fn run(self, on_change: impl Fn(Change), shutdown: impl Future) {
        let GateFollowers { database, site, gate } = self;
        let of_database = database.run(&on_change, std::future::pending::<()>());
        let of_site = async {
            if let Some(site) = site {
                let on_site_change = |change| forward_redis_change(&gate, change, &on_change);
                site.run(on_site_change, std::future::pending::<()>()).await;
            }
        };
        tokio::select! {
            _ = async { tokio::join!(of_database, of_site) } => {}
            _ = shutdown => {}
        }
    }
}

/// Forwards a change of the Redis source. User ids in those keys are the site's and may differ from ours, so users
/// are looked up by passkey.
fn forward_redis_change(gate: &Gate, change: Change, on_change: &impl Fn(Change)) {
    let now = system_clock().steady();
    match change {
        Change::PasskeyChanged(passkey) => {
            gate.expire_answer(&passkey, now);
            if let Some(user) = gate.user_of(&passkey).filter(|user| !gate.is_enabled(*user, now)) {
                on_change(Change::UserRemoved(user));
            }
            on_change(change);
        }
        Change::PasskeyPublished(passkey) => {
            gate.expire_answer(&passkey, now);
            on_change(change);
        }
        Change::UserAdmitted(_) | Change::UserRemoved(_) => {}
        other => on_change(other),
    }
}

/// Adds the task that copies the database to Redis, if this process has the role. Every change of the gate must be
/// passed to the returned notes.
pub fn add_redis_copier(
    config: &Config,
    roles: &Roles,
    store: &Store,
    gate: &Arc<Gate>,
    background: &mut Background,
) -> anyhow::Result<Option<CopyQueue>> {
    if !config.mirror.enabled || !roles.include(Role::Mirror) {
        return Ok(None);
    }
    let Some(keys) = redis_source(config)? else { return Ok(None) };
    let (copier, notes) = Copier::new(CopierParts {
        keys,
        gate: Arc::clone(gate),
        store: store.clone(),
        whitelist: stores::open_whitelist(config, store)?.store,
        clock: system_clock(),
    });
    background.add_task(|mut stopped| {
        copier.run(async move {
            let _ = stopped.wait_for(|stopped| *stopped).await;
        })
    });
    Ok(Some(notes))
}

//! Where the gate gets its knowledge from: our database and the keys that the site writes; and the copy of the database in
//! Redis for programs that read those keys (M1 to M3).

use std::sync::Arc;

use access::redis_source::{Copier, CopierParts, CopyQueue, RedisSourceReader};
use access::{Change, FollowCounters, Follower, Gate, RedisSource, RedisSourceFollower, Store};
use keyspace::{MirrorNames, Redis, SiteChannels};
use site::metrics::RedisSourceFigures;

use crate::backends::{self, system_clock};
use crate::config::Config;
use crate::engine::Engine;
use crate::roles::{Role, Roles};

/// The site's keys, where there is a Redis for them.
pub fn site_keys(config: &Config) -> anyhow::Result<Option<RedisSource>> {
    let Some(settings) = config.redis_settings()? else { return Ok(None) };
    let (names, channels) = (MirrorNames::new(settings.mode), SiteChannels::default());
    Ok(Some(RedisSource::new(Redis::new(settings)?, names, channels)))
}

/// What keeps the gate up to date.
pub struct Following {
    database: Follower,
    /// None without Redis.
    site: Option<Box<RedisSourceFollower>>,
    gate: Arc<Gate>,
}

impl Following {
    /// Fills the gate from the database, and `site` from the site's keys. A Redis that is away is read later.
    pub async fn load(
        config: &Config,
        store: &Store,
        gate: &Arc<Gate>,
        site: Option<&Arc<Gate>>,
    ) -> anyhow::Result<Following> {
        let database = access::load(store.clone(), Arc::clone(gate)).await?;
        let site = match (site_keys(config)?, site) {
            (Some(keys), Some(site)) => {
                Some(Box::new(RedisSourceFollower::load(keys, Arc::clone(site)).await))
            }
            _ => None,
        };
        Ok(Following { database, site, gate: Arc::clone(gate) })
    }

    /// Has the site's keys read at once.
    pub fn reader(&self) -> Option<RedisSourceReader> {
        self.site.as_ref().map(|site| site.reader())
    }

    /// What is counted of the database.
    pub fn counters(&self) -> Arc<FollowCounters> {
        self.database.counters()
    }

    /// What is counted of the site's keys.
    pub fn figures(&self, notes: Option<&CopyQueue>) -> RedisSourceFigures {
        let site = self.site.as_deref();
        RedisSourceFigures {
            source: site.map(RedisSourceFollower::counters),
            copy: notes.map(CopyQueue::counters),
            listening: site.map(|site| ("redis_source", site.listen_counters())).into_iter().collect(),
        }
    }

    /// Follows until `shutdown` is ready.
    pub async fn run(self, on_change: impl Fn(Change), shutdown: impl Future) {
        let Following { database, site, gate } = self;
        let of_database = database.run(&on_change, std::future::pending::<()>());
        let of_site = async {
            if let Some(site) = site {
                let on_site_change = |change| tell_site_change(&gate, change, &on_change);
                site.run(on_site_change, std::future::pending::<()>()).await;
            }
        };
        tokio::select! {
            _ = async { tokio::join!(of_database, of_site) } => {}
            _ = shutdown => {}
        }
    }
}

/// Tells what a change of the site's keys means for the gate. User ids in keys are the site's; rows may have others, so
/// users are told of by their rows.
fn tell_site_change(gate: &Gate, change: Change, on_change: &impl Fn(Change)) {
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

/// Lets the copy in Redis be kept, if this process does that. Every change of the gate goes to the notes.
pub fn keep_copies(
    config: &Config,
    roles: &Roles,
    store: &Store,
    gate: &Arc<Gate>,
    engine: &mut Engine,
) -> anyhow::Result<Option<CopyQueue>> {
    if !config.mirror.enabled || !roles.include(Role::Mirror) {
        return Ok(None);
    }
    let Some(keys) = site_keys(config)? else { return Ok(None) };
    let (copier, notes) = Copier::new(CopierParts {
        keys,
        gate: Arc::clone(gate),
        store: store.clone(),
        whitelist: backends::open_whitelist(config, store)?.store,
        clock: system_clock(),
    });
    engine.add_until_stopped(|mut stopped| {
        copier.run(async move {
            let _ = stopped.wait_for(|stopped| *stopped).await;
        })
    });
    Ok(Some(notes))
}

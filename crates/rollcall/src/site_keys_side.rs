//! Where the gate gets its knowledge from: our database, or the keys that the site writes; and, in the first case, the
//! copy of it in Redis for programs that read those keys (M1 to M3).

use std::sync::Arc;
use std::time::Duration;

use access::site_keys::{AccessSource, Copier, CopyNotes, SiteKeyCounters};
use access::{Change, FollowCounters, Follower, Gate, SiteFollower, SiteKeys, Store};
use anyhow::Context;
use keyspace::{ListenCounters, Redis};
use site::metrics::SiteKeyFigures;

use crate::config::Config;
use crate::engine::Engine;
use crate::roles::{Role, Roles};

/// The site's keys, where there is a Redis for them.
pub fn site_keys(config: &Config) -> anyhow::Result<Option<SiteKeys>> {
    let Some(settings) = config.redis_settings()? else { return Ok(None) };
    let (names, channels) = (config.mirror.names(settings.mode)?, config.mirror.channels()?);
    Ok(Some(SiteKeys::new(Redis::new(settings)?, names, channels)))
}

/// Whoever keeps the gate up to date.
pub enum Following {
    /// From our database.
    Database(Follower),
    /// From the site's keys.
    Site(Box<SiteFollower>),
}

impl Following {
    /// Fills the gate.
    pub async fn load(config: &Config, store: &Store, gate: &Arc<Gate>) -> anyhow::Result<Following> {
        match config.access.source {
            AccessSource::Database => {
                let follower = access::load(store.clone(), Arc::clone(gate)).await?;
                let every = Duration::from_millis(config.access.poll_interval_ms.into());
                Ok(Following::Database(follower.poll_every(every)))
            }
            AccessSource::Redis => {
                let keys = site_keys(config)?.context("access.source = \"redis\" needs redis.url")?;
                let follower = SiteFollower::load(keys, Arc::clone(gate)).await.context(
                    "the site's keys cannot be read, and access.source = \"redis\" says that they decide",
                )?;
                let every = Duration::from_secs(config.access.source_round_s.into());
                Ok(Following::Site(Box::new(follower.round_every(every))))
            }
        }
    }

    /// What is counted of any kind.
    pub fn counters(&self) -> Arc<FollowCounters> {
        match self {
            Following::Database(follower) => follower.counters(),
            Following::Site(follower) => follower.follow_counters(),
        }
    }

    /// What is counted of the site's keys.
    pub fn figures(&self, notes: Option<&CopyNotes>) -> SiteKeyFigures {
        let (source, listening): (Option<Arc<SiteKeyCounters>>, Option<Arc<ListenCounters>>) = match self {
            Following::Database(_) => (None, None),
            Following::Site(follower) => (Some(follower.counters()), Some(follower.listen_counters())),
        };
        SiteKeyFigures {
            source,
            copy: notes.map(CopyNotes::counters),
            listening: listening.into_iter().map(|counters| ("site_keys", counters)).collect(),
        }
    }

    /// Follows until `shutdown` is ready.
    pub async fn run(self, on_change: impl FnMut(Change), shutdown: impl Future) {
        match self {
            Following::Database(follower) => follower.run(on_change, shutdown).await,
            Following::Site(follower) => follower.run(on_change, shutdown).await,
        }
    }
}

/// Lets the copy in Redis be kept, if this process does that. Every change of the gate goes to the notes.
pub fn keep_copies(
    config: &Config,
    roles: &Roles,
    store: &Store,
    gate: &Arc<Gate>,
    engine: &mut Engine,
) -> anyhow::Result<Option<CopyNotes>> {
    let is_ours = config.access.source == AccessSource::Database && config.mirror.enabled;
    if !is_ours || !roles.include(Role::Mirror) {
        return Ok(None);
    }
    let Some(keys) = site_keys(config)? else { return Ok(None) };
    let (copier, notes) = Copier::new(keys, Arc::clone(gate), store.clone());
    engine.add_until_stopped(|mut stopped| {
        copier.run(async move {
            let _ = stopped.wait_for(|stopped| *stopped).await;
        })
    });
    Ok(Some(notes))
}

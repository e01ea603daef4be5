//! The gateway and its presence cluster.

use std::path::Path;
use std::sync::Arc;

use access::Gate;
use anyhow::Context;
use async_trait::async_trait;
use domain::{Seconds, UserId};
use friends::FriendStore;
use gateway::Gateway;
use gateway::cluster::{ClusterSettings, ClusterStore};
use gateway::gateway::{ClusterParts, GatewayParts};
use gateway::torrent_counts::{TorrentCount, TorrentCountError, TorrentCountSource};
use journal::ProcessName;
use tracing::debug;
use views::Activity;

use super::stores::{RedisBackend, redis_backend, system_clock};
use super::tracker_settings::seconds;
use crate::config::{Config, Sharing};
use crate::gateway_secret;

impl Config {
    /// Whether presence is shared with other gateways on this Redis.
    pub fn shares_presence(&self) -> bool {
        self.redis.url.as_str().is_some() && self.presence.share == Sharing::Auto
    }
}

/// None if presence is not shared.
async fn cluster_parts(config: &Config, node: &ProcessName) -> anyhow::Result<Option<ClusterParts>> {
    if !config.shares_presence() {
        return Ok(None);
    }
    let Some(RedisBackend { redis, .. }) = redis_backend(config)? else { return Ok(None) };
    let lease = seconds(config.presence.lease_s);
    let settings = ClusterSettings {
        lease,
        pending: Seconds(config.presence.pending_s),
        keys_ttl: seconds(config.presence_policy().gone().0),
        seed: random_seed()?,
        ..ClusterSettings::default()
    };
    let store = ClusterStore::join_when_possible(redis.clone(), node.node(), settings).await;
    let store = Arc::new(store.context("cannot join the presence cluster")?);
    Ok(Some(ClusterParts { store, redis, process: node.to_string(), lease }))
}

/// No client can connect before the site serves.
pub async fn open(
    (config, data): (&Config, &Path),
    node: &ProcessName,
    friends: FriendStore,
    torrent_counts: ActivityTorrentCounts,
) -> anyhow::Result<Arc<Gateway>> {
    let secret = gateway_secret::for_server(config, data)?;
    let gate = Arc::clone(&torrent_counts.gate);
    let gateway = Gateway::open(GatewayParts {
        friend_store: friends,
        clock: system_clock(),
        torrent_counts: Arc::new(torrent_counts),
        is_disabled: Arc::new(move |user| gate.is_disabled(user)),
        policy: config.presence_policy(),
        settings: config.gateway_settings(secret),
        seed: random_seed()?,
        cluster: cluster_parts(config, node).await?,
    })
    .await
    .context("cannot open the gateway")?;
    debug!("gateway opened");
    Ok(gateway)
}

fn random_seed() -> anyhow::Result<u64> {
    getrandom::u64().context("cannot read random numbers from the system")
}

/// Torrents that a user seeds and leeches, from the activity lists.
pub struct ActivityTorrentCounts {
    pub gate: Arc<Gate>,
    pub activity: Activity,
}

#[async_trait]
impl TorrentCountSource for ActivityTorrentCounts {
    async fn counts(&self, users: &[UserId]) -> Result<Vec<TorrentCount>, TorrentCountError> {
        let mut counts = Vec::with_capacity(users.len());
        let mut failure = None;
        for user in users {
            let count = match self.gate.passkey_of(*user) {
                Some(passkey) => self.activity.counts(&passkey).await,
                None => Ok(views::activity::Counts::default()),
            };
            let count = match count {
                Ok(count) => count,
                // The counts of other users are still returned.
                Err(error) => {
                    failure = Some(TorrentCountError(error.to_string()));
                    continue;
                }
            };
            counts.push(TorrentCount {
                user: *user,
                seeding: clamp(count.seeding),
                leeching: clamp(count.leeching),
            });
        }
        match failure {
            Some(failure) if counts.is_empty() => Err(failure),
            _ => Ok(counts),
        }
    }
}

fn clamp(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

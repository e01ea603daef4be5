//! The gateway as a whole: its parts, start and shutdown.

use std::sync::Arc;
use std::time::Duration;

use crate::cluster::ClusterStore;
use domain::clock::Clock;
use friends::FriendStore;
use keyspace::Redis;
use keyspace::keys::gateways;
use parking_lot::Mutex;
use presence::Policy;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::accept::{Acceptor, AcceptorParts};
use crate::cluster_sync::SyncSettings;
use crate::counters::GatewayCounters;
use crate::hub::{Hub, HubError, HubParts, HubSettings, IsDisabled};
use crate::leader_lease::LeaderLease;
use crate::settings::GatewaySettings;
use crate::token::{TokenError, Tokens};
use crate::torrent_counts::TorrentCountSource;
use crate::webhooks::{WebhookError, Webhooks};

/// Time limit of the shutdown after connections are closed, in case the database does not answer.
const STOP_MAX: Duration = Duration::from_secs(20);

/// Delay between attempts to read the database.
const CATCH_UP_PAUSE: Duration = Duration::from_secs(1);

/// Longer than the pruning interval, so that one gateway keeps the lease.
const PRUNING_LEASE: Duration = Duration::from_secs(180);

pub struct GatewayParts {
    pub friend_store: FriendStore,
    pub clock: Arc<dyn Clock>,
    /// Seeding and leeching counts.
    pub torrent_counts: Arc<dyn TorrentCountSource>,
    /// Which users the tracker has disabled.
    pub is_disabled: IsDisabled,
    /// Times after which a silent device is away, and offline.
    pub policy: Policy,
    /// Everything else that can be set.
    pub settings: GatewaySettings,
    pub seed: u64,
    /// None for a gateway without a cluster.
    pub cluster: Option<ClusterParts>,
}

pub struct ClusterParts {
    pub store: Arc<ClusterStore>,
    pub redis: Redis,
    /// Unique name of this process.
    pub process: String,
    /// A gateway that does not renew for this long is declared dead.
    pub lease: Duration,
}

/// Always held without a cluster.
fn leader_lease(cluster: Option<&ClusterParts>, key: &str, length: Duration) -> LeaderLease {
    cluster.map_or_else(LeaderLease::always_held, |cluster| {
        LeaderLease::shared(cluster.redis.clone(), key, &cluster.process, length)
    })
}

/// Why the gateway does not start.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// No token could be checked.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The friends database cannot be used.
    #[error(transparent)]
    Hub(#[from] HubError),
    #[error(transparent)]
    Webhook(#[from] WebhookError),
}

/// A gateway that is open, and runs once it has begun.
pub struct Gateway {
    pub hub: Arc<Hub>,
    pub acceptor: Acceptor,
    pub tokens: Arc<Tokens>,
    pub counters: Arc<GatewayCounters>,
    stop: watch::Sender<bool>,
    tasks: Mutex<JoinSet<()>>,
    /// Until [`Gateway::begin_alone`].
    deferred: Mutex<Option<DeferredWebhooks>>,
    is_clustered: bool,
}

/// Must not run while another process serves the same users.
struct DeferredWebhooks {
    friend_store: FriendStore,
    webhooks: Option<Webhooks>,
    lease: Arc<LeaderLease>,
}

impl Gateway {
    /// Opens, restores and begins, where no other process serves users of the same database. Runs until
    /// [`Gateway::drain`].
    pub async fn start(parts: GatewayParts) -> Result<Arc<Gateway>, GatewayError> {
        let gateway = Gateway::open(parts).await?;
        gateway.hub.restore().await?;
        gateway.begin();
        gateway.begin_alone(false);
        Ok(gateway)
    }

    /// Opens connections and files. It notifies and writes nothing before it begins: another process may still serve
    /// the users.
    pub async fn open(parts: GatewayParts) -> Result<Arc<Gateway>, GatewayError> {
        let GatewayParts {
            friend_store,
            clock,
            torrent_counts,
            is_disabled,
            policy,
            settings,
            seed,
            cluster,
        } = parts;
        let counters = Arc::new(GatewayCounters::default());
        let tokens = Arc::new(Tokens::load(settings.tokens.clone(), Arc::clone(&clock))?);
        let lease_length = cluster.as_ref().map(|cluster| cluster.lease);
        let lease =
            leader_lease(cluster.as_ref(), gateways::WEBHOOKS_LEASE_KEY, lease_length.unwrap_or_default());
        let lease = Arc::new(lease);
        let webhooks = match &settings.webhook {
            Some(webhook) => {
                let (friend_store, counters) = (friend_store.clone(), Arc::clone(&counters));
                let webhooks = Webhooks::open(friend_store, webhook, counters, Arc::clone(&clock)).await?;
                Some(webhooks.with_lease(Arc::clone(&lease)))
            }
            None => None,
        };
        let pruning = leader_lease(cluster.as_ref(), gateways::PRUNING_LEASE_KEY, PRUNING_LEASE);
        let hub_settings = HubSettings {
            policy,
            limits: settings.limits,
            batch: settings.connections.batch,
            sync: SyncSettings {
                renew: lease_length.map_or(SyncSettings::default().renew, |length| length / 5),
                ..SyncSettings::default()
            },
        };
        let hub = Hub::open(HubParts {
            friend_store: friend_store.clone(),
            clock: Arc::clone(&clock),
            settings: hub_settings,
            counters: Arc::clone(&counters),
            torrent_counts,
            is_disabled,
            seed,
            pruning,
            store: cluster.as_ref().map(|cluster| Arc::clone(&cluster.store)),
            redis: cluster.as_ref().map(|cluster| cluster.redis.clone()),
        })
        .await?;
        let acceptor_parts = AcceptorParts {
            hub: Arc::clone(&hub),
            tokens: Arc::clone(&tokens),
            clock,
            counters: Arc::clone(&counters),
        };
        let acceptor = Acceptor::new(&settings, acceptor_parts);
        let (stop, tasks) = (watch::Sender::new(false), Mutex::default());
        let deferred = Mutex::new(Some(DeferredWebhooks { friend_store, webhooks, lease }));
        let is_clustered = cluster.is_some();
        Ok(Arc::new(Gateway { hub, acceptor, tokens, counters, stop, tasks, deferred, is_clustered }))
    }

    /// Accepts users from now on. Users that were online have been restored before ([`Hub::restore`]).
    pub fn begin(&self) {
        self.hub.begin();
        let (followed, stopped) = (Arc::clone(&self.tokens), self.stop.subscribe());
        self.tasks.lock().spawn(async move { followed.follow(stopped).await });
        // In a cluster the lease decides, also between two processes of one node.
        if self.is_clustered() {
            self.start_webhooks();
        }
    }

    /// No other process serves users of the same database any more. If one did (`after_another`), its last writes are
    /// read. Webhooks start. In a cluster nothing is to be done.
    pub fn begin_alone(&self, after_another: bool) {
        if self.is_clustered() {
            return;
        }
        self.start_webhooks();
        if after_another {
            let (hub, mut stopped) = (Arc::clone(&self.hub), self.stop.subscribe());
            self.tasks.lock().spawn(async move {
                tokio::select! {
                    () = catch_up(&hub) => {}
                    _ = stopped.wait_for(|stopped| *stopped) => {}
                }
            });
        }
    }

    /// Whether it is one of many.
    pub fn is_clustered(&self) -> bool {
        self.is_clustered
    }

    fn start_webhooks(&self) {
        let Some(DeferredWebhooks { friend_store, webhooks, lease }) = self.deferred.lock().take() else {
            return;
        };
        let mut tasks = self.tasks.lock();
        match webhooks {
            Some(webhooks) => drop(tasks.spawn(webhooks.run(self.stop.subscribe()))),
            None => drop(tasks.spawn(async move { forget_webhooks(&friend_store, &lease).await })),
        }
    }

    /// Closes connections, a few at a time, and writes unsaved presence. Users that were online are pending after the
    /// next start.
    pub async fn drain(&self) {
        self.hub.prepare_shutdown();
        // Before clients reconnect to another process, which reads it.
        self.hub.flush_presence().await;
        self.acceptor.drain().await;
        if tokio::time::timeout(STOP_MAX, self.hub.stop()).await.is_err() {
            tracing::warn!(
                limit_s = STOP_MAX.as_secs(),
                "presence not written within the shutdown time limit"
            );
        }
        self.stop.send_replace(true);
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        // Tasks that do not end in time are dropped with the set.
        let _ = tokio::time::timeout(STOP_MAX, async { while tasks.join_next().await.is_some() {} }).await;
    }
}

/// Without webhooks, the cursor is dropped, or the history would be kept for it. Unless another gateway holds the
/// lease.
async fn forget_webhooks(friend_store: &FriendStore, lease: &LeaderLease) {
    if !lease.take().await {
        return;
    }
    if let Err(error) = Webhooks::forget(friend_store).await {
        tracing::warn!(%error, "cannot drop the webhook cursor although webhooks are off; history is kept until the next start");
    }
    lease.release().await;
}

async fn catch_up(hub: &Hub) {
    while let Err(error) = hub.catch_up().await {
        tracing::warn!(%error, "cannot read the users that were online before; retrying");
        tokio::time::sleep(CATCH_UP_PAUSE).await;
    }
}

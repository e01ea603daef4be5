//! The gateway as a whole: what it is made of, how it starts, and how it ends.

use std::sync::Arc;
use std::time::Duration;

use domain::clock::Clock;
use parking_lot::Mutex;
use people::People;
use presence::Policy;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::counters::GatewayCounters;
use crate::door::{Behind, Door};
use crate::hub::{Hub, HubError, HubParts, HubSettings};
use crate::settings::GatewaySettings;
use crate::token::{TokenError, Tokens};
use crate::traffic::TrafficCounts;
use crate::webhooks::{WebhookError, Webhooks};

/// How long the end may take once everybody was sent away: a database that does not answer does not hold it up for ever.
const STOP_MAX: Duration = Duration::from_secs(20);

/// What a gateway stands on.
pub struct GatewayParts {
    /// Friendships, privacy, history.
    pub people: People,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Who knows what people's torrent clients do.
    pub traffic: Arc<dyn TrafficCounts>,
    /// When silence means away, and when gone.
    pub policy: Policy,
    /// Everything else that can be set.
    pub settings: GatewaySettings,
    /// Spreads pings and samples.
    pub seed: u64,
}

/// Why the gateway does not start.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// No token could be checked.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The database of people cannot be used.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// Nobody could be told.
    #[error(transparent)]
    Webhook(#[from] WebhookError),
}

/// A gateway that runs.
pub struct Gateway {
    /// Everybody who is here.
    pub hub: Arc<Hub>,
    /// Where connections come in.
    pub door: Door,
    /// Whose tokens are taken.
    pub tokens: Arc<Tokens>,
    /// What is counted.
    pub counters: Arc<GatewayCounters>,
    stop: watch::Sender<bool>,
    tasks: Mutex<JoinSet<()>>,
}

impl Gateway {
    /// Brings back those who were here, as pending (P11), and starts everything on this runtime. It lives until
    /// [`Gateway::drain`].
    pub async fn start(parts: GatewayParts) -> Result<Arc<Gateway>, GatewayError> {
        let GatewayParts { people, clock, traffic, policy, settings, seed } = parts;
        let counters = Arc::new(GatewayCounters::default());
        let tokens = Arc::new(Tokens::load(settings.tokens.clone(), Arc::clone(&clock))?);
        let stop = watch::Sender::new(false);
        let mut tasks = JoinSet::new();
        match &settings.webhook {
            Some(webhook) => {
                let (people, counters) = (people.clone(), Arc::clone(&counters));
                let webhooks = Webhooks::open(people, webhook, counters, Arc::clone(&clock)).await?;
                tasks.spawn(webhooks.run(stop.subscribe()));
            }
            // Otherwise the history would be kept for whoever is no longer told.
            None => Webhooks::forget(&people).await.map_err(WebhookError::People)?,
        }
        let hub_settings = HubSettings { policy, people: settings.people, batch: settings.connections.batch };
        let hub = Hub::start(HubParts {
            people,
            clock: Arc::clone(&clock),
            settings: hub_settings,
            counters: Arc::clone(&counters),
            traffic,
            seed,
        })
        .await?;
        let (followed, stopped) = (Arc::clone(&tokens), stop.subscribe());
        tasks.spawn(async move { followed.follow(stopped).await });
        let behind = Behind {
            hub: Arc::clone(&hub),
            tokens: Arc::clone(&tokens),
            clock,
            counters: Arc::clone(&counters),
        };
        let door = Door::new(&settings, behind);
        Ok(Arc::new(Gateway { hub, door, tokens, counters, stop, tasks: Mutex::new(tasks) }))
    }

    /// Sends everybody away, a few at a time, and writes down what is not written yet. Those who were here are pending
    /// after the next start.
    pub async fn drain(&self) {
        self.hub.begin_to_stop();
        self.door.drain().await;
        if tokio::time::timeout(STOP_MAX, self.hub.stop()).await.is_err() {
            tracing::warn!(
                limit_s = STOP_MAX.as_secs(),
                "the last of presence could not be written down in time"
            );
        }
        self.stop.send_replace(true);
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        // Those that do not end in time are dropped with the list of them.
        let _ = tokio::time::timeout(STOP_MAX, async { while tasks.join_next().await.is_some() {} }).await;
    }
}

//! The gateway as a whole: what it is made of, how it starts, and how it ends.

use std::sync::Arc;
use std::time::Duration;

use domain::clock::Clock;
use keyspace::Redis;
use keyspace::keys::gateways;
use parking_lot::Mutex;
use people::People;
use presence::Policy;
use register::Register;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::accounts::IsDisabled;
use crate::counters::GatewayCounters;
use crate::door::{Behind, Door};
use crate::hub::{Hub, HubError, HubParts, HubSettings};
use crate::operators::{Operators, Standings};
use crate::settings::GatewaySettings;
use crate::sharing::SharingSettings;
use crate::token::{TokenError, Tokens};
use crate::traffic::TrafficCounts;
use crate::turn::Turn;
use crate::webhooks::{WebhookError, Webhooks};

/// How long the end may take once everybody was sent away: a database that does not answer does not hold it up for ever.
const STOP_MAX: Duration = Duration::from_secs(20);

/// How long to wait before the database is asked again.
const CATCH_UP_PAUSE: Duration = Duration::from_secs(1);

/// Longer than from one shortening of the history to the next, so that one gateway keeps at it.
const PRUNING_TURN_LENGTH: Duration = Duration::from_secs(180);

/// What a gateway stands on.
pub struct GatewayParts {
    /// Friendships, privacy, history.
    pub people: People,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Who knows what people's torrent clients do.
    pub traffic: Arc<dyn TrafficCounts>,
    /// Which users the tracker has disabled.
    pub is_disabled: IsDisabled,
    /// When silence means away, and when gone.
    pub policy: Policy,
    /// Everything else that can be set.
    pub settings: GatewaySettings,
    /// In the names of which API keys operators may look on.
    pub operators: Standings,
    /// Spreads pings and samples.
    pub seed: u64,
    /// What makes it one of many; none if it is alone.
    pub shared: Option<SharedParts>,
}

/// What a gateway needs to be one of many.
pub struct SharedParts {
    /// The book that all gateways share.
    pub register: Arc<Register>,
    /// Where it is.
    pub redis: Redis,
    /// This process, by a name that no other ever has.
    pub process: String,
    /// After this long without a word a gateway is taken for dead.
    pub lease: Duration,
}

impl SharedParts {
    fn turn(&self, key: &str, length: Duration) -> Turn {
        Turn::among_many(self.redis.clone(), key, &self.process, length)
    }
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

/// A gateway that is open, and runs once it has begun.
pub struct Gateway {
    /// Everybody who is here.
    pub hub: Arc<Hub>,
    /// Where connections come in.
    pub door: Door,
    /// Whose tokens are taken.
    pub tokens: Arc<Tokens>,
    /// Operators who look on.
    pub operators: Arc<Operators>,
    /// What is counted.
    pub counters: Arc<GatewayCounters>,
    /// How often operators are pinged.
    ping: Duration,
    stop: watch::Sender<bool>,
    tasks: Mutex<JoinSet<()>>,
    /// Until it may tell: [`Gateway::begin_alone`].
    later: Mutex<Option<Later>>,
    is_shared: bool,
}

/// What must not run while another process has the people.
struct Later {
    people: People,
    webhooks: Option<Webhooks>,
    /// Whose turn it is to tell; none where nobody else can.
    turn: Option<Arc<Turn>>,
}

impl Gateway {
    /// Opens, restores and begins, one after the other, where no other process has people of the same database. It
    /// lives until [`Gateway::drain`].
    pub async fn start(parts: GatewayParts) -> Result<Arc<Gateway>, GatewayError> {
        let gateway = Gateway::open(parts).await?;
        gateway.hub.restore().await?;
        gateway.begin();
        gateway.begin_alone(false);
        Ok(gateway)
    }

    /// Opens what it needs. Nobody is told, moved or written down by it before it begins: another process may still have
    /// all the people.
    pub async fn open(parts: GatewayParts) -> Result<Arc<Gateway>, GatewayError> {
        let GatewayParts { people, clock, traffic, is_disabled, policy, settings, operators, seed, shared } =
            parts;
        let counters = Arc::new(GatewayCounters::default());
        let tokens = Arc::new(Tokens::load(settings.tokens.clone(), Arc::clone(&clock))?);
        let webhooks = match &settings.webhook {
            Some(webhook) => {
                let (people, counters) = (people.clone(), Arc::clone(&counters));
                Some(Webhooks::open(people, webhook, counters, Arc::clone(&clock)).await?)
            }
            None => None,
        };
        let turn = shared.as_ref().map(|shared| Arc::new(shared.turn(gateways::WEBHOOKS_TURN, shared.lease)));
        let webhooks = match (webhooks, &turn) {
            (Some(webhooks), Some(turn)) => Some(webhooks.in_turn(Arc::clone(turn))),
            (webhooks, _) => webhooks,
        };
        let pruning = shared
            .as_ref()
            .map_or_else(Turn::alone, |shared| shared.turn(gateways::PRUNING_TURN, PRUNING_TURN_LENGTH));
        let hub_settings = HubSettings {
            policy,
            people: settings.people,
            batch: settings.connections.batch,
            sharing: SharingSettings {
                renew: shared.as_ref().map_or(Duration::from_secs(2), |shared| shared.lease / 5),
                ..SharingSettings::default()
            },
        };
        let hub = Hub::open(HubParts {
            people: people.clone(),
            clock: Arc::clone(&clock),
            settings: hub_settings,
            counters: Arc::clone(&counters),
            traffic,
            is_disabled,
            seed,
            pruning,
            register: shared.as_ref().map(|shared| Arc::clone(&shared.register)),
            redis: shared.as_ref().map(|shared| shared.redis.clone()),
        })
        .await?;
        let operators = Arc::new(Operators::new(
            (operators, settings.tokens.hmac_secret.clone()),
            settings.connections.operators_max,
            Arc::clone(&clock),
            Arc::clone(&counters),
        ));
        let behind = Behind {
            hub: Arc::clone(&hub),
            tokens: Arc::clone(&tokens),
            operators: Arc::clone(&operators),
            clock,
            counters: Arc::clone(&counters),
        };
        let door = Door::new(&settings, behind);
        let (stop, tasks) = (watch::Sender::new(false), Mutex::default());
        let later = Mutex::new(Some(Later { people, webhooks, turn }));
        let is_shared = shared.is_some();
        let ping = settings.connections.ping;
        Ok(Arc::new(Gateway { hub, door, tokens, operators, counters, ping, stop, tasks, later, is_shared }))
    }

    /// From now on people may come. Those who were here have been restored before ([`Hub::restore`]).
    pub fn begin(&self) {
        self.hub.begin();
        let (followed, stopped) = (Arc::clone(&self.tokens), self.stop.subscribe());
        self.tasks.lock().spawn(async move { followed.follow(stopped).await });
        let (operators, hub, ping) = (Arc::clone(&self.operators), Arc::clone(&self.hub), self.ping);
        let mut stopped = self.stop.subscribe();
        self.tasks.lock().spawn(async move {
            tokio::select! {
                () = operators.run(&hub, ping) => {}
                _ = stopped.wait_for(|stopped| *stopped) => {}
            }
        });
        // Among many there is a turn for it, also between two processes of one node.
        if self.is_shared() {
            self.begin_telling();
        }
    }

    /// No other process has people of the same database any more. If one had (`after_another`), what it wrote last is
    /// read; from now on, whoever is to be told is told by this one. One of many has learned of it all otherwise.
    pub fn begin_alone(&self, after_another: bool) {
        if self.is_shared() {
            return;
        }
        self.begin_telling();
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
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn begin_telling(&self) {
        let Some(Later { people, webhooks, turn }) = self.later.lock().take() else { return };
        let mut tasks = self.tasks.lock();
        match webhooks {
            Some(webhooks) => drop(tasks.spawn(webhooks.run(self.stop.subscribe()))),
            None => drop(tasks.spawn(async move { forget_webhooks(&people, turn.as_deref()).await })),
        }
    }

    /// Sends everybody away, a few at a time, and writes down what is not written yet. Those who were here are pending
    /// after the next start.
    pub async fn drain(&self) {
        self.hub.begin_to_stop();
        // Before they come to another process, which reads it.
        self.hub.write_down().await;
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

/// Where webhooks are off, the history would be kept for whoever is no longer told. Unless another gateway tells.
async fn forget_webhooks(people: &People, turn: Option<&Turn>) {
    if let Some(turn) = turn
        && !turn.take().await
    {
        return;
    }
    if let Err(error) = Webhooks::forget(people).await {
        tracing::warn!(%error, "the history is kept for webhooks, which are off, until the next start");
    }
    if let Some(turn) = turn {
        turn.give_back().await;
    }
}

async fn catch_up(hub: &Hub) {
    while let Err(error) = hub.catch_up().await {
        tracing::warn!(%error, "who was here before cannot be read; it is tried again");
        tokio::time::sleep(CATCH_UP_PAUSE).await;
    }
}

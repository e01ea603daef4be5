//! The tracker's Redis layout beside everything else: who keeps it, who listens for silent peers, and what each tracker
//! tells of its requests.
//!
//! Every process with the role stands by; one of them keeps the layout at a time. Listening is cheap, so those who stand
//! by listen as well, and do nothing about what they hear.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use domain::{LogThrottle, PeerId, Seconds, TorrentId};
use journal::{ConsumerSettings, Journal, LeaderLease, OrderedConsumer, OrderedParts, View};
use keyspace::{Lease, MirrorKey, MirrorNames, Redis, RedisError};
use keyspace::{PubSubCounters, PubSubEvent, Subscriber, Subscriptions};
use tokio::sync::watch;
use tracing::{debug, warn};
use tracker::Tracker;
use views::mirror::ReapTrigger;
use views::{Mirror, MirrorParts, MirrorSettings};

use crate::backends::{RedisBackend, redis_backend, system_clock};
use crate::config::Config;
use crate::directory::Resolver;
use crate::engine::Engine;
use crate::node::Node;

/// After this long without a word, another process takes over.
const LEASE_LENGTH: Duration = Duration::from_secs(10);
const DAY_S: u32 = 24 * 60 * 60;
/// How much later than the tracker the layout takes a peer for gone.
const REAP_SLACK: Seconds = Seconds(10);
/// How often the sweep takes a step.
const STEP_EVERY: Duration = Duration::from_secs(1);
/// Likewise, while peers are looked for whose end was missed.
const HURRIED_STEP_EVERY: Duration = Duration::from_millis(50);
/// How long further messages are waited for before peers are reaped together.
const GATHER: Duration = Duration::from_millis(20);
/// Peers reaped together, at most.
const GATHERED_MAX: usize = 500;
/// How often a tracker tells of its requests.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// The layout, and what there is to see of it.
#[derive(Clone)]
pub struct MirrorSide {
    /// The layout.
    pub mirror: Arc<Mirror>,
    /// Its connection to Redis.
    pub redis: Redis,
    /// What was heard, once somebody listens.
    pub listening: Arc<OnceLock<Arc<PubSubCounters>>>,
    /// The layout as the consumer sees it.
    view: Arc<dyn View>,
    turn: Arc<dyn LeaderLease>,
    hurry: Arc<watch::Sender<bool>>,
}

impl Config {
    /// Redis and the names of the layout in it, if there is to be one.
    pub fn layout(&self) -> anyhow::Result<Option<(Redis, MirrorNames)>> {
        let Some(RedisBackend { redis, .. }) = redis_backend(self)?.filter(|_| self.mirror.enabled) else {
            return Ok(None);
        };
        let names = MirrorNames::new(redis.mode());
        Ok(Some((redis, names)))
    }

    /// Whether a layout is kept at all.
    pub fn has_layout(&self) -> bool {
        self.redis.url.as_str().is_some() && self.mirror.enabled
    }

    fn mirror_settings(&self) -> MirrorSettings {
        let (tracker, mirror) = (&self.tracker, &self.mirror);
        // The tracker itself is to notice first, unless the site has a wish of its own.
        let slack = if mirror.reap_after_s == 0 { REAP_SLACK } else { Seconds(0) };
        let peer_grace = Seconds(tracker.peer_grace_s) + slack;
        let usual = Seconds(tracker.announce_interval_s) + peer_grace;
        MirrorSettings {
            reap_after: if mirror.reap_after_s == 0 { usual } else { Seconds(mirror.reap_after_s) },
            peer_grace,
            hit_and_run_active: self.hit_and_run_policy().active_min,
            inactive_keep: Seconds(mirror.inactive_keep_days.saturating_mul(DAY_S)),
            ..MirrorSettings::default()
        }
    }
}

impl MirrorSide {
    /// Opens the layout; none if there is to be none. Nothing is asked of Redis yet.
    pub fn open(
        config: &Config,
        node: &Node,
        journal: &Arc<dyn Journal>,
        resolver: &Resolver,
    ) -> anyhow::Result<Option<MirrorSide>> {
        let Some((redis, names)) = config.layout()? else {
            return Ok(None);
        };
        let process = node.process().to_string();
        let turn: Arc<dyn LeaderLease> =
            Arc::new(Lease::new(redis.clone(), names.lease().to_owned(), process.clone(), LEASE_LENGTH));
        let parts = MirrorParts {
            redis: redis.clone(),
            names,
            journal: Arc::clone(journal),
            lease: Arc::clone(&turn),
            directory: Arc::new(resolver.clone()),
            clock: system_clock(),
        };
        let mirror = Arc::new(Mirror::new(parts, config.mirror_settings(), format!("{process}.reaper")));
        let hurry = Arc::new(watch::Sender::new(false));
        let view = resolver.before(Arc::clone(&mirror) as Arc<dyn View>);
        Ok(Some(MirrorSide { mirror, view, redis, listening: Arc::default(), turn, hurry }))
    }

    /// What brings the journal's entries into it.
    pub fn consumer(
        &self,
        journal: &Arc<dyn Journal>,
        node: &Node,
        settings: watch::Receiver<ConsumerSettings>,
        stopped: watch::Receiver<bool>,
    ) -> OrderedConsumer {
        let parts = OrderedParts {
            journal: Arc::clone(journal),
            view: Arc::clone(&self.view),
            lease: Arc::clone(&self.turn),
            clock: system_clock(),
            process: node.process().clone(),
        };
        OrderedConsumer::new(parts, settings, stopped)
    }

    /// Hears which timeouts run out, and ends those peers (M6).
    pub async fn listen(self, mut stopped: watch::Receiver<bool>) {
        let wanted = Subscriptions {
            expired_keys: vec![self.mirror.names().peer_timeout_pattern()],
            ..Subscriptions::default()
        };
        let mut listener = self.redis.subscribe(wanted);
        let _ = self.listening.set(listener.counters());
        let log = LogThrottle::new();
        loop {
            let expired = tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => return,
                expired = self.gather(&mut listener) => expired,
            };
            if let Err(reason) = self.mirror.reap(&expired, ReapTrigger::Notification).await
                && let Some(left_out) = log.admit(system_clock().now())
            {
                warn!(%reason, lines_left_out = left_out, "silent peers could not be ended yet; the sweep finds them");
            }
        }
    }

    /// The next few peers whose timeouts ran out.
    async fn gather(&self, listener: &mut Subscriber) -> Vec<(TorrentId, PeerId)> {
        let mut expired = Vec::new();
        let mut heard = listener.next().await;
        loop {
            match heard {
                PubSubEvent::Expired(key) => expired.extend(self.mirror.names().parse_peer_timeout(&key)),
                // What was missed before is looked for.
                PubSubEvent::Subscribed => {
                    let _ = self.hurry.send_replace(true);
                }
                PubSubEvent::Gap | PubSubEvent::Message { .. } => {}
            }
            if expired.len() >= GATHERED_MAX {
                return expired;
            }
            heard = match tokio::time::timeout(GATHER, listener.next()).await {
                Ok(heard) => heard,
                Err(_) => return expired,
            };
        }
    }

    /// Looks at all torrents in turn, in steps; faster after messages may have been missed.
    /// What is half applied is left alone: it is about to be put right.
    pub async fn sweep(self, settled: Arc<AtomicBool>, mut stopped: watch::Receiver<bool>) {
        let (mut is_hurried, log) = (false, LogThrottle::new());
        loop {
            is_hurried |= self.hurry.send_replace(false);
            let pause = if is_hurried { HURRIED_STEP_EVERY } else { STEP_EVERY };
            tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => return,
                () = tokio::time::sleep(pause) => {}
            }
            if !settled.load(Ordering::Acquire) {
                continue;
            }
            match self.mirror.reconcile_step().await {
                Ok(step) => is_hurried &= !step.is_round_complete,
                Err(reason) => {
                    if let Some(left_out) = log.admit(system_clock().now()) {
                        warn!(%reason, lines_left_out = left_out, "the layout could not be checked; it is tried again");
                    }
                    tokio::time::sleep(STEP_EVERY).await;
                }
            }
        }
    }
}

/// What a tracker has told of its requests.
#[derive(Clone, Copy, Default)]
struct Tally {
    scrapes: u64,
    requests: u64,
}

impl Tally {
    fn of(tracker: &Tracker) -> Tally {
        let counters = tracker.counters();
        let requests = counters.answers_http.snapshot().count() + counters.answers_udp.snapshot().count();
        Tally { scrapes: counters.scrapes.get(), requests }
    }
}

/// Lets a tracker add its requests to the statistics once a second (M9), wherever the layout is kept. What a crash
/// swallows is at most the last second.
pub fn count_requests(
    config: &Config,
    tracker: Option<&Arc<Tracker>>,
    engine: &mut Engine,
) -> anyhow::Result<()> {
    if let (Some((redis, names)), Some(tracker)) = (config.layout()?, tracker) {
        let tracker = Arc::clone(tracker);
        engine.add_until_stopped(|stopped| tell_requests(redis, names, tracker, stopped));
    }
    Ok(())
}

async fn tell_requests(
    redis: Redis,
    names: MirrorNames,
    tracker: Arc<Tracker>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut told = Tally::default();
    loop {
        let is_end = tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => true,
            () = tokio::time::sleep(TELL_EVERY) => false,
        };
        let now = Tally::of(&tracker);
        tell(&redis, names.global(MirrorKey::StatsScrapes), now.scrapes, &mut told.scrapes).await;
        tell(&redis, names.global(MirrorKey::StatsRequests), now.requests, &mut told.requests).await;
        if is_end {
            return;
        }
    }
}

async fn tell(redis: &Redis, key: String, now: u64, told: &mut u64) {
    if now == *told {
        return;
    }
    let mut command = redis::cmd("INCRBY");
    command.arg(key).arg(now - *told);
    match redis.query::<i64>(&command).await {
        // Whether it was added nobody knows; once too little is better than twice.
        Ok(_) | Err(RedisError::Unanswered { .. }) => *told = now,
        Err(reason) => debug!(%reason, "requests could not be told; they are told later"),
    }
}

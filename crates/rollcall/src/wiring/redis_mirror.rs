//! The mirror: the keys `t:*` in Redis, kept from the journal, and the expiry of its peers.
//!
//! Every process with the role is ready; the holder of the lease writes. All of them subscribe to expiry messages,
//! which is cheap; without the lease they ignore them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use domain::{LogThrottle, PeerId, Seconds, TorrentId};
use journal::{ConsumerSettings, Journal, LeaderLease, OrderedConsumer, OrderedParts, View};
use keyspace::{Lease, Redis, RedisError, RedisMirrorKey, RedisMirrorNames};
use keyspace::{PubSubCounters, PubSubEvent, Subscriber, Subscriptions};
use tokio::sync::watch;
use tracing::{debug, warn};
use tracker::Tracker;
use views::redis_mirror::ReapTrigger;
use views::{RedisMirror, RedisMirrorParts, RedisMirrorSettings};

use super::background::Background;
use super::resolver::Resolver;
use super::stores::{LEASE_LENGTH, RedisBackend, redis_backend, system_clock};
use crate::config::Config;
use crate::node::Node;

const DAY_S: u32 = 24 * 60 * 60;
/// The mirror removes a peer this much later than the tracker expires it.
const REAP_SLACK: Seconds = Seconds(10);
/// Interval of reconciliation steps.
const STEP_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of reconciliation steps after expiry messages may have been missed.
const FAST_STEP_INTERVAL: Duration = Duration::from_millis(50);
/// Wait for further messages before a batch of peers is removed.
const BATCH_WAIT: Duration = Duration::from_millis(20);
/// Peers per batch.
const BATCH_MAX: usize = 500;
/// Interval at which a tracker adds its request counts.
const PUBLISH_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub struct OpenRedisMirror {
    pub mirror: Arc<RedisMirror>,
    pub redis: Redis,
    /// Set once the subscription starts.
    pub listening: Arc<OnceLock<Arc<PubSubCounters>>>,
    /// The mirror with resolved users and torrents.
    view: Arc<dyn View>,
    turn: Arc<dyn LeaderLease>,
    fast_sweep: Arc<watch::Sender<bool>>,
}

impl Config {
    /// None if the mirror is disabled or Redis is not configured.
    pub fn mirror_redis(&self) -> anyhow::Result<Option<(Redis, RedisMirrorNames)>> {
        let Some(RedisBackend { redis, .. }) = redis_backend(self)?.filter(|_| self.mirror.enabled) else {
            return Ok(None);
        };
        let names = RedisMirrorNames::new(redis.mode());
        Ok(Some((redis, names)))
    }

    pub fn has_mirror(&self) -> bool {
        self.redis.url.as_str().is_some() && self.mirror.enabled
    }

    fn mirror_settings(&self) -> RedisMirrorSettings {
        let (tracker, mirror) = (&self.tracker, &self.mirror);
        // By default the tracker expires a peer first.
        let slack = if mirror.reap_after_s == 0 { REAP_SLACK } else { Seconds(0) };
        let peer_grace = Seconds(tracker.peer_grace_s) + slack;
        let usual = Seconds(tracker.announce_interval_s) + peer_grace;
        RedisMirrorSettings {
            reap_after: if mirror.reap_after_s == 0 { usual } else { Seconds(mirror.reap_after_s) },
            peer_grace,
            hit_and_run_active: self.hit_and_run_policy().active_min,
            inactive_keep: Seconds(mirror.inactive_keep_days.saturating_mul(DAY_S)),
            ..RedisMirrorSettings::default()
        }
    }
}

impl OpenRedisMirror {
    /// None if the mirror is disabled. Sends nothing to Redis yet.
    pub fn open(
        config: &Config,
        node: &Node,
        journal: &Arc<dyn Journal>,
        resolver: &Resolver,
    ) -> anyhow::Result<Option<OpenRedisMirror>> {
        let Some((redis, names)) = config.mirror_redis()? else {
            return Ok(None);
        };
        let process = node.process().to_string();
        let turn: Arc<dyn LeaderLease> =
            Arc::new(Lease::new(redis.clone(), names.lease().to_owned(), process.clone(), LEASE_LENGTH));
        let parts = RedisMirrorParts {
            redis: redis.clone(),
            names,
            journal: Arc::clone(journal),
            lease: Arc::clone(&turn),
            directory: Arc::new(resolver.clone()),
            clock: system_clock(),
        };
        let mirror = Arc::new(RedisMirror::new(parts, config.mirror_settings(), format!("{process}.reaper")));
        let fast_sweep = Arc::new(watch::Sender::new(false));
        let view = resolver.resolving(Arc::clone(&mirror) as Arc<dyn View>);
        Ok(Some(OpenRedisMirror { mirror, view, redis, listening: Arc::default(), turn, fast_sweep }))
    }

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

    /// Removes peers whose timeout keys expire (M6).
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
                expired = self.next_expired(&mut listener) => expired,
            };
            if let Err(reason) = self.mirror.reap(&expired, ReapTrigger::Notification).await
                && let Some(left_out) = log.admit(system_clock().now())
            {
                warn!(%reason, lines_left_out = left_out, "cannot remove expired peers from the mirror; the reconciliation sweep removes them later");
            }
        }
    }

    /// The next batch of peers whose timeout keys expired.
    async fn next_expired(&self, listener: &mut Subscriber) -> Vec<(TorrentId, PeerId)> {
        let mut expired = Vec::new();
        let mut message = listener.next().await;
        loop {
            match message {
                PubSubEvent::Expired(key) => expired.extend(self.mirror.names().parse_peer_timeout(&key)),
                // Messages may have been missed before the subscription: sweep faster.
                PubSubEvent::Subscribed => {
                    let _ = self.fast_sweep.send_replace(true);
                }
                PubSubEvent::Gap | PubSubEvent::Message { .. } => {}
            }
            if expired.len() >= BATCH_MAX {
                return expired;
            }
            message = match tokio::time::timeout(BATCH_WAIT, listener.next()).await {
                Ok(message) => message,
                Err(_) => return expired,
            };
        }
    }

    /// Reconciles all torrents in steps; faster after messages may have been missed. Pauses while a batch is half
    /// applied.
    pub async fn sweep(self, settled: Arc<AtomicBool>, mut stopped: watch::Receiver<bool>) {
        let (mut is_fast, log) = (false, LogThrottle::new());
        loop {
            is_fast |= self.fast_sweep.send_replace(false);
            let pause = if is_fast { FAST_STEP_INTERVAL } else { STEP_INTERVAL };
            tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => return,
                () = tokio::time::sleep(pause) => {}
            }
            if !settled.load(Ordering::Acquire) {
                continue;
            }
            match self.mirror.reconcile_step().await {
                Ok(step) => is_fast &= !step.is_round_complete,
                Err(reason) => {
                    if let Some(left_out) = log.admit(system_clock().now()) {
                        warn!(%reason, lines_left_out = left_out, "mirror reconciliation failed; retrying");
                    }
                    tokio::time::sleep(STEP_INTERVAL).await;
                }
            }
        }
    }
}

/// Request counts already added to the statistics.
#[derive(Clone, Copy, Default)]
struct RequestCounts {
    scrapes: u64,
    requests: u64,
}

impl RequestCounts {
    fn of(tracker: &Tracker) -> RequestCounts {
        let counters = tracker.counters();
        let requests = counters.answers_http.snapshot().count() + counters.answers_udp.snapshot().count();
        RequestCounts { scrapes: counters.scrapes.get(), requests }
    }
}

/// Adds this tracker's requests to the statistics once a second (M9). A crash loses at most the last second.
pub fn add_request_counter(
    config: &Config,
    tracker: Option<&Arc<Tracker>>,
    background: &mut Background,
) -> anyhow::Result<()> {
    if let (Some((redis, names)), Some(tracker)) = (config.mirror_redis()?, tracker) {
        let tracker = Arc::clone(tracker);
        background.add_task(|stopped| publish_requests(redis, names, tracker, stopped));
    }
    Ok(())
}

async fn publish_requests(
    redis: Redis,
    names: RedisMirrorNames,
    tracker: Arc<Tracker>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut published = RequestCounts::default();
    loop {
        let is_stopped = tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => true,
            () = tokio::time::sleep(PUBLISH_INTERVAL) => false,
        };
        let now = RequestCounts::of(&tracker);
        publish(&redis, names.global(RedisMirrorKey::StatsScrapes), now.scrapes, &mut published.scrapes)
            .await;
        publish(&redis, names.global(RedisMirrorKey::StatsRequests), now.requests, &mut published.requests)
            .await;
        if is_stopped {
            return;
        }
    }
}

async fn publish(redis: &Redis, key: String, now: u64, published: &mut u64) {
    if now == *published {
        return;
    }
    let mut command = redis::cmd("INCRBY");
    command.arg(key).arg(now - *published);
    match redis.query::<i64>(&command).await {
        // No reply: the increment may have been applied, so it is not repeated.
        Ok(_) | Err(RedisError::Unanswered { .. }) => *published = now,
        Err(reason) => debug!(%reason, "cannot add request counts to the mirror; retrying"),
    }
}

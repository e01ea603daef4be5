//! Keeps a gate equal to the keys that the site writes (M1 to M3): a key that exists admits its subject.
//!
//! All keys are read at the start, and again by periodic scans. In between the site publishes changes on its channels (M11),
//! and those keys are read at once. A scan also follows whenever messages may have been missed.
//!
//! # Guarantees
//!
//! - A published change is in the gate within a second, any other change after the next scan. A scan begins ten seconds
//!   after the previous one, or ten times its duration if that is longer, to limit the load of Redis.
//! - Copies of the database are ignored.
//! - New keys are added before old ones are removed, and a key counts as deleted only if a read of this key finds none. A
//!   failure changes nothing.
//! - If Redis has none of these keys and not the mark `t:m:source` either, it has lost its data, and the gate stays as it is
//!   until there are keys. If more than half of the keys, or all clients, are missing, the removal is accepted after three
//!   scans, or at once if the site requests a scan by an empty message.
//! - A user has one passkey: of several, the one published last. A torrent has at most two infohashes, as a hybrid torrent
//!   does. Further ones are counted.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::Passkey;
use keyspace::{PubSubCounters, PubSubEvent, RedisError, Subscriber, Subscriptions};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior};

use super::{Kind, RedisSource, RedisSourceCounters, Subject};
use crate::follow::{Change, FollowCounters};
use crate::gate::Gate;

mod gate_updater;
mod scan;

use gate_updater::GateUpdater;
use scan::FullScan;

/// Minimum pause between two scans.
const SCAN_PAUSE_MIN: Duration = Duration::from_secs(10);
/// Minimum pause between two scans, in durations of a scan.
const PAUSE_PER_SCAN: u32 = 10;
/// Pause between two steps of a scan, to limit the load of Redis.
const STEP_PAUSE: Duration = Duration::from_millis(5);
/// After this time without a connection, the process starts without the keys.
const START_TIMEOUT: Duration = Duration::from_secs(2);
/// Keys read together.
const READ_AT_ONCE: usize = 1000;
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Queued requests to read keys.
const REQUESTS_MAX: usize = 256;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// Subjects to read at once, and a channel that closes once the gate is up to date with their keys.
type Request = (Vec<Subject>, oneshot::Sender<()>);

/// Requests that keys are read now, before the next scan.
#[derive(Clone, Debug)]
pub struct RedisSourceReader(mpsc::Sender<Request>);

impl RedisSourceReader {
    /// Waits until the gate is up to date with the keys of these subjects, for at most two seconds.
    pub async fn read(&self, subjects: Vec<Subject>) {
        let (sender, done) = oneshot::channel();
        if !subjects.is_empty() && self.0.try_send((subjects, sender)).is_ok() {
            let _ = tokio::time::timeout(REQUEST_TIMEOUT, done).await;
        }
    }
}

pub struct RedisSourceFollower {
    source: RedisSource,
    updater: GateUpdater,
    listener: Subscriber,
    scan_pause_min: Duration,
    pause_per_scan: u32,
    /// Published or requested, and not read yet.
    changed: HashSet<Subject>,
    /// The published passkeys in `changed`.
    published: HashSet<Passkey>,
    requests: mpsc::Receiver<Request>,
    reader: RedisSourceReader,
    /// For the requests in `changed`.
    waiting: Vec<oneshot::Sender<()>>,
    /// Whether the site requested a scan.
    is_scan_requested: bool,
    is_scan_due: bool,
    counters: Arc<RedisSourceCounters>,
    follow: Arc<FollowCounters>,
}

impl fmt::Debug for RedisSourceFollower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisSourceFollower").field("source", &self.source).finish_non_exhaustive()
    }
}

impl RedisSourceFollower {
    /// Fills the gate from the keys, or leaves that to [`RedisSourceFollower::run`] if Redis is unavailable.
    pub async fn load(source: RedisSource, gate: Arc<Gate>) -> RedisSourceFollower {
        let channels = Kind::ALL.map(|kind| source.channel_of(kind).to_owned());
        // Before the first scan, so that no change is missed.
        let listener =
            source.redis.subscribe(Subscriptions { expired_keys: Vec::new(), channels: channels.into() });
        let counters = Arc::new(RedisSourceCounters::default());
        let (requester, requests) = mpsc::channel(REQUESTS_MAX);
        let mut follower = RedisSourceFollower {
            source,
            updater: GateUpdater::new(gate, Arc::clone(&counters)),
            listener,
            scan_pause_min: SCAN_PAUSE_MIN,
            pause_per_scan: PAUSE_PER_SCAN,
            changed: HashSet::new(),
            published: HashSet::new(),
            requests,
            reader: RedisSourceReader(requester),
            waiting: Vec::new(),
            is_scan_requested: false,
            is_scan_due: false,
            counters,
            follow: Arc::default(),
        };
        if let Err(error) = follower.first_scan().await {
            tracing::warn!(
                %error,
                "the site's keys in redis cannot be read; until they can, unknown torrents and passkeys are refused with \
                 \"cannot be checked right now\""
            );
            (follower.is_scan_due, follower.is_scan_requested) = (true, true);
        }
        follower
    }

    async fn first_scan(&mut self) -> Result<(), RedisError> {
        let listening = async { while self.listener.next().await != PubSubEvent::Subscribed {} };
        if tokio::time::timeout(START_TIMEOUT, listening).await.is_err() {
            // Returns the more specific error of a failed connection.
            self.source.redis.query::<String>(&redis::cmd("PING")).await?;
            return Err(RedisError::Unavailable { reason: "subscribing timed out".to_owned() });
        }
        let mut scan = FullScan::new(&self.source, true);
        while !scan.step(&self.source, &mut self.updater, &mut |_| ()).await? {}
        Ok(())
    }

    /// Sets a fixed pause between two scans.
    pub fn scan_pause(mut self, pause: Duration) -> Self {
        self.scan_pause_min = pause.max(Duration::from_millis(10));
        self.pause_per_scan = 0;
        self
    }

    pub fn reader(&self) -> RedisSourceReader {
        self.reader.clone()
    }

    pub fn counters(&self) -> Arc<RedisSourceCounters> {
        Arc::clone(&self.counters)
    }

    /// Each scan and each read of changed keys counts as one poll.
    pub fn follow_counters(&self) -> Arc<FollowCounters> {
        Arc::clone(&self.follow)
    }

    pub fn listen_counters(&self) -> Arc<PubSubCounters> {
        self.listener.counters()
    }

    /// Runs until `shutdown` is ready.
    pub async fn run(mut self, mut on_change: impl FnMut(Change), shutdown: impl Future) {
        tokio::select! {
            () = self.follow_forever(&mut on_change) => {}
            _ = shutdown => {}
        }
    }

    async fn follow_forever(&mut self, on_change: &mut impl FnMut(Change)) {
        let mut steps = tokio::time::interval(STEP_PAUSE);
        steps.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut scan, mut is_due) = (None, self.is_scan_due);
        let (mut begun, mut next_scan) = (Instant::now(), Instant::now() + self.scan_pause_min);
        loop {
            if is_due && scan.is_none() {
                let is_requested = std::mem::take(&mut self.is_scan_requested);
                (scan, is_due) = (Some(FullScan::new(&self.source, is_requested)), false);
                begun = Instant::now();
            }
            tokio::select! {
                biased;
                _ = steps.tick(), if scan.is_some() => {
                    scan = self.step(scan.take(), on_change).await;
                    if scan.is_none() {
                        next_scan = Instant::now() + self.scan_pause_min.max(self.pause_per_scan * begun.elapsed());
                    }
                    continue;
                }
                () = tokio::time::sleep_until(next_scan), if scan.is_none() => is_due = true,
                // A scan in progress may have passed the changed keys, so another follows.
                message = self.listener.next() => is_due |= self.receive_all(message).await,
                Some((subjects, done)) = self.requests.recv() => {
                    self.changed.extend(subjects);
                    self.waiting.push(done);
                }
            }
            if let Err(error) = self.read_changed(on_change).await {
                self.report_failure(&error);
                self.waiting.clear();
                tokio::time::sleep(RETRY_PAUSE).await;
                is_due = true;
            }
        }
    }

    /// One step of a scan; returns the scan if it is not complete.
    async fn step(&mut self, scan: Option<FullScan>, on_change: &mut impl FnMut(Change)) -> Option<FullScan> {
        let mut scan = scan?;
        match scan.step(&self.source, &mut self.updater, on_change).await {
            Ok(false) => return Some(scan),
            Ok(true) => self.follow.count_poll(false),
            Err(error) => {
                self.counters.scans_failed.fetch_add(1, Ordering::Relaxed);
                self.report_failure(&error);
                tokio::time::sleep(RETRY_PAUSE).await;
                return Some(FullScan::new(&self.source, scan.is_requested()));
            }
        }
        None
    }

    /// Handles a message and all that are ready. True if a scan is due.
    async fn receive_all(&mut self, message: PubSubEvent) -> bool {
        let mut is_scan_due = self.receive(message);
        while self.changed.len() < READ_AT_ONCE {
            tokio::select! {
                biased;
                message = self.listener.next() => is_scan_due |= self.receive(message),
                () = std::future::ready(()) => break,
            }
        }
        is_scan_due
    }

    /// True if a scan is due.
    fn receive(&mut self, message: PubSubEvent) -> bool {
        match message {
            PubSubEvent::Subscribed => true,
            PubSubEvent::Gap | PubSubEvent::Expired(_) => false,
            PubSubEvent::Message { channel, payload } => {
                self.counters.messages.fetch_add(1, Ordering::Relaxed);
                let kind = Kind::ALL.into_iter().find(|kind| self.source.channel_of(*kind) == channel);
                let Some(kind) = kind else { return false };
                if payload.is_empty() {
                    self.is_scan_requested = true;
                    return true;
                }
                match Subject::parse(kind, payload.trim()) {
                    Some(subject) => {
                        self.changed.insert(subject);
                        if let Subject::User(passkey) = subject {
                            self.published.insert(passkey);
                        }
                    }
                    None => {
                        self.counters.messages_malformed.fetch_add(1, Ordering::Relaxed);
                        tracing::warn!(channel, "malformed message on a channel of the site; it is ignored");
                    }
                }
                false
            }
        }
    }

    /// Reads the keys in `changed`.
    async fn read_changed(&mut self, on_change: &mut impl FnMut(Change)) -> Result<(), RedisError> {
        if self.changed.is_empty() {
            return Ok(());
        }
        let changed: Vec<Subject> = self.changed.drain().collect();
        for subjects in changed.chunks(READ_AT_ONCE) {
            let values = self.source.read_site(subjects).await?;
            self.updater.apply_changed(subjects, values, on_change);
        }
        self.waiting.clear();
        self.published.drain().for_each(|passkey| on_change(Change::PasskeyPublished(passkey)));
        self.follow.count_poll(false);
        Ok(())
    }

    fn report_failure(&self, error: &RedisError) {
        self.follow.count_poll(true);
        if self.follow.failures_in_a_row.load(Ordering::Relaxed) % 60 == 1 {
            tracing::warn!(%error, "the site's keys in redis cannot be read; using those already read");
        }
    }
}

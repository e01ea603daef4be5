//! Keeps a gate equal to the keys that the site writes: existence decides (M1 to M3).
//!
//! All keys are read at the start, and again in rounds through all of them. In between the site tells on its channels
//! what it changed (M11), and those keys are read at once. Whenever messages may have been missed, a round follows.
//!
//! # Guarantees
//!
//! - What the site tells of is in the gate within a second; what it forgets to tell of, after the next round. Rounds begin
//!   ten seconds after the last one, or ten times as long as that one took, so that a large Redis is not kept busy.
//! - Copies of our database are no keys of the site's.
//! - What is new is put in before what is old is taken out, and a key counts as gone only when Redis, asked for it, has
//!   none. So a failure changes nothing.
//! - A Redis without a single one of these keys has lost them if it has also lost the mark that is set beside them: then
//!   the gate keeps what it knows until there are some. Where more than half of them are gone at once, or all clients,
//!   that is believed after three rounds, or when the site asks for a round by an empty message.
//! - A user has one passkey: of several, the one told of last. A torrent has two infohashes at the most, as a hybrid
//!   torrent has. Others are counted.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::Passkey;
use keyspace::{PubSubCounters, PubSubEvent, RedisError, Subscriber, Subscriptions};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior};

use super::{Kind, SiteKeyCounters, SiteKeys, Subject};
use crate::follow::{Change, FollowCounters};
use crate::gate::Gate;

mod apply;
mod round;

use apply::SiteApplier;
use round::Round;

/// The pause between two rounds, at the least.
const ROUND_EVERY: Duration = Duration::from_secs(10);
/// The pause between two rounds is at least so many times as long as a round takes.
const PAUSE_PER_ROUND: u32 = 10;
/// The pause between two steps of a round, so that Redis has time for others.
const STEP_PAUSE: Duration = Duration::from_millis(5);
/// How long the first connection may take before a start goes on without the keys.
const START_TIMEOUT: Duration = Duration::from_secs(2);
/// Keys that are read together.
const READ_AT_ONCE: usize = 1000;
/// The pause after a failure.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Requests to read keys that may wait.
const REQUESTS_MAX: usize = 256;
/// How long such a request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// Subjects to be read at once, and a channel that closes once the gate knows what their keys say.
type Request = (Vec<Subject>, oneshot::Sender<()>);

/// Has keys read at once, instead of in the next round. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SiteReader(mpsc::Sender<Request>);

impl SiteReader {
    /// Waits until the gate knows what the keys of these subjects say, for two seconds at the most.
    pub async fn read(&self, subjects: Vec<Subject>) {
        let (sender, done) = oneshot::channel();
        if !subjects.is_empty() && self.0.try_send((subjects, sender)).is_ok() {
            let _ = tokio::time::timeout(REQUEST_TIMEOUT, done).await;
        }
    }
}

/// Watches the site's keys on behalf of a gate.
pub struct SiteFollower {
    keys: SiteKeys,
    applier: SiteApplier,
    listener: Subscriber,
    round_every: Duration,
    pause_per_round: u32,
    /// What the site told of, and was not read yet.
    told: HashSet<Subject>,
    /// Passkeys among them that it published.
    published: HashSet<Passkey>,
    requests: mpsc::Receiver<Request>,
    reader: SiteReader,
    /// Whose requests are in `told`.
    waiting: Vec<oneshot::Sender<()>>,
    /// Whether the site asked for a round.
    is_asked_for: bool,
    /// Whether a round is due at once.
    is_due: bool,
    counters: Arc<SiteKeyCounters>,
    follow: Arc<FollowCounters>,
}

impl fmt::Debug for SiteFollower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SiteFollower").field("keys", &self.keys).finish_non_exhaustive()
    }
}

impl SiteFollower {
    /// Fills the gate from the keys. Where Redis cannot be asked they are read as soon as it can.
    pub async fn load(keys: SiteKeys, gate: Arc<Gate>) -> SiteFollower {
        let channels = Kind::ALL.map(|kind| keys.channel_of(kind).to_owned());
        // First, so that nothing that changes meanwhile is missed.
        let listener =
            keys.redis.subscribe(Subscriptions { expired_keys: Vec::new(), channels: channels.into() });
        let counters = Arc::new(SiteKeyCounters::default());
        let (requester, requests) = mpsc::channel(REQUESTS_MAX);
        let mut follower = SiteFollower {
            keys,
            applier: SiteApplier::new(gate, Arc::clone(&counters)),
            listener,
            round_every: ROUND_EVERY,
            pause_per_round: PAUSE_PER_ROUND,
            told: HashSet::new(),
            published: HashSet::new(),
            requests,
            reader: SiteReader(requester),
            waiting: Vec::new(),
            is_asked_for: false,
            is_due: false,
            counters,
            follow: Arc::default(),
        };
        if let Err(trouble) = follower.read_first().await {
            tracing::warn!(
                %trouble,
                "the site's keys in redis cannot be read; until they can, what the database does not have is refused \
                 with \"cannot be checked right now\""
            );
            (follower.is_due, follower.is_asked_for) = (true, true);
        }
        follower
    }

    async fn read_first(&mut self) -> Result<(), RedisError> {
        let listening = async { while self.listener.next().await != PubSubEvent::Subscribed {} };
        if tokio::time::timeout(START_TIMEOUT, listening).await.is_err() {
            // Says why, if it can.
            self.keys.redis.query::<String>(&redis::cmd("PING")).await?;
            return Err(RedisError::Unavailable { reason: "it does not let us listen".to_owned() });
        }
        let mut round = Round::new(&self.keys, true);
        while !round.step(&self.keys, &mut self.applier, &mut |_| ()).await? {}
        Ok(())
    }

    /// Pauses so long between two rounds, however long they take.
    pub fn round_every(mut self, period: Duration) -> Self {
        self.round_every = period.max(Duration::from_millis(10));
        self.pause_per_round = 0;
        self
    }

    /// Has keys read at once while the follower runs.
    pub fn reader(&self) -> SiteReader {
        self.reader.clone()
    }

    /// What is counted.
    pub fn counters(&self) -> Arc<SiteKeyCounters> {
        Arc::clone(&self.counters)
    }

    /// What is counted as for any follower: each round and each reading of what was told is a look.
    pub fn follow_counters(&self) -> Arc<FollowCounters> {
        Arc::clone(&self.follow)
    }

    /// What is counted of listening.
    pub fn listen_counters(&self) -> Arc<PubSubCounters> {
        self.listener.counters()
    }

    /// Follows the keys until `shutdown` is ready.
    pub async fn run(mut self, mut on_change: impl FnMut(Change), shutdown: impl Future) {
        tokio::select! {
            () = self.follow_for_ever(&mut on_change) => {}
            _ = shutdown => {}
        }
    }

    async fn follow_for_ever(&mut self, on_change: &mut impl FnMut(Change)) {
        let mut steps = tokio::time::interval(STEP_PAUSE);
        steps.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut round, mut is_due) = (None, self.is_due);
        let (mut begun, mut next_round) = (Instant::now(), Instant::now() + self.round_every);
        loop {
            if is_due && round.is_none() {
                let is_asked_for = std::mem::take(&mut self.is_asked_for);
                (round, is_due) = (Some(Round::new(&self.keys, is_asked_for)), false);
                begun = Instant::now();
            }
            tokio::select! {
                biased;
                _ = steps.tick(), if round.is_some() => {
                    round = self.step(round.take(), on_change).await;
                    if round.is_none() {
                        next_round = Instant::now() + self.round_every.max(self.pause_per_round * begun.elapsed());
                    }
                    continue;
                }
                () = tokio::time::sleep_until(next_round), if round.is_none() => is_due = true,
                // A round that is under way may have passed what changed, so another follows.
                heard = self.listener.next() => is_due |= self.take_all(heard).await,
                Some((subjects, done)) = self.requests.recv() => {
                    self.told.extend(subjects);
                    self.waiting.push(done);
                }
            }
            if let Err(trouble) = self.read_told(on_change).await {
                self.complain(&trouble);
                self.waiting.clear();
                tokio::time::sleep(RETRY_PAUSE).await;
                is_due = true;
            }
        }
    }

    /// One step of a round; gives it back if it goes on.
    async fn step(&mut self, round: Option<Round>, on_change: &mut impl FnMut(Change)) -> Option<Round> {
        let mut round = round?;
        match round.step(&self.keys, &mut self.applier, on_change).await {
            Ok(false) => return Some(round),
            Ok(true) => self.follow.note(false),
            Err(trouble) => {
                self.counters.rounds_failed.fetch_add(1, Ordering::Relaxed);
                self.complain(&trouble);
                tokio::time::sleep(RETRY_PAUSE).await;
                return Some(Round::new(&self.keys, round.is_asked_for()));
            }
        }
        None
    }

    /// Takes note of what was heard and of what else can be heard without waiting. True if all keys must be looked at.
    async fn take_all(&mut self, heard: PubSubEvent) -> bool {
        let mut is_all = self.take(heard);
        while self.told.len() < READ_AT_ONCE {
            tokio::select! {
                biased;
                heard = self.listener.next() => is_all |= self.take(heard),
                () = std::future::ready(()) => break,
            }
        }
        is_all
    }

    /// Takes note of what was heard. True if all keys must be looked at.
    fn take(&mut self, heard: PubSubEvent) -> bool {
        match heard {
            PubSubEvent::Subscribed => true,
            PubSubEvent::Gap | PubSubEvent::Expired(_) => false,
            PubSubEvent::Message { channel, payload } => {
                self.counters.messages.fetch_add(1, Ordering::Relaxed);
                let kind = Kind::ALL.into_iter().find(|kind| self.keys.channel_of(*kind) == channel);
                let Some(kind) = kind else { return false };
                if payload.is_empty() {
                    self.is_asked_for = true;
                    return true;
                }
                match Subject::parse(kind, payload.trim()) {
                    Some(subject) => {
                        self.told.insert(subject);
                        if let Subject::User(passkey) = subject {
                            self.published.insert(passkey);
                        }
                    }
                    None => {
                        self.counters.messages_bad.fetch_add(1, Ordering::Relaxed);
                        tracing::warn!(channel, "a message of the site names nothing that we know of");
                    }
                }
                false
            }
        }
    }

    /// Reads what the site told of, with all that it tells of meanwhile.
    async fn read_told(&mut self, on_change: &mut impl FnMut(Change)) -> Result<(), RedisError> {
        if self.told.is_empty() {
            return Ok(());
        }
        let told: Vec<Subject> = self.told.drain().collect();
        for subjects in told.chunks(READ_AT_ONCE) {
            let found = self.keys.read_site(subjects).await?;
            self.applier.take_told(subjects, found, on_change);
        }
        self.waiting.clear();
        self.published.drain().for_each(|passkey| on_change(Change::PasskeyPublished(passkey)));
        self.follow.note(false);
        Ok(())
    }

    fn complain(&self, trouble: &RedisError) {
        self.follow.note(true);
        if self.follow.failures_in_a_row.load(Ordering::Relaxed) % 60 == 1 {
            tracing::warn!(%trouble, "the site's keys cannot be read, going on with what is known");
        }
    }
}

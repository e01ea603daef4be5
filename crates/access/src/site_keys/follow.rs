//! Keeps a gate equal to the keys that the site writes: existence decides (M1 to M3).
//!
//! All keys are read at the start, and again in a slow round through all of them. In between the site tells on its
//! channels what it changed (M11), and those keys are read at once. Whenever messages may have been missed, a round
//! follows.
//!
//! # Guarantees
//!
//! - What the site tells of is in the gate within a second; what it forgets to tell of, after the next round.
//! - What is new is put in before what is old is taken out, and a key counts as gone only when Redis, asked for it, has
//!   none. So a failure changes nothing.
//! - A Redis that has not a single one of these keys has lost them: the gate keeps what it knows until there are some.
//!   Where more than half of them are gone at once, or all clients, that is believed after three rounds, or when the site
//!   asks for a round by an empty message.
//! - A user has one passkey: of several, the one told of last. A torrent has two infohashes at the most, as a hybrid
//!   torrent has. Others are counted.
//!
//! # Deliberately absent
//!
//! Strangers for whom somebody else vouches: here the site says itself who may announce.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use keyspace::{Heard, ListenCounters, Listener, Trouble, Wanted};
use tokio::time::MissedTickBehavior;

use super::{Kind, SiteKeyCounters, SiteKeys, Subject};
use crate::error::AccessError;
use crate::follow::{Change, FollowCounters};
use crate::gate::Gate;

mod apply;
mod round;

use apply::SiteApplier;
use round::Round;

/// How often a round begins.
const ROUND_EVERY: Duration = Duration::from_secs(60);
/// The pause between two steps of a round, so that Redis has time for others.
const STEP_PAUSE: Duration = Duration::from_millis(5);
/// How long the first connection may take before a start gives up.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Keys that are read together.
const READ_AT_ONCE: usize = 1000;
/// The pause after a failure.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Watches the site's keys on behalf of a gate.
pub struct SiteFollower {
    keys: SiteKeys,
    applier: SiteApplier,
    listener: Listener,
    round_every: Duration,
    /// What the site told of, and was not read yet.
    told: HashSet<Subject>,
    /// Whether the site asked for a round.
    is_asked_for: bool,
    counters: Arc<SiteKeyCounters>,
    follow: Arc<FollowCounters>,
}

impl fmt::Debug for SiteFollower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SiteFollower").field("keys", &self.keys).finish_non_exhaustive()
    }
}

impl SiteFollower {
    /// Fills the gate from the keys. Fails where Redis cannot be asked.
    pub async fn load(keys: SiteKeys, gate: Arc<Gate>) -> Result<SiteFollower, AccessError> {
        let channels = Kind::ALL.map(|kind| keys.channel_of(kind).to_owned());
        // First, so that nothing that changes meanwhile is missed.
        let mut listener = keys.redis.listen(Wanted { expiring: Vec::new(), channels: channels.into() });
        let listening = async { while listener.next().await != Heard::Listening {} };
        if tokio::time::timeout(START_TIMEOUT, listening).await.is_err() {
            // Says why, if it can.
            keys.redis.query::<String>(&redis::cmd("PING")).await?;
            return Err(Trouble::Unavailable { reason: "it does not let us listen".to_owned() }.into());
        }
        let counters = Arc::new(SiteKeyCounters::default());
        let applier = SiteApplier::new(gate, Arc::clone(&counters));
        let follow = Arc::default();
        let mut follower = SiteFollower {
            keys,
            applier,
            listener,
            round_every: ROUND_EVERY,
            told: HashSet::new(),
            is_asked_for: false,
            counters,
            follow,
        };
        follower.keys.unmark_all().await?;
        follower.look_at_all(&mut |_| ()).await?;
        Ok(follower)
    }

    /// Looks at all keys this often instead of once a minute.
    pub fn round_every(mut self, period: Duration) -> Self {
        self.round_every = period.max(Duration::from_millis(10));
        self
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
    pub fn listen_counters(&self) -> Arc<ListenCounters> {
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
        let mut ticks = tokio::time::interval(self.round_every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first comes at once, and everything has just been looked at.
        ticks.tick().await;
        let mut steps = tokio::time::interval(STEP_PAUSE);
        steps.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut round, mut is_due) = (None, false);
        loop {
            if is_due && round.is_none() {
                let is_asked_for = std::mem::take(&mut self.is_asked_for);
                (round, is_due) = (Some(Round::new(&self.keys, is_asked_for)), false);
            }
            tokio::select! {
                biased;
                _ = steps.tick(), if round.is_some() => {
                    round = self.step(round.take(), on_change).await;
                    continue;
                }
                _ = ticks.tick() => is_due = true,
                // A round that is under way may have passed what changed, so another follows.
                heard = self.listener.next() => is_due |= self.take_all(heard).await,
            }
            if let Err(trouble) = self.read_told(on_change).await {
                self.complain(&trouble);
                tokio::time::sleep(RETRY_PAUSE).await;
                is_due = true;
            }
        }
    }

    /// Looks at all keys, without a pause.
    async fn look_at_all(&mut self, on_change: &mut impl FnMut(Change)) -> Result<(), AccessError> {
        let mut round = Round::new(&self.keys, true);
        while !round.step(&self.keys, &mut self.applier, on_change).await? {}
        Ok(())
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
    async fn take_all(&mut self, heard: Heard) -> bool {
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
    fn take(&mut self, heard: Heard) -> bool {
        match heard {
            Heard::Listening => true,
            Heard::Gap | Heard::Expired(_) => false,
            Heard::Said { channel, payload } => {
                self.counters.messages.fetch_add(1, Ordering::Relaxed);
                let kind = Kind::ALL.into_iter().find(|kind| self.keys.channel_of(*kind) == channel);
                let Some(kind) = kind else { return false };
                if payload.is_empty() {
                    self.is_asked_for = true;
                    return true;
                }
                match Subject::parse(kind, payload.trim()) {
                    Some(subject) => drop(self.told.insert(subject)),
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
    async fn read_told(&mut self, on_change: &mut impl FnMut(Change)) -> Result<(), Trouble> {
        if self.told.is_empty() {
            return Ok(());
        }
        let told: Vec<Subject> = self.told.drain().collect();
        for subjects in told.chunks(READ_AT_ONCE) {
            let found = self.keys.read(subjects).await?;
            self.applier.take_told(subjects, found, on_change);
        }
        self.follow.note(false);
        Ok(())
    }

    fn complain(&self, trouble: &Trouble) {
        self.follow.note(true);
        if self.follow.failures_in_a_row.load(Ordering::Relaxed) % 60 == 1 {
            tracing::warn!(%trouble, "the site's keys cannot be read, going on with what is known");
        }
    }
}

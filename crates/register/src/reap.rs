//! Clearing up after others: parts of nodes that are gone, parts that were not renewed in time, pendings that are over.
//!
//! # Guarantees
//!
//! - Each step is bounded, and looks at what is due only.
//! - Two nodes that both take themselves for the owner do no harm: the record says whether there is anything to do.
//! - Who may not have been told of a person's last change at a node that is gone is told again.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use domain::UserId;
use domain::clock::Stopwatch;
use keyspace::{Trouble, read_reply, scripts};
use redis::{Cmd, Pipeline};

use crate::due::{At, Scores, Words};
use crate::node::NodeName;
use crate::record::Outcome;
use crate::register::{BATCH_MAX, REMEMBER_GONE, Register};
use crate::reply::{Reader, Said};
use crate::settings::ms;
use crate::shards::{SHARDS, owner_of};
use crate::telling::Letter;

/// A gone node that left nothing is looked at again after this long: it may not know yet that it is gone.
const LOOK_AGAIN: Duration = Duration::from_secs(3);

/// What could not be cleared up is tried again after this long.
const TRY_AGAIN: Duration = Duration::from_secs(3);

/// Beyond all deadlines.
const BEHIND_ALL: Duration = Duration::from_secs(24 * 3600);

/// People about whom a call may be in doubt.
const DOUBTS_MAX: usize = 100_000;

/// People of one shard and one kind that a step looks at, at the least.
const SHARE_MIN: usize = 16;

/// What is remembered between two steps.
#[derive(Default)]
pub(crate) struct Reaping {
    /// The shard at which the next step begins.
    next: u8,
    /// When nothing was found of a gone node, with the shards that were owned then.
    clear: HashMap<NodeName, (Stopwatch, Vec<u8>)>,
    /// What was to be cleared up by calls that were not answered: the set, and who.
    doubts: HashSet<(String, UserId)>,
    /// The last step found as much as it may clear up.
    is_behind: bool,
}

impl Reaping {
    /// A call is made, and may never be answered. Whether there was one before that was not.
    fn doubt(&mut self, due: &Due) -> bool {
        let about = (due.set.key.clone(), due.user);
        let was_doubted = self.doubts.contains(&about);
        if self.doubts.len() < DOUBTS_MAX {
            self.doubts.insert(about);
        }
        was_doubted
    }
}

/// Why something is cleared up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gone,
    Late,
    Pending,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Kind::Gone => "gone",
            Kind::Late => "late",
            Kind::Pending => "pending",
        }
    }
}

/// A set of what is due, and why.
#[derive(Clone)]
struct Set {
    key: String,
    kind: Kind,
    /// The node whose parts these are; none for pending.
    node: Option<NodeName>,
    shard: u8,
}

/// Somebody who is due.
struct Due {
    set: Set,
    user: UserId,
    score: String,
    /// The score with which they were noted among the pending, before they are.
    noted: Option<String>,
}

impl Due {
    /// Nothing can be done now: it is tried again after the others.
    fn put_off(&self, settled: &mut Words) {
        let later = match self.set.kind {
            // All of these are due, in the order of their deadlines.
            Kind::Gone => BEHIND_ALL,
            Kind::Late | Kind::Pending => TRY_AGAIN,
        };
        settled.add(self.set.key.clone(), self.user, later);
    }
}

/// What came of a step so far.
#[derive(Default)]
struct Clearing<'a> {
    outcomes: Vec<(UserId, Outcome)>,
    letters: Vec<Letter>,
    settled: Words,
    removals: Vec<&'a Due>,
}

impl Register {
    /// One step: clears up what is due in the shards that this node owns, of at most `limit` people. Interested nodes
    /// are told, this one among them. To be called often; if there is more ([`Register::is_behind`]), at once again. What
    /// was cleared up by a call that was not answered, or by a node that died with the answer, is among what comes back.
    pub async fn reap(&self, limit: usize) -> Result<Vec<(UserId, Outcome)>, Trouble> {
        self.pay().await;
        self.reaping.lock().is_behind = false;
        let around = self.around();
        let node = self.node();
        if !around.is_member {
            self.counters.shards_owned.set(0);
            return Ok(Vec::new());
        }
        let owned: Vec<u8> =
            (0..SHARDS).filter(|shard| owner_of(*shard, &around.live) == Some(&node)).collect();
        self.counters.shards_owned.set(owned.len());
        let gone = self.gone_to_look_at(&around.gone, &owned);
        let living: Vec<NodeName> = around.live.into_iter().chain(around.lapsed).collect();
        let due = self.look(&owned, (&living, &gone), limit.min(BATCH_MAX)).await?;
        self.note_clear(&gone, &owned, &due);
        let is_full = due.len() >= limit.min(BATCH_MAX);
        let due = self.note_pending(due).await;
        // Where nothing can be noted, more of the same is no use.
        self.reaping.lock().is_behind = is_full && !due.is_empty();
        Ok(self.clear_up(due).await)
    }

    /// Whether the last step found as many who were due as it was allowed to.
    pub fn is_behind(&self) -> bool {
        self.reaping.lock().is_behind
    }

    /// Those of the gone nodes that may have left something.
    fn gone_to_look_at(&self, gone: &[NodeName], owned: &[u8]) -> Vec<NodeName> {
        let mut reaping = self.reaping.lock();
        reaping.clear.retain(|node, (since, then)| {
            gone.contains(node) && since.elapsed() < LOOK_AGAIN && then.as_slice() == owned
        });
        gone.iter().filter(|node| !reaping.clear.contains_key(*node)).cloned().collect()
    }

    fn note_clear(&self, gone: &[NodeName], owned: &[u8], due: &[Due]) {
        let mut reaping = self.reaping.lock();
        for node in gone {
            // With anything due, the step may have ended before it came to this node.
            if due.is_empty() {
                reaping.clear.insert(node.clone(), (Stopwatch::start(), owned.to_vec()));
            }
        }
    }

    /// Looks who is due: one command a shard.
    async fn look(
        &self,
        owned: &[u8],
        (living, gone): (&[NodeName], &[NodeName]),
        limit: usize,
    ) -> Result<Vec<Due>, Trouble> {
        let start = self.reaping.lock().next;
        let (before, after): (Vec<u8>, Vec<u8>) = owned.iter().partition(|shard| **shard < start);
        let shards: Vec<Vec<Set>> =
            after.into_iter().chain(before).map(|shard| self.sets_of(shard, living, gone)).collect();
        // Each shard its share, so that a million who are due are not all read for the few who are taken.
        let share = (limit / shards.len().max(1)).max(SHARE_MIN);
        let mut pipeline = redis::pipe();
        shards.iter().for_each(|sets| {
            pipeline.add_command(looking(sets, share));
        });
        let (mut due, mut trouble, mut failed) = (Vec::new(), None, 0);
        let mut rubbish = redis::pipe();
        for (sets, reply) in shards.iter().zip(self.send_all(&pipeline).await) {
            if due.len() >= limit {
                // The next step begins with what this one has no room for.
                self.reaping.lock().next = sets.first().map_or(0, |set| set.shard);
                break;
            }
            match read_reply::<Vec<(usize, Vec<String>)>>(reply) {
                Ok(found) => due.extend(self.read_due(sets, found, &mut rubbish)),
                Err(other) => {
                    failed += 1;
                    trouble = Some(other);
                }
            }
        }
        self.send_all(&rubbish).await;
        due.truncate(limit);
        match trouble {
            // A server that is away does not keep the others' shards from being cleared up.
            Some(trouble) if failed == shards.len() => Err(trouble),
            _ => Ok(due),
        }
    }

    fn sets_of(&self, shard: u8, living: &[NodeName], gone: &[NodeName]) -> Vec<Set> {
        let of_node = |kind| {
            move |node: &NodeName| Set {
                key: self.keys.due(shard, node.as_str()),
                kind,
                node: Some(node.clone()),
                shard,
            }
        };
        let pending = Set { key: self.keys.due_pending(shard), kind: Kind::Pending, node: None, shard };
        let of_living = living.iter().map(of_node(Kind::Late));
        let of_gone = gone.iter().map(of_node(Kind::Gone));
        of_gone.chain(of_living).chain([pending]).collect()
    }

    /// Who was found. What is no person goes, or it would be found for ever.
    fn read_due(&self, sets: &[Set], found: Vec<(usize, Vec<String>)>, rubbish: &mut Pipeline) -> Vec<Due> {
        let mut due = Vec::new();
        for (place, words) in found {
            let Some(set) = place.checked_sub(1).and_then(|place| sets.get(place)) else { continue };
            for pair in words.chunks_exact(2) {
                match pair[0].parse() {
                    Ok(user) => due.push(Due { set: set.clone(), user, score: pair[1].clone(), noted: None }),
                    Err(_) => {
                        self.counters.malformed.increment();
                        rubbish.cmd("ZREM").arg(&set.key).arg(&pair[0]);
                    }
                }
            }
        }
        due
    }

    /// Notes who may be pending from now on, before any record says so. Returns those of whom that is sure.
    async fn note_pending(&self, due: Vec<Due>) -> Vec<Due> {
        let mut words = Words::default();
        let places: Vec<Option<At>> = due
            .iter()
            .map(|one| match one.set.kind {
                Kind::Pending => None,
                _ => Some(words.add(self.keys.due_pending(one.set.shard), one.user, self.pending())),
            })
            .collect();
        let mut pipeline = redis::pipe();
        words.write(&mut pipeline);
        let scores = Scores::read(self.send_all(&pipeline).await.into_iter());
        let noted = |(one, place): (Due, Option<At>)| match place {
            None => Some(one),
            Some(at) => Some(Due { noted: Some(scores.get(at).ok()?.to_owned()), ..one }),
        };
        due.into_iter().zip(places).filter_map(noted).collect()
    }

    /// Clears up: records are changed, then others are told, then what was due is taken out.
    async fn clear_up(&self, due: Vec<Due>) -> Vec<(UserId, Outcome)> {
        let mut pipeline = redis::pipe();
        for one in &due {
            let is_doubted = self.reaping.lock().doubt(one);
            pipeline.add_command(self.reaping_of(one, is_doubted));
        }
        let replies = self.send_all(&pipeline).await;
        let mut clearing = Clearing::default();
        for (one, reply) in due.iter().zip(replies) {
            let mut reader = Reader::default();
            let said = reader.said(one.user, reply);
            self.counters.malformed.add(reader.malformed);
            if !matches!(said, Err(Trouble::Unanswered { .. })) {
                self.reaping.lock().doubts.remove(&(one.set.key.clone(), one.user));
            }
            self.take_said(&mut clearing, one, said);
        }
        let Clearing { outcomes, letters, mut settled, removals } = clearing;
        let untold = self.tell(letters).await;
        for one in removals {
            match untold.contains(&one.user) {
                true => one.put_off(&mut settled),
                false => _ = settled.remove(one.set.key.clone(), one.user, &one.score),
            }
        }
        let mut pipeline = redis::pipe();
        settled.write(&mut pipeline);
        // What fails here is found again, and nothing is left to do then.
        self.send_all(&pipeline).await;
        outcomes
    }

    /// What came of one who was due.
    fn take_said<'a>(&self, clearing: &mut Clearing<'a>, one: &'a Due, said: Result<Said, Trouble>) {
        let settled = &mut clearing.settled;
        match said {
            Ok(Said::Changed(outcome, news)) => {
                self.count_reaped(one.set.kind);
                match news.pending() {
                    // What was cleared up was lost, and they are pending from now on.
                    Some(remaining) if one.set.kind == Kind::Pending => {
                        settled.add(one.set.key.clone(), one.user, remaining);
                    }
                    pending => {
                        self.settle_noted(settled, one, pending);
                        clearing.removals.push(one);
                    }
                }
                clearing.letters.extend(Letter::to_all(news, None));
                clearing.outcomes.push((one.user, *outcome));
            }
            Ok(Said::Nothing(news)) => {
                self.settle_noted(settled, one, news.pending());
                // Whoever dropped it may have died, or lost its connection, before it told.
                if one.set.kind != Kind::Pending && !news.fields.is_empty() {
                    self.counters.retold.increment();
                    clearing.letters.extend(Letter::to_all(news, None));
                }
                clearing.removals.push(one);
            }
            Ok(Said::Later(remaining)) => {
                settled.add(one.set.key.clone(), one.user, remaining);
                if one.set.kind != Kind::Pending {
                    self.settle_noted(settled, one, None);
                }
            }
            Ok(Said::Waiting) => {}
            // The others do not wait for whom nothing can be done now.
            _ => one.put_off(settled),
        }
    }

    /// Puts right what was noted of somebody who might have become pending.
    fn settle_noted(&self, settled: &mut Words, one: &Due, pending: Option<Duration>) {
        let Some(noted) = &one.noted else { return };
        let set = self.keys.due_pending(one.set.shard);
        match pending {
            Some(remaining) => settled.add(set, one.user, remaining),
            None => settled.remove(set, one.user, noted),
        };
    }

    fn reaping_of(&self, due: &Due, is_doubted: bool) -> Cmd {
        let mut call = scripts::PRESENCE_REAP.call(&self.keys.person(due.user).all());
        call.arg(due.set.node.as_ref().map_or("", NodeName::as_str)).arg(due.set.kind.name());
        call.arg(ms(self.pending())).arg(ms(self.settings.keep)).arg(ms(REMEMBER_GONE));
        call.arg(self.node().as_str()).arg(u8::from(is_doubted));
        call
    }

    fn count_reaped(&self, kind: Kind) {
        match kind {
            Kind::Gone => self.counters.reaped_gone.increment(),
            Kind::Late => self.counters.reaped_late.increment(),
            Kind::Pending => self.counters.reaped_pending.increment(),
        }
    }
}

fn looking(sets: &[Set], limit: usize) -> Cmd {
    let keys: Vec<&str> = sets.iter().map(|set| set.key.as_str()).collect();
    let mut call = scripts::PRESENCE_LOOK.call(&keys);
    call.arg(limit);
    for set in sets {
        call.arg(match set.kind {
            Kind::Gone => "all",
            Kind::Late => "late",
            Kind::Pending => "pending",
        });
    }
    call
}

//! Clearing up after others: parts of nodes that are gone, parts that were not renewed in time, pendings that are over.
//!
//! # Guarantees
//!
//! - Each step is bounded, and looks at what is due only.
//! - Two nodes that both take themselves for the owner do no harm: the record says whether there is anything to do.
//! - Who may not have been told of a person's last change at a node that is gone is told again.

use std::collections::HashMap;
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

/// People of one shard that a step looks at, at the least.
const SHARE_MIN: usize = 16;

/// What is remembered between two steps.
#[derive(Default)]
pub(crate) struct Reaping {
    /// The shard at which the next step begins.
    next: u8,
    /// When nothing was found of a gone node, with the shards that were owned then.
    clear: HashMap<NodeName, (Stopwatch, Vec<u8>)>,
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
}

impl Register {
    /// One step: clears up what is due in the shards that this node owns, of at most `limit` people. Interested nodes
    /// are told, this one among them. To be called often; if as many came back as were allowed, at once again.
    pub async fn reap(&self, limit: usize) -> Result<Vec<(UserId, Outcome)>, Trouble> {
        self.pay().await;
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
        let due = self.note_pending(due).await;
        Ok(self.clear_up(due).await)
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
        std::iter::once(pending).chain(of_living).chain(of_gone).collect()
    }

    /// Who was found. What is no person goes, or it would be found for ever.
    fn read_due(&self, sets: &[Set], found: Vec<(usize, Vec<String>)>, rubbish: &mut Pipeline) -> Vec<Due> {
        let mut due = Vec::new();
        for (place, words) in found {
            let Some(set) = place.checked_sub(1).and_then(|place| sets.get(place)) else { continue };
            for pair in words.chunks_exact(2) {
                match pair[0].parse() {
                    Ok(user) => due.push(Due { set: set.clone(), user, score: pair[1].clone() }),
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
        let is_sure = |place: &Option<At>| place.is_none_or(|at| scores.get(at).is_ok());
        due.into_iter().zip(places).filter(|(_, place)| is_sure(place)).map(|(one, _)| one).collect()
    }

    /// Clears up: records are changed, then others are told, then what was due is taken out.
    async fn clear_up(&self, due: Vec<Due>) -> Vec<(UserId, Outcome)> {
        let mut pipeline = redis::pipe();
        due.iter().for_each(|one| {
            pipeline.add_command(self.reaping_of(one));
        });
        let replies = self.send_all(&pipeline).await;
        let (mut outcomes, mut letters, mut settled) = (Vec::new(), Vec::new(), Words::default());
        let mut removals: Vec<&Due> = Vec::new();
        for (one, reply) in due.iter().zip(replies) {
            let mut reader = Reader::default();
            let said = reader.said(one.user, reply);
            self.counters.malformed.add(reader.malformed);
            match said {
                Ok(Said::Changed(outcome, news)) => {
                    self.count_reaped(one.set.kind);
                    letters.extend(Letter::to_all(news, None));
                    match outcome.record.pending {
                        // What was cleared up was lost, and they are pending from now on.
                        Some(remaining) if one.set.kind == Kind::Pending => {
                            settled.add(one.set.key.clone(), one.user, remaining);
                        }
                        _ => removals.push(one),
                    }
                    outcomes.push((one.user, *outcome));
                }
                Ok(Said::Nothing(news)) => {
                    // Whoever dropped it may have died, or lost its connection, before it told.
                    if one.set.kind != Kind::Pending && !news.fields.is_empty() {
                        self.counters.retold.increment();
                        letters.extend(Letter::to_all(news, None));
                    }
                    removals.push(one);
                }
                Ok(Said::Later(remaining)) => {
                    settled.add(one.set.key.clone(), one.user, remaining);
                }
                // It stays among what is due.
                _ => {}
            }
        }
        let untold = self.tell(letters).await;
        for one in removals.into_iter().filter(|one| !untold.contains(&one.user)) {
            settled.remove(one.set.key.clone(), one.user, &one.score);
        }
        let mut pipeline = redis::pipe();
        settled.write(&mut pipeline);
        // What fails here is found again, and nothing is left to do then.
        self.send_all(&pipeline).await;
        outcomes
    }

    fn reaping_of(&self, due: &Due) -> Cmd {
        let mut call = scripts::PRESENCE_REAP.call(&self.keys.person(due.user).all());
        call.arg(due.set.node.as_ref().map_or("", NodeName::as_str)).arg(due.set.kind.name());
        call.arg(ms(self.pending())).arg(ms(self.settings.keep)).arg(ms(REMEMBER_GONE));
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
        call.arg(if set.kind == Kind::Gone { "all" } else { "late" });
    }
    call
}

//! Writing this node's part of people.

use std::time::Duration;

use domain::clock::{Clock, SystemClock};
use domain::{UnixTime, UserId};
use keyspace::{Mode, Reply, Trouble, scripts};
use redis::Cmd;

use crate::due::{At, Scores, Words};
use crate::encoding::{PartText, VERSION_MAX, declaration_text};
use crate::node::NodeName;
use crate::record::{Change, Published, Update};
use crate::register::{BATCH_MAX, Register};
use crate::reply::{Reader, Said};
use crate::settings::ms;
use crate::shards::shard_of;
use crate::telling::Letter;

/// A part that goes is looked at by its owner after this long, in case its node dies before it has told everybody.
const TOLD_WITHIN: Duration = Duration::from_secs(30);
/// People about whom a call may be in doubt.
const DOUBTS_MAX: usize = 200_000;

/// One update on its way.
struct Step<'a> {
    update: &'a Update,
    number: u64,
    doubted: u64,
    /// Where it stands among what is due, and in which set.
    due: At,
    set: String,
}

/// What came of a batch so far.
struct Batch<'a> {
    steps: Vec<Step<'a>>,
    results: Vec<Option<Result<Published, Trouble>>>,
    letters: Vec<Letter>,
}

impl Register {
    /// Writes this node's part of people, and tells who is interested in those who changed. In the order of the updates;
    /// each fails or succeeds for itself. What failed may have happened: publish it again, which does no harm.
    pub async fn publish(&self, updates: &[Update]) -> Vec<Result<Published, Trouble>> {
        let mut results = Vec::with_capacity(updates.len());
        for batch in updates.chunks(BATCH_MAX) {
            results.extend(self.publish_batch(batch).await);
        }
        results
    }

    async fn publish_batch(&self, updates: &[Update]) -> Vec<Result<Published, Trouble>> {
        let node = self.node();
        let now_ms = SystemClock.now_ms();
        let mut words = Words::default();
        let steps: Vec<Step> =
            updates.iter().map(|update| self.begin(&node, update, now_ms, &mut words)).collect();
        let results = steps.iter().map(|_| None).collect();
        let mut batch = Batch { steps, results, letters: Vec::new() };
        self.counters.published.add(updates.len() as u64);

        // On one server commands are done in their order. On a cluster they are not: a part that is not there yet waits
        // until its place among what is due is sure. So a refresh is one round trip everywhere.
        let is_ordered = self.redis.mode() != Mode::Cluster;
        let is_first = |step: &Step| is_ordered || !matches!(step.update.change, Change::Behind);
        let (first, mut second): (Vec<usize>, Vec<usize>) =
            (0..batch.steps.len()).partition(|at| is_first(&batch.steps[*at]));
        let mut pipeline = redis::pipe();
        let sets = words.write(&mut pipeline);
        for at in &first {
            pipeline.add_command(self.publishing(&node, &batch.steps[*at], now_ms, !is_ordered));
        }
        let mut replies = self.send_all(&pipeline).await.into_iter();
        let scores = Scores::read(replies.by_ref().take(sets));
        for (at, reply) in first.into_iter().zip(replies) {
            if self.take_reply(&node, &mut batch, at, reply) {
                second.push(at);
            }
        }
        self.publish_second(&node, &mut batch, (second, &scores), now_ms).await;
        self.finish(batch, &scores).await
    }

    /// What could not be written before its place among what is due was sure.
    async fn publish_second(
        &self,
        node: &NodeName,
        batch: &mut Batch<'_>,
        (positions, scores): (Vec<usize>, &Scores),
        now_ms: u64,
    ) {
        let mut sure = Vec::new();
        for at in positions {
            match scores.get(batch.steps[at].due) {
                Ok(_) => sure.push(at),
                Err(trouble) => batch.results[at] = Some(Err(trouble)),
            }
        }
        let mut pipeline = redis::pipe();
        for at in &sure {
            pipeline.add_command(self.publishing(node, &batch.steps[*at], now_ms, false));
        }
        for (at, reply) in sure.into_iter().zip(self.send_all(&pipeline).await) {
            self.take_reply(node, batch, at, reply);
        }
    }

    /// Tells who is interested, then takes out of what is due whoever is not here any more.
    async fn finish(&self, batch: Batch<'_>, scores: &Scores) -> Vec<Result<Published, Trouble>> {
        let untold = self.tell(batch.letters).await;
        let mut words = Words::default();
        let results: Vec<Result<Published, Trouble>> = batch
            .results
            .into_iter()
            .map(|result| result.unwrap_or_else(|| Err(crate::reply::unexpected())))
            .collect();
        for (step, result) in batch.steps.iter().zip(&results) {
            let stays = is_put(&step.update.change) || untold.contains(&step.update.user);
            let is_done = result.as_ref().is_ok_and(|published| *published != Published::Fenced);
            if let (false, true, Ok(score)) = (stays, is_done, scores.get(step.due)) {
                words.remove(step.set.clone(), step.update.user, score);
            }
        }
        let mut pipeline = redis::pipe();
        words.write(&mut pipeline);
        // What fails here is found by the owner, who sees that there is nothing to do.
        self.send_all(&pipeline).await;
        for (step, result) in batch.steps.iter().zip(&results) {
            self.settle_doubt(step, result.as_ref().err());
        }
        results
    }

    /// Takes note of when somebody is due, before anything else.
    fn begin<'a>(&self, node: &NodeName, update: &'a Update, now_ms: u64, words: &mut Words) -> Step<'a> {
        let (user, shard) = (update.user, shard_of(update.user));
        let set = self.keys.due(shard, node.as_str());
        let remaining = match &update.change {
            Change::Put(part) if !part.devices.is_empty() => {
                let whole = Duration::from_secs(part.gone_in.0.into());
                whole.saturating_sub(Duration::from_millis(age_ms(part.last_sign, now_ms)))
            }
            _ => TOLD_WITHIN,
        };
        if update.change == Change::Behind {
            words.add(self.keys.due_pending(shard), user, self.pending());
        }
        let due = words.add(set.clone(), user, remaining);
        let number = self.next_call();
        let doubted = self.doubt(user, number);
        Step { update, number, doubted, due, set }
    }

    pub(crate) fn pending(&self) -> Duration {
        Duration::from_secs(self.settings.pending.0.into())
    }

    fn publishing(&self, node: &NodeName, step: &Step<'_>, now_ms: u64, must_exist: bool) -> Cmd {
        let update = step.update;
        let mut call = scripts::PRESENCE_PUBLISH.call(&self.keys.person(update.user).all());
        call.arg(node.as_str());
        match &update.change {
            Change::Put(part) if !part.devices.is_empty() => {
                let text = PartText::of(&part.devices);
                call.arg("put").arg(u8::from(must_exist));
                call.arg(text.summary).arg(part.gone_in.0).arg(text.said).arg(text.devices);
                call.arg(age_ms(part.last_sign, now_ms));
            }
            Change::Put(part) => no_part(&mut call, "drop", age_ms(part.last_sign, now_ms)),
            Change::Drop { last_alive } => no_part(&mut call, "drop", age_ms(*last_alive, now_ms)),
            Change::Behind => no_part(&mut call, "behind", 0),
        }
        match &update.declaration {
            None => call.arg("="),
            Some(None) => call.arg("-"),
            Some(Some(declaration)) => call.arg(declaration_text(declaration)),
        };
        call.arg(update.believed.as_ref().map(declaration_text).unwrap_or_default());
        call.arg(update.floor.0.min(VERSION_MAX)).arg(update.floor.1.min(VERSION_MAX));
        call.arg(update.last_seen.map_or(0, |at| at.0));
        call.arg(ms(self.pending())).arg(ms(self.settings.keep)).arg(step.number).arg(step.doubted);
        call.arg(self.former()).arg(update.known.min(VERSION_MAX)).arg(ms(update.declared_ago));
        call
    }

    /// Takes a reply. True if the part was not there and nothing was written.
    fn take_reply(&self, node: &NodeName, batch: &mut Batch<'_>, at: usize, reply: Reply) -> bool {
        let user = batch.steps[at].update.user;
        let mut reader = Reader::default();
        let said = reader.said(user, reply);
        self.counters.malformed.add(reader.malformed);
        batch.results[at] = Some(match said {
            Ok(Said::Absent) => return true,
            Ok(Said::Published(published)) => {
                match published {
                    Published::Fenced => self.counters.fenced.increment(),
                    Published::Unchanged { .. } => self.counters.refreshed.increment(),
                    _ => {}
                }
                Ok(published)
            }
            Ok(Said::Changed(outcome, news)) => {
                self.counters.changed.increment();
                batch.letters.extend(Letter::to_all(news, Some(node)));
                Ok(Published::Changed(outcome))
            }
            Ok(Said::Later(_) | Said::Waiting | Said::Nothing(_)) => Err(crate::reply::unexpected()),
            Err(trouble) => Err(trouble),
        });
        false
    }

    /// Remembers a call that is not answered yet, and may never be: whoever waits for it may be stopped at any time. If
    /// it happened, the next one says what it changed. The first that was not answered before, or 0.
    fn doubt(&self, user: UserId, number: u64) -> u64 {
        let mut doubts = self.doubts.lock();
        if let Some(first) = doubts.get(&user) {
            return *first;
        }
        if doubts.len() < DOUBTS_MAX {
            doubts.insert(user, number);
        }
        0
    }

    /// A call was answered and everybody told, or there is no answer to come.
    fn settle_doubt(&self, step: &Step<'_>, trouble: Option<&Trouble>) {
        let mut doubts = self.doubts.lock();
        let user = step.update.user;
        match trouble {
            Some(Trouble::Unanswered { .. }) => {}
            // It did not happen; earlier ones may have.
            Some(_) if doubts.get(&user) != Some(&step.number) => {}
            _ => drop(doubts.remove(&user)),
        }
    }
}

fn is_put(change: &Change) -> bool {
    matches!(change, Change::Put(part) if !part.devices.is_empty())
}

fn no_part(call: &mut Cmd, change: &str, age_ms: u64) {
    call.arg(change).arg(0).arg("").arg(0).arg("").arg("").arg(age_ms);
}

/// How long ago this was, by the clock that said so: clocks of nodes and of Redis need not agree.
fn age_ms(at: UnixTime, now_ms: u64) -> u64 {
    now_ms.saturating_sub(u64::from(at.0) * 1000)
}

//! The transaction of a batch.
//!
//! On SQLite it runs as a whole on the thread of the connection, so it owns everything it needs.

use std::collections::BTreeSet;
use std::sync::Arc;

use database::Executor;
use domain::{TorrentId, UnixTime, UserId};
use journal::{Batch, DeliveredEntry, EntryId, Lane, Rejected};

use crate::admit::{Admitted, Directory, admit};
use crate::consumers::{Applied, ApplyError, ConsumerRef};
use crate::dead_letters;
use crate::error::LedgerError;
use crate::ledger::{Ledger, LedgerSettings};
use crate::load::{self, Loaded};
use crate::multiplier::Multipliers;
use crate::post::{Posted, Rules, post};

pub(crate) struct Attempt {
    arrivals: Vec<DeliveredEntry>,
    lane: Lane,
    consumer: String,
    is_taken_over: bool,
    multipliers: Arc<Multipliers>,
    directory: Arc<dyn Directory>,
    settings: LedgerSettings,
    now: UnixTime,
    steady_now: UnixTime,
}

pub(crate) enum Attempted {
    Committed(Committed),
    NoConsumer,
    RowsMissing { users: Vec<UserId>, torrents: Vec<TorrentId> },
}

pub(crate) struct Committed {
    pub(crate) posted: Posted,
    pub(crate) applied: usize,
    pub(crate) was_cache_full: bool,
}

impl Attempt {
    pub(crate) fn new(ledger: &Ledger, batch: &Batch<'_>, multipliers: Arc<Multipliers>) -> Attempt {
        Attempt {
            arrivals: batch.arrivals.to_vec(),
            lane: batch.lane,
            consumer: batch.consumer.to_owned(),
            is_taken_over: batch.taken_from.is_some(),
            multipliers,
            directory: Arc::clone(&ledger.directory),
            settings: ledger.settings,
            now: ledger.clock.now(),
            steady_now: ledger.clock.steady(),
        }
    }

    /// Everything but the commit.
    pub(crate) async fn run(&self, executor: &mut impl Executor) -> Result<Attempted, ApplyError> {
        let consumer = ConsumerRef { name: &self.consumer, lane: self.lane };
        let Some(before) = consumer.lock(executor).await? else {
            return Ok(Attempted::NoConsumer);
        };
        let already = self.already_applied(consumer, executor, &before).await?;
        let (mut admitted, rejected) = admit(&self.arrivals, &already, self.directory.as_ref());
        let cache = load::take_cache(executor)?;
        let mut state = match load::load(executor, &cache, &admitted).await? {
            Loaded::State(state) => state,
            Loaded::Missing { users, torrents } => return Ok(Attempted::RowsMissing { users, torrents }),
        };
        if self.lane == Lane::Dead {
            dead_letters::remove_applied(executor, &mut admitted).await?;
        }
        let mut posted = post(&mut state, &admitted, &self.rules());
        let applied = admitted.len() - posted.rejected.len();
        if self.lane == Lane::Dead {
            dead_letters::save(executor, unrejected(&admitted, &posted.rejected), self.now).await?;
        }
        let was_cache_full = load::save(executor, cache, &state, &posted.changes).await?;
        posted.rejected.extend(rejected);
        posted.rejected.sort_by_key(|rejected| rejected.index);
        let ids = applied_ids(&self.arrivals, &posted.rejected);
        consumer.save(executor, &ids, &before).await?;
        Ok(Attempted::Committed(Committed { posted, applied, was_cache_full }))
    }

    fn rules(&self) -> Rules<'_> {
        Rules {
            ceiling: self.settings.ceiling,
            user_ceiling: self.settings.user_ceiling,
            session_retention: self.settings.session_retention,
            silence: self.settings.silence,
            multipliers: &self.multipliers,
            now: self.now,
            steady_now: self.steady_now,
        }
    }

    /// The entries of a batch that were applied before: by this consumer, if the reply to its commit was lost, or by
    /// others, if they were taken over, which is always possible for dead letters. Ids are never reused, so checking too
    /// many is harmless.
    async fn already_applied(
        &self,
        consumer: ConsumerRef<'_>,
        executor: &mut impl Executor,
        before: &Applied,
    ) -> Result<BTreeSet<EntryId>, LedgerError> {
        let mut already = before.ids.clone();
        let first = self.arrivals.iter().map(|arrival| arrival.id).min();
        let may_be_others = self.is_taken_over || self.lane == Lane::Dead;
        if let Some(first) = first.filter(|_| may_be_others) {
            already.extend(consumer.applied_by_others(executor, first).await?);
        }
        Ok(already)
    }
}

fn unrejected<'a>(
    entries: &[Admitted<'a>],
    rejected: &[Rejected],
) -> impl Iterator<Item = &'a DeliveredEntry> {
    let positions: BTreeSet<usize> = rejected.iter().map(|rejected| rejected.index).collect();
    let applied = entries.iter().filter(move |entry| !positions.contains(&entry.index));
    applied.map(|entry| entry.arrival)
}

/// The entries of a batch that are applied once it is committed.
fn applied_ids(arrivals: &[DeliveredEntry], rejected: &[Rejected]) -> BTreeSet<EntryId> {
    let is_rejected: BTreeSet<usize> = rejected.iter().map(|rejected| rejected.index).collect();
    let applied_ids = arrivals.iter().enumerate().filter(|(index, _)| !is_rejected.contains(index));
    applied_ids.map(|(_, arrival)| arrival.id).collect()
}

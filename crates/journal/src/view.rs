//! What a view owes the journal.

use async_trait::async_trait;

use crate::entry::TrafficEntry;
use crate::id::EntryId;
use crate::port::Lane;

/// An entry on its way into a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its place in the lane it was read from.
    pub id: EntryId,
    /// Its place in the traffic lane: the same, unless it comes as a dead letter. Of two entries with the same `ts`, the
    /// one with the greater `origin` is the later.
    pub origin: EntryId,
    /// What it says.
    pub entry: TrafficEntry,
}

/// Entries that are applied together.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Where they were read.
    pub lane: Lane,
    /// The consumer that applies them. No two processes ever use the same name.
    pub consumer: &'a str,
    /// Whose they were before, if they were taken over. All their former consumers have been fenced.
    pub taken_from: Option<&'a str>,
    /// Whether the same batch has been tried before by this consumer, and perhaps was applied after all.
    pub is_retry: bool,
    /// The entries, in the order of their ids.
    pub arrivals: &'a [Arrival],
}

/// An entry that a view cannot take, now or later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Its position in the batch.
    pub index: usize,
    /// Why.
    pub reason: String,
}

/// Why a batch was not applied. Nothing of it was.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// The view's store is down, busy, or full: the same batch is tried again later, and nothing is acknowledged.
    #[error("{reason}")]
    Transient {
        /// What the store said.
        reason: String,
    },
    /// This consumer was declared dead and others have taken over its entries: it drops them and begins anew, under
    /// another name.
    #[error("this consumer was fenced")]
    Fenced,
    /// Some entry of the batch upsets the store; nobody knows which.
    #[error("{reason}")]
    Entry {
        /// What the store said.
        reason: String,
    },
}

/// Something that follows from the journal.
///
/// # Duties
///
/// - **Right in any order.** Entries come out of order, late and more than once; the result depends only on the set
///   of entries. The later (`ts`, origin) wins, totals only grow.
/// - **All or nothing.** A batch is applied whole, except for what it rejects, or not at all.
/// - **Exactly once**, if amounts depend on it: which entries were applied is committed together with the amounts,
///   under the consumer's name. A batch that was taken over leaves out what any fenced consumer has applied (entries
///   may have been taken over twice); one that is tried again, what this consumer has. What is rejected does not
///   count as applied. A dead letter (lane `Dead`) is applied once by its origin, wherever it was moved since.
#[async_trait]
pub trait View: Send + Sync + 'static {
    /// Its name in commands and logs.
    fn name(&self) -> &'static str;

    /// Applies a batch and says which of its entries it cannot take.
    async fn apply(&self, batch: &Batch<'_>) -> Result<Vec<Rejected>, ViewError>;

    /// Makes sure that a consumer that is taken for dead applies nothing any more. Waits for what it is applying.
    async fn fence(&self, _consumer: &str) -> Result<(), ViewError> {
        Ok(())
    }

    /// Nothing of a fenced consumer is pending any more under its own name. Entries that were taken over from it may
    /// still be pending elsewhere, so what it applied has to stay known for a while.
    async fn forget(&self, _consumer: &str) -> Result<(), ViewError> {
        Ok(())
    }

    /// Where a group that got lost has to begin again: behind the last entry that was applied. None means with the
    /// oldest entry there is, which harms no view that takes entries twice.
    async fn resume_after(&self) -> Result<Option<EntryId>, ViewError> {
        Ok(None)
    }
}

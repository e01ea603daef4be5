//! The trait of a view, and its duties.

use async_trait::async_trait;

use crate::entry::TrafficEntry;
use crate::id::EntryId;
use crate::port::Lane;

/// An entry delivered to a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveredEntry {
    /// The id in the lane it was read from.
    pub id: EntryId,
    /// The id in the traffic lane: equal to `id`, except for dead letters. Of two entries with the same `ts`, the one
    /// with the greater `origin` is the later.
    pub origin: EntryId,
    pub entry: TrafficEntry,
}

/// Entries applied together.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    pub lane: Lane,
    /// Never used by two processes.
    pub consumer: &'a str,
    /// The previous consumer, if the entries were taken over. All their former consumers have been fenced.
    pub taken_from: Option<&'a str>,
    /// Whether this consumer has tried the same batch before; it may have been applied.
    pub is_retry: bool,
    /// Ordered by id.
    pub arrivals: &'a [DeliveredEntry],
}

/// An entry that a view rejects permanently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Position in the batch.
    pub index: usize,
    pub reason: String,
}

/// Why a batch was not applied. No part of it was.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// The view's store is down, busy, or full: the same batch is retried later, and nothing is acknowledged.
    #[error("{reason}")]
    Transient { reason: String },
    /// This consumer was declared dead and its entries were taken over: it discards them and continues under another
    /// name.
    #[error("this consumer was fenced")]
    Fenced,
    /// An unknown entry of the batch causes an error in the store.
    #[error("{reason}")]
    Entry { reason: String },
}

/// State computed from the journal.
///
/// # Duties
///
/// - **Order-independent.** Entries come out of order, late and more than once; the result depends only on the set of
///   entries. The later (`ts`, origin) wins, totals only grow.
/// - **All or nothing.** A batch is applied whole, except for rejected entries, or not at all.
/// - **Exactly once**, if amounts depend on it: the ids of applied entries are committed together with the amounts,
///   under the consumer's name. A batch that was taken over leaves out what any fenced consumer has applied (entries
///   may have been taken over twice); a retried batch leaves out what this consumer has applied. Rejected entries do
///   not count as applied. A dead letter (lane `Dead`) is applied once by its origin, wherever it was moved since.
#[async_trait]
pub trait View: Send + Sync + 'static {
    /// The name in commands and logs.
    fn name(&self) -> &'static str;

    /// Whether this process may apply entries now. False if the view has one writer, and that is another process.
    fn is_active(&self) -> bool {
        true
    }

    /// Applies a batch and returns the entries it rejects.
    async fn apply(&self, batch: &Batch<'_>) -> Result<Vec<Rejected>, ViewError>;

    /// After this returns, a consumer that was declared dead applies nothing. Waits for the batch it is applying.
    async fn fence(&self, _consumer: &str) -> Result<(), ViewError> {
        Ok(())
    }

    /// A fenced consumer has nothing pending under its own name. Entries taken over from it may still be pending for
    /// others, so the ids it applied must be kept for some time.
    async fn forget(&self, _consumer: &str) -> Result<(), ViewError> {
        Ok(())
    }

    /// After which entry a deleted group has to start again. None means at the oldest entry, which is safe for views
    /// that may apply entries twice.
    async fn resume_after(&self) -> Result<Option<EntryId>, ViewError> {
        Ok(None)
    }
}

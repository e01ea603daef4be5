//! The port: the duties of every adapter of the journal.
//!
//! # Duties
//!
//! - **Durable.** Once [`Journal::append`] has returned, the entries survive a crash of this process and of the store,
//!   as far as the store itself is durable.
//! - **Atomic and idempotent appends.** A batch is stored whole or not at all. The same batch sent again under its
//!   token, because the reply was lost, is not stored twice.
//! - **Complete delivery.** Each group receives every entry after its start, in order, each by one consumer at a time.
//!   What was delivered and not acknowledged stays pending, across restarts.
//! - **Safe trimming.** Trimming never removes what any group has yet to acknowledge.
//! - **Atomic moves.** A moved entry is never in both lanes, nor in neither, nor acknowledged without being moved.
//! - **Error classes.** [`JournalError::is_retryable`] is true only if a retry can succeed.
//!
//! The suite in `tests/it/conformance` runs on every adapter.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;

use crate::entry::TrafficEntry;
use crate::error::JournalError;
use crate::fields::Fields;
use crate::id::EntryId;
use crate::notes::{Notes, PAUSED};
use crate::packed::PackedEvents;
use crate::search::{EntryFilter, SCAN_PAGE_MAX, SCAN_PAGE_MIN, SearchBounds, SearchResult};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    Traffic,
    /// Entries that a view rejected, to be retried (`tracker:traffic:dlq`).
    Dead,
    /// Dead letters after their last retry (`tracker:traffic:failed`).
    Failed,
    /// Risk events (`tracker:traffic:risk`).
    Risk,
}

impl Lane {
    pub const ALL: [Lane; 4] = [Lane::Traffic, Lane::Dead, Lane::Failed, Lane::Risk];

    pub const fn name(self) -> &'static str {
        match self {
            Lane::Traffic => "traffic",
            Lane::Dead => "dlq",
            Lane::Failed => "failed",
            Lane::Risk => "risk",
        }
    }
}

/// Identifies a batch, so that it is not stored twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendToken {
    /// Unique to one process start.
    pub producer: String,
    /// The batch's number, from 1, rising.
    pub number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAt {
    /// At the oldest entry.
    Beginning,
    /// After this entry.
    After(EntryId),
}

/// An entry with its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub id: EntryId,
    pub fields: Fields,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerInfo {
    pub name: String,
    /// Time since its last request.
    pub idle: Duration,
    /// Entries delivered to it and not acknowledged.
    pub pending: u64,
}

/// One entry to be moved: `id` is removed from the source lane, `fields` are appended to the target lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The id in the source lane.
    pub id: EntryId,
    pub fields: Fields,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    pub removed: u64,
    /// The group that prevented further trimming.
    pub held_back_by: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupStatus {
    pub name: String,
    /// Entries not yet delivered to it.
    pub unread: u64,
    /// Entries delivered to it and not acknowledged.
    pub pending: u64,
    pub oldest_pending: Option<EntryId>,
    pub last_delivered: EntryId,
    pub consumers: u64,
}

impl GroupStatus {
    /// Entries that the group's view does not contain yet.
    pub fn lag(&self) -> u64 {
        self.unread + self.pending
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneStatus {
    pub length: u64,
    pub first: Option<EntryId>,
    /// The newest entry ever appended, trimmed or not.
    pub last: Option<EntryId>,
    /// Entries ever appended.
    pub appended: u64,
    /// Sorted by name.
    pub groups: Vec<GroupStatus>,
}

/// Result of [`Journal::tail`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    pub entries: Vec<Stored>,
    /// Whether `entries` follow the given entry without a gap.
    pub is_whole: bool,
}

/// How often an adapter reached its own limits, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BoundsHit {
    /// Dead letters with too many fields to be moved whole.
    pub dead_letters_truncated: u64,
    /// Usable connections that were closed because enough were kept.
    pub connections_dropped: u64,
    /// Batches that too few replicas had confirmed within the timeout.
    pub too_few_replicas: u64,
}

#[async_trait]
pub trait Journal: Send + Sync + 'static {
    /// Stores a batch at the end of a lane, whole or not at all. A batch whose token equals that of the producer's last
    /// one on this lane has been stored already and is not stored again.
    async fn append(&self, lane: Lane, batch: &[Fields], token: &AppendToken) -> Result<(), JournalError>;

    /// Stores events of our own trackers at the end of the traffic lane, as [`Journal::append`] stores their fields.
    async fn append_events(&self, events: &[PackedEvents], token: &AppendToken) -> Result<(), JournalError> {
        let batch: Vec<Fields> =
            events.iter().flat_map(PackedEvents::iter).map(|event| TrafficEntry::fields_of(&event)).collect();
        self.append(Lane::Traffic, &batch, token).await
    }

    /// May do a part of the work of [`Journal::append_events`], which follows with the same arguments: while an earlier
    /// append waits for its reply.
    async fn prepare_events(&self, _events: &[PackedEvents], _token: &AppendToken) {}

    /// Creates a group unless it exists; an existing one is not moved. True if it was created.
    async fn ensure_group(&self, lane: Lane, group: &str, start: StartAt) -> Result<bool, JournalError>;

    /// Delivers up to `count` entries to a consumer that were not delivered to the group before; waits up to `wait` for
    /// the first. Entries deleted meanwhile are left out.
    async fn read(
        &self,
        lane: Lane,
        group: &str,
        consumer: &str,
        count: usize,
        wait: Duration,
    ) -> Result<Vec<Stored>, JournalError>;

    /// Acknowledges entries: they are no longer pending. Ids that are not pending are ignored.
    async fn acknowledge(&self, lane: Lane, group: &str, ids: &[EntryId]) -> Result<(), JournalError>;

    async fn consumers(&self, lane: Lane, group: &str) -> Result<Vec<ConsumerInfo>, JournalError>;

    /// Resets the idle time of a consumer that reads nothing.
    async fn keep_alive(&self, lane: Lane, group: &str, consumer: &str) -> Result<(), JournalError>;

    /// Transfers up to `count` pending entries from one consumer to another and returns them, oldest first (J4).
    /// Entries deleted meanwhile are acknowledged and left out. An empty result means that `from` has none left.
    async fn take_over(
        &self,
        lane: Lane,
        group: &str,
        from: &str,
        to: &str,
        count: usize,
    ) -> Result<Vec<Stored>, JournalError>;

    /// Deletes a consumer, unless it has pending entries.
    async fn delete_consumer(&self, lane: Lane, group: &str, consumer: &str) -> Result<(), JournalError>;

    /// Moves entries, each atomically: appended to `to`; in `from` acknowledged for `group` (if given), and deleted
    /// unless `from` is the traffic lane. An entry that is no longer in `from` (or, in the traffic lane, no longer
    /// pending for the group) is not moved. Returns how many were.
    async fn transfer(
        &self,
        from: Lane,
        to: Lane,
        group: Option<&str>,
        dead_letters: &[Transfer],
    ) -> Result<u64, JournalError>;

    /// Up to `count` entries with ids greater than `after`, in order.
    async fn list(&self, lane: Lane, after: EntryId, count: usize) -> Result<Vec<Stored>, JournalError>;

    /// Up to `count` entries after `after`, an entry that the caller has read, and whether they follow it without a
    /// gap: it still exists, or it was the newest ever appended. If not, it was trimmed, perhaps with later ones, or
    /// lost by the store. Nothing is missing after [`EntryId::ZERO`].
    async fn tail(&self, lane: Lane, after: EntryId, count: usize) -> Result<Tail, JournalError> {
        if after == EntryId::ZERO {
            return Ok(Tail { entries: self.list(lane, after, count).await?, is_whole: true });
        }
        // Includes the entry itself, so that checking for it costs no second request.
        let mut entries = self.list(lane, after.previous(), count.saturating_add(1)).await?;
        if entries.first().is_some_and(|first| first.id == after) {
            entries.remove(0);
            return Ok(Tail { entries, is_whole: true });
        }
        entries.truncate(count);
        let is_newest = entries.is_empty() && self.status(lane).await?.last == Some(after);
        Ok(Tail { entries, is_whole: is_newest })
    }

    /// Up to `count` of the newest entries with ids less than `before`, newest first.
    async fn list_newest(
        &self,
        lane: Lane,
        before: EntryId,
        count: usize,
    ) -> Result<Vec<Stored>, JournalError>;

    /// The newest entries with ids less than `before` that match the filter, newest first. Scans no more entries than
    /// the bounds allow; [`SearchResult::next`] is where to continue.
    async fn search(
        &self,
        lane: Lane,
        before: EntryId,
        filter: &EntryFilter,
        bounds: SearchBounds,
    ) -> Result<SearchResult, JournalError> {
        let mut found = SearchResult::starting_before(before);
        // The first page suffices for users who announce often; larger pages find the rare ones.
        let mut page_size = bounds.found_max.clamp(SCAN_PAGE_MIN, SCAN_PAGE_MAX);
        while found.has_room(bounds) {
            let count = page_size.min(bounds.scanned_max - found.scanned);
            page_size = (2 * page_size).min(SCAN_PAGE_MAX);
            let page = self.list_newest(lane, found.next.unwrap_or(EntryId::ZERO), count).await?;
            let is_last = page.len() < count;
            found.scan(page, filter, bounds);
            if is_last && found.has_room_for_more(bounds) {
                found.next = None;
                break;
            }
        }
        Ok(found)
    }

    async fn get(&self, lane: Lane, id: EntryId) -> Result<Option<Stored>, JournalError>;

    /// Deletes entries of a lane other than traffic, acknowledging them for `group` (if given). Returns how many
    /// existed.
    async fn delete(&self, lane: Lane, group: Option<&str>, ids: &[EntryId]) -> Result<u64, JournalError>;

    /// Removes entries with ids less than `before`, except what any group has yet to acknowledge. A traffic lane
    /// without a group is not trimmed: its consumers have yet to start.
    async fn trim(&self, lane: Lane, before: EntryId) -> Result<Trimmed, JournalError>;

    async fn status(&self, lane: Lane) -> Result<LaneStatus, JournalError>;

    /// Whether entries could be stored now, for health checks. An adapter whose store can refuse writes while it serves
    /// reads tries a write.
    async fn check_writable(&self) -> Result<(), JournalError> {
        self.status(Lane::Traffic).await.map(drop)
    }

    /// The oldest entry of the traffic lane that was not delivered to a group or that it has not acknowledged; none if
    /// the group has acknowledged everything.
    async fn oldest_unacknowledged(&self, group: &GroupStatus) -> Result<Option<EntryId>, JournalError> {
        // Pending entries were delivered, so they are older than all undelivered ones.
        if group.oldest_pending.is_some() || group.unread == 0 {
            return Ok(group.oldest_pending);
        }
        let unread = self.list(Lane::Traffic, group.last_delivered, 1).await?;
        Ok(unread.first().map(|stored| stored.id))
    }

    /// Writes or removes a note. Notes are shared by all processes on this journal and survive them.
    async fn set_note(&self, name: &str, value: Option<&str>) -> Result<(), JournalError>;

    async fn notes(&self) -> Result<Notes, JournalError>;

    /// The paused views (J9): see [`crate::pause`].
    async fn paused(&self) -> Result<BTreeSet<String>, JournalError> {
        let notes = self.notes().await?.into_iter();
        let is_pause = |(name, value): &(String, String)| !name.contains(' ') && value.starts_with(PAUSED);
        Ok(notes.filter(is_pause).map(|(name, _)| name).collect())
    }

    fn bounds_hit(&self) -> BoundsHit {
        BoundsHit::default()
    }
}

//! The port: what a journal owes its users, whatever it is kept in.
//!
//! # Duties of every adapter
//!
//! - **Stored means stored.** When [`Journal::append`] has returned, the entries survive the death of this process and
//!   of the store's, as far as the store promises that at all.
//! - **All or nothing, once.** A batch is stored whole or not at all. The same batch sent again, because nobody knew
//!   whether it had arrived, is not stored twice.
//! - **A group reads everything.** Each group is given every entry from where it starts, in order, to one of its
//!   consumers at a time. What was delivered and not acknowledged stays pending, across restarts.
//! - **Trimming never removes what any group has yet to acknowledge.**
//! - **Moving is atomic.** A dead letter is never in two lanes, nor in none, nor acknowledged and not moved.
//! - **Errors tell the truth** about whether waiting helps ([`JournalError::is_retryable`]).
//!
//! The suite in `tests/conformance` runs on every adapter.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;

use crate::error::JournalError;
use crate::fields::Fields;
use crate::id::EntryId;
use crate::notes::{Notes, PAUSED};
use crate::search::{EntryFilter, SCAN_PAGE_MAX, SCAN_PAGE_MIN, SearchBounds, SearchResult};

/// The streams a journal is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Every accepted announce (`tracker:traffic`).
    Traffic,
    /// Entries that a view could not take, to be tried again (`tracker:traffic:dlq`).
    Dead,
    /// Dead letters that were tried as often as allowed (`tracker:traffic:failed`).
    Failed,
    /// Announces that claim more than is plausible (`tracker:traffic:risk`).
    Risk,
}

impl Lane {
    /// All of them.
    pub const ALL: [Lane; 4] = [Lane::Traffic, Lane::Dead, Lane::Failed, Lane::Risk];

    /// The name in commands and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Lane::Traffic => "traffic",
            Lane::Dead => "dlq",
            Lane::Failed => "failed",
            Lane::Risk => "risk",
        }
    }
}

/// Names a batch, so that it is not stored twice: a producer, and a number that grows with each of its batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendToken {
    /// The process that appends; another one after each start.
    pub producer: String,
    /// The batch's number, from 1.
    pub number: u64,
}

/// Where a new group begins to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAt {
    /// With the oldest entry there is.
    Beginning,
    /// Behind this entry.
    After(EntryId),
}

/// An entry with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its place.
    pub id: EntryId,
    /// What it says.
    pub fields: Fields,
}

/// A consumer of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerInfo {
    /// Its name.
    pub name: String,
    /// How long ago it last asked for anything.
    pub idle: Duration,
    /// Entries delivered to it and not acknowledged.
    pub pending: u64,
}

/// One dead letter on its way from one lane to another: what `fields` say is appended there, `id` is taken away here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Its place in the lane it leaves.
    pub id: EntryId,
    /// What is written to the lane it goes to.
    pub fields: Fields,
}

/// What trimming did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// How many entries are gone.
    pub removed: u64,
    /// The group that kept more from going, if one did.
    pub held_back_by: Option<String>,
}

/// The state of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupStatus {
    /// Its name.
    pub name: String,
    /// Entries it has not been given yet.
    pub unread: u64,
    /// Entries it was given and has not acknowledged.
    pub pending: u64,
    /// The oldest of these.
    pub oldest_pending: Option<EntryId>,
    /// The last entry it was given.
    pub last_delivered: EntryId,
    /// How many consumers it has.
    pub consumers: u64,
}

impl GroupStatus {
    /// Entries that the group's view does not show yet.
    pub fn lag(&self) -> u64 {
        self.unread + self.pending
    }
}

/// The state of a lane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneStatus {
    /// How many entries it holds.
    pub length: u64,
    /// The oldest entry.
    pub first: Option<EntryId>,
    /// The newest entry there ever was.
    pub last: Option<EntryId>,
    /// How many entries were ever appended.
    pub appended: u64,
    /// Its groups, by name.
    pub groups: Vec<GroupStatus>,
}

/// What follows an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// The entries behind it, in order.
    pub entries: Vec<Stored>,
    /// Whether nothing between it and these was lost.
    pub is_whole: bool,
}

/// How often an adapter ran into its own bounds, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BoundsHit {
    /// Dead letters that had too many fields to be moved whole.
    pub dead_letters_truncated: u64,
    /// Good connections that were closed because enough were kept.
    pub connections_dropped: u64,
    /// Times that too few replicas had a batch in time, so that it had to be waited for again.
    pub too_few_replicas: u64,
}

/// The journal.
#[async_trait]
pub trait Journal: Send + Sync + 'static {
    /// Stores a batch at the end of a lane, whole or not at all. A batch whose token equals that of the producer's
    /// last one on this lane has been stored already and is not stored again.
    async fn append(&self, lane: Lane, batch: &[Fields], token: &AppendToken) -> Result<(), JournalError>;

    /// Sees to it that a group exists. One that exists stays where it is. True if it was made.
    async fn ensure_group(&self, lane: Lane, group: &str, start: StartAt) -> Result<bool, JournalError>;

    /// Gives a consumer up to `count` entries that no consumer of the group was given before; waits up to `wait` for
    /// the first. Entries that were deleted meanwhile are not given.
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

    /// The consumers of a group.
    async fn consumers(&self, lane: Lane, group: &str) -> Result<Vec<ConsumerInfo>, JournalError>;

    /// Says that a consumer lives, though it asks for nothing.
    async fn keep_alive(&self, lane: Lane, group: &str, consumer: &str) -> Result<(), JournalError>;

    /// Makes up to `count` pending entries of one consumer those of another, and gives them to it, oldest first
    /// (J4). Entries that were deleted meanwhile are acknowledged, not given. None are left once this returns nothing.
    async fn take_over(
        &self,
        lane: Lane,
        group: &str,
        from: &str,
        to: &str,
        count: usize,
    ) -> Result<Vec<Stored>, JournalError>;

    /// Forgets a consumer that has nothing pending; one that has stays.
    async fn forget_consumer(&self, lane: Lane, group: &str, consumer: &str) -> Result<(), JournalError>;

    /// Moves dead letters, each atomically: appended to `to`; in `from` acknowledged for `group` (where one is given), and
    /// deleted unless `from` is the traffic lane. A dead letter that is no longer in `from` (or, in the traffic lane, no
    /// longer pending for the group) is not moved. Returns how many were.
    async fn transfer(
        &self,
        from: Lane,
        to: Lane,
        group: Option<&str>,
        dead_letters: &[Transfer],
    ) -> Result<u64, JournalError>;

    /// Up to `count` entries with ids greater than `after`, in order.
    async fn list(&self, lane: Lane, after: EntryId, count: usize) -> Result<Vec<Stored>, JournalError>;

    /// Up to `count` entries behind `after`, an entry that the caller has read, and whether these follow it without a
    /// gap: it is still there, or it was the newest there ever was. If not, it was trimmed, perhaps with what followed,
    /// or the store has lost it. [`EntryId::ZERO`] is before everything, and nothing is missing behind it.
    async fn tail(&self, lane: Lane, after: EntryId, count: usize) -> Result<Tail, JournalError> {
        if after == EntryId::ZERO {
            return Ok(Tail { entries: self.list(lane, after, count).await?, is_whole: true });
        }
        // Asked for with it, so that looking for the entry costs no second question.
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

    /// The newest entries with ids less than `before` that are looked for, newest first. However rare they are, no more
    /// than the bounds allow is looked at: [`SearchResult::next`] says where to go on.
    async fn search(
        &self,
        lane: Lane,
        before: EntryId,
        filter: &EntryFilter,
        bounds: SearchBounds,
    ) -> Result<SearchResult, JournalError> {
        let mut found = SearchResult::starting_before(before);
        // Whoever announces often is found soon; whoever does not is looked for in larger steps.
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

    /// One entry.
    async fn get(&self, lane: Lane, id: EntryId) -> Result<Option<Stored>, JournalError>;

    /// Deletes entries of a lane other than traffic, acknowledging them for `group` (where one is given). Returns how
    /// many there were.
    async fn delete(&self, lane: Lane, group: Option<&str>, ids: &[EntryId]) -> Result<u64, JournalError>;

    /// Removes entries with ids less than `before`, except what any group has yet to acknowledge. A traffic lane
    /// without a single group is not trimmed: somebody is going to read it.
    async fn trim(&self, lane: Lane, before: EntryId) -> Result<Trimmed, JournalError>;

    /// How a lane and its groups are doing.
    async fn status(&self, lane: Lane) -> Result<LaneStatus, JournalError>;

    /// Whether entries could be stored now, for health checks. An adapter whose store may refuse writes while it answers
    /// reads tries a write.
    async fn check_writable(&self) -> Result<(), JournalError> {
        self.status(Lane::Traffic).await.map(drop)
    }

    /// The oldest entry of traffic that a group was not given, or has not acknowledged; none if it has everything.
    async fn oldest_unacknowledged(&self, group: &GroupStatus) -> Result<Option<EntryId>, JournalError> {
        // What is pending was delivered, so it is older than all that was not.
        if group.oldest_pending.is_some() || group.unread == 0 {
            return Ok(group.oldest_pending);
        }
        let unread = self.list(Lane::Traffic, group.last_delivered, 1).await?;
        Ok(unread.first().map(|stored| stored.id))
    }

    /// Writes a note for all processes on this journal, over the one of this name, or removes it. It survives all of
    /// them.
    async fn set_note(&self, name: &str, value: Option<&str>) -> Result<(), JournalError>;

    /// All notes.
    async fn notes(&self) -> Result<Notes, JournalError>;

    /// The views that are paused (J9): see [`crate::pause`].
    async fn paused(&self) -> Result<BTreeSet<String>, JournalError> {
        let notes = self.notes().await?.into_iter();
        let is_pause = |(name, value): &(String, String)| !name.contains(' ') && value.starts_with(PAUSED);
        Ok(notes.filter(is_pause).map(|(name, _)| name).collect())
    }

    /// How often the adapter ran into its own bounds.
    fn bounds_hit(&self) -> BoundsHit {
        BoundsHit::default()
    }
}

//! The traffic lane: entries in blocks, found by place.
//!
//! The places of a block's entries follow without a gap; between blocks there are gaps, and nothing is ever stored in
//! one. A block's `ordinal` is the number of entries appended before it, so that entries are counted by a subtraction.

use database::{SqlError, SqliteSession};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::{Failure, place};
use crate::block::{Block, BlockReader};
use crate::id::EntryId;
use crate::port::{Lane, Stored};

database::rows! {
    struct BlockRow {
        first: i64,
        ordinal: i64,
        entries: i64,
        checksum: i64,
        data: Vec<u8>,
    }

    /// A block without its entries.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct Extent {
        pub(super) first: i64,
        pub(super) ordinal: i64,
        pub(super) entries: i64,
    }

    pub(super) struct TrafficRow {
        pub(super) last: i64,
        pub(super) appended: i64,
        pub(super) length: i64,
        pub(super) kept_from: i64,
    }
}

const TRAFFIC: i64 = place::lane_number(Lane::Traffic);

impl Extent {
    pub(super) const fn last(&self) -> i64 {
        self.first + self.entries - 1
    }
}

impl BlockRow {
    fn extent(&self) -> Extent {
        Extent { first: self.first, ordinal: self.ordinal, entries: self.entries }
    }

    /// Its entries in these places, in order, at most `count`.
    fn read(self, (from, to): (i64, i64), count: usize) -> Result<Vec<Stored>, Failure> {
        let extent = self.extent();
        let damaged = || Failure::DamagedBlock(extent.first);
        if self.checksum != checksum(&extent, &self.data) {
            return Err(damaged());
        }
        let (from, to) = (from.max(extent.first), to.min(extent.last()));
        let mut reader = BlockReader::new(self.data);
        reader.skip(usize::try_from(from - extent.first).unwrap_or(0)).map_err(|_| damaged())?;
        let mut entries = Vec::new();
        for place in (from..=to).take(count) {
            let fields = reader.read().map_err(|_| damaged())?;
            entries.push(Stored { id: place::id_of(place), fields });
        }
        Ok(entries)
    }
}

/// Depends on everything that is stored of a block.
fn checksum(extent: &Extent, data: &[u8]) -> i64 {
    let numbers = [extent.first, extent.ordinal, extent.entries].map(i64::to_le_bytes);
    xxh3_64_with_seed(data, xxh3_64(numbers.as_flattened())).cast_signed()
}

pub(super) fn lane(session: &SqliteSession) -> Result<TrafficRow, SqlError> {
    let select = "SELECT last, appended, length, kept_from FROM lanes WHERE lane = ?1";
    session.query_one(select, &[TRAFFIC.into()])?.ok_or(SqlError::RowMissing)
}

/// Appends blocks; returns the place of the last entry.
pub(super) fn append(session: &SqliteSession, blocks: &[Block], now_ms: u64) -> Result<i64, Failure> {
    let lane = lane(session)?;
    let entries: i64 = blocks.iter().map(|block| count_of(block.entries)).sum();
    let mut first = place::at_most(Lane::Traffic, EntryId::at_ms(now_ms)).max(lane.last + 1);
    let last = first.saturating_add(entries - 1);
    if last >= place::end_of(Lane::Traffic) {
        return Err(Failure::IdsExhausted);
    }
    let mut ordinal = lane.appended;
    for block in blocks {
        let extent = Extent { first, ordinal, entries: count_of(block.entries) };
        insert(session, extent, &block.data)?;
        first += extent.entries;
        ordinal += extent.entries;
    }
    session.execute(
        "UPDATE lanes SET last = ?2, appended = appended + ?3, length = length + ?3 WHERE lane = ?1",
        &[TRAFFIC.into(), last.into(), entries.into()],
    )?;
    Ok(last)
}

pub(super) fn insert(session: &SqliteSession, extent: Extent, data: &[u8]) -> Result<(), SqlError> {
    let Extent { first, ordinal, entries } = extent;
    session.execute(
        "INSERT INTO blocks (first, ordinal, entries, checksum, data) VALUES (?1, ?2, ?3, ?4, ?5)",
        &[first.into(), ordinal.into(), entries.into(), checksum(&extent, data).into(), data.into()],
    )?;
    Ok(())
}

pub(super) fn count_of(entries: usize) -> i64 {
    i64::try_from(entries).unwrap_or(i64::MAX)
}

/// Entries that are not trimmed, in places from one to another, in order, at most `count`.
pub(super) fn read(
    session: &SqliteSession,
    (from, to): (i64, i64),
    count: usize,
) -> Result<Vec<Stored>, Failure> {
    let mut entries = Vec::new();
    if count == 0 {
        return Ok(entries);
    }
    let from = from.max(lane(session)?.kept_from);
    session.query_while(
        "SELECT first, ordinal, entries, checksum, data FROM blocks
         WHERE first >= coalesce((SELECT max(first) FROM blocks WHERE first <= ?1), ?1) AND first <= ?2
         ORDER BY first",
        &[from.into(), to.into()],
        |block: BlockRow| -> Result<bool, Failure> {
            if block.extent().last() >= from {
                let mut more = block.read((from, to), count - entries.len())?;
                entries.append(&mut more);
            }
            Ok(entries.len() < count)
        },
    )?;
    Ok(entries)
}

/// The last entries that are not trimmed and whose places are less than `before`, newest first, at most `count`.
pub(super) fn read_newest(
    session: &SqliteSession,
    before: i64,
    count: usize,
) -> Result<Vec<Stored>, Failure> {
    let mut entries = Vec::new();
    if count == 0 {
        return Ok(entries);
    }
    let kept_from = lane(session)?.kept_from;
    session.query_while(
        "SELECT first, ordinal, entries, checksum, data FROM blocks WHERE first < ?1 ORDER BY first DESC",
        &[before.into()],
        |block: BlockRow| -> Result<bool, Failure> {
            let to = block.extent().last().min(before - 1);
            let wanted = count_of(count - entries.len());
            let from = to.saturating_sub(wanted - 1).max(kept_from).max(block.first);
            let mut more = block.read((from, to), usize::MAX)?;
            more.reverse();
            entries.append(&mut more);
            Ok(entries.len() < count)
        },
    )?;
    Ok(entries)
}

/// The blocks with entries in places from one to another, in order.
pub(super) fn extents(session: &SqliteSession, from: i64, to: i64) -> Result<Vec<Extent>, SqlError> {
    let extents: Vec<Extent> = session.query(
        "SELECT first, ordinal, entries FROM blocks
         WHERE first >= coalesce((SELECT max(first) FROM blocks WHERE first <= ?1), ?1) AND first <= ?2
         ORDER BY first",
        &[from.into(), to.into()],
    )?;
    Ok(extents.into_iter().filter(|extent| extent.last() >= from).collect())
}

/// How many entries were ever appended up to a place; of those before the first block, which are trimmed, all.
pub(super) fn appended_up_to(
    session: &SqliteSession,
    place: i64,
    lane: &TrafficRow,
) -> Result<i64, SqlError> {
    let at_or_before =
        "SELECT first, ordinal, entries FROM blocks WHERE first <= ?1 ORDER BY first DESC LIMIT 1";
    if let Some(block) = session.query_one::<Extent>(at_or_before, &[place.into()])? {
        return Ok(block.ordinal + (place - block.first + 1).min(block.entries));
    }
    let first: Option<i64> = session.query_one("SELECT ordinal FROM blocks ORDER BY first LIMIT 1", &[])?;
    Ok(first.unwrap_or(lane.appended))
}

/// How many entries follow a place.
pub(super) fn unread_after(session: &SqliteSession, place: i64, lane: &TrafficRow) -> Result<i64, SqlError> {
    let place = place.max(lane.kept_from - 1);
    Ok((lane.appended - appended_up_to(session, place, lane)?).max(0))
}

/// The place of the oldest entry.
pub(super) fn first_place(session: &SqliteSession) -> Result<Option<i64>, SqlError> {
    let kept_from = lane(session)?.kept_from;
    let first: Option<i64> = session.query_one("SELECT first FROM blocks ORDER BY first LIMIT 1", &[])?;
    Ok(first.map(|first| first.max(kept_from)))
}

/// Removes entries before `bound`, at most about `step` of them; returns how many.
pub(super) fn trim(session: &SqliteSession, bound: i64, step: i64) -> Result<u64, SqlError> {
    let lane = lane(session)?;
    // Not beyond what exists: what is appended later is not trimmed.
    let mut bound = bound.min(lane.last + 1);
    let mut removed = 0;
    session.query_while(
        "SELECT first, ordinal, entries FROM blocks WHERE first < ?1 ORDER BY first",
        &[bound.into()],
        |block: Extent| -> Result<bool, SqlError> {
            removed += block.entries;
            if removed >= step {
                bound = bound.min(block.last() + 1);
            }
            Ok(removed < step)
        },
    )?;
    if bound <= lane.kept_from {
        return Ok(0);
    }
    let removed =
        unread_after(session, lane.kept_from - 1, &lane)? - unread_after(session, bound - 1, &lane)?;
    session.execute("DELETE FROM blocks WHERE first < ?1 AND first + entries <= ?1", &[bound.into()])?;
    session.execute(
        "UPDATE lanes SET kept_from = ?2, length = max(0, length - ?3) WHERE lane = ?1",
        &[TRAFFIC.into(), bound.into(), removed.into()],
    )?;
    Ok(super::to_u64(removed))
}

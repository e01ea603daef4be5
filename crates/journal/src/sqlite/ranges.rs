//! What was delivered of the traffic lane and not acknowledged: ranges of places.
//!
//! A delivery is one range, and its acknowledgement removes it. An acknowledgement of some entries splits it. A range
//! begins and ends with an entry, and has all entries in between.

use database::{SqlError, SqliteSession};

use super::blocks::{self, Extent};
use super::{Failure, place};
use crate::port::{Lane, Stored};

database::rows! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) struct Range {
        pub(super) first: i64,
        pub(super) last: i64,
        pub(super) entries: i64,
        pub(super) consumer: i64,
    }
}

impl Range {
    /// Entries that follow each other; none if there are none.
    pub(super) fn of(entries: &[Stored], consumer: i64) -> Option<Range> {
        let place_of = |stored: &Stored| place::at_most(Lane::Traffic, stored.id);
        Some(Range {
            first: place_of(entries.first()?),
            last: place_of(entries.last()?),
            entries: blocks::count_of(entries.len()),
            consumer,
        })
    }

    /// The part of a block in this range.
    fn part_of(&self, extent: &Extent) -> (i64, i64) {
        (self.first.max(extent.first), self.last.min(extent.last()))
    }
}

pub(super) fn insert(session: &SqliteSession, group: i64, range: &Range) -> Result<(), SqlError> {
    session.execute(
        "INSERT INTO pending_ranges (group_id, first, last, entries, consumer_id) VALUES (?1, ?2, ?3, ?4, ?5)",
        &[group.into(), range.first.into(), range.last.into(), range.entries.into(), range.consumer.into()],
    )?;
    Ok(())
}

fn delete(session: &SqliteSession, group: i64, range: &Range) -> Result<(), SqlError> {
    session.execute(
        "DELETE FROM pending_ranges WHERE group_id = ?1 AND first = ?2",
        &[group.into(), range.first.into()],
    )?;
    Ok(())
}

/// Removes entries from the ranges of a group; returns those that were pending. `places` are in order, without
/// repetitions.
pub(super) fn acknowledge(session: &SqliteSession, group: i64, places: &[i64]) -> Result<Vec<i64>, SqlError> {
    let (Some(first), Some(last)) = (places.first(), places.last()) else {
        return Ok(Vec::new());
    };
    let ranges: Vec<Range> = session.query(
        "SELECT first, last, entries, consumer_id FROM pending_ranges
         WHERE group_id = ?1 AND first <= ?3 AND last >= ?2 ORDER BY first",
        &[group.into(), (*first).into(), (*last).into()],
    )?;
    let mut acknowledged = Vec::with_capacity(places.len());
    for range in ranges {
        let asked = within(places, range.first, range.last);
        if asked.is_empty() {
            continue;
        }
        let extents = blocks::extents(session, range.first, range.last)?;
        let before = acknowledged.len();
        let remaining = split(&range, &extents, asked, &mut acknowledged);
        if acknowledged.len() > before {
            delete(session, group, &range)?;
            remaining.iter().try_for_each(|range| insert(session, group, range))?;
        }
    }
    Ok(acknowledged)
}

/// The places from one to another.
fn within(places: &[i64], from: i64, to: i64) -> &[i64] {
    let start = places.partition_point(|place| *place < from);
    let end = places.partition_point(|place| *place <= to);
    &places[start..end]
}

/// What remains of a range without the entries in these places, which are added to `removed`.
fn split(range: &Range, extents: &[Extent], places: &[i64], removed: &mut Vec<i64>) -> Vec<Range> {
    let mut remaining: Vec<Range> = Vec::new();
    // Whether the last one ends with the previous entry.
    let mut is_open = false;
    let mut keep = |first: i64, last: i64, is_open: bool| {
        if first > last {
            return;
        }
        match remaining.last_mut().filter(|_| is_open) {
            Some(open) => {
                open.last = last;
                open.entries += last - first + 1;
            }
            None => {
                remaining.push(Range { first, last, entries: last - first + 1, consumer: range.consumer })
            }
        }
    };
    for extent in extents {
        let (mut next, end) = range.part_of(extent);
        for place in within(places, next, end) {
            keep(next, place - 1, is_open);
            removed.push(*place);
            (next, is_open) = (place + 1, false);
        }
        keep(next, end, is_open);
        is_open = next <= end;
    }
    remaining
}

/// Assigns up to `count` pending entries of one consumer to another, and returns them, oldest first. Entries that do
/// not exist any more are left out, and no longer pending.
pub(super) fn take_over(
    session: &SqliteSession,
    group: i64,
    (from, to): (i64, i64),
    count: usize,
) -> Result<Vec<Stored>, Failure> {
    let ranges: Vec<Range> = session.query(
        "SELECT first, last, entries, consumer_id FROM pending_ranges
         WHERE group_id = ?1 AND consumer_id = ?2 ORDER BY first",
        &[group.into(), from.into()],
    )?;
    let mut taken = Vec::new();
    for range in ranges {
        if taken.len() >= count {
            break;
        }
        let mut entries = blocks::read(session, (range.first, range.last), count - taken.len())?;
        delete(session, group, &range)?;
        if let Some(of_consumer) = Range::of(&entries, to) {
            insert(session, group, &of_consumer)?;
            let rest = Range { first: of_consumer.last + 1, ..range };
            let extents = blocks::extents(session, rest.first, rest.last)?;
            for rest in split(&rest, &extents, &[], &mut Vec::new()) {
                insert(session, group, &rest)?;
            }
        }
        taken.append(&mut entries);
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(first: i64, entries: i64) -> Extent {
        Extent { first, ordinal: 0, entries }
    }

    fn shown(ranges: &[Range]) -> Vec<(i64, i64, i64)> {
        ranges.iter().map(|range| (range.first, range.last, range.entries)).collect()
    }

    #[test]
    fn a_range_is_split_at_what_is_acknowledged() {
        let extents = [extent(10, 5), extent(20, 1), extent(30, 10)];
        let range = Range { first: 12, last: 33, entries: 8, consumer: 1 };
        let split = |places: &[i64]| {
            let mut removed = Vec::new();
            (shown(&super::split(&range, &extents, places, &mut removed)), removed)
        };
        assert_eq!(split(&[]), (vec![(12, 33, 8)], vec![]));
        assert_eq!(split(&[12, 13, 14, 20, 30, 31, 32, 33]).0, []);
        assert_eq!(split(&[12, 33]), (vec![(13, 32, 6)], vec![12, 33]));
        assert_eq!(split(&[13, 20]).0, [(12, 12, 1), (14, 14, 1), (30, 33, 4)]);
        assert_eq!(split(&[14]).0, [(12, 13, 2), (20, 33, 5)]);
        // Places without an entry, and entries that are not in the range.
        assert_eq!(split(&[11, 15, 19, 25, 34]), (vec![(12, 33, 8)], vec![]));
    }
}

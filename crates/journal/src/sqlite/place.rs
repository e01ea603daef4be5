//! The key of an entry: its lane and its id in one integer.
//!
//! SQLite finds rows fastest by an integer, and finds the end of a lane without an index.

use crate::id::EntryId;
use crate::port::Lane;

const SEQ_BITS: u32 = 18;
const MS_BITS: u32 = 43;
const LANE_SHIFT: u32 = SEQ_BITS + MS_BITS;
const SEQ_MAX: u64 = (1 << SEQ_BITS) - 1;
/// In the year 2248.
const MS_MAX: u64 = (1 << MS_BITS) - 1;

/// The number of a lane in the tables. Never to be changed.
pub(super) const fn lane_number(lane: Lane) -> i64 {
    match lane {
        Lane::Traffic => 0,
        Lane::Dead => 1,
        Lane::Failed => 2,
        Lane::Risk => 3,
    }
}

/// Before every entry of a lane.
pub(super) const fn start_of(lane: Lane) -> i64 {
    lane_number(lane) << LANE_SHIFT
}

/// Behind every entry of a lane; the place behind it is still an integer.
pub(super) const fn end_of(lane: Lane) -> i64 {
    start_of(lane) + ((1 << LANE_SHIFT) - 2)
}

/// The place of an id; none if no entry can have it.
pub(super) fn exactly(lane: Lane, id: EntryId) -> Option<i64> {
    let is_possible = id.ms <= MS_MAX && id.seq <= SEQ_MAX;
    is_possible.then(|| at_most(lane, id))
}

/// The last place that is not behind `id`.
pub(super) fn at_most(lane: Lane, id: EntryId) -> i64 {
    let within = if id.ms > MS_MAX {
        (MS_MAX << SEQ_BITS) | SEQ_MAX
    } else {
        (id.ms << SEQ_BITS) | id.seq.min(SEQ_MAX)
    };
    let offset = i64::try_from(within).expect("milliseconds and numbers have 61 bits");
    (start_of(lane) + offset).min(end_of(lane))
}

/// The first place that is not before `id`.
pub(super) fn at_least(lane: Lane, id: EntryId) -> i64 {
    match exactly(lane, id) {
        Some(place) => place,
        None => (at_most(lane, id) + 1).min(end_of(lane)),
    }
}

/// The id of a place.
pub(super) fn id_of(place: i64) -> EntryId {
    let place = place.cast_unsigned();
    EntryId { ms: (place >> SEQ_BITS) & MS_MAX, seq: place & SEQ_MAX }
}

/// Places as the statements take them: a JSON array. Ids that no entry can have are left out.
pub(super) fn list(lane: Lane, ids: impl IntoIterator<Item = EntryId>) -> String {
    numbers(ids.into_iter().filter_map(|id| exactly(lane, id)))
}

/// Numbers as a JSON array.
pub(super) fn numbers(numbers: impl IntoIterator<Item = i64>) -> String {
    use std::fmt::Write as _;
    let mut text = String::from("[");
    for number in numbers {
        let separator = if text.len() > 1 { "," } else { "" };
        write!(text, "{separator}{number}").expect("memory takes every write");
    }
    text.push(']');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: EntryId = EntryId { ms: 1_794_742_234_000, seq: 3 };

    #[test]
    fn an_id_survives_being_a_place() {
        for lane in Lane::ALL {
            for id in [ID, EntryId { ms: 0, seq: 1 }, EntryId { ms: MS_MAX - 1, seq: SEQ_MAX }] {
                let place = exactly(lane, id).unwrap();
                assert_eq!(id_of(place), id);
                assert!(start_of(lane) < place && place < end_of(lane));
                assert_eq!((at_most(lane, id), at_least(lane, id)), (place, place));
            }
        }
    }

    #[test]
    fn lanes_do_not_touch() {
        for pair in Lane::ALL.windows(2) {
            assert!(end_of(pair[0]) < start_of(pair[1]));
        }
        assert!(end_of(Lane::Risk).checked_add(1).is_some());
    }

    #[test]
    fn ids_that_no_entry_has_lie_between_those_that_entries_have() {
        let between = EntryId { ms: ID.ms, seq: u64::MAX };
        assert_eq!(exactly(Lane::Dead, between), None);
        let last_of_ms = exactly(Lane::Dead, EntryId { ms: ID.ms, seq: SEQ_MAX }).unwrap();
        assert_eq!(
            (at_most(Lane::Dead, between), at_least(Lane::Dead, between)),
            (last_of_ms, last_of_ms + 1)
        );
        assert_eq!(at_most(Lane::Risk, EntryId::MAX), end_of(Lane::Risk));
        assert_eq!(at_least(Lane::Risk, EntryId::MAX), end_of(Lane::Risk));
        assert_eq!(
            list(Lane::Traffic, [EntryId::MAX, EntryId { ms: 0, seq: 7 }, EntryId { ms: 0, seq: 9 }]),
            "[7,9]"
        );
    }
}

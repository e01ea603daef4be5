//! The column `place`, the key of an entry: lane and id in one integer.
//!
//! SQLite finds rows fastest by an integer key, and the end of a lane without a further index.

use crate::id::EntryId;
use crate::port::Lane;

const SEQ_BITS: u32 = 18;
const MS_BITS: u32 = 43;
const LANE_SHIFT: u32 = SEQ_BITS + MS_BITS;
const SEQ_MAX: u64 = (1 << SEQ_BITS) - 1;
/// In the year 2248.
const MS_MAX: u64 = (1 << MS_BITS) - 1;

/// The number of a lane in the tables. Must never change.
pub(super) const fn lane_number(lane: Lane) -> i64 {
    match lane {
        Lane::Traffic => 0,
        Lane::Dead => 1,
        Lane::Failed => 2,
        Lane::Risk => 3,
    }
}

/// Less than every place of a lane.
pub(super) const fn start_of(lane: Lane) -> i64 {
    lane_number(lane) << LANE_SHIFT
}

/// Greater than every place of a lane, and not the greatest integer.
pub(super) const fn end_of(lane: Lane) -> i64 {
    start_of(lane) + ((1 << LANE_SHIFT) - 2)
}

/// The place of an id; none if no entry can have it.
pub(super) fn exactly(lane: Lane, id: EntryId) -> Option<i64> {
    let is_possible = id.ms <= MS_MAX && id.seq <= SEQ_MAX;
    is_possible.then(|| at_most(lane, id))
}

/// The greatest place whose id is not greater than `id`.
pub(super) fn at_most(lane: Lane, id: EntryId) -> i64 {
    let within = if id.ms > MS_MAX {
        (MS_MAX << SEQ_BITS) | SEQ_MAX
    } else {
        (id.ms << SEQ_BITS) | id.seq.min(SEQ_MAX)
    };
    let offset = i64::try_from(within).expect("milliseconds and sequence number have 61 bits");
    (start_of(lane) + offset).min(end_of(lane))
}

/// The least place whose id is not less than `id`.
pub(super) fn at_least(lane: Lane, id: EntryId) -> i64 {
    match exactly(lane, id) {
        Some(place) => place,
        None => (at_most(lane, id) + 1).min(end_of(lane)),
    }
}

pub(super) fn id_of(place: i64) -> EntryId {
    let place = place.cast_unsigned();
    EntryId { ms: (place >> SEQ_BITS) & MS_MAX, seq: place & SEQ_MAX }
}

/// Places in order, without repetitions. Ids that no entry can have are left out.
pub(super) fn sorted(lane: Lane, ids: impl IntoIterator<Item = EntryId>) -> Vec<i64> {
    let mut places: Vec<i64> = ids.into_iter().filter_map(|id| exactly(lane, id)).collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// Places as a JSON array, for statements. Ids that no entry can have are left out.
pub(super) fn list(lane: Lane, ids: impl IntoIterator<Item = EntryId>) -> String {
    numbers(ids.into_iter().filter_map(|id| exactly(lane, id)))
}

pub(super) fn numbers(numbers: impl IntoIterator<Item = i64>) -> String {
    use std::fmt::Write as _;
    let mut text = String::from("[");
    for number in numbers {
        let separator = if text.len() > 1 { "," } else { "" };
        write!(text, "{separator}{number}").expect("writing to memory cannot fail");
    }
    text.push(']');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: EntryId = EntryId { ms: 1_794_742_234_000, seq: 3 };

    #[test]
    fn ids_round_trip_through_places() {
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
    fn lanes_do_not_overlap() {
        for pair in Lane::ALL.windows(2) {
            assert!(end_of(pair[0]) < start_of(pair[1]));
        }
        assert!(end_of(Lane::Risk).checked_add(1).is_some());
    }

    #[test]
    fn ids_without_a_place_are_ordered_between_the_others() {
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

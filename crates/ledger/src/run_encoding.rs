//! Compact encoding of a run's ids and reported sums, written with every entry.
//!
//! A bit mask marks the non-zero numbers that follow. Ranges are encoded relative to the run's counters, and claimed
//! bytes relative to the length of their range: so a client that announces to one node needs few bytes.

use crate::reported::{Claimed, CounterRange, Reported};
use crate::run::Run;
use crate::varint::{push_number, take_number};
use domain::UnixTime;
use journal::EntryId;

const NUMBERS: usize = 24;
/// Set if anything was reported, to distinguish a report of zero bytes from none.
const MARK: u64 = 1;
/// Index of the first number of the ids. Rows of older versions have none.
const PLACES: usize = 17;

pub(crate) fn pack_told(bytes: &mut Vec<u8>, run: &Run) {
    let ends = Ends::of(run);
    let reported = &run.reported;
    let is_told = !reported.is_none();
    let [up_rate, up @ ..] =
        if is_told { numbers_of_claim(&reported.uploaded, ends.uploaded) } else { [0; 5] };
    let [down_rate, down @ ..] =
        if is_told { numbers_of_claim(&reported.downloaded, ends.downloaded) } else { [0; 5] };
    // The most frequent numbers come first, for a short mask. Rows of older versions have times instead of zeros.
    let first = [0, 0, up_rate, down_rate, 0, 0, reported.completions, 0, 0];
    let stopped = run.stopped.map_or([0, 0], |id| [difference(id.ms, run.last_id.ms) + 1, id.seq]);
    let places = [
        difference(run.first_id.ms, ms_of(run.first)) + 1,
        run.first_id.seq,
        difference(run.last_id.ms, ms_of(run.last)),
        run.last_id.seq,
    ];
    let mut numbers = [0; NUMBERS];
    let parts = [&first[..], &up, &down, &places, &stopped, &[reported.uncredited_upload]];
    for (number, value) in numbers.iter_mut().zip(parts.into_iter().flatten()) {
        *number = *value;
    }
    let mut mask = if is_told { MARK } else { 0 };
    for (position, number) in numbers.iter().enumerate() {
        mask |= u64::from(*number != 0) * (2 << position);
    }
    push_number(bytes, mask);
    numbers.iter().filter(|number| **number != 0).for_each(|number| push_number(bytes, *number));
}

/// Decodes into a run whose other columns are set; none if the bytes are malformed.
pub(crate) fn unpack_told(bytes: &mut &[u8], run: &mut Run) -> Option<()> {
    let mask = take_number(bytes)?;
    if mask >> (NUMBERS + 1) != 0 {
        return None;
    }
    let mut numbers = [0; NUMBERS];
    for (position, number) in numbers.iter_mut().enumerate() {
        if mask & 2 << position != 0 {
            *number = take_number(bytes)?;
        }
    }
    unpack_places(&numbers[PLACES..NUMBERS - 1], run)?;
    if mask & MARK != 0 {
        let ends = Ends::of(run);
        let [_, _, up_rate, down_rate, _, _, completions, _, _, u0, u1, u2, u3, d0, d1, d2, d3, ..] = numbers;
        run.reported = Reported {
            uploaded: claim_of([up_rate, u0, u1, u2, u3], ends.uploaded),
            downloaded: claim_of([down_rate, d0, d1, d2, d3], ends.downloaded),
            completions,
            uncredited_upload: numbers[NUMBERS - 1],
        };
    }
    Some(())
}

/// Rows of older versions without ids use the times instead.
fn unpack_places(numbers: &[u64], run: &mut Run) -> Option<()> {
    let [first_ms, first_seq, last_ms, last_seq, stopped_ms, stopped_seq] = numbers.try_into().ok()?;
    let (first, last) = (ms_of(run.first), ms_of(run.last));
    let Some(first_ms) = u64::checked_sub(first_ms, 1) else {
        run.first_id = EntryId { ms: first, seq: 0 };
        run.last_id = EntryId { ms: last, seq: u64::MAX };
        return Some(());
    };
    run.first_id = EntryId { ms: added(first, first_ms), seq: first_seq };
    run.last_id = EntryId { ms: added(last, last_ms), seq: last_seq };
    let stopped = u64::checked_sub(stopped_ms, 1);
    run.stopped = stopped.map(|ms| EntryId { ms: added(run.last_id.ms, ms), seq: stopped_seq });
    Some(())
}

pub(crate) fn ms_of(at: UnixTime) -> u64 {
    u64::from(at.0) * 1000
}

/// The counter ranges of a run.
struct Ends {
    uploaded: CounterRange,
    downloaded: CounterRange,
}

impl Ends {
    fn of(run: &Run) -> Ends {
        Ends {
            uploaded: CounterRange { from: run.low.uploaded, to: run.high.uploaded },
            downloaded: CounterRange { from: run.low.downloaded, to: run.high.downloaded },
        }
    }
}

/// The bonus is encoded as a rate per byte and a remainder: with one multiplier the remainder is zero.
fn numbers_of_claim(claimed: &Claimed, ends: CounterRange) -> [u64; 5] {
    let over = claimed.over;
    let per = i128::from(claimed.bytes.max(1));
    let (rate, rest) = (claimed.bonus_x100.div_euclid(per), claimed.bonus_x100.rem_euclid(per));
    // A percentage is far from the limit, and the rest is less than the bytes.
    let rate = i64::try_from(rate).unwrap_or(i64::MAX);
    let rest = u64::try_from(rest).unwrap_or_default();
    [
        difference(rate.cast_unsigned(), 0),
        difference(claimed.bytes, over.length()),
        rest,
        difference(over.from, ends.from),
        difference(over.to, ends.to),
    ]
}

fn claim_of([rate, bytes, rest, from, to]: [u64; 5], ends: CounterRange) -> Claimed {
    let over = CounterRange { from: added(ends.from, from), to: added(ends.to, to) };
    let bytes = added(over.length(), bytes);
    let bonus = i128::from(added(0, rate).cast_signed()) * i128::from(bytes.max(1)) + i128::from(rest);
    Claimed { bytes, bonus_x100: bonus, over }
}

/// Zigzag-encoded difference.
pub(crate) fn difference(number: u64, from: u64) -> u64 {
    let signed = number.wrapping_sub(from).cast_signed();
    (signed << 1 ^ signed >> 63).cast_unsigned()
}

/// Inverse of [`difference`].
pub(crate) fn added(from: u64, difference: u64) -> u64 {
    let sign = (difference & 1).wrapping_neg();
    from.wrapping_add(difference >> 1 ^ sign)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Counters, RunKey};
    use domain::{RunId, UnixTime};
    use proptest::prelude::*;

    fn run(reported: Reported) -> Run {
        Run {
            key: RunKey { run: RunId(1), node: 1 },
            low: Counters { uploaded: 5_000_000_000, downloaded: 0 },
            high: Counters { uploaded: 9_000_000_000, downloaded: 0 },
            first: UnixTime(1_794_000_000),
            last: UnixTime(1_794_100_000),
            first_id: EntryId { ms: 1_794_000_000_123, seq: 4 },
            last_id: EntryId { ms: 1_794_100_000_456, seq: 0 },
            is_settled: false,
            stopped: None,
            reported,
        }
    }

    fn survives(reported: Reported) -> bool {
        let stopped = Run { stopped: Some(EntryId { ms: 1_794_099_000_789, seq: 7 }), ..run(reported) };
        [run(reported), stopped].iter().all(|run| unpacked(&pack(run), run) == Some(*run))
    }

    fn pack(run: &Run) -> Vec<u8> {
        let mut bytes = Vec::new();
        pack_told(&mut bytes, run);
        bytes
    }

    fn unpacked(mut bytes: &[u8], run: &Run) -> Option<Run> {
        let (first_id, last_id) = (EntryId::ZERO, EntryId::ZERO);
        let mut read = Run { stopped: None, reported: Reported::NONE, first_id, last_id, ..*run };
        unpack_told(&mut bytes, &mut read)?;
        bytes.is_empty().then_some(read)
    }

    prop_compose! {
        fn claim()(bytes: u64, percent in -100..9900_i128, odd in 0..100_u64, counter: u64) -> Claimed {
            Claimed::up_to(counter, bytes, i128::from(bytes) * percent + i128::from(odd.min(bytes / 2)))
        }
    }

    proptest! {
        #[test]
        fn reported_sums_round_trip(
            claims in [claim(), claim()], others in [claim(), claim()], completions: u64, uncredited_upload: u64,
        ) {
            let reported = |uploaded, downloaded| Reported { uploaded, downloaded, completions, uncredited_upload };
            let [first, second] = [reported(claims[0], claims[1]), reported(others[0], others[1])];
            prop_assert!(survives(first) && survives(first.with(second)));
        }

        #[test]
        fn decoding_never_panics(bytes: Vec<u8>) {
            let _ = unpack_told(&mut &bytes[..], &mut run(Reported::NONE));
        }
    }

    #[test]
    fn a_client_on_one_node_needs_few_bytes() {
        assert!(survives(Reported::NONE) && pack(&run(Reported::NONE)).len() <= 12);
        let seeding = Reported {
            uploaded: Claimed::up_to(9_000_000_000, 4_000_000_000, 0),
            downloaded: Claimed::up_to(0, 0, 0),
            ..Reported::NONE
        };
        assert!(survives(seeding));
        assert!(pack(&run(seeding)).len() <= 12);
        let uploaded = Claimed::up_to(9_000_000_000, 4_000_000_000, 4_000_000_000 * 100);
        assert!(pack(&run(Reported { uploaded, ..seeding })).len() <= 14);
    }

    /// Rows of older versions contain times here, which are ignored.
    #[test]
    fn times_in_rows_of_older_versions_are_ignored() {
        let run = run(Reported {
            uploaded: Claimed::up_to(9_000_000_000, 4_000_000_000, 0),
            downloaded: Claimed::up_to(0, 0, 0),
            ..Reported::NONE
        });
        let former = [0b11, 0xa0, 0x8d, 0x06];
        let first_id = EntryId { ms: 1_794_000_000_000, seq: 0 };
        let last_id = EntryId { ms: 1_794_100_000_000, seq: u64::MAX };
        assert_eq!(unpacked(&former, &run), Some(Run { first_id, last_id, ..run }));
    }

    #[test]
    fn the_longest_encoding_is_bounded() {
        let most = Claimed {
            bytes: 1 << 63,
            bonus_x100: i128::MAX >> 1,
            over: CounterRange { from: 1 << 40, to: 1 },
        };
        let reported =
            Reported { uploaded: most, downloaded: most, completions: u64::MAX, uncredited_upload: u64::MAX };
        let far = EntryId { ms: u64::MAX >> 1, seq: u64::MAX };
        let run = Run { first_id: far, last_id: far, stopped: Some(far), ..run(reported) };
        assert!(pack(&run).len() <= 255);
    }
}

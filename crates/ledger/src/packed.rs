//! What a run told, in few bytes: they are written with every entry.
//!
//! A mask says which numbers follow; zeros do not. Where things lie is told from the ends of the run, and how many bytes
//! were claimed by how that differs from what they reach over: so of a client that one node hears, little more than its
//! time is written. No bytes mean that nothing was told.

use crate::run::Run;
use crate::told::{Claimed, Reach, Spent, Told};
use crate::varint::{push_number, take_number};

/// How many numbers there are.
const NUMBERS: usize = 17;
/// Always in the mask, so that a run that told no more than where its counters stood differs from one that told nothing.
const MARK: u64 = 1;

/// Writes what a run told.
pub(crate) fn pack(run: &Run) -> Vec<u8> {
    let told = &run.told;
    if told.is_nothing() {
        return Vec::new();
    }
    let ends = Ends::of(run);
    let [seeding, seeding_from, seeding_to] = numbers_of_time(&told.seeding, ends.time);
    let [leeching, leeching_from, leeching_to] = numbers_of_time(&told.leeching, ends.time);
    let [up_rate, up @ ..] = numbers_of_claim(&told.uploaded, ends.uploaded);
    let [down_rate, down @ ..] = numbers_of_claim(&told.downloaded, ends.downloaded);
    // What is there most often comes first, for a short mask.
    let [rates, switches] = [[up_rate, down_rate], [seeding_from, leeching_to]];
    let rare = [told.completions, seeding_to, leeching_from];
    let numbers = [&[seeding, leeching], &rates, &switches, &rare[..], &up, &down].concat();
    let present = numbers.iter().enumerate().filter(|(_, number)| **number != 0);
    let mask = present.clone().fold(MARK, |mask, (position, _)| mask | 2 << position);
    let mut bytes = Vec::with_capacity(16);
    push_number(&mut bytes, mask);
    present.for_each(|(_, number)| push_number(&mut bytes, *number));
    bytes
}

/// Reads what a run told, of which everything else is known; none if the bytes are anything else.
pub(crate) fn unpack(mut bytes: &[u8], run: &Run) -> Option<Told> {
    if bytes.is_empty() {
        return Some(Told::NOTHING);
    }
    let mask = take_number(&mut bytes)?;
    if mask & MARK == 0 || mask >> (NUMBERS + 1) != 0 {
        return None;
    }
    let mut numbers = [0; NUMBERS];
    for (position, number) in numbers.iter_mut().enumerate() {
        if mask & 2 << position != 0 {
            *number = take_number(&mut bytes)?;
        }
    }
    let ends = Ends::of(run);
    let [seeding, leeching, up_rate, down_rate, seeding_from, leeching_to, rest @ ..] = numbers;
    let [completions, seeding_to, leeching_from, u0, u1, u2, u3, d0, d1, d2, d3] = rest;
    bytes.is_empty().then_some(Told {
        seeding: time_of([seeding, seeding_from, seeding_to], ends.time),
        leeching: time_of([leeching, leeching_from, leeching_to], ends.time),
        uploaded: claim_of([up_rate, u0, u1, u2, u3], ends.uploaded),
        downloaded: claim_of([down_rate, d0, d1, d2, d3], ends.downloaded),
        completions,
    })
}

/// Between which moments a run was heard, and between which counters.
struct Ends {
    time: Reach,
    uploaded: Reach,
    downloaded: Reach,
}

impl Ends {
    fn of(run: &Run) -> Ends {
        Ends {
            time: Reach { from: run.first.0.into(), to: run.last.0.into() },
            uploaded: Reach { from: run.low.uploaded, to: run.high.uploaded },
            downloaded: Reach { from: run.low.downloaded, to: run.high.downloaded },
        }
    }
}

fn numbers_of_time(spent: &Spent, ends: Reach) -> [u64; 3] {
    if spent.seconds == 0 {
        return [0; 3];
    }
    [spent.seconds, difference(spent.over.from, ends.from), difference(spent.over.to, ends.to)]
}

fn time_of([seconds, from, to]: [u64; 3], ends: Reach) -> Spent {
    if seconds == 0 {
        return Spent::NONE;
    }
    Spent { seconds, over: Reach { from: added(ends.from, from), to: added(ends.to, to) } }
}

/// The bonus is written as so much a byte, and the rest: with one multiplier there is none.
fn numbers_of_claim(claimed: &Claimed, ends: Reach) -> [u64; 5] {
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

fn claim_of([rate, bytes, rest, from, to]: [u64; 5], ends: Reach) -> Claimed {
    let over = Reach { from: added(ends.from, from), to: added(ends.to, to) };
    let bytes = added(over.length(), bytes);
    let bonus = i128::from(added(0, rate).cast_signed()) * i128::from(bytes.max(1)) + i128::from(rest);
    Claimed { bytes, bonus_x100: bonus, over }
}

/// How two numbers differ, such that a small difference either way is a small number.
fn difference(number: u64, from: u64) -> u64 {
    let signed = number.wrapping_sub(from).cast_signed();
    (signed << 1 ^ signed >> 63).cast_unsigned()
}

/// The number that differs so.
fn added(from: u64, difference: u64) -> u64 {
    let sign = (difference & 1).wrapping_neg();
    from.wrapping_add(difference >> 1 ^ sign)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Counters, RunKey};
    use domain::{RunId, UnixTime};
    use proptest::prelude::*;

    fn run(told: Told) -> Run {
        Run {
            key: RunKey { run: RunId(1), node: 1 },
            low: Counters { uploaded: 5_000_000_000, downloaded: 0 },
            high: Counters { uploaded: 9_000_000_000, downloaded: 0 },
            first: UnixTime(1_794_000_000),
            last: UnixTime(1_794_100_000),
            is_settled: false,
            told,
        }
    }

    fn survives(told: Told) -> bool {
        let run = run(told);
        unpack(&pack(&run), &run) == Some(told)
    }

    prop_compose! {
        fn claim()(bytes: u64, percent in -100..9900_i128, odd in 0..100_u64, counter: u64) -> Claimed {
            Claimed::up_to(counter, bytes, i128::from(bytes) * percent + i128::from(odd.min(bytes / 2)))
        }
    }

    proptest! {
        #[test]
        fn what_a_run_told_survives_being_packed(
            times: [(u32, u32); 2], claims in [claim(), claim()], others in [claim(), claim()], completions: u64,
        ) {
            let [seeding, leeching] = times.map(|(at, seconds)| Spent::until(at.into(), seconds.into()));
            let told = |uploaded, downloaded| Told { seeding, leeching, uploaded, downloaded, completions };
            let [first, second] = [told(claims[0], claims[1]), told(others[0], others[1])];
            prop_assert!(survives(first) && survives(first.with(second)));
        }

        #[test]
        fn no_bytes_make_unpacking_panic(bytes: Vec<u8>) {
            let _ = unpack(&bytes, &run(Told::NOTHING));
        }
    }

    #[test]
    fn little_is_written_of_a_client_that_one_node_hears() {
        assert!(survives(Told::NOTHING) && pack(&run(Told::NOTHING)).is_empty());
        let seeding = Told {
            seeding: Spent::until(1_794_100_000, 100_000),
            uploaded: Claimed::up_to(9_000_000_000, 4_000_000_000, 0),
            downloaded: Claimed::up_to(0, 0, 0),
            ..Told::NOTHING
        };
        assert!(survives(seeding));
        assert_eq!(pack(&run(seeding)).len(), 4);
        let uploaded = Claimed::up_to(9_000_000_000, 4_000_000_000, 4_000_000_000 * 100);
        assert_eq!(pack(&run(Told { uploaded, ..seeding })).len(), 6);
    }

    #[test]
    fn the_most_that_can_be_told_has_room_in_its_column() {
        let most =
            Claimed { bytes: 1 << 63, bonus_x100: i128::MAX >> 1, over: Reach { from: 1 << 40, to: 1 } };
        let spent = Spent { seconds: u64::MAX, over: Reach { from: 1 << 63, to: 1 << 62 } };
        let told =
            Told { seeding: spent, leeching: spent, uploaded: most, downloaded: most, completions: u64::MAX };
        assert!(pack(&run(told)).len() <= 200);
    }
}

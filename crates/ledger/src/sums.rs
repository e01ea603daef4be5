//! What is known of a client only as a sum: no run tells of it.
//!
//! Three things are: what runs had contribution that were put away ([`mod@crate::settle`]), what other producers' entries
//! contribution, which have no totals, and what was withheld because the user's clients together claimed too much. All are in
//! the account; kept here as well, they say which part of it is whose. Beside them stands the client's token bucket.
//!
//! Rows from before this was kept have no sums: what such a client contribution is in the account, and nobody knows which part.

use domain::UnixTime;

use crate::bucket::Bucket;
use crate::varint::{push_number, take_number};

/// Bytes that were credited. Below zero where something was taken back that had been credited before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes uploaded.
    pub uploaded: i128,
    /// Bytes downloaded.
    pub downloaded: i128,
}

impl Moved {
    /// Both together.
    #[must_use]
    pub fn with(self, other: Moved) -> Moved {
        Moved {
            uploaded: self.uploaded.saturating_add(other.uploaded),
            downloaded: self.downloaded.saturating_add(other.downloaded),
        }
    }

    /// What is left of it without `other`.
    #[must_use]
    pub fn without(self, other: Moved) -> Moved {
        Moved {
            uploaded: self.uploaded.saturating_sub(other.uploaded),
            downloaded: self.downloaded.saturating_sub(other.downloaded),
        }
    }
}

/// What is known of a client only as a sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// What runs had contribution that were put away.
    pub settled: Moved,
    /// What entries without totals contribution, which other producers wrote.
    pub foreign: Moved,
    /// What was not credited because of the limit over all clients of the user.
    pub withheld: Moved,
    /// The client's bucket before the oldest run that is kept.
    pub bucket: Bucket,
    /// The client's bucket for entries without totals.
    pub foreign_bucket: Bucket,
}

impl Sums {
    /// What they add to the account.
    pub fn contribution(&self) -> Moved {
        self.settled.with(self.foreign).without(self.withheld)
    }
}

/// How many numbers there are.
const NUMBERS: usize = 12;

/// Writes sums, in few bytes: a mask says which numbers follow. No bytes mean that all are zero.
pub(crate) fn pack(sums: &Sums) -> Vec<u8> {
    let Sums { settled, foreign, withheld, bucket, foreign_bucket } = sums;
    let spent = |bytes: u128| i128::try_from(bytes).unwrap_or(i128::MAX);
    let numbers = [
        settled.uploaded,
        settled.downloaded,
        foreign.uploaded,
        foreign.downloaded,
        withheld.uploaded,
        withheld.downloaded,
        bucket.at.0.into(),
        spent(bucket.spent_up),
        spent(bucket.spent_down),
        foreign_bucket.at.0.into(),
        spent(foreign_bucket.spent_up),
        spent(foreign_bucket.spent_down),
    ];
    let mut bytes = Vec::new();
    if numbers == [0; NUMBERS] {
        return bytes;
    }
    let present = numbers.iter().enumerate().filter(|(_, number)| **number != 0);
    push_number(&mut bytes, present.clone().fold(0, |mask, (position, _)| mask | 1 << position));
    for (_, number) in present {
        // Small numbers either way are small ones.
        let folded = (number << 1 ^ number >> 127).cast_unsigned();
        push_number(&mut bytes, folded as u64);
        push_number(&mut bytes, (folded >> 64) as u64);
    }
    bytes
}

/// Reads sums; none if the bytes are anything else.
pub(crate) fn unpack(mut bytes: &[u8]) -> Option<Sums> {
    if bytes.is_empty() {
        return Some(Sums::default());
    }
    let mask = take_number(&mut bytes)?;
    if mask >> NUMBERS != 0 {
        return None;
    }
    let mut numbers = [0; NUMBERS];
    for (position, number) in numbers.iter_mut().enumerate() {
        if mask & 1 << position != 0 {
            let low = take_number(&mut bytes)?;
            let folded = u128::from(low) | u128::from(take_number(&mut bytes)?) << 64;
            *number = ((folded >> 1) ^ (folded & 1).wrapping_neg()).cast_signed();
        }
    }
    if !bytes.is_empty() {
        return None;
    }
    let moved = |uploaded, downloaded| Moved { uploaded, downloaded };
    let bucket = |at: i128, up: i128, down: i128| {
        Some(Bucket {
            at: UnixTime(u32::try_from(at).ok()?),
            spent_up: u128::try_from(up).ok()?,
            spent_down: u128::try_from(down).ok()?,
        })
    };
    let [
        settled_up,
        settled_down,
        foreign_up,
        foreign_down,
        withheld_up,
        withheld_down,
        own @ ..,
        at,
        up,
        down,
    ] = numbers;
    Some(Sums {
        settled: moved(settled_up, settled_down),
        foreign: moved(foreign_up, foreign_down),
        withheld: moved(withheld_up, withheld_down),
        bucket: bucket(own[0], own[1], own[2])?,
        foreign_bucket: bucket(at, up, down)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sums([a, b, c, d, e, f, at, up, down, other_at, other_up, other_down]: [i128; NUMBERS]) -> Sums {
        let moved = |uploaded, downloaded| Moved { uploaded, downloaded };
        let spent = |bytes: i128| bytes.unsigned_abs() >> 1;
        Sums {
            settled: moved(a, b),
            foreign: moved(c, d),
            withheld: moved(e, f),
            bucket: Bucket { at: UnixTime(at as u32), spent_up: spent(up), spent_down: spent(down) },
            foreign_bucket: Bucket {
                at: UnixTime(other_at as u32),
                spent_up: spent(other_up),
                spent_down: spent(other_down),
            },
        }
    }

    proptest! {
        #[test]
        fn sums_survive_being_packed(numbers: [i128; NUMBERS], shift in 0..127) {
            let sums = sums(numbers.map(|number| number >> shift));
            prop_assert_eq!(unpack(&pack(&sums)), Some(sums));
        }

        #[test]
        fn no_bytes_make_unpacking_panic(bytes: Vec<u8>) {
            let _ = unpack(&bytes);
        }
    }

    #[test]
    fn most_clients_need_no_bytes_and_the_most_has_room_in_its_column() {
        assert!(pack(&Sums::default()).is_empty());
        for number in [i128::MIN, i128::MAX] {
            let most = sums([number; NUMBERS]);
            assert!(pack(&most).len() <= 255);
            assert_eq!(unpack(&pack(&most)), Some(most));
        }
    }
}

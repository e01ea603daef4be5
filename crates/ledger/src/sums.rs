//! Amounts of a client that no run accounts for.
//!
//! These are: the contributions of settled runs ([`mod@crate::settle`]), of entries of other producers, which have no
//! totals, and what was withheld because of the user's limit. All are part of the account; they are also stored here to
//! attribute them to the client. The client's token buckets are stored beside them.
//!
//! Clients of older versions have no sums: their contribution is in the account, without attribution.

use domain::UnixTime;

use crate::bucket::Bucket;
use crate::varint::{push_number, push_signed, take_number, take_signed};

/// Credited bytes. Negative if more was taken back than credited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    pub uploaded: i128,
    pub downloaded: i128,
}

impl Moved {
    #[must_use]
    pub fn with(self, other: Moved) -> Moved {
        Moved {
            uploaded: self.uploaded.saturating_add(other.uploaded),
            downloaded: self.downloaded.saturating_add(other.downloaded),
        }
    }

    #[must_use]
    pub fn without(self, other: Moved) -> Moved {
        Moved {
            uploaded: self.uploaded.saturating_sub(other.uploaded),
            downloaded: self.downloaded.saturating_sub(other.downloaded),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Contributions of settled runs.
    pub settled: Moved,
    /// Contributions of entries without totals, from other producers.
    pub foreign: Moved,
    /// Not credited because of the limit over all clients of the user.
    pub withheld: Moved,
    /// The client's bucket before the oldest stored run.
    pub bucket: Bucket,
    /// The client's bucket for entries without totals.
    pub foreign_bucket: Bucket,
}

impl Sums {
    pub fn contribution(&self) -> Moved {
        self.settled.with(self.foreign).without(self.withheld)
    }
}

const NUMBERS: usize = 12;

/// A bit mask marks the non-zero numbers that follow. Empty if all are zero.
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
    present.for_each(|(_, number)| push_signed(&mut bytes, *number));
    bytes
}

/// None if the bytes are malformed.
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
            *number = take_signed(&mut bytes)?;
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
        fn packed_sums_round_trip(numbers: [i128; NUMBERS], shift in 0..127) {
            let sums = sums(numbers.map(|number| number >> shift));
            prop_assert_eq!(unpack(&pack(&sums)), Some(sums));
        }

        #[test]
        fn unpacking_never_panics(bytes: Vec<u8>) {
            let _ = unpack(&bytes);
        }
    }

    #[test]
    fn most_clients_need_no_bytes_and_the_longest_encoding_fits_the_column() {
        assert!(pack(&Sums::default()).is_empty());
        for number in [i128::MIN, i128::MAX] {
            let most = sums([number; NUMBERS]);
            assert!(pack(&most).len() <= 255);
            assert_eq!(unpack(&pack(&most)), Some(most));
        }
    }
}

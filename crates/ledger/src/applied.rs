//! Compact encoding of the entry ids that a consumer has applied: written with every batch (L6).
//!
//! Ids are sorted and delta-encoded as varints; adjacent ids take two bytes.

use std::collections::BTreeSet;

use journal::EntryId;

use crate::varint::{push_number, take_number};

/// Migration 8 put this before the ids of every consumer: older versions cannot read it, and apply nothing more.
const BARRIER: [u8; 10] = [0xff; 10];

pub fn encode(ids: &BTreeSet<EntryId>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ids.len() * 2 + 8);
    let mut previous = EntryId::ZERO;
    for id in ids {
        let ms_more = id.ms - previous.ms;
        let seq_from = if ms_more == 0 { previous.seq } else { 0 };
        push_number(&mut bytes, ms_more);
        push_number(&mut bytes, id.seq - seq_from);
        previous = *id;
    }
    bytes
}

/// None if the bytes are malformed.
pub fn decode(bytes: &[u8]) -> Option<BTreeSet<EntryId>> {
    let mut bytes = bytes.strip_prefix(&BARRIER).unwrap_or(bytes);
    let mut ids = BTreeSet::new();
    let mut previous = EntryId::ZERO;
    while !bytes.is_empty() {
        let ms_more = take_number(&mut bytes)?;
        let seq_more = take_number(&mut bytes)?;
        let seq_from = if ms_more == 0 { previous.seq } else { 0 };
        previous = EntryId { ms: previous.ms.checked_add(ms_more)?, seq: seq_from.checked_add(seq_more)? };
        ids.insert(previous);
    }
    Some(ids)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn l6_ids_round_trip(pairs: Vec<(u64, u64)>) {
            let ids: BTreeSet<EntryId> = pairs.iter().map(|(ms, seq)| EntryId { ms: *ms, seq: *seq }).collect();
            prop_assert_eq!(decode(&encode(&ids)), Some(ids));
        }

        #[test]
        fn decoding_never_panics(bytes: Vec<u8>) {
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn ids_behind_the_barrier_are_read_and_older_versions_cannot() {
        let ids = BTreeSet::from([EntryId { ms: 5, seq: 6 }]);
        assert_eq!(decode(&[&BARRIER[..], &encode(&ids)].concat()), Some(ids));
        assert_eq!(take_number(&mut &BARRIER[..]), None);
    }

    #[test]
    fn adjacent_ids_take_two_bytes() {
        let ids: BTreeSet<EntryId> = (0..1000).map(|seq| EntryId { ms: 1_794_742_234_000, seq }).collect();
        assert!(encode(&ids).len() < 2010);
    }
}

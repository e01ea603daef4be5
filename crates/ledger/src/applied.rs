//! Which entries a consumer has applied, in few bytes: they are written with every batch (L6).
//!
//! Ids are sorted and coded as differences, in as many bytes as each needs; neighbours in the journal cost two.

use std::collections::BTreeSet;

use journal::EntryId;

/// Writes ids.
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

/// Reads ids; none if the bytes are anything else.
pub fn decode(mut bytes: &[u8]) -> Option<BTreeSet<EntryId>> {
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

/// Seven bits a byte, the lowest first; the eighth says that more follow.
fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn l6_ids_survive_being_packed(pairs: Vec<(u64, u64)>) {
            let ids: BTreeSet<EntryId> = pairs.iter().map(|(ms, seq)| EntryId { ms: *ms, seq: *seq }).collect();
            prop_assert_eq!(decode(&encode(&ids)), Some(ids));
        }

        #[test]
        fn no_bytes_make_unpacking_panic(bytes: Vec<u8>) {
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn neighbours_cost_two_bytes() {
        let ids: BTreeSet<EntryId> = (0..1000).map(|seq| EntryId { ms: 1_794_742_234_000, seq }).collect();
        assert!(encode(&ids).len() < 2010);
    }
}

//! Slots by hash, in one array: a lookup reads one cache line, and the array grows by less than twice.

use crate::members::{SLOT_BITS, SLOTS_MAX};

/// A cell holds a slot and, above it, some bits of its hash.
const TAG_MAX: u32 = (1 << (u32::BITS - SLOT_BITS)) - 2;
/// A tag above the greatest marks a cell that was never used since the last copy, or is no longer used.
const EMPTY: u32 = u32::MAX;
const DEAD: u32 = u32::MAX - 1;
const CELLS_MIN: usize = 8;

/// The slots' records are elsewhere: callers compare them, and give their hashes when the index grows.
#[derive(Debug, Default)]
pub(crate) struct SlotIndex {
    cells: Vec<u32>,
    live: usize,
    dead: usize,
}

/// From the lowest bits of the hash; the cell is chosen by the highest.
fn tag_of(hash: u64) -> u32 {
    (hash as u32 & (TAG_MAX + 1)).min(TAG_MAX)
}

fn cell_of(hash: u64, slot: u32) -> u32 {
    tag_of(hash) << SLOT_BITS | slot
}

fn slot_of(cell: u32) -> u32 {
    cell & (SLOTS_MAX as u32 - 1)
}

impl SlotIndex {
    /// Slots whose records may have this hash. Every slot inserted with it is among them.
    pub(crate) fn slots_like(&self, hash: u64) -> impl Iterator<Item = u32> {
        let tag = tag_of(hash);
        let cells = self.probe(hash).map(|index| self.cells[index]).take_while(|cell| *cell != EMPTY);
        cells.filter(move |cell| cell >> SLOT_BITS == tag).map(slot_of)
    }

    /// All slots, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.cells.iter().filter(|cell| **cell < DEAD).map(|cell| slot_of(*cell))
    }

    /// Adds a slot that is not in the index.
    pub(crate) fn insert(&mut self, hash: u64, slot: u32, hash_of: impl Fn(u32) -> u64) {
        // At most four fifths, so that a search is short.
        if (self.live + self.dead + 1) * 5 > self.cells.len() * 4 {
            self.copy(hash_of);
        }
        let free = self.probe(hash).find(|index| self.cells[*index] >= DEAD).unwrap_or_default();
        self.dead -= usize::from(self.cells[free] == DEAD);
        self.live += 1;
        self.cells[free] = cell_of(hash, slot);
    }

    pub(crate) fn remove(&mut self, hash: u64, slot: u32) {
        let wanted = cell_of(hash, slot);
        let found = self
            .probe(hash)
            .take_while(|index| self.cells[*index] != EMPTY)
            .find(|index| self.cells[*index] == wanted);
        if let Some(index) = found {
            self.cells[index] = DEAD;
            (self.live, self.dead) = (self.live - 1, self.dead + 1);
        }
    }

    /// Indices of cells from the one of this hash on, around and around: callers stop at an empty cell.
    fn probe(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let count = self.cells.len();
        let mut next = ((u128::from(hash) * count as u128) >> 64) as usize;
        std::iter::from_fn(move || {
            let index = next;
            next = if index + 1 == count { 0 } else { index + 1 };
            (count > 0).then_some(index)
        })
    }

    /// Into a new array, without dead cells, with room for two fifths more.
    fn copy(&mut self, hash_of: impl Fn(u32) -> u64) {
        let count = ((self.live + 1) * 7 / 4).max(CELLS_MIN);
        let former = std::mem::replace(&mut self.cells, vec![EMPTY; count]);
        self.dead = 0;
        for slot in former.into_iter().filter(|cell| *cell < DEAD).map(slot_of) {
            let hash = hash_of(slot);
            let free = self.probe(hash).find(|index| self.cells[*index] == EMPTY).unwrap_or_default();
            self.cells[free] = cell_of(hash, slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_finds_what_was_inserted() {
        // Few hashes, so that many slots share one.
        let hash_of = |slot: u32| u64::from(slot / 3 % 997).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = fastrand::Rng::with_seed(3);
        let mut index = SlotIndex::default();
        let mut plain = std::collections::BTreeSet::new();
        for step in 0..40_000 {
            let slot = SLOTS_MAX as u32 - 1 - random.u32(..5_000);
            let is_growing = step % 10_000 < 6_000;
            if plain.contains(&slot) && (!is_growing || random.bool()) {
                index.remove(hash_of(slot), slot);
                plain.remove(&slot);
            } else if is_growing && plain.insert(slot) {
                index.insert(hash_of(slot), slot, hash_of);
            }
            assert_eq!(index.slots_like(hash_of(slot)).any(|found| found == slot), plain.contains(&slot));
        }
        let mut all: Vec<u32> = index.iter().collect();
        all.sort_unstable();
        assert!(all.iter().eq(&plain) && index.live == plain.len());
        for slot in &plain {
            let with_its_hash = plain.iter().filter(|other| hash_of(**other) == hash_of(*slot)).count();
            let found = index.slots_like(hash_of(*slot)).filter(|found| hash_of(*found) == hash_of(*slot));
            assert_eq!(found.count(), with_its_hash);
        }
    }

    #[test]
    fn an_empty_index_holds_nothing() {
        let mut index = SlotIndex::default();
        assert_eq!((index.slots_like(7).count(), index.iter().count()), (0, 0));
        index.remove(7, 1);
        assert_eq!((index.live, index.dead), (0, 0));
    }
}

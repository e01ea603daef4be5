//! A table that an announce reads with one cache miss: an entry is in the table itself, in one cache line.
//!
//! # Guarantees
//!
//! - A read takes no lock and never waits for a writer: an entry does not change once it is in the table. A changed entry
//!   is added behind the old one, which is then marked as dead, so that a reader finds one of them.
//! - Dead entries stay until the table is copied into a new one; readers of the old table finish undisturbed.

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use foldhash::fast::RandomState;

/// Cells of an empty table.
const CELLS_MIN: usize = 8;

/// Key and value, and whether a later entry replaced them.
pub(super) trait Entry: Sized {
    type Key: Eq + Hash + Copy;
    type Value: Copy + PartialEq;

    fn new(key: Self::Key, value: Self::Value) -> Self;
    fn key(&self) -> &Self::Key;
    fn value(&self) -> Self::Value;
    fn is_dead(&self) -> &AtomicBool;

    fn is_live(&self) -> bool {
        !self.is_dead().load(Ordering::Acquire)
    }

    fn end(&self) {
        self.is_dead().store(true, Ordering::Release);
    }
}

#[repr(align(64))]
struct Cell<E>(OnceLock<E>);

type Cells<E> = Box<[Cell<E>]>;

fn empty_cells<E>(count: usize) -> Cells<E> {
    (0..count).map(|_| Cell(OnceLock::new())).collect()
}

/// Cells from the one of this hash on, up to the first empty one.
fn probe<E>(cells: &Cells<E>, hash: u64) -> impl Iterator<Item = &Cell<E>> {
    let (before, from) = cells.split_at(first_cell(cells, hash));
    from.iter().chain(before)
}

/// The table has any number of cells, so that it grows by less than twice.
fn first_cell<E>(cells: &Cells<E>, hash: u64) -> usize {
    ((u128::from(hash) * cells.len() as u128) >> 64) as usize
}

pub(super) struct Table<E> {
    cells: ArcSwap<Cells<E>>,
    hasher: RandomState,
    /// Held by writers.
    filled: Mutex<Filled>,
}

/// How many cells hold an entry.
#[derive(Default)]
struct Filled {
    live: usize,
    dead: usize,
}

impl<E> Default for Table<E> {
    fn default() -> Self {
        let cells = ArcSwap::from_pointee(empty_cells(CELLS_MIN));
        Table { cells, hasher: RandomState::default(), filled: Mutex::default() }
    }
}

impl<E> fmt::Debug for Table<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").finish_non_exhaustive()
    }
}

impl<E: Entry> Table<E> {
    pub(super) fn get(&self, key: &E::Key) -> Option<E::Value> {
        let cells = self.cells.load();
        find(&cells, self.hasher.hash_one(key), key).map(Entry::value)
    }

    /// Reads the first cell of a key, so that memory delivers it while something else is done.
    pub(super) fn touch(&self, key: &E::Key) {
        let cells = self.cells.load();
        let cell = &cells[first_cell(&cells, self.hasher.hash_one(key))];
        std::hint::black_box(cell.0.get().is_some());
    }

    /// Adds or replaces an entry.
    pub(super) fn insert(&self, key: E::Key, value: E::Value) {
        let mut filled = self.filled.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = self.hasher.hash_one(key);
        let mut cells = self.cells.load_full();
        // At most five eighths, so that most entries are in their first cell.
        if (filled.live + filled.dead + 1) * 8 > cells.len() * 5 {
            cells = self.copied(&cells, &mut filled).into();
            self.cells.store(cells.clone());
        }
        let former = find(&cells, hash, &key);
        if former.is_some_and(|former| former.value() == value) {
            return;
        }
        add(&cells, hash, E::new(key, value));
        filled.live += 1;
        if let Some(former) = former {
            former.end();
            (filled.live, filled.dead) = (filled.live - 1, filled.dead + 1);
        }
    }

    pub(super) fn remove(&self, key: &E::Key) {
        let mut filled = self.filled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(former) = find(&self.cells.load(), self.hasher.hash_one(key), key) {
            former.end();
            (filled.live, filled.dead) = (filled.live - 1, filled.dead + 1);
        }
    }

    /// The live entries in a table that is half full.
    fn copied(&self, cells: &Cells<E>, filled: &mut Filled) -> Cells<E> {
        let copy = empty_cells((2 * (filled.live + 1)).max(CELLS_MIN));
        for entry in cells.iter().filter_map(|cell| cell.0.get()).filter(|entry| entry.is_live()) {
            add(&copy, self.hasher.hash_one(entry.key()), E::new(*entry.key(), entry.value()));
        }
        filled.dead = 0;
        copy
    }
}

fn find<'c, E: Entry>(cells: &'c Cells<E>, hash: u64, key: &E::Key) -> Option<&'c E> {
    probe(cells, hash).map_while(|cell| cell.0.get()).find(|entry| entry.key() == key && entry.is_live())
}

/// There is always an empty cell.
fn add<E: Entry>(cells: &Cells<E>, hash: u64, entry: E) {
    let mut entry = Some(entry);
    for cell in probe(cells, hash) {
        match entry.take().map(|entry| cell.0.set(entry)) {
            Some(Err(refused)) => entry = Some(refused),
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Pair {
        key: u64,
        value: [u64; 2],
        is_dead: AtomicBool,
    }

    impl Entry for Pair {
        type Key = u64;
        type Value = [u64; 2];

        fn new(key: u64, value: [u64; 2]) -> Self {
            Pair { key, value, is_dead: AtomicBool::new(false) }
        }

        fn key(&self) -> &u64 {
            &self.key
        }

        fn value(&self) -> [u64; 2] {
            self.value
        }

        fn is_dead(&self) -> &AtomicBool {
            &self.is_dead
        }
    }

    #[test]
    fn the_table_holds_what_a_map_holds() {
        let table = Table::<Pair>::default();
        let mut plain = std::collections::HashMap::new();
        let mut random = 7_u64;
        for step in 0..50_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = (random >> 33) % 3_000;
            if (random >> 50).is_multiple_of(3) {
                table.remove(&key);
                plain.remove(&key);
            } else {
                table.insert(key, [step, key]);
                plain.insert(key, [step, key]);
            }
            assert_eq!(table.get(&key), plain.get(&key).copied());
        }
        assert!((0..3_000).all(|key| table.get(&key) == plain.get(&key).copied()));
        let cells = table.cells.load().len();
        assert!(cells < 4 * plain.len(), "{cells} cells for {} entries", plain.len());
    }

    /// Readers see the old or the new value of a key at any time, and both words of it.
    #[test]
    fn a_key_that_is_changed_is_never_missing() {
        let table = Table::<Pair>::default();
        (0..100).for_each(|key| table.insert(key, [0, 0]));
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut last = [0; 100];
                    while !is_done.load(Ordering::Relaxed) {
                        for key in 0..100 {
                            let [first, second] = table.get(&key).expect("never removed");
                            assert!(first == second && first >= last[key as usize]);
                            last[key as usize] = first;
                        }
                    }
                });
            }
            for round in 1..300 {
                (0..100).for_each(|key| table.insert(key, [round, round]));
            }
            is_done.store(true, Ordering::Relaxed);
        });
    }
}

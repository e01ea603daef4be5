//! Records at stable slots, in chunks: growing never moves a record and never leaves half of the memory unused.

/// Large enough to be cheap, small enough that a half-filled last chunk does not matter.
const CHUNK: usize = 128;

#[derive(Debug)]
pub(crate) struct Slab<T> {
    chunks: Vec<Vec<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { chunks: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub(crate) fn insert(&mut self, record: T) -> u32 {
        self.insert_where(record, |_, _| true)
    }

    /// Uses the slot that was released last, if `is_fit`, else a new one.
    pub(crate) fn insert_where(&mut self, record: T, is_fit: impl FnOnce(u32, &T) -> bool) -> u32 {
        if let Some(slot) = self.free.last().copied()
            && is_fit(slot, &self[slot])
        {
            self.free.pop();
            self[slot] = record;
            return slot;
        }
        if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        let chunk_index = self.chunks.len() - 1;
        let chunk = &mut self.chunks[chunk_index];
        chunk.push(record);
        u32::try_from(chunk_index * CHUNK + chunk.len() - 1).expect("fewer than 2^32 records in a shard")
    }

    /// The record stays readable until the slot is reused.
    pub(crate) fn release(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// Slots in use.
    pub(crate) fn len(&self) -> usize {
        self.slots() - self.free.len()
    }

    /// Slots in use and free.
    pub(crate) fn slots(&self) -> usize {
        self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * CHUNK + last.len())
    }

    /// Every slot that ever held a record, with its content.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.chunks.iter().flatten().enumerate().map(|(slot, record)| (slot as u32, record))
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;
    fn index(&self, slot: u32) -> &T {
        &self.chunks[slot as usize / CHUNK][slot as usize % CHUNK]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, slot: u32) -> &mut T {
        &mut self.chunks[slot as usize / CHUNK][slot as usize % CHUNK]
    }
}

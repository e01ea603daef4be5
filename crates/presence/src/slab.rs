//! A slab: slots with four-byte numbers, which are reused.
//!
//! A value does not move. Memory grows by chunks that are never moved, so growing costs no copy and wastes no capacity.
//! The chunk size is one that the allocator returns without rounding up.
//!
//! Deliberately absent: freeing chunks. The next reconnect storm needs them again.

pub(crate) const NONE: u32 = u32::MAX;

const CHUNK_BYTES: usize = 48 * 1024;

#[derive(Debug)]
enum Slot<T> {
    Free { next: u32 },
    Used(T),
}

#[derive(Debug)]
pub(crate) struct Slab<T> {
    chunks: Vec<Vec<Slot<T>>>,
    free: u32,
    used: usize,
}

impl<T> Slab<T> {
    const CHUNK: usize = CHUNK_BYTES / size_of::<Slot<T>>();

    pub fn new() -> Self {
        Slab { chunks: Vec::new(), free: NONE, used: 0 }
    }

    pub fn len(&self) -> usize {
        self.used
    }

    pub fn insert(&mut self, value: T) -> u32 {
        self.used += 1;
        if self.free != NONE {
            let number = self.free;
            let slot = self.slot_mut(number);
            let Slot::Free { next } = *slot else { unreachable!("the free list holds free slots") };
            *slot = Slot::Used(value);
            self.free = next;
            return number;
        }
        if self.chunks.last().is_none_or(|chunk| chunk.len() == Self::CHUNK) {
            self.chunks.push(Vec::with_capacity(Self::CHUNK));
        }
        let chunk_number = self.chunks.len() - 1;
        let chunk = &mut self.chunks[chunk_number];
        chunk.push(Slot::Used(value));
        let number = chunk_number * Self::CHUNK + chunk.len() - 1;
        u32::try_from(number).ok().filter(|number| *number < NONE - 1).expect("fewer than 4 billion sessions")
    }

    pub fn remove(&mut self, number: u32) -> T {
        let next = self.free;
        match std::mem::replace(self.slot_mut(number), Slot::Free { next }) {
            Slot::Used(value) => {
                self.free = number;
                self.used -= 1;
                value
            }
            Slot::Free { .. } => unreachable!("only used slots are freed"),
        }
    }

    pub fn get(&self, number: u32) -> Option<&T> {
        let number = number as usize;
        match self.chunks.get(number / Self::CHUNK)?.get(number % Self::CHUNK)? {
            Slot::Used(value) => Some(value),
            Slot::Free { .. } => None,
        }
    }

    fn slot_mut(&mut self, number: u32) -> &mut Slot<T> {
        &mut self.chunks[number as usize / Self::CHUNK][number as usize % Self::CHUNK]
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;
    fn index(&self, number: u32) -> &T {
        self.get(number).expect("a used slot")
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, number: u32) -> &mut T {
        match self.slot_mut(number) {
            Slot::Used(value) => value,
            Slot::Free { .. } => unreachable!("a used slot"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again() {
        let mut slots = Slab::new();
        let numbers: Vec<u32> = (0..20_000_u32).map(|value| slots.insert(value)).collect();
        assert!(numbers.iter().all(|number| slots[*number] == *number));
        assert_eq!(slots.remove(7), 7);
        assert_eq!(slots.remove(19_000), 19_000);
        assert_eq!((slots.get(7), slots.len()), (None, 19_998));
        assert_eq!((slots.insert(1), slots.insert(2), slots.insert(3)), (19_000, 7, 20_000));
        slots[7] = 5;
        assert_eq!(slots.get(7), Some(&5));
    }
}

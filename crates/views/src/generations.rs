//! A bounded map: entries that were not used for longest are dropped.

use std::collections::HashMap;
use std::hash::Hash;

/// Two generations: when the younger one is full, it replaces the older one. Use moves an entry to the younger one.
#[derive(Debug)]
pub(crate) struct Generations<K, V> {
    younger: HashMap<K, V>,
    older: HashMap<K, V>,
    /// Of the younger one.
    weight: usize,
    older_weight: usize,
    weight_max: usize,
}

impl<K: Eq + Hash + Copy, V> Generations<K, V> {
    /// `weight_max` is the bound of both generations, in units of the caller.
    pub(crate) fn new(weight_max: usize) -> Self {
        Generations { younger: HashMap::new(), older: HashMap::new(), weight: 0, older_weight: 0, weight_max }
    }

    /// `weight` is added if the entry was in the older generation.
    pub(crate) fn get_mut(&mut self, key: &K, weight: impl Fn(&V) -> usize) -> Option<&mut V> {
        if let Some(value) = self.older.remove(key) {
            let weight = weight(&value);
            self.insert(*key, value, weight);
        }
        self.younger.get_mut(key)
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.younger.get(key).or_else(|| self.older.get(key))
    }

    pub(crate) fn insert(&mut self, key: K, value: V, weight: usize) {
        if self.weight >= self.weight_max / 2 {
            self.older = std::mem::take(&mut self.younger);
            self.older_weight = std::mem::take(&mut self.weight);
        }
        self.older.remove(&key);
        self.younger.insert(key, value);
        self.grow(weight.max(1));
    }

    /// An entry of the younger generation has grown.
    pub(crate) fn grow(&mut self, weight: usize) {
        self.weight += weight;
    }

    /// Of both generations; moved and removed entries may count twice.
    pub(crate) fn weight(&self) -> usize {
        self.weight + self.older_weight
    }

    pub(crate) fn remove(&mut self, key: &K) {
        self.older.remove(key);
        self.younger.remove(key);
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.younger.values().chain(self.older.values())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weight_is_bounded_and_used_entries_are_kept() {
        let mut generations = Generations::new(10);
        for key in 0..100 {
            generations.insert(key, key, 1);
            assert_eq!(generations.get_mut(&0, |_| 1), Some(&mut 0), "used again and again");
        }
        assert!(generations.values().count() <= 11);
        assert_eq!(generations.get(&50), None);
        assert_eq!(generations.get(&99), Some(&99));
        generations.remove(&99);
        assert_eq!(generations.get(&99), None);
    }
}

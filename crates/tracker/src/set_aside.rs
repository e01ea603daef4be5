//! Places for packets that wait until somebody was asked about their passkey: so many at the most.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Packets that may wait at the same time; each takes two kilobytes at the most.
const PLACES: usize = 4096;

/// How many wait.
#[derive(Debug, Default)]
pub(crate) struct SetAside(AtomicUsize);

impl SetAside {
    /// Takes a place; false if there is none.
    pub(crate) fn take_place(&self) -> bool {
        let taken = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |taken| (taken < PLACES).then_some(taken + 1));
        taken.is_ok()
    }

    /// Gives a place back.
    pub(crate) fn give_back(&self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_so_many_places_and_no_more() {
        let aside = SetAside::default();
        assert_eq!((0..PLACES + 10).filter(|_| aside.take_place()).count(), PLACES);
        aside.give_back();
        assert!(aside.take_place());
        assert!(!aside.take_place());
    }
}

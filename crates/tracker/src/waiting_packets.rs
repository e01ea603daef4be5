//! Bounds the UDP packets that wait for the verification of their passkey.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Up to two kilobytes each.
const PACKETS_MAX: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct WaitingPackets(AtomicUsize);

impl WaitingPackets {
    /// False if all permits are taken.
    pub(crate) fn try_acquire(&self) -> bool {
        let taken = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |taken| {
            (taken < PACKETS_MAX).then_some(taken + 1)
        });
        taken.is_ok()
    }

    pub(crate) fn release(&self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_are_bounded_and_reusable() {
        let packets = WaitingPackets::default();
        assert_eq!((0..PACKETS_MAX + 10).filter(|_| packets.try_acquire()).count(), PACKETS_MAX);
        packets.release();
        assert!(packets.try_acquire());
        assert!(!packets.try_acquire());
    }
}

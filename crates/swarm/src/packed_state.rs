//! Position and flags of a peer, in eight bytes.
//!
//! Swarm and position need less than 32 bits each: a shard holds four million torrents, a swarm half a million peers.
//! The saved bits hold the flags.

use crate::members::PEERS_PER_SWARM_MAX;

/// A bit field of a [`PackedState`].
struct Bits {
    count: u32,
    shift: u32,
}

impl Bits {
    const fn max(&self) -> u64 {
        (1 << self.count) - 1
    }
}

const SWARM: Bits = Bits { count: 22, shift: 0 };
const POSITION: Bits = Bits { count: 24, shift: 22 };
/// Seconds between the last announce over the other address family and the last announce; all ones mean never.
const OTHER_FAMILY_S: Bits = Bits { count: 14, shift: 46 };
/// Whether another node received the last announce.
const IS_REMOTE: Bits = Bits { count: 1, shift: 60 };
const HAS_COMPLETED: Bits = Bits { count: 1, shift: 61 };
const LAST_WAS_V6: Bits = Bits { count: 1, shift: 62 };
const VACANT: Bits = Bits { count: 1, shift: 63 };

/// Swarms per shard.
pub(crate) const SWARMS_MAX: usize = SWARM.max() as usize + 1;
const _: () = assert!(PEERS_PER_SWARM_MAX <= POSITION.max() as usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedState(u64);

impl PackedState {
    /// Longer means never.
    pub(crate) const OTHER_FAMILY_S_MAX: u32 = OTHER_FAMILY_S.max() as u32;

    pub(crate) fn in_swarm(swarm: u32) -> Self {
        let mut packed = PackedState(0);
        packed.set(&SWARM, swarm.into());
        packed.set_other_family_s(None);
        packed
    }

    pub(crate) fn swarm(self) -> u32 {
        self.get(&SWARM) as u32
    }

    pub(crate) fn position(self) -> u32 {
        self.get(&POSITION) as u32
    }

    pub(crate) fn set_position(&mut self, position: u32) {
        self.set(&POSITION, position.into());
    }

    pub(crate) fn other_family_s(self) -> Option<u32> {
        let seconds = self.get(&OTHER_FAMILY_S);
        (seconds < OTHER_FAMILY_S.max()).then_some(seconds as u32)
    }

    pub(crate) fn set_other_family_s(&mut self, seconds: Option<u32>) {
        let never = OTHER_FAMILY_S.max();
        self.set(&OTHER_FAMILY_S, seconds.map_or(never, |seconds| u64::from(seconds).min(never)));
    }

    pub(crate) fn has_completed(self) -> bool {
        self.get(&HAS_COMPLETED) == 1
    }

    pub(crate) fn set_completed(&mut self) {
        self.set(&HAS_COMPLETED, 1);
    }

    pub(crate) fn last_was_v6(self) -> bool {
        self.get(&LAST_WAS_V6) == 1
    }

    pub(crate) fn set_last_was_v6(&mut self, was_v6: bool) {
        self.set(&LAST_WAS_V6, was_v6.into());
    }

    pub(crate) fn is_remote(self) -> bool {
        self.get(&IS_REMOTE) == 1
    }

    pub(crate) fn set_remote(&mut self, elsewhere: bool) {
        self.set(&IS_REMOTE, elsewhere.into());
    }

    pub(crate) fn is_vacant(self) -> bool {
        self.get(&VACANT) == 1
    }

    pub(crate) fn set_vacant(&mut self) {
        self.set(&VACANT, 1);
    }

    fn get(self, bits: &Bits) -> u64 {
        self.0 >> bits.shift & bits.max()
    }

    fn set(&mut self, bits: &Bits, value: u64) {
        debug_assert!(value <= bits.max());
        self.0 = self.0 & !(bits.max() << bits.shift) | (value & bits.max()) << bits.shift;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn fields_do_not_overlap(
            swarm in 0..SWARMS_MAX as u32,
            position in 0..PEERS_PER_SWARM_MAX as u32,
            seconds in proptest::option::of(0..100_000_u32),
            v6: bool,
            elsewhere: bool,
        ) {
            let mut packed = PackedState::in_swarm(swarm);
            packed.set_position(u32::MAX >> 8);
            packed.set_completed();
            packed.set_other_family_s(seconds);
            packed.set_last_was_v6(v6);
            packed.set_remote(elsewhere);
            packed.set_position(position);
            let kept = seconds.filter(|seconds| *seconds < PackedState::OTHER_FAMILY_S_MAX);
            prop_assert_eq!((packed.swarm(), packed.position(), packed.other_family_s()), (swarm, position, kept));
            prop_assert_eq!((packed.has_completed(), packed.last_was_v6(), packed.is_vacant()), (true, v6, false));
            prop_assert_eq!(packed.is_remote(), elsewhere);
            packed.set_vacant();
            prop_assert!(packed.is_vacant());
            prop_assert_eq!(packed.swarm(), swarm);
        }
    }
}

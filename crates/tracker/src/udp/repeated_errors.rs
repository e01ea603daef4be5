//! Errors that a client asks for again and again: some clients send the same packet at once when they are refused, as fast
//! as they are answered.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;

use domain::UnixTime;

/// How often an error is told to one sender about one torrent within the window.
const TOLD_MAX: u8 = 5;
const WINDOW_S: u32 = 10;
/// Senders that are remembered. One that is forgotten for another is told again.
const SLOTS: usize = 1024;

#[derive(Clone, Copy, Default)]
struct Slot {
    sender: u64,
    window: u32,
    told: u8,
}

/// Counts the errors told to each sender.
pub(super) struct RepeatedErrors {
    /// Empty until the first error.
    slots: Vec<Slot>,
    hasher: RandomState,
}

impl RepeatedErrors {
    pub(super) fn new() -> Self {
        RepeatedErrors { slots: Vec::new(), hasher: RandomState::new() }
    }

    /// Notes an error about a packet: whether its sender is told.
    pub(super) fn may_tell(&mut self, from: SocketAddr, packet: &[u8], now: UnixTime) -> bool {
        if self.slots.is_empty() {
            self.slots.resize(SLOTS, Slot::default());
        }
        let sender = self.hasher.hash_one((from, subject_of(packet)));
        let window = now.0 / WINDOW_S;
        let slot = &mut self.slots[sender as usize % SLOTS];
        if (slot.sender, slot.window) != (sender, window) {
            *slot = Slot { sender, window, told: 0 };
        }
        slot.told = slot.told.saturating_add(1);
        slot.told <= TOLD_MAX
    }
}

/// The hash that an announce is about, or the first that a scrape asks for: both stand behind the same 16 bytes, of which
/// some differ each time.
fn subject_of(packet: &[u8]) -> &[u8] {
    packet.get(16..36).unwrap_or_default()
}

//! Limits error replies: some clients resend a refused packet immediately, as fast as they are answered.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;

use domain::UnixTime;

/// Error replies per sender and torrent within the window.
const ERRORS_PER_WINDOW_MAX: u8 = 5;
const WINDOW_S: u32 = 10;
/// Senders tracked; a displaced one may get further replies.
const SLOTS: usize = 1024;

#[derive(Clone, Copy, Default)]
struct Slot {
    sender: u64,
    window: u32,
    sent: u8,
}

pub(super) struct RepeatedErrors {
    /// Allocated at the first error.
    slots: Vec<Slot>,
    hasher: RandomState,
}

impl RepeatedErrors {
    pub(super) fn new() -> Self {
        RepeatedErrors { slots: Vec::new(), hasher: RandomState::new() }
    }

    /// Counts an error about a packet; false if it is not to be sent.
    pub(super) fn may_send(&mut self, from: SocketAddr, packet: &[u8], now: UnixTime) -> bool {
        if self.slots.is_empty() {
            self.slots.resize(SLOTS, Slot::default());
        }
        let sender = self.hasher.hash_one((from, subject_of(packet)));
        let window = now.0 / WINDOW_S;
        let slot = &mut self.slots[sender as usize % SLOTS];
        if (slot.sender, slot.window) != (sender, window) {
            *slot = Slot { sender, window, sent: 0 };
        }
        slot.sent = slot.sent.saturating_add(1);
        slot.sent <= ERRORS_PER_WINDOW_MAX
    }
}

/// The infohash of an announce, or the first one of a scrape: both follow the same 16 bytes, which differ in every
/// packet.
fn subject_of(packet: &[u8]) -> &[u8] {
    packet.get(16..36).unwrap_or_default()
}

//! The section of the tracker's Redis layout.

use super::section::config_section;

const DAY_S: u32 = 24 * 60 * 60;

config_section! {
    /// The tracker's layout in Redis (t:*), for programs that read it: docs/redis.md lists the keys.
    Mirror as "mirror" {
        /// Whether the layout is kept. Needs Redis; without it there is none.
        enabled: bool = true,
        /// A peer that did not announce for this long is gone. 0 means tracker.announce_interval_s +
        /// tracker.peer_grace_s + 10. One that was told a longer interval is waited for longer.
        reap_after_s: u32 [0..=7 * DAY_S] = 0,
        /// How long peers that left are remembered. 0 means for ever.
        inactive_keep_days: u32 [0..=3650] = 30,
    }
}

//! The section of the mirror.

use super::section::config_section;

const DAY_S: u32 = 24 * 60 * 60;

config_section! {
    /// The mirror: keys t:* in Redis, for other programs. docs/redis.md lists the keys.
    Mirror as "mirror" {
        /// Whether the mirror is kept. Requires Redis.
        enabled: bool = true,
        /// A peer that has not announced for this long is removed. 0 means tracker.announce_interval_s +
        /// tracker.peer_grace_s + 10. A peer with a longer interval is kept longer.
        reap_after_s: u32 [0..=7 * DAY_S] = 0,
        /// How long departed peers are kept. 0 means forever.
        inactive_keep_days: u32 [0..=3650] = 30,
    }
}

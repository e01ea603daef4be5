//! What can be set.

use domain::{Seconds, UnixTime};

/// How far ahead of our clock an entry's `ts` may be. Beyond that, it would stay in the lists for too long.
pub const AHEAD_MAX: Seconds = Seconds(600);

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActivitySettings {
    /// How long after its last announce a client is taken for gone: announce interval + grace (A4).
    pub threshold: Seconds,
    /// How many users one sweep looks at; the rest wait for the next one.
    pub sweep_users_max: usize,
}

impl Default for ActivitySettings {
    fn default() -> Self {
        ActivitySettings { threshold: Seconds(2400), sweep_users_max: 500 }
    }
}

/// What counts at a moment: what is neither too old nor too far ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The present moment of steady time.
    pub now: UnixTime,
    /// See [`ActivitySettings::threshold`].
    pub threshold: Seconds,
}

impl Window {
    /// What was said then, or before, counts no more.
    pub fn cutoff(&self) -> UnixTime {
        self.now - self.threshold
    }

    /// Whether it was said too long ago.
    pub fn is_past(&self, at: UnixTime) -> bool {
        at <= self.cutoff()
    }

    /// Whether it cannot have been said yet.
    pub fn is_ahead(&self, at: UnixTime) -> bool {
        at > self.now + AHEAD_MAX
    }
}

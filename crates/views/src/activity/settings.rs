//! What can be set.

use domain::{AHEAD_MAX, Seconds, SilenceLimit, UnixTime};

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActivitySettings {
    /// How long a client may be silent before it is gone (A4).
    pub silence: SilenceLimit,
    /// How many users one sweep looks at; the rest wait for the next one.
    pub sweep_users_max: usize,
}

impl Default for ActivitySettings {
    fn default() -> Self {
        ActivitySettings { silence: SilenceLimit::default(), sweep_users_max: 500 }
    }
}

/// What counts at a moment: what is neither too old nor too far ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The present moment of steady time.
    pub now: UnixTime,
    /// See [`ActivitySettings::silence`].
    pub silence: SilenceLimit,
}

impl Window {
    /// What was said then, or before, counts no more, unless the client was told a longer interval than usual.
    pub fn cutoff(&self) -> UnixTime {
        self.now - self.silence.usual()
    }

    /// How much longer than usual a client may be silent that was told this interval.
    pub fn extra_silence(&self, interval: Seconds) -> Seconds {
        Seconds(self.silence.of(interval).0 - self.silence.usual().0)
    }

    /// Whether it was said too long ago, by a client that may be silent for so much longer than usual.
    pub fn is_past(&self, at: UnixTime, extra_silence: Seconds) -> bool {
        at + extra_silence <= self.cutoff()
    }

    /// Whether it cannot have been said yet.
    pub fn is_ahead(&self, at: UnixTime) -> bool {
        at > self.now + AHEAD_MAX
    }
}

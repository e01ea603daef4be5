use domain::{AHEAD_MAX, Seconds, SilenceLimit, UnixTime};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActivitySettings {
    /// When a silent client expires (A4).
    pub silence: SilenceLimit,
    /// Maximum number of users per sweep.
    pub sweep_users_max: usize,
}

impl Default for ActivitySettings {
    fn default() -> Self {
        ActivitySettings { silence: SilenceLimit::default(), sweep_users_max: 500 }
    }
}

/// The times at which entries are valid: neither expired nor too far ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Steady time.
    pub now: UnixTime,
    pub silence: SilenceLimit,
}

impl Window {
    /// Reports of this time or before have expired, plus the extra silence of their client.
    pub fn cutoff(&self) -> UnixTime {
        self.now - self.silence.usual()
    }

    /// Silence that is allowed beyond the usual limit to a client with this interval.
    pub fn extra_silence(&self, interval: Seconds) -> Seconds {
        Seconds(self.silence.of(interval).0 - self.silence.usual().0)
    }

    /// Whether a report of this time, of a client with this extra silence, has expired.
    pub fn is_past(&self, at: UnixTime, extra_silence: Seconds) -> bool {
        at + extra_silence <= self.cutoff()
    }

    /// Whether this time is too far in the future.
    pub fn is_ahead(&self, at: UnixTime) -> bool {
        at > self.now + AHEAD_MAX
    }
}

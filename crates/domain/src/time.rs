//! Seconds as a type: a moment and a length are different things.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A length of time in whole seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seconds(pub u32);

/// A moment: whole seconds since 1970, up to the year 2106.
///
/// Thirty-two bits, because millions of records hold one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixTime(pub u32);

impl UnixTime {
    /// How long ago `earlier` was; zero if it lies ahead (clocks step back).
    pub fn since(self, earlier: UnixTime) -> Seconds {
        Seconds(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Seconds> for UnixTime {
    type Output = UnixTime;
    fn add(self, length: Seconds) -> UnixTime {
        UnixTime(self.0.saturating_add(length.0))
    }
}

impl AddAssign<Seconds> for UnixTime {
    fn add_assign(&mut self, length: Seconds) {
        *self = *self + length;
    }
}

impl Sub<Seconds> for UnixTime {
    type Output = UnixTime;
    fn sub(self, length: Seconds) -> UnixTime {
        UnixTime(self.0.saturating_sub(length.0))
    }
}

impl Add for Seconds {
    type Output = Seconds;
    fn add(self, other: Seconds) -> Seconds {
        Seconds(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", self.0)
    }
}

impl fmt::Display for UnixTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

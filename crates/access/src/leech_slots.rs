//! Leech slots: how many torrents a user may leech at once, or how many peers may leech a torrent.

use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("slots are a number from 0 to {max}, or \"default\", or \"unlimited\"", max = LeechSlots::MAX)]
pub struct NotSlots;

/// The setting of one user or torrent. In the tables: NULL, -1, or a number.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeechSlots(u32);

impl LeechSlots {
    /// The configured default.
    pub const DEFAULT: LeechSlots = LeechSlots(u32::MAX);
    pub const UNLIMITED: LeechSlots = LeechSlots(u32::MAX - 1);
    pub const MAX: u32 = 1_000_000;

    /// None above [`LeechSlots::MAX`].
    pub fn at_most(slots: u32) -> Option<LeechSlots> {
        (slots <= Self::MAX).then_some(LeechSlots(slots))
    }

    /// From the representation in tables and JSON: null, -1, or a number.
    pub fn from_number(number: Option<i64>) -> Result<LeechSlots, NotSlots> {
        match number {
            None => Ok(Self::DEFAULT),
            Some(-1) => Ok(Self::UNLIMITED),
            Some(number) => u32::try_from(number).ok().and_then(Self::at_most).ok_or(NotSlots),
        }
    }

    /// The representation in tables and JSON.
    pub fn to_number(self) -> Option<i64> {
        match self {
            Self::DEFAULT => None,
            Self::UNLIMITED => Some(-1),
            LeechSlots(slots) => Some(slots.into()),
        }
    }

    /// The effective limit, given the configured default; none for unlimited.
    pub fn limit(self, default: Option<u32>) -> Option<u32> {
        match self {
            Self::DEFAULT => default,
            Self::UNLIMITED => None,
            LeechSlots(slots) => Some(slots),
        }
    }
}

impl Default for LeechSlots {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl FromStr for LeechSlots {
    type Err = NotSlots;
    fn from_str(text: &str) -> Result<Self, NotSlots> {
        match text {
            "default" => Ok(Self::DEFAULT),
            "unlimited" => Ok(Self::UNLIMITED),
            _ if text.bytes().all(|byte| byte.is_ascii_digit()) => {
                text.parse().ok().and_then(Self::at_most).ok_or(NotSlots)
            }
            _ => Err(NotSlots),
        }
    }
}

impl fmt::Display for LeechSlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::DEFAULT => f.write_str("default"),
            Self::UNLIMITED => f.write_str("unlimited"),
            LeechSlots(slots) => slots.fmt(f),
        }
    }
}

impl fmt::Debug for LeechSlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_round_trip_through_text_and_numbers() {
        for text in ["default", "unlimited", "0", "1", "1000000"] {
            let slots: LeechSlots = text.parse().unwrap();
            assert_eq!(slots.to_string(), text);
            assert_eq!(LeechSlots::from_number(slots.to_number()), Ok(slots));
        }
        for text in ["", "-1", "+1", "1000001", "4294967295", "99999999999999999999", "none", "1.5"] {
            assert_eq!(text.parse::<LeechSlots>(), Err(NotSlots), "{text:?}");
        }
        for number in [-2, 1_000_001, i64::from(u32::MAX), i64::MAX, i64::MIN] {
            assert_eq!(LeechSlots::from_number(Some(number)), Err(NotSlots), "{number}");
        }
    }

    #[test]
    fn an_individual_setting_overrides_the_default() {
        assert_eq!(LeechSlots::DEFAULT.limit(Some(3)), Some(3));
        assert_eq!(LeechSlots::DEFAULT.limit(None), None);
        assert_eq!(LeechSlots::UNLIMITED.limit(Some(3)), None);
        assert_eq!(LeechSlots::at_most(0).unwrap().limit(None), Some(0));
    }
}

//! Ports on which clients may not listen: those of other services, or those that networks throttle.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ports are a number from 1 to 65535 such as 6881, or two with a hyphen such as 6881-6889")]
pub struct NotPorts;

/// At least one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortRange {
    first: u16,
    last: u16,
}

impl PortRange {
    /// Both ends are included.
    pub fn new(first: u16, last: u16) -> Result<PortRange, NotPorts> {
        if first == 0 || first > last { Err(NotPorts) } else { Ok(PortRange { first, last }) }
    }

    pub fn first(self) -> u16 {
        self.first
    }

    pub fn last(self) -> u16 {
        self.last
    }

    pub fn overlaps(self, other: PortRange) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// The difference: no range, one or two.
    pub fn without(self, other: PortRange) -> impl Iterator<Item = PortRange> {
        let before = (other.first > self.first)
            .then(|| PortRange { first: self.first, last: self.last.min(other.first - 1) });
        let after = (other.last < self.last)
            .then(|| PortRange { first: self.first.max(other.last + 1), last: self.last });
        [before, after].into_iter().flatten()
    }

    fn ports(self) -> RangeInclusive<u16> {
        self.first..=self.last
    }
}

impl FromStr for PortRange {
    type Err = NotPorts;
    fn from_str(text: &str) -> Result<Self, NotPorts> {
        let port = |digits: &str| match digits.bytes().all(|byte| byte.is_ascii_digit()) {
            true => digits.parse().map_err(|_| NotPorts),
            false => Err(NotPorts),
        };
        match text.split_once('-') {
            Some((first, last)) => PortRange::new(port(first)?, port(last)?),
            None => port(text).and_then(|port| PortRange::new(port, port)),
        }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => self.first.fmt(f),
            false => write!(f, "{}-{}", self.first, self.last),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BannedPorts {
    pub range: PortRange,
    pub reason: String,
}

/// Ports per word.
const BITS: usize = u64::BITS as usize;

/// A bitmap of all banned ports, read without a lock.
///
/// A change sets one word after the other, so each port follows either the old list or the new one.
pub(crate) struct PortBitmap {
    words: Box<[AtomicU64]>,
    /// False if no port is banned, the usual case: the words are not read.
    any: AtomicBool,
}

impl Default for PortBitmap {
    fn default() -> Self {
        let words = (0..(usize::from(u16::MAX) + 1) / BITS).map(|_| AtomicU64::new(0)).collect();
        PortBitmap { words, any: AtomicBool::new(false) }
    }
}

impl fmt::Debug for PortBitmap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PortBitmap").field("count", &self.count()).finish()
    }
}

impl PortBitmap {
    pub(crate) fn contains(&self, port: u16) -> bool {
        self.any.load(Ordering::Relaxed) && {
            let (word, bit) = (usize::from(port) / BITS, usize::from(port) % BITS);
            self.words[word].load(Ordering::Relaxed) >> bit & 1 == 1
        }
    }

    pub(crate) fn count(&self) -> u32 {
        self.words.iter().map(|word| word.load(Ordering::Relaxed).count_ones()).sum()
    }

    /// Returns whether anything changed.
    pub(crate) fn replace(&self, ranges: impl IntoIterator<Item = PortRange>) -> bool {
        let mut new = vec![0_u64; self.words.len()];
        for port in ranges.into_iter().flat_map(PortRange::ports) {
            new[usize::from(port) / BITS] |= 1 << (usize::from(port) % BITS);
        }
        let any = new.iter().any(|word| *word != 0);
        if any {
            self.any.store(true, Ordering::Relaxed);
        }
        let mut changed = false;
        for (word, new) in self.words.iter().zip(new) {
            changed |= word.swap(new, Ordering::Relaxed) != new;
        }
        self.any.store(any, Ordering::Relaxed);
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> PortRange {
        text.parse().unwrap()
    }

    #[test]
    fn ranges_round_trip_through_text() {
        for text in ["1", "6881", "6881-6889", "1-65535"] {
            assert_eq!(range(text).to_string(), text);
        }
        assert_eq!(range("80-80").to_string(), "80");
        for text in ["", "0", "0-5", "65536", "9-8", "-", "1-", "-1", "+1", "1-2-3", "a"] {
            assert_eq!(text.parse::<PortRange>(), Err(NotPorts), "{text:?}");
        }
    }

    #[test]
    fn the_difference_of_two_ranges_has_up_to_two_parts() {
        let left = |from: &str, what: &str| {
            let left: Vec<String> = range(from).without(range(what)).map(|range| range.to_string()).collect();
            left.join(" ")
        };
        assert_eq!(left("10-20", "15"), "10-14 16-20");
        assert_eq!(left("10-20", "5-12"), "13-20");
        assert_eq!(left("10-20", "18-30"), "10-17");
        assert_eq!(left("10-20", "10-20"), "");
        assert_eq!(left("1-65535", "1"), "2-65535");
        assert_eq!(left("1-65535", "65535"), "1-65534");
    }

    #[test]
    fn exactly_the_listed_ports_are_banned() {
        let bans = PortBitmap::default();
        assert!(!bans.contains(6881));
        assert!(bans.replace([range("6881-6889"), range("6885-6900"), range("65535")]));
        for port in 0..=u16::MAX {
            assert_eq!(bans.contains(port), (6881..=6900).contains(&port) || port == 65535, "{port}");
        }
        assert_eq!(bans.count(), 21);
        assert!(!bans.replace([range("6881-6900"), range("65535")]), "the same ports");
        assert!(bans.replace([]));
        assert!(!bans.contains(6881));
    }
}

//! Entry ids.

use std::fmt;
use std::str::FromStr;

/// The millisecond in which an entry was stored, and its sequence number within. Later entries have greater ids.
///
/// Written as in Redis Streams (`1794742234000-3`) by every adapter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId {
    /// Milliseconds since 1970, by the clock of the store.
    pub ms: u64,
    pub seq: u64,
}

impl EntryId {
    /// Less than every entry's id.
    pub const ZERO: EntryId = EntryId { ms: 0, seq: 0 };
    /// Greater than every entry's id.
    pub const MAX: EntryId = EntryId { ms: u64::MAX, seq: u64::MAX };

    /// The least id of a millisecond.
    pub const fn at_ms(ms: u64) -> Self {
        EntryId { ms, seq: 0 }
    }

    /// The id just before; that of [`EntryId::ZERO`] is itself.
    pub const fn previous(self) -> Self {
        match self.seq.checked_sub(1) {
            Some(seq) => EntryId { ms: self.ms, seq },
            None if self.ms == 0 => EntryId::ZERO,
            None => EntryId { ms: self.ms - 1, seq: u64::MAX },
        }
    }

    pub const fn next(self) -> Self {
        match self.seq.checked_add(1) {
            Some(seq) => EntryId { ms: self.ms, seq },
            None => EntryId { ms: self.ms.saturating_add(1), seq: 0 },
        }
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an entry id is two numbers with a dash between them, such as 1794742234000-0")]
pub struct NotAnEntryId;

impl FromStr for EntryId {
    type Err = NotAnEntryId;
    fn from_str(text: &str) -> Result<Self, NotAnEntryId> {
        let number = |part: &str| {
            let is_decimal = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            is_decimal.then(|| part.parse().ok()).flatten().ok_or(NotAnEntryId)
        };
        let (ms, seq) = text.split_once('-').ok_or(NotAnEntryId)?;
        Ok(EntryId { ms: number(ms)?, seq: number(seq)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_and_written_as_redis_does() {
        let id: EntryId = "1794742234000-3".parse().unwrap();
        assert_eq!(id, EntryId { ms: 1_794_742_234_000, seq: 3 });
        assert_eq!(id.to_string(), "1794742234000-3");
        for text in ["", "-", "1", "1-", "-1", "1-2-3", "+1-2", "a-b", "1-99999999999999999999"] {
            assert_eq!(text.parse::<EntryId>(), Err(NotAnEntryId), "{text}");
        }
    }

    #[test]
    fn the_next_id_is_greater() {
        let last_of_its_ms = EntryId { ms: 7, seq: u64::MAX };
        assert_eq!(last_of_its_ms.next(), EntryId { ms: 8, seq: 0 });
        assert!(EntryId::ZERO.next() > EntryId::ZERO);
    }

    #[test]
    fn the_previous_id_comes_before_and_nothing_lies_between() {
        for id in [EntryId { ms: 7, seq: 3 }, EntryId { ms: 7, seq: 0 }, EntryId::ZERO.next(), EntryId::MAX] {
            assert_eq!(id.previous().next(), id);
        }
        assert_eq!(EntryId::ZERO.previous(), EntryId::ZERO);
    }
}

//! Dead dead letters: entries that a view could not take (J5, J6).
//!
//! A dead letter is the entry as it was, with a few fields behind it that say whose failure it was, why, how often it was
//! tried, and when to try again.

use domain::UnixTime;

use crate::fields::Fields;
use crate::id::EntryId;

/// The names of the fields that a dead letter has and an entry has not.
mod name {
    pub(super) const GROUP: &str = "group";
    pub(super) const RETRY: &str = "retry";
    pub(super) const REASON: &str = "reason";
    pub(super) const ORIGIN: &str = "origin";
    pub(super) const FAILED_AT: &str = "failed_at";
    pub(super) const DUE_AT: &str = "due_at";
    pub(super) const ALL: [&str; 6] = [GROUP, RETRY, REASON, ORIGIN, FAILED_AT, DUE_AT];
}

/// The longest reason that is kept.
const REASON_CHARS_MAX: usize = 500;

/// An entry that could not be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The entry as it was.
    pub original: Fields,
    /// The group whose view could not take it.
    pub group: String,
    /// How often it was tried again (`retry`).
    pub retry: u32,
    /// Why it could not be taken, the last time.
    pub reason: String,
    /// Its place in the traffic lane.
    pub origin: EntryId,
    /// When it last failed.
    pub failed_at: UnixTime,
    /// When to try again.
    pub due_at: UnixTime,
}

impl DeadLetter {
    /// The dead letter as fields.
    pub fn to_fields(&self) -> Fields {
        let mut fields = self.original.clone();
        fields.push(name::GROUP, &self.group);
        fields.push_text(name::RETRY, self.retry);
        fields.push(name::REASON, self.reason.chars().take(REASON_CHARS_MAX).collect::<String>());
        fields.push_text(name::ORIGIN, self.origin);
        fields.push_text(name::FAILED_AT, self.failed_at);
        fields.push_text(name::DUE_AT, self.due_at);
        fields
    }

    /// The entry's fields as text, for people; a passkey only by its first digits.
    pub fn shown_fields(&self) -> impl Iterator<Item = (String, String)> {
        self.original.iter().map(|(name, value)| {
            let (name, value) = (String::from_utf8_lossy(name), String::from_utf8_lossy(value));
            let shown = match &*name {
                "passkey" => format!("{}…", value.chars().take(4).collect::<String>()),
                _ => value.into_owned(),
            };
            (name.into_owned(), shown)
        })
    }

    /// Reads a dead letter. What another program put there without our fields is a dead letter of no group, due at once.
    pub fn from_fields(fields: &Fields) -> DeadLetter {
        let text = |name| fields.get(name).map(|value| String::from_utf8_lossy(value).into_owned());
        let number = |name| text(name).and_then(|text| text.parse::<u32>().ok()).unwrap_or(0);
        let is_ours = |field: &[u8]| name::ALL.iter().any(|name| name.as_bytes() == field);
        DeadLetter {
            original: fields.iter().filter(|(field, _)| !is_ours(field)).collect(),
            group: text(name::GROUP).unwrap_or_default(),
            retry: number(name::RETRY),
            reason: text(name::REASON).unwrap_or_default(),
            origin: text(name::ORIGIN).and_then(|text| text.parse().ok()).unwrap_or_default(),
            failed_at: UnixTime(number(name::FAILED_AT)),
            due_at: UnixTime(number(name::DUE_AT)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j6_a_letter_keeps_the_entry_and_says_what_happened() {
        let original: Fields = [("passkey", "xyz"), ("du", "-1")].into_iter().collect();
        let dead_letter = DeadLetter {
            original,
            group: "ztorrent".to_owned(),
            retry: 2,
            reason: "du: not a number".to_owned(),
            origin: EntryId { ms: 5, seq: 1 },
            failed_at: UnixTime(100),
            due_at: UnixTime(160),
        };
        assert_eq!(DeadLetter::from_fields(&dead_letter.to_fields()), dead_letter);
    }

    #[test]
    fn j3_a_letter_of_another_program_is_due_at_once() {
        let fields: Fields = [("passkey", "xyz")].into_iter().collect();
        let dead_letter = DeadLetter::from_fields(&fields);
        assert_eq!((dead_letter.retry, dead_letter.due_at, dead_letter.original), (0, UnixTime(0), fields));
    }
}

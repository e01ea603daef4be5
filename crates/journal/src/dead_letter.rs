//! Dead letters: entries that a view rejected (J5, J6).
//!
//! A dead letter is the entry as it was, followed by fields for the group, the reason, the retry count and the time of
//! the next retry.

use domain::UnixTime;

use crate::fields::Fields;
use crate::id::EntryId;

/// Fields that a dead letter has in addition to its entry.
mod name {
    pub(super) const GROUP: &str = "group";
    pub(super) const RETRY: &str = "retry";
    pub(super) const REASON: &str = "reason";
    pub(super) const ORIGIN: &str = "origin";
    pub(super) const FAILED_AT: &str = "failed_at";
    pub(super) const DUE_AT: &str = "due_at";
    pub(super) const ALL: [&str; 6] = [GROUP, RETRY, REASON, ORIGIN, FAILED_AT, DUE_AT];
}

/// Longer reasons are cut.
const REASON_CHARS_MAX: usize = 500;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    pub original: Fields,
    /// The group whose view rejected it.
    pub group: String,
    /// Retries so far.
    pub retry: u32,
    /// Reason of the last rejection.
    pub reason: String,
    /// The entry's id in the traffic lane.
    pub origin: EntryId,
    pub failed_at: UnixTime,
    /// Time of the next retry.
    pub due_at: UnixTime,
}

impl DeadLetter {
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

    /// The entry's fields as text for display; a passkey is cut to its first digits.
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

    /// Parses a dead letter. An entry that another program appended without our fields has no group and is due at once.
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
    fn j6_a_dead_letter_keeps_the_entry_and_the_reason() {
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
    fn j3_a_dead_letter_of_another_program_is_due_at_once() {
        let fields: Fields = [("passkey", "xyz")].into_iter().collect();
        let dead_letter = DeadLetter::from_fields(&fields);
        assert_eq!((dead_letter.retry, dead_letter.due_at, dead_letter.original), (0, UnixTime(0), fields));
    }
}

//! A record as a line of the file. The hash is over the bytes of the line: a change of any byte shows.

use std::fmt;
use std::str::FromStr;

use domain::hex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};

use super::LINE_BYTES_MAX;
use super::record::{Outcome, Record};

/// `,"hash":"…"`.
const HASH_FIELD_BYTES: usize = 74;
/// Names from outside are cut to this; a character takes at most six bytes in JSON.
const TEXT_CHARS_MAX: usize = 256;

/// SHA-256 of a line, as 64 lowercase digits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LineHash(String);

impl LineHash {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self::of_both(bytes, b"")
    }

    fn of_both(head: &[u8], tail: &[u8]) -> Self {
        let digest = Sha256::new_with_prefix(head).chain_update(tail).finalize();
        LineHash(hex::encode(&digest))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for LineHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a hash has 64 digits, 0 to 9 and a to f")]
pub struct NotAHash;

impl FromStr for LineHash {
    type Err = NotAHash;

    fn from_str(text: &str) -> Result<Self, NotAHash> {
        let is_hash = text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_hash.then(|| LineHash(text.to_owned())).ok_or(NotAHash)
    }
}

/// A line of the trail, with its fields in this order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Entry {
    pub action: String,
    pub actor_id: String,
    pub subject_type: String,
    pub subject_id: String,
    pub result: Outcome,
    pub details: Map<String, Json>,
    /// RFC 3339, UTC, with milliseconds.
    pub at: String,
    /// From 1.
    pub seq: u64,
    /// The hash of the line before.
    pub prev: LineHash,
    /// Empty only while it is computed.
    #[serde(default, skip_serializing_if = "LineHash::is_empty")]
    pub hash: LineHash,
}

/// `seq` and `prev` of the line after `last`.
pub(super) fn link_after(last: Option<&Entry>) -> (u64, LineHash) {
    match last {
        Some(last) => (last.seq.saturating_add(1), last.hash.clone()),
        None => (1, LineHash("0".repeat(64))),
    }
}

impl Entry {
    pub(super) fn after(last: Option<&Entry>, record: &Record, at: &str) -> Entry {
        let (seq, prev) = link_after(last);
        let mut entry = Entry {
            action: record.action.to_owned(),
            actor_id: cut(&record.actor),
            subject_type: record.subject.kind.to_owned(),
            subject_id: cut(&record.subject.id),
            result: record.outcome,
            details: record.details.clone(),
            at: at.to_owned(),
            seq,
            prev,
            hash: LineHash::default(),
        };
        let mut text = entry.to_json();
        if text.len() + HASH_FIELD_BYTES > LINE_BYTES_MAX {
            entry.details = Map::from_iter([("omittedBytes".to_owned(), json!(text.len()))]);
            text = entry.to_json();
        }
        entry.hash = LineHash::of(&text);
        entry
    }

    /// The line without its newline.
    pub(super) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings and numbers can be written as JSON")
    }
}

/// A caller must not be able to fill the disk with a long name.
fn cut(text: &str) -> String {
    let mut cut: String = text.chars().take(TEXT_CHARS_MAX).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    cut
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Misfit {
    #[error("it is not a record")]
    NotARecord,
    #[error("its hash does not match its content: it was changed")]
    Changed,
}

/// Reads a line without its newline, and checks its own hash.
pub(super) fn decode(line: &[u8]) -> Result<Entry, Misfit> {
    let entry: Entry = serde_json::from_slice(line).map_err(|_| Misfit::NotARecord)?;
    let field = format!(",\"hash\":\"{}\"}}", entry.hash);
    let head = line.strip_suffix(field.as_bytes()).ok_or(Misfit::NotARecord)?;
    match LineHash::of_both(head, b"}") == entry.hash {
        true => Ok(entry),
        false => Err(Misfit::Changed),
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Subject;
    use super::*;

    fn record() -> Record {
        Record::ok("user.add", "cli:ada", Subject::new("user", 7)).with("note", "a \"line\"\nof text")
    }

    #[test]
    fn w7_a_line_has_the_documented_fields_in_their_order() {
        let entry = Entry::after(None, &record(), "2026-01-01T00:00:00.000Z");
        let zeros = "0".repeat(64);
        let before = format!(
            r#"{{"action":"user.add","actorId":"cli:ada","subjectType":"user","subjectId":"7","result":"ok","details":{{"note":"a \"line\"\nof text"}},"at":"2026-01-01T00:00:00.000Z","seq":1,"prev":"{zeros}""#
        );
        assert_eq!(entry.hash, LineHash::of(format!("{before}}}").as_bytes()));
        assert_eq!(
            String::from_utf8(entry.to_json()).unwrap(),
            format!("{before},\"hash\":\"{}\"}}", entry.hash)
        );
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let first = Entry::after(None, &record(), "2026-01-01T00:00:00.000Z");
        let second = Entry::after(Some(&first), &record().failed("no room"), "2026-01-01T00:00:00.000Z");
        let read = decode(&second.to_json()).unwrap();
        assert_eq!((read.seq, &read.prev, read.result), (2, &first.hash, Outcome::Failed));
        assert_eq!((&read.details["reason"], &read), (&json!("no room"), &second));
    }

    #[test]
    fn a_line_is_bounded_whatever_is_recorded() {
        let control = "\u{1}".repeat(1 << 20);
        let huge = Record::ok("user.add", control.clone(), Subject::new("user", &control)).with("a", control);
        let line = Entry::after(None, &huge, "2026-01-01T00:00:00.000Z").to_json();
        assert!(line.len() <= LINE_BYTES_MAX, "{}", line.len());
        let entry = decode(&line).unwrap();
        assert!(entry.details.contains_key("omittedBytes"));
        assert_eq!(entry.actor_id.chars().count(), 257);
    }
}

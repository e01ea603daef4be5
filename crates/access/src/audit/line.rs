//! A record as a line of the file. The hash is over the bytes of the line: a change of any byte shows.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};

use super::LINE_BYTES_MAX;
use super::record::{Outcome, Record};

/// `,"hash":"…"`.
const HASH_FIELD_BYTES: usize = 74;
/// Names from outside are cut to this; a character takes at most six bytes in JSON.
const TEXT_CHARS_MAX: usize = 256;
const MS_PER_DAY: u64 = 24 * 60 * 60 * 1000;

/// SHA-256 of a line, as 64 lowercase digits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LineHash(String);

impl LineHash {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self::finish(Sha256::new_with_prefix(bytes))
    }

    pub(super) fn finish(hasher: Sha256) -> Self {
        LineHash(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// `prev` of the first line.
    pub(super) fn zeros() -> Self {
        LineHash("0".repeat(64))
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

/// Number and hash of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) seq: u64,
    pub(super) hash: LineHash,
}

impl Link {
    /// Before the first line.
    pub(super) fn start() -> Link {
        Link { seq: 0, hash: LineHash::zeros() }
    }
}

/// The line after `before`, with its newline.
pub(super) fn encode(record: &Record, at: &str, before: &Link) -> (Vec<u8>, Link) {
    let mut entry = Entry {
        action: record.action.to_owned(),
        actor_id: cut(&record.actor),
        subject_type: record.subject.kind.to_owned(),
        subject_id: cut(&record.subject.id),
        result: record.outcome,
        details: record.details.clone(),
        at: at.to_owned(),
        seq: before.seq.saturating_add(1),
        prev: before.hash.clone(),
        hash: LineHash::default(),
    };
    let mut text = to_json(&entry);
    if text.len() + HASH_FIELD_BYTES > LINE_BYTES_MAX {
        entry.details = Map::from_iter([("omittedBytes".to_owned(), json!(text.len()))]);
        text = to_json(&entry);
    }
    entry.hash = LineHash::of(&text);
    let mut line = to_json(&entry);
    line.push(b'\n');
    (line, Link { seq: entry.seq, hash: entry.hash })
}

fn to_json(entry: &Entry) -> Vec<u8> {
    serde_json::to_vec(entry).expect("strings and numbers can be written as JSON")
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
    #[error("its hash does not fit its content: it was changed")]
    Changed,
}

/// Reads a line without its newline, and checks its own hash.
pub(super) fn decode(line: &[u8]) -> Result<Entry, Misfit> {
    let entry: Entry = serde_json::from_slice(line).map_err(|_| Misfit::NotARecord)?;
    let field = format!(",\"hash\":\"{}\"}}", entry.hash);
    let head = line.strip_suffix(field.as_bytes()).ok_or(Misfit::NotARecord)?;
    match LineHash::finish(Sha256::new_with_prefix(head).chain_update(b"}")) == entry.hash {
        true => Ok(entry),
        false => Err(Misfit::Changed),
    }
}

/// Milliseconds since 1970 as RFC 3339 in UTC: `2026-11-15T15:08:32.007Z`.
pub fn rfc3339(ms: u64) -> String {
    // Howard Hinnant's civil_from_days: years begin in March, so that the leap day is the last.
    let days = ms / MS_PER_DAY + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let of_day = ms % MS_PER_DAY;
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, milli) = (of_day / 1000 % 60, of_day % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
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
        let (line, link) = encode(&record(), "2026-01-01T00:00:00.000Z", &Link::start());
        let text = String::from_utf8(line).unwrap();
        let zeros = "0".repeat(64);
        let before = format!(
            r#"{{"action":"user.add","actorId":"cli:ada","subjectType":"user","subjectId":"7","result":"ok","details":{{"note":"a \"line\"\nof text"}},"at":"2026-01-01T00:00:00.000Z","seq":1,"prev":"{zeros}""#
        );
        assert_eq!(text, format!("{before},\"hash\":\"{}\"}}\n", link.hash));
        assert_eq!(link.hash, LineHash::of(format!("{before}}}").as_bytes()));
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let before = Link { seq: 41, hash: LineHash::of(b"x") };
        let (line, link) = encode(&record().failed("no room"), "2026-01-01T00:00:00.000Z", &before);
        let entry = decode(line.strip_suffix(b"\n").unwrap()).unwrap();
        assert_eq!((entry.seq, entry.prev, entry.hash), (42, before.hash, link.hash));
        assert_eq!((entry.result, &entry.details["reason"]), (Outcome::Failed, &json!("no room")));
    }

    #[test]
    fn a_line_is_bounded_whatever_is_recorded() {
        let control = "\u{1}".repeat(1 << 20);
        let huge = Record::ok("user.add", control.clone(), Subject::new("user", &control)).with("a", control);
        let (line, _) = encode(&huge, "2026-01-01T00:00:00.000Z", &Link::start());
        assert!(line.len() <= LINE_BYTES_MAX + 1, "{}", line.len());
        let entry = decode(line.strip_suffix(b"\n").unwrap()).unwrap();
        assert!(entry.details.contains_key("omittedBytes"));
        assert_eq!(entry.actor_id.chars().count(), 257);
    }

    #[test]
    fn times_are_written_as_rfc_3339() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_750_000_000_007, "2025-06-15T15:06:40.007Z"),
            (4_102_444_799_000, "2099-12-31T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(ms), text);
        }
    }
}

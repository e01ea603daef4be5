//! A record as it stands in the file: one line, and the hash that chains it to the line before.
//!
//! The hash is over the bytes as they stand, not over what they mean: no other reading of JSON can disagree with it, and
//! a byte that is changed anywhere in the line shows.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};

use super::LINE_BYTES_MAX;
use super::record::{Outcome, Record};

/// What stands before the digits of the hash, and behind them.
const HASH_OPENS: &[u8] = br#","hash":""#;
const HASH_CLOSES: &[u8] = br#""}"#;
/// The digits of a hash.
const HASH_DIGITS: usize = 64;
/// Texts that come from outside are cut to this many characters; a character takes at most six bytes in JSON.
const TEXT_CHARS_MAX: usize = 256;

/// The hash of a line.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct LineHash([u8; 32]);

impl LineHash {
    /// What the first line of all has before it.
    pub const BEFORE_THE_FIRST: LineHash = LineHash([0; 32]);

    /// The hash over these bytes.
    pub(super) fn of(bytes: &[u8]) -> Self {
        LineHash(Sha256::digest(bytes).into())
    }

    /// A hash that was counted piece by piece.
    pub(super) fn finish(hasher: Sha256) -> Self {
        LineHash(hasher.finalize().into())
    }
}

impl fmt::Display for LineHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for LineHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not the hash of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a hash has 64 digits, 0 to 9 and a to f")]
pub struct NotAHash;

impl FromStr for LineHash {
    type Err = NotAHash;

    /// In lowercase only, so that each hash has one spelling.
    fn from_str(text: &str) -> Result<Self, NotAHash> {
        let digits = text.as_bytes();
        if digits.len() != HASH_DIGITS
            || !digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
        {
            return Err(NotAHash);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let value = |digit: u8| if digit.is_ascii_digit() { digit - b'0' } else { digit - b'a' + 10 };
            *byte = value(pair[0]) << 4 | value(pair[1]);
        }
        Ok(LineHash(bytes))
    }
}

impl Serialize for LineHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for LineHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Lowercase digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A line of the trail. Its fields stand in this order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Entry {
    /// What was done.
    pub action: String,
    /// Who did it.
    pub actor_id: String,
    /// What kind of thing it is about.
    pub subject_type: String,
    /// Which of them.
    pub subject_id: String,
    /// How it ended.
    pub result: Outcome,
    /// What else is worth knowing.
    pub details: Map<String, Json>,
    /// When, as RFC 3339 in UTC with milliseconds.
    pub at: String,
    /// Its number, from 1 on.
    pub seq: u64,
    /// The hash of the line before.
    pub prev: LineHash,
    /// The hash of this line.
    pub hash: LineHash,
}

/// A line up to its hash.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Unhashed<'a> {
    action: &'a str,
    actor_id: &'a str,
    subject_type: &'a str,
    subject_id: &'a str,
    result: Outcome,
    details: &'a Map<String, Json>,
    at: &'a str,
    seq: u64,
    prev: LineHash,
}

/// The place of a line in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// The number of the line.
    pub(super) seq: u64,
    /// Its hash.
    pub(super) hash: LineHash,
}

impl Link {
    /// Where a chain begins.
    pub(super) const START: Link = Link { seq: 0, hash: LineHash::BEFORE_THE_FIRST };
}

/// Writes the line that comes behind `before`, with its end, and tells its place.
pub(super) fn encode(record: &Record, at: &str, before: Link) -> (Vec<u8>, Link) {
    let (actor, subject_id) = (cut(&record.actor), cut(&record.subject.id));
    let mut unhashed = Unhashed {
        action: record.action,
        actor_id: &actor,
        subject_type: record.subject.kind,
        subject_id: &subject_id,
        result: record.outcome,
        details: &record.details,
        at,
        seq: before.seq.saturating_add(1),
        prev: before.hash,
    };
    let mut line = to_json(&unhashed);
    let omitted;
    if line.len() + HASH_OPENS.len() + HASH_DIGITS + HASH_CLOSES.len() > LINE_BYTES_MAX {
        omitted = Map::from_iter([("omittedBytes".to_owned(), json!(line.len()))]);
        unhashed.details = &omitted;
        line = to_json(&unhashed);
    }
    let hash = LineHash::of(&line);
    line.pop();
    line.extend_from_slice(HASH_OPENS);
    line.extend_from_slice(hash.to_string().as_bytes());
    line.extend_from_slice(HASH_CLOSES);
    line.push(b'\n');
    (line, Link { seq: before.seq.saturating_add(1), hash })
}

fn to_json(unhashed: &Unhashed<'_>) -> Vec<u8> {
    serde_json::to_vec(unhashed).expect("texts and numbers can be written as JSON")
}

/// Whoever calls must not be able to fill the disk by the name of a thing.
fn cut(text: &str) -> String {
    let mut cut: String = text.chars().take(TEXT_CHARS_MAX).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    cut
}

/// Why a line is none of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Misfit {
    /// Something else stands there.
    #[error("it is not a record")]
    NotARecord,
    /// The hash is another.
    #[error("its hash does not fit what it says: it was changed")]
    Changed,
}

/// Reads a line, without its end, and checks its own hash; not yet whether it fits behind the one before.
pub(super) fn decode(line: &[u8]) -> Result<Entry, Misfit> {
    let (head, tail) = line
        .len()
        .checked_sub(HASH_OPENS.len() + HASH_DIGITS + HASH_CLOSES.len())
        .map(|middle| line.split_at(middle))
        .ok_or(Misfit::NotARecord)?;
    let digits = tail
        .strip_prefix(HASH_OPENS)
        .and_then(|tail| tail.strip_suffix(HASH_CLOSES))
        .and_then(|digits| std::str::from_utf8(digits).ok())
        .ok_or(Misfit::NotARecord)?;
    let told: LineHash = digits.parse().map_err(|NotAHash| Misfit::NotARecord)?;
    let mut hasher = Sha256::new();
    hasher.update(head);
    hasher.update(b"}");
    if LineHash::finish(hasher) != told {
        return Err(Misfit::Changed);
    }
    serde_json::from_slice(line).map_err(|_| Misfit::NotARecord)
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
        let (line, link) = encode(&record(), "2026-01-01T00:00:00.000Z", Link::START);
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
        let (line, link) = encode(&record().failed("no room"), "2026-01-01T00:00:00.000Z", before);
        let entry = decode(line.strip_suffix(b"\n").unwrap()).unwrap();
        assert_eq!((entry.seq, entry.prev, entry.hash), (42, before.hash, link.hash));
        assert_eq!((entry.result, &entry.details["reason"]), (Outcome::Failed, &json!("no room")));
    }

    #[test]
    fn a_line_is_bounded_whatever_is_recorded() {
        let control = "\u{1}".repeat(1 << 20);
        let huge = Record::ok("user.add", control.clone(), Subject::new("user", &control)).with("a", control);
        let (line, _) = encode(&huge, "2026-01-01T00:00:00.000Z", Link::START);
        assert!(line.len() <= LINE_BYTES_MAX + 1, "{}", line.len());
        let entry = decode(line.strip_suffix(b"\n").unwrap()).unwrap();
        assert!(entry.details.contains_key("omittedBytes"));
        assert_eq!(entry.actor_id.chars().count(), 257);
    }
}

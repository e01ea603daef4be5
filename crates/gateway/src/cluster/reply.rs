//! Parses replies of the scripts and entries of inboxes into records.

use std::time::Duration;

use domain::{UnixTime, UserId};
use keyspace::{RedisError, Reply, read_reply};
use presence::Status;
use redis::{FromRedisValue, Value};

use super::encoding::{read_declaration, read_entry};
use super::node::NodeName;
use super::record::{PublishOutcome, Record, RecordChange, TimedEntry, WatchReply};

/// Fields of a record, as Redis returns them.
pub(crate) type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// An entry that expired this long ago is orphaned: no deadline set lists it. The same value as in `presence.lua`.
const ORPHANED_MS: u64 = 5_000;
/// A user whose entries are all orphaned counts as pending for this long, until the record is repaired.
const ORPHANED_PENDING: Duration = Duration::from_secs(60);

/// Reply of a script that writes a record.
pub(crate) enum ScriptReply {
    /// This, to be passed on to the caller as it is.
    PublishOutcome(PublishOutcome),
    /// The entry does not exist although it must; nothing was written.
    Absent,
    /// Nothing is due before this long.
    Later(Duration),
    /// The record changed; watchers are to be notified.
    Changed(Box<RecordChange>, Notification),
    /// Another node has just reaped it, and will notify watchers.
    Waiting,
    /// Nothing is due; watchers may not have been notified.
    Nothing(Notification),
}

/// A record to send to watching nodes.
pub(crate) struct Notification {
    pub user: UserId,
    pub fields: Fields,
    pub now_ms: u64,
    pub watchers: Vec<NodeName>,
}

impl Notification {
    /// Remaining pending time; none if the user is not pending.
    pub(crate) fn pending(&self) -> Option<Duration> {
        let (_, until) = self.fields.iter().find(|(field, _)| field == b"q")?;
        let until_ms: u64 = std::str::from_utf8(until).ok()?.parse().ok()?;
        Some(Duration::from_millis(until_ms.saturating_sub(self.now_ms)))
    }
}

/// Counts malformed values and orphaned entries; both count as absent.
#[derive(Default)]
pub(crate) struct ReplyReader {
    pub malformed: u64,
    pub lost: u64,
}

impl ReplyReader {
    pub(crate) fn script_reply(&mut self, user: UserId, reply: Reply) -> Result<ScriptReply, RedisError> {
        let words: Vec<Value> = read_reply(reply)?;
        let mut words = words.into_iter();
        let kind: String = take(&mut words)?;
        Ok(match kind.as_str() {
            "fenced" => ScriptReply::PublishOutcome(PublishOutcome::Fenced),
            "unknown" => ScriptReply::PublishOutcome(PublishOutcome::Unknown),
            "absent" => ScriptReply::Absent,
            "same" => ScriptReply::PublishOutcome(PublishOutcome::Unchanged {
                public_version: take(&mut words)?,
                own_version: take(&mut words)?,
            }),
            "later" => ScriptReply::Later(Duration::from_millis(take(&mut words)?)),
            "wait" => ScriptReply::Waiting,
            "none" => {
                let now_ms = take(&mut words)?;
                ScriptReply::Nothing(self.notification(user, now_ms, &mut words)?)
            }
            "changed" => {
                let now_ms = take(&mut words)?;
                let before: String = take(&mut words)?;
                let is_first = before == NO_RECORD;
                let from = if is_first { Status::Offline } else { status(before)? };
                let was_here: bool = take(&mut words)?;
                let to = status(take(&mut words)?)?;
                let is_here: bool = take(&mut words)?;
                let notification = self.notification(user, now_ms, &mut words)?;
                let record = self.record(user, &notification.fields, now_ms);
                let (arrived, left) = (!was_here && is_here, was_here && !is_here);
                let outcome = RecordChange { record, from, to, arrived, left, is_first, at_ms: now_ms };
                ScriptReply::Changed(Box::new(outcome), notification)
            }
            _ => return Err(unexpected()),
        })
    }

    pub(crate) fn watch_reply(&mut self, user: UserId, reply: Reply) -> Result<WatchReply, RedisError> {
        let words: Vec<Value> = read_reply(reply)?;
        let mut words = words.into_iter();
        let kind: String = take(&mut words)?;
        Ok(match kind.as_str() {
            "unknown" => WatchReply::Unknown,
            "same" => {
                let others = pairs(take(&mut words)?);
                WatchReply::Same {
                    remaining: others.into_iter().filter_map(|other| self.entry_validity(other)).collect(),
                }
            }
            "record" => {
                let now_ms = take(&mut words)?;
                let fields = pairs(take(&mut words)?);
                WatchReply::Record(Box::new(self.record(user, &fields, now_ms)))
            }
            _ => return Err(unexpected()),
        })
    }

    /// The node, and the remaining validity of its entry.
    fn entry_validity(&mut self, (node, left_ms): (Vec<u8>, Vec<u8>)) -> Option<(NodeName, Duration)> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).ok();
        let (Some(node), Some(left_ms)) = (
            text(node).and_then(|node| NodeName::read(&node)),
            text(left_ms).and_then(|left| left.parse::<i64>().ok()),
        ) else {
            self.malformed += 1;
            return None;
        };
        self.lost += u64::from(left_ms < 0 && left_ms.unsigned_abs() >= ORPHANED_MS);
        Some((node, Duration::from_millis(u64::try_from(left_ms).unwrap_or(0))))
    }

    /// The record of these fields, at this time of Redis's.
    pub(crate) fn record(&mut self, user: UserId, fields: &Fields, now_ms: u64) -> Record {
        let mut record = Record {
            user,
            entries: Vec::new(),
            declaration: None,
            last_seen: None,
            hidden_since: None,
            pending: None,
            public_version: 0,
            own_version: 0,
        };
        let lost_before = self.lost;
        for (field, value) in fields {
            if self.take_field(&mut record, (field, value), now_ms).is_none() {
                self.malformed += 1;
            }
        }
        if record.entries.is_empty() && self.lost > lost_before {
            record.pending = record.pending.or(Some(ORPHANED_PENDING));
        }
        record.entries.sort_by(|one, other| one.node.cmp(&other.node));
        record
    }

    /// Takes one field; none if it is malformed.
    fn take_field(&mut self, record: &mut Record, (field, value): (&[u8], &[u8]), now_ms: u64) -> Option<()> {
        let value = std::str::from_utf8(value).ok()?;
        let left = |at_ms: u64| Duration::from_millis(at_ms.saturating_sub(now_ms));
        match field {
            b"v" => record.public_version = value.parse().ok()?,
            b"o" => record.own_version = value.parse().ok()?,
            b"l" => record.last_seen = Some(UnixTime(value.parse().ok()?)),
            b"h" => record.hidden_since = Some(UnixTime(value.parse().ok()?)),
            b"q" => record.pending = Some(left(value.parse().ok()?)),
            b"d" => record.declaration = Some(read_declaration(value)?),
            _ => {
                let field = std::str::from_utf8(field).ok()?;
                if let Some(node) = field.strip_prefix("n:") {
                    let (part, deadline_ms) = read_entry(value)?;
                    let node = NodeName::read(node)?;
                    if deadline_ms.saturating_add(ORPHANED_MS) <= now_ms {
                        self.lost += 1;
                        return Some(());
                    }
                    record.entries.push(TimedEntry { node, entry: part, remaining: left(deadline_ms) });
                }
            }
        }
        Some(())
    }

    fn notification(
        &mut self,
        user: UserId,
        now_ms: u64,
        words: &mut impl Iterator<Item = Value>,
    ) -> Result<Notification, RedisError> {
        let fields = pairs(take(words)?);
        let watchers: Vec<String> = take(words)?;
        let names = watchers.iter().filter_map(|name| NodeName::read(name));
        let watchers_read: Vec<NodeName> = names.collect();
        self.malformed += (watchers.len() - watchers_read.len()) as u64;
        Ok(Notification { user, fields, now_ms, watchers: watchers_read })
    }
}

/// The next element of a reply.
pub(crate) fn take<T: FromRedisValue>(words: &mut impl Iterator<Item = Value>) -> Result<T, RedisError> {
    read_reply(words.next().ok_or_else(unexpected))
}

/// Alternating names and values.
pub(crate) fn pairs(flat: Vec<Vec<u8>>) -> Fields {
    let mut flat = flat.into_iter();
    let mut pairs = Vec::with_capacity(flat.len() / 2);
    while let (Some(name), Some(value)) = (flat.next(), flat.next()) {
        pairs.push((name, value));
    }
    pairs
}

/// Status of a user without a record.
const NO_RECORD: &str = "none";

fn status(name: String) -> Result<Status, RedisError> {
    Status::from_name(&name).ok_or_else(unexpected)
}

pub(crate) fn unexpected() -> RedisError {
    RedisError::Other { code: "unexpected reply".to_owned(), reason: "from a presence script".to_owned() }
}

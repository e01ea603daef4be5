//! What the scripts reply, and what entries of an inbox say: a person's fields, made a record.

use std::time::Duration;

use domain::{UnixTime, UserId};
use keyspace::{Reply, Trouble, read_reply};
use presence::Status;
use redis::{FromRedisValue, Value};

use crate::encoding::{read_declaration, read_part};
use crate::node::NodeName;
use crate::record::{Outcome, PartOf, Published, Record, Watched};

/// A person's fields, as Redis has them.
pub(crate) type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// A part that is over for this long and still there is lost: nothing says any more that it is due. As in
/// `presence.lua`.
const LOST_MS: u64 = 5_000;
/// Whose parts are all lost counts as pending until it was decided what they are.
const UNDECIDED: Duration = Duration::from_secs(60);

/// What a script on a record says.
pub(crate) enum Said {
    /// This, to be passed on to the caller as it is.
    Published(Published),
    /// The part is not there, although it must be; nothing was written.
    Absent,
    /// Nothing is due before this long.
    Later(Duration),
    /// Something changed, and is to be told.
    Changed(Box<Outcome>, News),
    /// Another has just cleared it up, and will say so.
    Waiting,
    /// Nothing is due; what is known may not have been told.
    Nothing(News),
}

/// What is to be told, and to whom.
pub(crate) struct News {
    pub user: UserId,
    pub fields: Fields,
    pub now_ms: u64,
    pub watchers: Vec<NodeName>,
}

impl News {
    /// How long they are still pending; none if they are not.
    pub(crate) fn pending(&self) -> Option<Duration> {
        let (_, until) = self.fields.iter().find(|(field, _)| field == b"q")?;
        let until_ms: u64 = std::str::from_utf8(until).ok()?.parse().ok()?;
        Some(Duration::from_millis(until_ms.saturating_sub(self.now_ms)))
    }
}

/// Reads replies; counts what is malformed, and parts that are lost, which count as absent.
#[derive(Default)]
pub(crate) struct Reader {
    pub malformed: u64,
    pub lost: u64,
}

impl Reader {
    /// What a script that writes says.
    pub(crate) fn said(&mut self, user: UserId, reply: Reply) -> Result<Said, Trouble> {
        let words: Vec<Value> = read_reply(reply)?;
        let mut words = words.into_iter();
        let kind: String = take(&mut words)?;
        Ok(match kind.as_str() {
            "fenced" => Said::Published(Published::Fenced),
            "unknown" => Said::Published(Published::Unknown),
            "absent" => Said::Absent,
            "same" => Said::Published(Published::Unchanged {
                public_version: take(&mut words)?,
                own_version: take(&mut words)?,
            }),
            "later" => Said::Later(Duration::from_millis(take(&mut words)?)),
            "wait" => Said::Waiting,
            "none" => {
                let now_ms = take(&mut words)?;
                Said::Nothing(self.news(user, now_ms, &mut words)?)
            }
            "changed" => {
                let now_ms = take(&mut words)?;
                let before: String = take(&mut words)?;
                let is_first = before == NO_RECORD;
                let from = if is_first { Status::Offline } else { status(before)? };
                let was_here: bool = take(&mut words)?;
                let to = status(take(&mut words)?)?;
                let is_here: bool = take(&mut words)?;
                let news = self.news(user, now_ms, &mut words)?;
                let record = self.record(user, &news.fields, now_ms);
                let (arrived, left) = (!was_here && is_here, was_here && !is_here);
                let outcome = Outcome { record, from, to, arrived, left, is_first, at_ms: now_ms };
                Said::Changed(Box::new(outcome), news)
            }
            _ => return Err(unexpected()),
        })
    }

    /// What the script that reads says.
    pub(crate) fn watched(&mut self, user: UserId, reply: Reply) -> Result<Watched, Trouble> {
        let words: Vec<Value> = read_reply(reply)?;
        let mut words = words.into_iter();
        let kind: String = take(&mut words)?;
        Ok(match kind.as_str() {
            "unknown" => Watched::Unknown,
            "same" => {
                let others = pairs(take(&mut words)?);
                Watched::Same {
                    remaining: others.into_iter().filter_map(|other| self.part_left(other)).collect(),
                }
            }
            "record" => {
                let now_ms = take(&mut words)?;
                let fields = pairs(take(&mut words)?);
                Watched::Record(Box::new(self.record(user, &fields, now_ms)))
            }
            _ => return Err(unexpected()),
        })
    }

    /// Whose part it is, and how long it may still be believed.
    fn part_left(&mut self, (node, left_ms): (Vec<u8>, Vec<u8>)) -> Option<(NodeName, Duration)> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).ok();
        let (Some(node), Some(left_ms)) = (
            text(node).and_then(|node| NodeName::read(&node)),
            text(left_ms).and_then(|left| left.parse::<i64>().ok()),
        ) else {
            self.malformed += 1;
            return None;
        };
        self.lost += u64::from(left_ms < 0 && left_ms.unsigned_abs() >= LOST_MS);
        Some((node, Duration::from_millis(u64::try_from(left_ms).unwrap_or(0))))
    }

    /// The record of these fields, at this time of Redis's.
    pub(crate) fn record(&mut self, user: UserId, fields: &Fields, now_ms: u64) -> Record {
        let mut record = Record {
            user,
            parts: Vec::new(),
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
        if record.parts.is_empty() && self.lost > lost_before {
            record.pending = record.pending.or(Some(UNDECIDED));
        }
        record.parts.sort_by(|one, other| one.node.cmp(&other.node));
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
                    let (part, deadline_ms) = read_part(value)?;
                    let node = NodeName::read(node)?;
                    if deadline_ms.saturating_add(LOST_MS) <= now_ms {
                        self.lost += 1;
                        return Some(());
                    }
                    record.parts.push(PartOf { node, part, remaining: left(deadline_ms) });
                }
            }
        }
        Some(())
    }

    fn news(
        &mut self,
        user: UserId,
        now_ms: u64,
        words: &mut impl Iterator<Item = Value>,
    ) -> Result<News, Trouble> {
        let fields = pairs(take(words)?);
        let watchers: Vec<String> = take(words)?;
        let names = watchers.iter().filter_map(|name| NodeName::read(name));
        let watchers_read: Vec<NodeName> = names.collect();
        self.malformed += (watchers.len() - watchers_read.len()) as u64;
        Ok(News { user, fields, now_ms, watchers: watchers_read })
    }
}

/// The next word of a reply.
pub(crate) fn take<T: FromRedisValue>(words: &mut impl Iterator<Item = Value>) -> Result<T, Trouble> {
    read_reply(words.next().ok_or_else(unexpected))
}

/// Texts in turn, as names and values.
pub(crate) fn pairs(flat: Vec<Vec<u8>>) -> Fields {
    let mut flat = flat.into_iter();
    let mut pairs = Vec::with_capacity(flat.len() / 2);
    while let (Some(name), Some(value)) = (flat.next(), flat.next()) {
        pairs.push((name, value));
    }
    pairs
}

/// The status of whom there is no record of.
const NO_RECORD: &str = "none";

fn status(name: String) -> Result<Status, Trouble> {
    Status::from_name(&name).ok_or_else(unexpected)
}

pub(crate) fn unexpected() -> Trouble {
    Trouble::Other {
        code: "a reply nobody expected".to_owned(),
        reason: "from a script on a person's record".to_owned(),
    }
}

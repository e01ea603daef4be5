//! How a stream and its groups are doing (J7).

use std::time::Duration;

use keyspace::{Redis, Trouble};
use redis::Value;

use super::reply::{self, Info, id_of, unexpected};
use crate::id::EntryId;
use crate::port::{ConsumerInfo, GroupStatus, LaneStatus};

/// Up to this length, what a group has not read is counted where Redis may be wrong about it.
const COUNTED_LENGTH_MAX: u64 = 10_000;
/// Entries fetched at a time where they are counted.
const COUNTED_PER_PAGE: usize = 2_000;

/// The state of a stream; a missing one is empty.
pub(super) async fn status(redis: &Redis, key: &str) -> Result<LaneStatus, Trouble> {
    let mut both = redis::pipe();
    both.cmd("XINFO").arg("STREAM").arg(key).cmd("XINFO").arg("GROUPS").arg(key);
    // No transaction: Redis refuses those when it is out of memory, which is when somebody looks.
    let mut replies = redis.pipeline(&both).await.into_iter();
    let stream = match replies.next().unwrap_or(Ok(Value::Nil)) {
        Err(trouble) if is_missing(&trouble) => return Ok(LaneStatus::default()),
        stream => Stream::read(stream?)?,
    };
    let Value::Array(groups) = replies.next().unwrap_or(Ok(Value::Nil))? else {
        return Err(unexpected(&Value::Nil));
    };
    let mut figures = Vec::with_capacity(groups.len());
    for group in groups {
        let info = Info::read(group)?;
        figures.extend(group_status(redis, key, &stream, &info).await?);
    }
    figures.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(LaneStatus {
        length: stream.length,
        first: (stream.length > 0).then_some(stream.first),
        last: Some(stream.last).filter(|last| *last != EntryId::ZERO),
        appended: stream.appended,
        groups: figures,
    })
}

/// The consumers of a group.
pub(super) async fn consumers(redis: &Redis, key: &str, group: &str) -> Result<Vec<ConsumerInfo>, Trouble> {
    let mut command = redis::cmd("XINFO");
    command.arg("CONSUMERS").arg(key).arg(group);
    let reply: Vec<Value> = match redis.query(&command).await {
        Err(trouble) if is_missing(&trouble) => return Err(Trouble::NoGroup { reason: trouble.to_string() }),
        reply => reply?,
    };
    reply.into_iter().map(consumer_of).collect()
}

fn consumer_of(reply: Value) -> Result<ConsumerInfo, Trouble> {
    let info = Info::read(reply)?;
    Ok(ConsumerInfo {
        name: info.text("name")?,
        idle: Duration::from_millis(info.number("idle")),
        pending: info.number("pending"),
    })
}

/// `XINFO` calls a missing key an error without a name.
fn is_missing(trouble: &Trouble) -> bool {
    matches!(trouble, Trouble::Other { reason, .. } if reason.starts_with("no such key"))
}

struct Stream {
    length: u64,
    appended: u64,
    first: EntryId,
    last: EntryId,
    has_deleted: bool,
}

impl Stream {
    fn read(reply: Value) -> Result<Stream, Trouble> {
        let info = Info::read(reply)?;
        let length = info.number("length");
        Ok(Stream {
            length,
            appended: info.optional_number("entries-added").unwrap_or(length),
            first: info.id("recorded-first-entry-id")?,
            last: info.id("last-generated-id")?,
            has_deleted: info.id("max-deleted-entry-id")? != EntryId::ZERO,
        })
    }
}

/// None if the group has gone meanwhile.
async fn group_status(
    redis: &Redis,
    key: &str,
    stream: &Stream,
    info: &Info,
) -> Result<Option<GroupStatus>, Trouble> {
    let name = info.text("name")?;
    let last_delivered = info.id("last-delivered-id")?;
    let mut summary = redis::cmd("XPENDING");
    summary.arg(key).arg(&name);
    let pending = match redis.query::<Vec<Value>>(&summary).await {
        Err(Trouble::NoGroup { .. }) => return Ok(None),
        pending => pending?,
    };
    let [Value::Int(pending), oldest, ..] = pending.as_slice() else {
        return Err(unexpected(&Value::Array(pending)));
    };
    Ok(Some(GroupStatus {
        unread: unread(redis, key, stream, (last_delivered, info.optional_number("lag"))).await?,
        pending: u64::try_from(*pending).unwrap_or(0),
        oldest_pending: if *oldest == Value::Nil { None } else { Some(id_of(oldest)?) },
        last_delivered,
        consumers: info.number("consumers"),
        name,
    }))
}

/// How many entries lie behind the last one delivered. Redis's own figure (`lag`) is missing or wrong once entries
/// were deleted one by one, or for a group that began in the middle.
async fn unread(
    redis: &Redis,
    key: &str,
    stream: &Stream,
    (last_delivered, lag): (EntryId, Option<u64>),
) -> Result<u64, Trouble> {
    if stream.length == 0 || last_delivered >= stream.last {
        return Ok(0);
    }
    if last_delivered < stream.first {
        return Ok(stream.length);
    }
    match lag {
        Some(lag) if !stream.has_deleted || stream.length > COUNTED_LENGTH_MAX => Ok(lag),
        _ => count_after(redis, key, last_delivered, stream.last).await,
    }
}

/// Counts page by page, so that Redis is not held up.
async fn count_after(redis: &Redis, key: &str, after: EntryId, last: EntryId) -> Result<u64, Trouble> {
    let (mut count, mut after) = (0, after);
    loop {
        let mut command = redis::cmd("XRANGE");
        command.arg(key).arg(after.next().to_string()).arg(last.to_string());
        command.arg("COUNT").arg(COUNTED_PER_PAGE);
        let page = reply::entries(redis.query(&command).await?)?;
        count += page.len() as u64;
        match page.last() {
            Some(entry) if page.len() == COUNTED_PER_PAGE => after = entry.id,
            _ => return Ok(count),
        }
    }
}

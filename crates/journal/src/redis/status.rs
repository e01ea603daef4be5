//! Status of a stream and its groups (J7).

use std::time::Duration;

use keyspace::{Redis, RedisError};
use redis::Value;

use super::reply::{Info, id_of, unexpected};
use crate::id::EntryId;
use crate::port::{ConsumerInfo, GroupStatus, LaneStatus};

/// Unread entries are counted up to this number where Redis may report a wrong one. Each is fetched whole, by every
/// process and every second: more would slow down the readers.
const COUNTED_MAX: u64 = 2_000;

/// A missing stream is empty.
pub(super) async fn status(redis: &Redis, key: &str) -> Result<LaneStatus, RedisError> {
    let mut both = redis::pipe();
    both.cmd("XINFO").arg("STREAM").arg(key).cmd("XINFO").arg("GROUPS").arg(key);
    // Not in a transaction, which Redis refuses when it is out of memory.
    let mut replies = redis.pipeline(&both).await.into_iter();
    let stream = match replies.next().unwrap_or(Ok(Value::Nil)) {
        Err(trouble) if is_missing(&trouble) => return Ok(LaneStatus::default()),
        stream => Stream::read(stream?)?,
    };
    let Value::Array(groups) = replies.next().unwrap_or(Ok(Value::Nil))? else {
        return Err(unexpected(&Value::Nil));
    };
    let mut status = Vec::with_capacity(groups.len());
    for group in groups {
        let info = Info::read(group)?;
        status.extend(group_status(redis, key, &stream, &info).await?);
    }
    status.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(LaneStatus {
        length: stream.length,
        first: (stream.length > 0).then_some(stream.first),
        last: Some(stream.last).filter(|last| *last != EntryId::ZERO),
        appended: stream.appended,
        groups: status,
    })
}

pub(super) async fn consumers(
    redis: &Redis,
    key: &str,
    group: &str,
) -> Result<Vec<ConsumerInfo>, RedisError> {
    let mut command = redis::cmd("XINFO");
    command.arg("CONSUMERS").arg(key).arg(group);
    let reply: Vec<Value> = match redis.query(&command).await {
        Err(trouble) if is_missing(&trouble) => {
            return Err(RedisError::NoGroup { reason: trouble.to_string() });
        }
        reply => reply?,
    };
    reply.into_iter().map(consumer_of).collect()
}

fn consumer_of(reply: Value) -> Result<ConsumerInfo, RedisError> {
    let info = Info::read(reply)?;
    Ok(ConsumerInfo {
        name: info.text("name")?,
        idle: Duration::from_millis(info.number("idle")),
        pending: info.number("pending"),
    })
}

/// `XINFO` reports a missing key as an error without a code.
fn is_missing(trouble: &RedisError) -> bool {
    matches!(trouble, RedisError::Other { reason, .. } if reason.starts_with("no such key"))
}

struct Stream {
    length: u64,
    appended: u64,
    first: EntryId,
    last: EntryId,
    has_deleted: bool,
}

impl Stream {
    fn read(reply: Value) -> Result<Stream, RedisError> {
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

    /// Estimate of the entries after this one, as if they were evenly distributed over time.
    fn estimated_after(&self, id: EntryId) -> u64 {
        let whole = self.last.ms.saturating_sub(self.first.ms).max(1);
        let rest = self.last.ms.saturating_sub(id.ms).min(whole);
        u64::try_from(u128::from(self.length) * u128::from(rest) / u128::from(whole)).unwrap_or(u64::MAX)
    }
}

/// None if the group was deleted meanwhile.
async fn group_status(
    redis: &Redis,
    key: &str,
    stream: &Stream,
    info: &Info,
) -> Result<Option<GroupStatus>, RedisError> {
    let name = info.text("name")?;
    let last_delivered = info.id("last-delivered-id")?;
    let mut summary = redis::cmd("XPENDING");
    summary.arg(key).arg(&name);
    let pending = match redis.query::<Vec<Value>>(&summary).await {
        Err(RedisError::NoGroup { .. }) => return Ok(None),
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

/// Entries after the last delivered one. Redis' own `lag` is missing or wrong after single entries were deleted, for a
/// group that was created in the middle, and after a restart from the append-only file, which does not record how many
/// entries a group has read. So small numbers are counted exactly; large ones are taken from `lag` or estimated.
async fn unread(
    redis: &Redis,
    key: &str,
    stream: &Stream,
    (last_delivered, lag): (EntryId, Option<u64>),
) -> Result<u64, RedisError> {
    if stream.length == 0 || last_delivered >= stream.last {
        return Ok(0);
    }
    if last_delivered < stream.first {
        return Ok(stream.length);
    }
    if let Some(lag) = lag.filter(|lag| *lag < COUNTED_MAX && !stream.has_deleted) {
        return Ok(lag);
    }
    let counted = count_after(redis, key, last_delivered, stream.last).await?;
    if counted < COUNTED_MAX {
        return Ok(counted);
    }
    let estimated = lag.unwrap_or_else(|| stream.estimated_after(last_delivered));
    Ok(estimated.clamp(COUNTED_MAX, stream.length.max(COUNTED_MAX)))
}

/// At most [`COUNTED_MAX`].
async fn count_after(redis: &Redis, key: &str, after: EntryId, last: EntryId) -> Result<u64, RedisError> {
    let mut command = redis::cmd("XRANGE");
    command.arg(key).arg(after.next().to_string()).arg(last.to_string()).arg("COUNT").arg(COUNTED_MAX);
    Ok(redis.query::<Vec<Value>>(&command).await?.len() as u64)
}

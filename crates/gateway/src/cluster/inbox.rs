//! This node's inbox: a stream to which other nodes append.
//!
//! # Guarantees
//!
//! - Every entry is received once, in order, or [`InboxEvent::Gap`] reports that some may be missing: the reader was
//!   so slow that entries were trimmed, Redis lost some, or this node rejoined and has another inbox.
//! - It reconnects with bounded delays, and never ends.
//! - A slow consumer costs entries (and a gap), never unbounded memory.
//!
//! # How a gap is detected
//!
//! The last entry that was read stays in the stream until later ones have been read. If it is still there after a
//! read, nothing before it, and so nothing between it and the entries read, was trimmed.

use std::sync::Arc;
use std::time::Duration;

use domain::Backoff;
use keyspace::{DedicatedConnection, PresenceKeys, Redis, RedisError, read_reply};
use redis::streams::{StreamId, StreamRangeReply, StreamReadReply};
use redis::{Pipeline, Value};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use super::counters::ClusterCounters;
use super::message::GatewayMessage;
use super::record::Record;
use super::reply::{Fields, ReplyReader};
use super::store::{InboxStart, open_inbox};

const READ_MAX: usize = 500;
/// How long one read waits for entries.
const WAIT: Duration = Duration::from_secs(2);
/// Additional time for a reply before the connection is dropped.
const READ_TIMEOUT: Duration = Duration::from_secs(3);
const BACKOFF_MIN: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(1);
/// The stream is trimmed after this many entries were read.
const TRIM_EVERY: usize = 1000;
/// Events received and not taken yet.
const EVENTS_MAX: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InboxEvent {
    /// The current record of a user that this node watches, or watched.
    Record(Box<Record>),
    Message(GatewayMessage),
    /// Entries may be missing: read all watched users again.
    Gap,
}

/// The own inbox. It is read from when it is made until it is dropped.
pub struct Inbox {
    events: mpsc::Receiver<InboxEvent>,
    task: AbortHandle,
}

impl Inbox {
    pub(crate) fn open(
        redis: Redis,
        keys: PresenceKeys,
        counters: Arc<ClusterCounters>,
        place: watch::Receiver<InboxStart>,
    ) -> Inbox {
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let reading = InboxReader { redis, keys, counters, place, sender };
        Inbox { events, task: tokio::spawn(reading.run()).abort_handle() }
    }

    /// Cancel safe.
    pub async fn next(&mut self) -> InboxEvent {
        match self.events.recv().await {
            Some(events) => events,
            // The reader ends with its runtime only.
            None => std::future::pending().await,
        }
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct InboxReader {
    redis: Redis,
    keys: PresenceKeys,
    counters: Arc<ClusterCounters>,
    place: watch::Receiver<InboxStart>,
    sender: mpsc::Sender<InboxEvent>,
}

/// Where it stands in one inbox.
struct Cursor {
    place: InboxStart,
    key: String,
    last: String,
    untrimmed: usize,
}

struct Page {
    entries: Vec<StreamId>,
    is_whole: bool,
    now_ms: u64,
}

impl InboxReader {
    async fn run(mut self) {
        let mut backoff = Backoff::new(BACKOFF_MIN, BACKOFF_MAX);
        let mut cursor = self.cursor();
        let mut connection = None;
        loop {
            let mut place = self.place.clone();
            let step = self.step(&mut cursor, &mut connection);
            let result = tokio::select! {
                result = step => result,
                moved = place.changed() => match moved {
                    Ok(()) => Ok(()),
                    // The store was dropped, so no other node sends to this one.
                    Err(_) => return std::future::pending().await,
                },
            };
            if self.place.has_changed().unwrap_or(false) {
                cursor = self.cursor();
                connection = None;
                self.gap().await;
            }
            match result {
                Ok(()) => backoff.reset(),
                Err(error) => {
                    tracing::debug!(%error, "cannot read the inbox; retrying");
                    self.counters.failures.increment();
                    connection = None;
                    tokio::time::sleep(backoff.next_delay()).await;
                }
            }
        }
    }

    fn cursor(&mut self) -> Cursor {
        let place = self.place.borrow_and_update().clone();
        let key = self.keys.inbox(place.node.as_str());
        Cursor { key, last: place.start.clone(), place, untrimmed: 0 }
    }

    /// Reads once, and passes the entries on. The cursor moves first; this future is only dropped when the inbox has
    /// been replaced, so no entry is received twice or lost without a gap.
    async fn step(
        &self,
        cursor: &mut Cursor,
        connection: &mut Option<DedicatedConnection>,
    ) -> Result<(), RedisError> {
        if connection.is_none() {
            *connection = Some(self.redis.blocking(&cursor.key).await?);
        }
        let Some(open) = connection.as_mut() else { return Ok(()) };
        let page = read_page(open, cursor).await?;
        if !page.is_whole {
            // Entries after the new position are read; earlier changes are found by reading the records again.
            let is_lost = page.entries.is_empty();
            if is_lost {
                self.recover_position(cursor).await?;
            }
            self.gap().await;
            if is_lost {
                return Ok(());
            }
        }
        if let Some(last) = page.entries.last() {
            cursor.last = last.id.clone();
            cursor.untrimmed += page.entries.len();
        }
        for entry in &page.entries {
            self.counters.entries_received.increment();
            if let Some(events) = self.read_entry(entry, page.now_ms) {
                self.sender.send(events).await.ok();
            }
        }
        if cursor.untrimmed >= TRIM_EVERY {
            cursor.untrimmed = 0;
            let mut command = redis::cmd("XTRIM");
            command.arg(&cursor.key).arg("MINID").arg("~").arg(&cursor.last);
            self.redis.query::<u64>(&command).await?;
        }
        Ok(())
    }

    async fn gap(&self) {
        self.counters.gaps.increment();
        self.sender.send(InboxEvent::Gap).await.ok();
    }

    /// The last entry read is gone and nothing follows it: the stream was deleted or replaced.
    async fn recover_position(&self, cursor: &mut Cursor) -> Result<(), RedisError> {
        let mut command = redis::cmd("XREVRANGE");
        command.arg(&cursor.key).arg("+").arg("-").arg("COUNT").arg(1);
        let latest: StreamRangeReply = self.redis.query(&command).await?;
        cursor.last = match latest.ids.into_iter().next() {
            Some(entry) => entry.id,
            None => open_inbox(&self.redis, &self.keys, &cursor.place.node).await?,
        };
        Ok(())
    }

    /// None if the entry is of an unknown kind or malformed.
    fn read_entry(&self, entry: &StreamId, now_ms: u64) -> Option<InboxEvent> {
        let text = |name: &str| entry.get::<String>(name);
        if entry.contains_key("j") {
            return None;
        }
        let events = match text("m") {
            Some(message) => GatewayMessage::from_text(&message).map(InboxEvent::Message),
            None => self.read_record(entry, now_ms),
        };
        if events.is_none() {
            self.counters.entries_unknown.increment();
        }
        events
    }

    fn read_record(&self, entry: &StreamId, now_ms: u64) -> Option<InboxEvent> {
        let user = entry.get::<String>("u")?.parse().ok()?;
        let sent_ms: u64 = entry.get::<String>("t")?.parse().ok()?;
        let entry_ms: u64 = entry.id.split_once('-')?.0.parse().ok()?;
        let fields: Fields = entry
            .map
            .iter()
            .filter(|(name, _)| !matches!(name.as_str(), "u" | "t"))
            .filter_map(|(name, value)| match value {
                Value::BulkString(bytes) => Some((name.clone().into_bytes(), bytes.clone())),
                _ => None,
            })
            .collect();
        // Subtracts the time the entry spent in the stream, by the clock of this server.
        let then_ms = sent_ms.saturating_add(now_ms.saturating_sub(entry_ms));
        let mut reader = ReplyReader::default();
        let record = reader.record(user, &fields, then_ms);
        self.counters.malformed.add(reader.malformed);
        Some(InboxEvent::Record(Box::new(record)))
    }
}

/// Waits for entries after the last one, then checks whether that one is still there.
async fn read_page(connection: &mut DedicatedConnection, cursor: &Cursor) -> Result<Page, RedisError> {
    let Cursor { key, last, .. } = cursor;
    let mut pipeline = Pipeline::new();
    let wait_ms = u64::try_from(WAIT.as_millis()).unwrap_or(u64::MAX);
    pipeline.cmd("XREAD").arg("COUNT").arg(READ_MAX).arg("BLOCK").arg(wait_ms);
    pipeline.arg("STREAMS").arg(key).arg(last);
    pipeline.cmd("XRANGE").arg(key).arg(last).arg(last).cmd("TIME");
    let answering = tokio::time::timeout(WAIT + READ_TIMEOUT, connection.pipeline(&pipeline));
    let replies = answering.await.map_err(|_| RedisError::Unanswered { reason: "an inbox".to_owned() })??;
    let mut replies = replies.into_iter();
    let mut next = || replies.next().ok_or_else(super::reply::unexpected);
    let read: Option<StreamReadReply> = read_reply(next())?;
    let place: StreamRangeReply = read_reply(next())?;
    let (seconds, micros): (u64, u64) = read_reply(next())?;
    let entries = read.into_iter().flat_map(|read| read.keys).flat_map(|stream| stream.ids).collect();
    Ok(Page { entries, is_whole: !place.ids.is_empty(), now_ms: seconds * 1000 + micros / 1000 })
}

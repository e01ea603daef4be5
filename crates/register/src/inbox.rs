//! What other nodes tell: the own inbox, a stream that others append to.
//!
//! # Guarantees
//!
//! - Every entry is heard once, in order, or [`Heard::Gap`] says that some may be missing: the reader was so slow that
//!   entries were cut off, Redis lost some, or this node joined anew and has another inbox.
//! - It reconnects by itself, with bounded pauses, and never ends.
//! - A slow user costs entries (and a gap), never memory without bound.
//!
//! # How a gap is found
//!
//! The entry that was read last stays in the stream until later ones have been read. If it is there after a read, nothing
//! before it, and so nothing between it and what was read, has been cut off.

use std::sync::Arc;
use std::time::Duration;

use keyspace::{Dedicated, PresenceKeys, Redis, Trouble, read_reply};
use redis::streams::{StreamId, StreamRangeReply, StreamReadReply};
use redis::{Pipeline, Value};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use crate::counters::RegisterCounters;
use crate::message::Message;
use crate::record::Record;
use crate::register::{Place, open_inbox};
use crate::reply::{Fields, Reader};

/// Entries of one read.
const READ_MAX: usize = 500;
/// How long one read waits for entries.
const WAIT: Duration = Duration::from_secs(2);
/// How much longer an answer may take before the connection is given up.
const PATIENCE: Duration = Duration::from_secs(3);
/// The pause after something failed; it doubles with each further failure, up to the second one.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// What was read is cut off after so many entries.
const CUT_EVERY: usize = 1000;
/// What is heard and not taken yet.
const HEARD_MAX: usize = 1024;

/// What is heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// This is known now of a person in whom this node is, or was, interested.
    Record(Box<Record>),
    /// Another node says this.
    Message(Message),
    /// Entries may be missing: watch everybody again.
    Gap,
}

/// The own inbox. It is read from when it is made until it is dropped.
pub struct Inbox {
    heard: mpsc::Receiver<Heard>,
    task: AbortHandle,
}

impl Inbox {
    pub(crate) fn open(
        redis: Redis,
        keys: PresenceKeys,
        counters: Arc<RegisterCounters>,
        place: watch::Receiver<Place>,
    ) -> Inbox {
        let (sender, heard) = mpsc::channel(HEARD_MAX);
        let reading = Reading { redis, keys, counters, place, sender };
        Inbox { heard, task: tokio::spawn(reading.run()).abort_handle() }
    }

    /// What is heard next. May be given up while it waits; nothing is lost by that.
    pub async fn next(&mut self) -> Heard {
        match self.heard.recv().await {
            Some(heard) => heard,
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

/// The task that reads.
struct Reading {
    redis: Redis,
    keys: PresenceKeys,
    counters: Arc<RegisterCounters>,
    place: watch::Receiver<Place>,
    sender: mpsc::Sender<Heard>,
}

/// Where it stands in one inbox.
struct Cursor {
    place: Place,
    key: String,
    last: String,
    uncut: usize,
}

/// What one read gave.
struct Page {
    entries: Vec<StreamId>,
    is_whole: bool,
    now_ms: u64,
}

impl Reading {
    async fn run(mut self) {
        let mut pause = PAUSES.0;
        let mut cursor = self.cursor();
        let mut connection = None;
        loop {
            let mut place = self.place.clone();
            let step = self.step(&mut cursor, &mut connection);
            let result = tokio::select! {
                result = step => result,
                moved = place.changed() => match moved {
                    Ok(()) => Ok(()),
                    // The register is gone, so nobody tells this node anything any more.
                    Err(_) => return std::future::pending().await,
                },
            };
            if self.place.has_changed().unwrap_or(false) {
                cursor = self.cursor();
                connection = None;
                self.gap().await;
            }
            match result {
                Ok(()) => pause = PAUSES.0,
                Err(trouble) => {
                    tracing::debug!(%trouble, "the inbox cannot be read");
                    self.counters.failures.increment();
                    connection = None;
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
        }
    }

    fn cursor(&mut self) -> Cursor {
        let place = self.place.borrow_and_update().clone();
        let key = self.keys.inbox(place.node.as_str());
        Cursor { key, last: place.start.clone(), place, uncut: 0 }
    }

    /// Reads once, and passes on what is read. The place moves before anything is passed on, but giving up this future
    /// means that the inbox is another one, so nothing is heard twice or lost unsaid.
    async fn step(&self, cursor: &mut Cursor, connection: &mut Option<Dedicated>) -> Result<(), Trouble> {
        if connection.is_none() {
            *connection = Some(self.redis.blocking(&cursor.key).await?);
        }
        let Some(open) = connection.as_mut() else { return Ok(()) };
        let page = read_page(open, cursor).await?;
        if !page.is_whole {
            // What comes after the new place is heard, and what came before it is found by who watches again.
            let is_lost = page.entries.is_empty();
            if is_lost {
                self.find_place(cursor).await?;
            }
            self.gap().await;
            if is_lost {
                return Ok(());
            }
        }
        if let Some(last) = page.entries.last() {
            cursor.last = last.id.clone();
            cursor.uncut += page.entries.len();
        }
        for entry in &page.entries {
            self.counters.entries_heard.increment();
            if let Some(heard) = self.read_entry(entry, page.now_ms) {
                self.sender.send(heard).await.ok();
            }
        }
        if cursor.uncut >= CUT_EVERY {
            cursor.uncut = 0;
            let mut command = redis::cmd("XTRIM");
            command.arg(&cursor.key).arg("MINID").arg("~").arg(&cursor.last);
            self.redis.query::<u64>(&command).await?;
        }
        Ok(())
    }

    async fn gap(&self) {
        self.counters.gaps.increment();
        self.sender.send(Heard::Gap).await.ok();
    }

    /// The entry that was read last is gone and nothing comes after it: the stream is another one, or gone.
    async fn find_place(&self, cursor: &mut Cursor) -> Result<(), Trouble> {
        let mut command = redis::cmd("XREVRANGE");
        command.arg(&cursor.key).arg("+").arg("-").arg("COUNT").arg(1);
        let latest: StreamRangeReply = self.redis.query(&command).await?;
        cursor.last = match latest.ids.into_iter().next() {
            Some(entry) => entry.id,
            None => open_inbox(&self.redis, &self.keys, &cursor.place.node).await?,
        };
        Ok(())
    }

    /// What an entry says, if it can be understood.
    fn read_entry(&self, entry: &StreamId, now_ms: u64) -> Option<Heard> {
        let text = |name: &str| entry.get::<String>(name);
        if entry.contains_key("j") {
            return None;
        }
        let heard = match text("m") {
            Some(message) => Message::from_text(&message).map(Heard::Message),
            None => self.read_record(entry, now_ms),
        };
        if heard.is_none() {
            self.counters.entries_unknown.increment();
        }
        heard
    }

    fn read_record(&self, entry: &StreamId, now_ms: u64) -> Option<Heard> {
        let user = entry.get::<String>("u")?.parse().ok()?;
        let told_ms: u64 = entry.get::<String>("t")?.parse().ok()?;
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
        // It has lain here for a while, by the clock of this server; what is left by then is less by that.
        let then_ms = told_ms.saturating_add(now_ms.saturating_sub(entry_ms));
        let mut reader = Reader::default();
        let record = reader.record(user, &fields, then_ms);
        self.counters.malformed.add(reader.malformed);
        Some(Heard::Record(Box::new(record)))
    }
}

/// Waits for entries behind the last one, then looks whether that one is still there.
async fn read_page(connection: &mut Dedicated, cursor: &Cursor) -> Result<Page, Trouble> {
    let Cursor { key, last, .. } = cursor;
    let mut pipeline = Pipeline::new();
    let wait_ms = u64::try_from(WAIT.as_millis()).unwrap_or(u64::MAX);
    pipeline.cmd("XREAD").arg("COUNT").arg(READ_MAX).arg("BLOCK").arg(wait_ms);
    pipeline.arg("STREAMS").arg(key).arg(last);
    pipeline.cmd("XRANGE").arg(key).arg(last).arg(last).cmd("TIME");
    let answering = tokio::time::timeout(WAIT + PATIENCE, connection.pipeline(&pipeline));
    let replies = answering.await.map_err(|_| Trouble::Unanswered { reason: "an inbox".to_owned() })??;
    let mut replies = replies.into_iter();
    let mut next = || replies.next().ok_or_else(crate::reply::unexpected);
    let read: Option<StreamReadReply> = read_reply(next())?;
    let place: StreamRangeReply = read_reply(next())?;
    let (seconds, micros): (u64, u64) = read_reply(next())?;
    let entries = read.into_iter().flat_map(|read| read.keys).flat_map(|stream| stream.ids).collect();
    Ok(Page { entries, is_whole: !place.ids.is_empty(), now_ms: seconds * 1000 + micros / 1000 })
}

//! The journal on Redis Streams: single, behind sentinels, or on a cluster.
//!
//! # Guarantees, beyond the duties of the port
//!
//! - Every lane is an ordinary stream under its configured name, so that other programs can append to it or read it
//!   (J3); their groups hold trimming back as ours do.
//! - A batch is one `MULTI … EXEC` on a connection that has watched the producer's key since the previous batch. A
//!   batch whose reply was lost can be sent again at once: the attempt that Redis executes second finds the key
//!   changed, and does nothing.
//! - Operations that must be atomic (moving, taking over, trimming, deleting consumers) are one script each.
//!
//! Durability across a crash of Redis depends on `appendonly` and `appendfsync`. A failover may lose entries, because
//! replication is asynchronous; the totals of the next announce make up for their bytes.
//! [`RedisJournal::with_replicas`] counts a batch as stored only once replicas have it; even then Redis may promote a
//! replica that has not, if there are more.
//!
//! # Deliberately absent
//!
//! A bound on the length of a stream: dropping unread entries would be silent loss.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use keyspace::{KeyNames, Redis, RedisError, scripts};

use crate::error::JournalError;
use crate::id::EntryId;
use crate::notes::Notes;
use crate::port::{
    AppendToken, BoundsHit, ConsumerInfo, Journal, Lane, LaneStatus, StartAt, Stored, Transfer, Trimmed,
};
use crate::{Fields, PackedEvents};

use append::{Appenders, Batch};
use read::Readers;

pub use append::Replicas;

mod append;
mod read;
mod reply;
mod status;

/// Enough that the command's own cost does not matter.
const IDS_PER_COMMAND: usize = 1000;
/// Dead letters moved per script call, so that Redis is not blocked for long.
const DEAD_LETTERS_PER_CALL: usize = 50;
/// Lua can pass about eight thousand arguments at once.
const ARGS_PER_DEAD_LETTER_MAX: usize = 7000;
/// An id after which no consumer has pending entries. (For the greatest possible id, Redis would not touch the
/// consumer.)
const BEYOND_ALL: &str = "18446744073709551615-0";

#[derive(Debug)]
pub struct RedisJournal {
    redis: Redis,
    keys: KeyNames,
    appenders: Appenders,
    readers: Readers,
    dead_letters_truncated: AtomicU64,
}

impl RedisJournal {
    /// Sends nothing to Redis yet.
    pub fn new(redis: Redis, keys: KeyNames) -> RedisJournal {
        RedisJournal {
            redis,
            keys,
            appenders: Appenders::default(),
            readers: Readers::default(),
            dead_letters_truncated: AtomicU64::new(0),
        }
    }

    /// Counts a batch as stored only once so many replicas have it.
    pub fn with_replicas(mut self, replicas: Replicas) -> Self {
        self.appenders = Appenders::with_replicas(replicas);
        self
    }

    /// Dead letters with too many fields to be moved whole.
    pub fn dead_letters_truncated(&self) -> u64 {
        self.dead_letters_truncated.load(Ordering::Relaxed)
    }

    /// Usable connections that were closed because enough were kept.
    pub fn connections_dropped(&self) -> u64 {
        self.appenders.dropped() + self.readers.dropped()
    }

    fn key(&self, lane: Lane) -> &str {
        match lane {
            Lane::Traffic => self.keys.traffic(),
            Lane::Dead => self.keys.dead_letters(),
            Lane::Failed => self.keys.failed(),
            Lane::Risk => self.keys.risk(),
        }
    }

    /// Converts an error about a lane, and perhaps one of its groups, to the port's error.
    fn explain(&self, lane: Lane, group: &str) -> impl Fn(RedisError) -> JournalError {
        let key = self.key(lane).to_owned();
        let group = group.to_owned();
        move |trouble| match trouble {
            RedisError::Unanswered { reason } => JournalError::Unanswered { reason },
            RedisError::NoGroup { .. } => JournalError::NoGroup { group: group.clone() },
            RedisError::WrongType { .. } => JournalError::Damaged {
                what: key.clone(),
                reason: "the key is not a stream; rename it (RENAME) or configure another name".to_owned(),
            },
            RedisError::Other { .. } => {
                JournalError::Damaged { what: key.clone(), reason: trouble.to_string() }
            }
            RedisError::Unavailable { .. } | RedisError::Refused { .. } | RedisError::Settings { .. } => {
                JournalError::Unavailable { reason: trouble.to_string() }
            }
        }
    }
}

#[async_trait]
impl Journal for RedisJournal {
    async fn append(&self, lane: Lane, batch: &[Fields], token: &AppendToken) -> Result<(), JournalError> {
        if batch.is_empty() {
            return Ok(());
        }
        let note = self.note_of(lane, token);
        self.appenders
            .append(&self.redis, (self.key(lane), &note), Batch::Fields(batch), token.number)
            .await
            .map_err(self.explain(lane, ""))
    }

    async fn append_events(&self, events: &[PackedEvents], token: &AppendToken) -> Result<(), JournalError> {
        if events.iter().all(PackedEvents::is_empty) {
            return Ok(());
        }
        let (stream, note) = (self.key(Lane::Traffic), self.note_of(Lane::Traffic, token));
        let appended =
            self.appenders.append(&self.redis, (stream, &note), Batch::Events(events), token.number);
        appended.await.map_err(self.explain(Lane::Traffic, ""))
    }

    async fn prepare_events(&self, events: &[PackedEvents], token: &AppendToken) {
        let (stream, note) = (self.key(Lane::Traffic), self.note_of(Lane::Traffic, token));
        self.appenders.prepare((stream, &note), Batch::Events(events), token.number).await;
    }

    async fn ensure_group(&self, lane: Lane, group: &str, start: StartAt) -> Result<bool, JournalError> {
        let start = match start {
            StartAt::Beginning => EntryId::ZERO,
            StartAt::After(id) => id,
        };
        let mut command = redis::cmd("XGROUP");
        command.arg("CREATE").arg(self.key(lane)).arg(group).arg(start.to_string()).arg("MKSTREAM");
        match self.redis.query::<()>(&command).await {
            Ok(()) => Ok(true),
            Err(trouble) if trouble.code() == "BUSYGROUP" => Ok(false),
            Err(trouble) => Err(self.explain(lane, group)(trouble)),
        }
    }

    async fn read(
        &self,
        lane: Lane,
        group: &str,
        consumer: &str,
        count: usize,
        wait: Duration,
    ) -> Result<Vec<Stored>, JournalError> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let request = read::Request { key: self.key(lane), group, consumer, count, wait };
        self.readers.read(&self.redis, &request).await.map_err(self.explain(lane, group))
    }

    async fn acknowledge(&self, lane: Lane, group: &str, ids: &[EntryId]) -> Result<(), JournalError> {
        let mut pipeline = redis::pipe();
        for page in ids.chunks(IDS_PER_COMMAND) {
            let command = pipeline.cmd("XACK").arg(self.key(lane)).arg(group);
            page.iter().for_each(|id| {
                command.arg(id.to_string());
            });
        }
        for reply in self.redis.pipeline(&pipeline).await {
            reply.map_err(self.explain(lane, group))?;
        }
        Ok(())
    }

    async fn consumers(&self, lane: Lane, group: &str) -> Result<Vec<ConsumerInfo>, JournalError> {
        status::consumers(&self.redis, self.key(lane), group).await.map_err(self.explain(lane, group))
    }

    async fn keep_alive(&self, lane: Lane, group: &str, consumer: &str) -> Result<(), JournalError> {
        // Reading its own pending entries resets a consumer's idle time and delivers nothing new.
        let mut command = redis::cmd("XREADGROUP");
        command.arg("GROUP").arg(group).arg(consumer).arg("COUNT").arg(1);
        command.arg("STREAMS").arg(self.key(lane)).arg(BEYOND_ALL);
        self.redis.query::<()>(&command).await.map_err(self.explain(lane, group))
    }

    async fn take_over(
        &self,
        lane: Lane,
        group: &str,
        from: &str,
        to: &str,
        count: usize,
    ) -> Result<Vec<Stored>, JournalError> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut call = scripts::TAKE_OVER.call(&[self.key(lane)]);
        call.arg(group).arg(from).arg(to).arg(count.min(IDS_PER_COMMAND));
        let entries = self.redis.query(&call).await.and_then(reply::entries);
        entries.map_err(self.explain(lane, group))
    }

    async fn delete_consumer(&self, lane: Lane, group: &str, consumer: &str) -> Result<(), JournalError> {
        let mut call = scripts::DELETE_CONSUMER.call(&[self.key(lane)]);
        call.arg(group).arg(consumer);
        self.redis.query::<()>(&call).await.map_err(self.explain(lane, group))
    }

    async fn transfer(
        &self,
        from: Lane,
        to: Lane,
        group: Option<&str>,
        dead_letters: &[Transfer],
    ) -> Result<u64, JournalError> {
        let group = group.unwrap_or_default();
        let stays = u8::from(from == Lane::Traffic);
        let mut moved = 0;
        for page in dead_letters.chunks(DEAD_LETTERS_PER_CALL) {
            let mut call = scripts::TRANSFER.call(&[self.key(from), self.key(to)]);
            call.arg(group).arg(stays).arg(page.len());
            for dead_letter in page {
                let args = self.args_of_dead_letter(&dead_letter.fields);
                call.arg(dead_letter.id.to_string()).arg(args.len());
                args.iter().for_each(|arg| {
                    call.arg(arg);
                });
            }
            moved += self.redis.query::<u64>(&call).await.map_err(|trouble| {
                // The script names the key of the wrong type.
                let is_other = matches!(&trouble, RedisError::WrongType { reason }
                    if reason.split(' ').next() == Some(self.key(to)));
                self.explain(if is_other { to } else { from }, group)(trouble)
            })?;
        }
        Ok(moved)
    }

    async fn list(&self, lane: Lane, after: EntryId, count: usize) -> Result<Vec<Stored>, JournalError> {
        if count == 0 || after == EntryId::MAX {
            return Ok(Vec::new());
        }
        let mut command = redis::cmd("XRANGE");
        command.arg(self.key(lane)).arg(after.next().to_string()).arg("+").arg("COUNT").arg(count);
        self.redis.query(&command).await.and_then(reply::entries).map_err(self.explain(lane, ""))
    }

    async fn list_newest(
        &self,
        lane: Lane,
        before: EntryId,
        count: usize,
    ) -> Result<Vec<Stored>, JournalError> {
        if count == 0 {
            return Ok(Vec::new());
        }
        // Redis rejects a range that excludes the least possible id; nothing precedes it.
        if before == EntryId::ZERO {
            return Ok(Vec::new());
        }
        let mut command = redis::cmd("XREVRANGE");
        command.arg(self.key(lane)).arg(format!("({before}")).arg("-").arg("COUNT").arg(count);
        self.redis.query(&command).await.and_then(reply::entries).map_err(self.explain(lane, ""))
    }

    async fn get(&self, lane: Lane, id: EntryId) -> Result<Option<Stored>, JournalError> {
        let mut command = redis::cmd("XRANGE");
        command.arg(self.key(lane)).arg(id.to_string()).arg(id.to_string());
        let entries = self.redis.query(&command).await.and_then(reply::entries);
        Ok(entries.map_err(self.explain(lane, ""))?.into_iter().next())
    }

    async fn delete(&self, lane: Lane, group: Option<&str>, ids: &[EntryId]) -> Result<u64, JournalError> {
        if lane == Lane::Traffic {
            // Other views have yet to read it; only trimming removes traffic.
            return Ok(0);
        }
        let group = group.unwrap_or_default();
        let mut deleted = 0;
        for page in ids.chunks(IDS_PER_COMMAND) {
            let mut call = scripts::DELETE_ENTRIES.call(&[self.key(lane)]);
            call.arg(group);
            page.iter().for_each(|id| {
                call.arg(id.to_string());
            });
            deleted += self.redis.query::<u64>(&call).await.map_err(self.explain(lane, group))?;
        }
        Ok(deleted)
    }

    async fn trim(&self, lane: Lane, before: EntryId) -> Result<Trimmed, JournalError> {
        let mut call = scripts::TRIM.call(&[self.key(lane)]);
        call.arg(before.to_string()).arg(u8::from(lane == Lane::Traffic));
        let reply = self.redis.query(&call).await.and_then(reply::trimmed);
        reply.map_err(self.explain(lane, ""))
    }

    async fn status(&self, lane: Lane) -> Result<LaneStatus, JournalError> {
        status::status(&self.redis, self.key(lane)).await.map_err(self.explain(lane, ""))
    }

    async fn set_note(&self, name: &str, value: Option<&str>) -> Result<(), JournalError> {
        let mut command = redis::cmd(if value.is_some() { "HSET" } else { "HDEL" });
        command.arg(self.keys.control()).arg(name).arg(value);
        self.redis.query::<()>(&command).await.map_err(self.explain_control())
    }

    async fn notes(&self) -> Result<Notes, JournalError> {
        let mut command = redis::cmd("HGETALL");
        command.arg(self.keys.control());
        self.redis.query(&command).await.map_err(self.explain_control())
    }

    fn bounds_hit(&self) -> BoundsHit {
        BoundsHit {
            dead_letters_truncated: self.dead_letters_truncated(),
            connections_dropped: self.connections_dropped(),
            too_few_replicas: self.appenders.too_few_replicas(),
        }
    }
}

impl RedisJournal {
    fn note_of(&self, lane: Lane, token: &AppendToken) -> String {
        self.keys.producer(lane.name(), &token.producer)
    }

    fn explain_control(&self) -> impl Fn(RedisError) -> JournalError {
        let key = self.keys.control().to_owned();
        let explain = self.explain(Lane::Traffic, "");
        move |trouble| match trouble {
            RedisError::WrongType { .. } => JournalError::Damaged {
                what: key.clone(),
                reason: "the key is not a hash; delete it (DEL), and repeat the pauses".to_owned(),
            },
            trouble => explain(trouble),
        }
    }

    /// The arguments of a dead letter. One with thousands of fields, as only another program can have written, loses
    /// those in the middle: the first identify the entry, the last are ours.
    fn args_of_dead_letter<'a>(&self, fields: &'a Fields) -> Vec<&'a [u8]> {
        let mut args: Vec<&[u8]> = reply::args_of(fields).collect();
        if args.len() > ARGS_PER_DEAD_LETTER_MAX {
            tracing::warn!(fields = args.len() / 2, "dead letter truncated: it has too many fields");
            self.dead_letters_truncated.fetch_add(1, Ordering::Relaxed);
            let last = args.split_off(args.len() - 20);
            args.truncate(ARGS_PER_DEAD_LETTER_MAX - last.len());
            args.extend(last);
        }
        args
    }
}

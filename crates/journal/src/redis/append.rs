//! Appending a batch: atomically, and once.
//!
//! A producer's key (its *note*) holds the number of its last batch in a lane. The batch and the note are written in
//! one transaction, on a dedicated connection that has watched the note since it was last read or written:
//!
//! - If the reply is lost, the batch is sent again over another connection, which reads the note first. If the first
//!   attempt is still in flight, only one of the two finds the note unchanged.
//! - If the key is not a stream, the note is not written: the script in the same transaction checks the key.
//!
//! If replicas must have a batch before it counts as stored ([`Replicas`]), `WAIT` follows on the same connection. If
//! too few confirm in time, the append has failed, although the master has the batch. The same batch is sent again
//! under the same number, over another connection, to the current master: if the note is there, only the wait is
//! repeated; if a failover has lost it, the batch is lost as well (one transaction is replicated whole), and is
//! appended again. `WAIT` covers what its own connection has written, and since Redis 7.2 nothing on a connection that
//! has only read: so the connection that finds the note writes it once more before it waits. Replicas that have this
//! write have all writes before it.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use keyspace::{DedicatedConnection, Redis, RedisError, scripts};
use parking_lot::Mutex;
use redis::{Cmd, Pipeline, Value};

use super::reply::{args_of, unexpected};
use crate::event_fields::for_each_field;
use crate::fields::Fields;
use crate::packed::PackedEvents;

/// Lifetime of a note after its producer's last batch. No producer repeats a batch after so long.
const NOTE_EXPIRY_S: u32 = 7 * 24 * 60 * 60;
/// Producers in one process, each with a connection; beyond that, connections are reopened.
const APPENDERS_MAX: usize = 64;
/// Attempts that meet a concurrent attempt, or a moved slot, before the caller gets an error.
const ATTEMPTS_MAX: usize = 5;

/// Replicas that must have a batch before it counts as stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replicas {
    /// Zero waits for none.
    pub count: u32,
    /// Must be shorter than the response timeout of Redis, or the reply comes too late.
    pub timeout: Duration,
}

/// Commands encoded before yielding to the append in flight.
const ENCODED_AT_ONCE: usize = 50;
/// Arguments of an entry of our trackers, and their bytes.
const EVENT_ARGS: usize = 51;
const EVENT_BYTES: usize = 512;

/// The entries of an append.
#[derive(Clone, Copy)]
pub(super) enum Batch<'b> {
    Fields(&'b [Fields]),
    Events(&'b [PackedEvents]),
}

impl Batch<'_> {
    /// One command for each entry.
    fn commands<'s>(&'s self, stream: &'s str) -> Box<dyn Iterator<Item = Cmd> + Send + 's> {
        match self {
            Batch::Fields(batch) => Box::new(batch.iter().map(move |fields| entry_of(stream, fields))),
            Batch::Events(batch) => {
                let events = batch.iter().flat_map(PackedEvents::iter);
                Box::new(events.map(move |event| {
                    let mut command = Cmd::with_capacity(EVENT_ARGS, EVENT_BYTES);
                    command.arg("XADD").arg(stream).arg("*");
                    for_each_field(&event, |name, value| {
                        command.arg(name).arg(value);
                    });
                    command
                }))
            }
        }
    }
}

/// The connections of the producers, by their notes.
///
/// An append removes its connection from the map, and returns it once the outcome is known. So a connection whose
/// append was cancelled is never reused.
#[derive(Debug, Default)]
pub(super) struct Appenders {
    replicas: Replicas,
    idle: Mutex<HashMap<String, Appender>>,
    /// The transaction of the next batch.
    prepared: Mutex<Option<Prepared>>,
    dropped: AtomicU64,
    too_few_replicas: AtomicU64,
}

struct Prepared {
    note: String,
    number: u64,
    transaction: Pipeline,
}

impl fmt::Debug for Prepared {
    /// Without the entries: they have passkeys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prepared({} of {})", self.number, self.note)
    }
}

/// A connection that watches a note.
#[derive(Debug)]
struct Appender {
    connection: DedicatedConnection,
    /// The value of the note.
    last: u64,
}

/// Outcome of a transaction.
enum Outcome {
    /// Stored; whether the note is watched again, and how many replicas have the batch.
    Stored { is_watching: bool, replicas: u32 },
    /// The note was changed by another connection. Nothing was stored.
    Overtaken,
}

impl Appenders {
    pub(super) fn with_replicas(replicas: Replicas) -> Self {
        Appenders { replicas, ..Appenders::default() }
    }

    pub(super) async fn append(
        &self,
        redis: &Redis,
        (stream, note): (&str, &str),
        batch: Batch<'_>,
        number: u64,
    ) -> Result<(), RedisError> {
        let mut transaction = self.take_prepared(note, number);
        for _ in 0..ATTEMPTS_MAX {
            let taken = self.idle.lock().remove(note);
            let mut appender = match taken {
                Some(appender) => appender,
                None => Appender::open(redis, note).await?,
            };
            if appender.last >= number {
                if self.replicas.count > 0 {
                    let Some(has) = appender.wait(note, number, self.replicas).await? else { continue };
                    self.check(has)?;
                }
                self.put_back(note, appender);
                return Ok(());
            }
            let transaction = match &mut transaction {
                Some(transaction) => transaction,
                none => none.insert(transaction_of((stream, note), batch, number, self.replicas).await),
            };
            match appender.run(transaction, self.replicas).await {
                Ok(Outcome::Stored { is_watching, replicas }) => {
                    self.check(replicas)?;
                    appender.last = number;
                    // Without the watch, the next batch would not be safe on this connection.
                    if is_watching {
                        self.put_back(note, appender);
                    }
                    return Ok(());
                }
                Ok(Outcome::Overtaken) => {
                    appender.last = appender.read_note(note).await?;
                    self.put_back(note, appender);
                }
                Err(trouble) if trouble.code() == "MOVED" => {}
                Err(trouble) => {
                    if is_connection_good_after(&trouble) {
                        self.put_back(note, appender);
                    }
                    return Err(trouble);
                }
            }
        }
        Err(RedisError::Unavailable { reason: format!("{note} is changed by concurrent appends; try again") })
    }

    /// Encodes the batch that follows.
    pub(super) async fn prepare(&self, (stream, note): (&str, &str), batch: Batch<'_>, number: u64) {
        let transaction = transaction_of((stream, note), batch, number, self.replicas).await;
        *self.prepared.lock() = Some(Prepared { note: note.to_owned(), number, transaction });
    }

    fn take_prepared(&self, note: &str, number: u64) -> Option<Pipeline> {
        let is_next = |prepared: &mut Prepared| prepared.note == note && prepared.number == number;
        self.prepared.lock().take_if(is_next).map(|prepared| prepared.transaction)
    }

    /// Connections closed because too many producers had one.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(super) fn too_few_replicas(&self) -> u64 {
        self.too_few_replicas.load(Ordering::Relaxed)
    }

    /// Whether enough replicas have a batch. If not, the connection must not be reused: this master may have been
    /// replaced, which only a new connection finds out.
    fn check(&self, has: u32) -> Result<(), RedisError> {
        let Replicas { count, timeout } = self.replicas;
        if has >= count {
            return Ok(());
        }
        self.too_few_replicas.fetch_add(1, Ordering::Relaxed);
        let reason = format!(
            "{has} of {count} replicas have it after {} ms (journal.wait_replicas)",
            timeout.as_millis()
        );
        Err(RedisError::Unavailable { reason })
    }

    fn put_back(&self, note: &str, appender: Appender) {
        let mut idle = self.idle.lock();
        if idle.len() >= APPENDERS_MAX {
            self.dropped.fetch_add(idle.len() as u64, Ordering::Relaxed);
            idle.clear();
        }
        idle.insert(note.to_owned(), appender);
    }
}

/// Errors after which nothing was stored and the connection is still valid.
fn is_connection_good_after(trouble: &RedisError) -> bool {
    matches!(trouble, RedisError::WrongType { .. }) || trouble.code() == "OOM"
}

impl Appender {
    async fn open(redis: &Redis, note: &str) -> Result<Appender, RedisError> {
        let mut appender = Appender { connection: redis.dedicated(note).await?, last: 0 };
        appender.connection.query::<()>(redis::cmd("WATCH").arg(note)).await?;
        appender.last = appender.read_note(note).await?;
        Ok(appender)
    }

    /// The note must be watched already.
    async fn read_note(&mut self, note: &str) -> Result<u64, RedisError> {
        let value: Option<u64> = self.connection.query(redis::cmd("GET").arg(note)).await?;
        Ok(value.unwrap_or(0))
    }

    /// Waits until replicas have a batch that was found stored; returns how many have. None if its note does not exist
    /// any more.
    async fn wait(&mut self, note: &str, number: u64, replicas: Replicas) -> Result<Option<u32>, RedisError> {
        // A write, so that `WAIT` has something to wait for; the note's lifetime starts again anyway.
        self.connection.query::<u32>(redis::cmd("EXPIRE").arg(note).arg(NOTE_EXPIRY_S)).await?;
        // Our own write counts as a change, so the watch is renewed.
        self.connection.query::<()>(&redis::cmd("UNWATCH")).await?;
        self.connection.query::<()>(redis::cmd("WATCH").arg(note)).await?;
        self.last = self.read_note(note).await?;
        if self.last < number {
            return Ok(None);
        }
        self.connection.query(&wait_for(replicas)).await.map(Some)
    }

    async fn run(&mut self, transaction: &Pipeline, replicas: Replicas) -> Result<Outcome, RedisError> {
        let mut replies = self.connection.pipeline(transaction).await?;
        let waited = if replicas.count > 0 { replies.pop() } else { None };
        let (Some(watched), Some(outcome)) = (replies.pop(), replies.pop()) else {
            return Err(unexpected(&Value::Nil));
        };
        let is_watching = watched == Value::Okay;
        match outcome {
            Value::Nil if is_watching => Ok(Outcome::Overtaken),
            Value::Nil => Err(unexpected(&watched)),
            Value::Array(results) => {
                check_results(&results)?;
                // A master that has become a replica meanwhile cannot wait: no replica has confirmed.
                let replicas = match waited {
                    Some(Value::Int(count)) => u32::try_from(count).unwrap_or(0),
                    _ => 0,
                };
                Ok(Outcome::Stored { is_watching, replicas })
            }
            // Aborted before execution: the first error is the reason.
            Value::ServerError(aborted) => {
                Err(RedisError::from_reply(first_error(&replies).unwrap_or(&aborted)))
            }
            other => Err(unexpected(&other)),
        }
    }
}

/// Checks the replies to the entries, and to the note after them.
fn check_results(results: &[Value]) -> Result<(), RedisError> {
    let Some((note, entries)) = results.split_last() else {
        return Err(unexpected(&Value::Nil));
    };
    if let Some(error) = first_error(entries) {
        return Err(RedisError::from_reply(error));
    }
    if let Value::ServerError(error) = note {
        // The entries are stored nevertheless.
        tracing::error!(%error, "batch appended, but its number was not stored; a repeated append would not be detected");
    }
    Ok(())
}

fn first_error(replies: &[Value]) -> Option<&redis::ServerError> {
    replies.iter().find_map(|reply| match reply {
        Value::ServerError(error) => Some(error),
        _ => None,
    })
}

/// `MULTI`, the entries, the note, `EXEC`; then the note is watched again, and `WAIT` follows if required.
async fn transaction_of(
    (stream, note): (&str, &str),
    batch: Batch<'_>,
    number: u64,
    replicas: Replicas,
) -> Pipeline {
    let mut pipeline = Pipeline::new();
    pipeline.cmd("MULTI");
    for (position, command) in batch.commands(stream).enumerate() {
        if position > 0 && position.is_multiple_of(ENCODED_AT_ONCE) {
            tokio::task::yield_now().await;
        }
        pipeline.add_command(command);
    }
    let mut mark = scripts::MARK_APPENDED.call_by_text(&[stream, note]);
    mark.arg(number).arg(NOTE_EXPIRY_S);
    pipeline.add_command(mark);
    pipeline.cmd("EXEC");
    pipeline.cmd("WATCH").arg(note);
    if replicas.count > 0 {
        pipeline.add_command(wait_for(replicas));
    }
    pipeline
}

fn wait_for(replicas: Replicas) -> Cmd {
    let mut command = redis::cmd("WAIT");
    // Zero would wait forever.
    command.arg(replicas.count).arg(replicas.timeout.as_millis().max(1) as u64);
    command
}

fn entry_of(stream: &str, fields: &Fields) -> Cmd {
    let mut command =
        Cmd::with_capacity(3 + 2 * fields.len().max(1), fields.as_bytes().len() + stream.len() + 8);
    command.arg("XADD").arg(stream).arg("*");
    args_of(fields).for_each(|arg| {
        command.arg(arg);
    });
    command
}

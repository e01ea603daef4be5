//! Reading as a group, with timeout.
//!
//! A read that waits has a connection of its own, since it holds up everything behind it. Such connections are kept and
//! used again; one whose reader was given up halfway is closed, so that Redis delivers nothing to nobody.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use keyspace::{Dedicated, Redis, Trouble};
use parking_lot::Mutex;
use redis::{Cmd, Value};

use super::reply;
use crate::port::Stored;

/// Waiting connections kept for the next reader.
const IDLE_MAX: usize = 32;
/// Redis takes no number beyond this as a time to wait.
const WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// What to read.
pub(super) struct Request<'a> {
    pub(super) key: &'a str,
    pub(super) group: &'a str,
    pub(super) consumer: &'a str,
    pub(super) count: usize,
    pub(super) wait: Duration,
}

/// Connections for readers.
///
/// They are kept by key: on a cluster, lanes share a slot, but that need not remain so.
#[derive(Debug, Default)]
pub(super) struct Readers {
    idle: Mutex<Vec<(String, Dedicated)>>,
    dropped: AtomicU64,
}

impl Readers {
    pub(super) async fn read(&self, redis: &Redis, request: &Request<'_>) -> Result<Vec<Stored>, Trouble> {
        let reply = match request.wait.as_millis() {
            // Redis would take zero as for ever.
            0 => redis.query(&command_of(request, None)).await?,
            _ => self.read_with_wait(redis, request).await?,
        };
        entries_of(reply)
    }

    async fn read_with_wait(&self, redis: &Redis, request: &Request<'_>) -> Result<Value, Trouble> {
        let mut connection = match self.take(request.key) {
            Some(connection) => connection,
            None => redis.blocking(request.key).await?,
        };
        let wait = request.wait.min(WAIT_MAX);
        let timeout = wait + redis.settings().response_timeout;
        let command = command_of(request, Some(wait));
        let reply = tokio::time::timeout(timeout, connection.query(&command)).await.unwrap_or_else(|_| {
            Err(Trouble::Unanswered { reason: format!("nothing came back within {timeout:?}") })
        })?;
        self.put_back(request.key, connection);
        Ok(reply)
    }

    /// How many connections were closed because enough were kept.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn take(&self, key: &str) -> Option<Dedicated> {
        let mut idle = self.idle.lock();
        let position = idle.iter().rposition(|(other, _)| other == key)?;
        Some(idle.swap_remove(position).1)
    }

    fn put_back(&self, key: &str, connection: Dedicated) {
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.push((key.to_owned(), connection));
        } else {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn command_of(request: &Request<'_>, wait: Option<Duration>) -> Cmd {
    let mut command = redis::cmd("XREADGROUP");
    command.arg("GROUP").arg(request.group).arg(request.consumer).arg("COUNT").arg(request.count);
    if let Some(wait) = wait {
        command.arg("BLOCK").arg(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
    }
    command.arg("STREAMS").arg(request.key).arg(">");
    command
}

/// Reads `[[key, entries]]`, or nothing.
fn entries_of(reply: Value) -> Result<Vec<Stored>, Trouble> {
    let streams = match reply {
        Value::Nil => return Ok(Vec::new()),
        Value::Array(streams) => streams,
        other => return Err(reply::unexpected(&other)),
    };
    match streams.into_iter().next() {
        Some(Value::Array(stream)) => match <[Value; 2]>::try_from(stream) {
            Ok([_, entries]) => reply::entries(entries),
            Err(parts) => Err(reply::unexpected(&Value::Array(parts))),
        },
        Some(other) => Err(reply::unexpected(&other)),
        None => Ok(Vec::new()),
    }
}

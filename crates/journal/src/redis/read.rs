//! Reading as a consumer of a group, with a wait.
//!
//! A blocking read has a connection of its own, because it blocks all commands after it. Such connections are kept and
//! reused; one whose read was cancelled is closed, so that Redis does not deliver entries to it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use keyspace::{DedicatedConnection, Redis, RedisError};
use parking_lot::Mutex;
use redis::{Cmd, Value};

use super::reply;
use crate::port::Stored;

/// Idle connections kept for the next read.
const IDLE_MAX: usize = 32;
/// Redis accepts no larger value for `BLOCK`.
const WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) struct Request<'a> {
    pub(super) key: &'a str,
    pub(super) group: &'a str,
    pub(super) consumer: &'a str,
    pub(super) count: usize,
    pub(super) wait: Duration,
}

/// Connections for blocking reads, by key: on a cluster, lanes share a slot, but that may change.
#[derive(Debug, Default)]
pub(super) struct Readers {
    idle: Mutex<Vec<(String, DedicatedConnection)>>,
    dropped: AtomicU64,
}

impl Readers {
    pub(super) async fn read(&self, redis: &Redis, request: &Request<'_>) -> Result<Vec<Stored>, RedisError> {
        let reply = match request.wait.as_millis() {
            // `BLOCK 0` would wait forever.
            0 => redis.query(&command_of(request, None)).await?,
            _ => self.read_with_wait(redis, request).await?,
        };
        entries_of(reply)
    }

    async fn read_with_wait(&self, redis: &Redis, request: &Request<'_>) -> Result<Value, RedisError> {
        let mut connection = match self.take(request.key) {
            Some(connection) => connection,
            None => redis.blocking(request.key).await?,
        };
        let wait = request.wait.min(WAIT_MAX);
        let timeout = wait + redis.settings().response_timeout;
        let command = command_of(request, Some(wait));
        let reply = tokio::time::timeout(timeout, connection.query(&command)).await.unwrap_or_else(|_| {
            Err(RedisError::Unanswered { reason: format!("no reply within {timeout:?}") })
        })?;
        self.put_back(request.key, connection);
        Ok(reply)
    }

    /// Connections closed because enough were kept.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn take(&self, key: &str) -> Option<DedicatedConnection> {
        let mut idle = self.idle.lock();
        let position = idle.iter().rposition(|(other, _)| other == key)?;
        Some(idle.swap_remove(position).1)
    }

    fn put_back(&self, key: &str, connection: DedicatedConnection) {
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

/// Parses `[[key, entries]]`, or nil.
fn entries_of(reply: Value) -> Result<Vec<Stored>, RedisError> {
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

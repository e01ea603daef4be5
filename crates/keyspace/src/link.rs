//! One server, however often its connection breaks.
//!
//! Callers share one connection. Where there is none, one of them connects and the others wait for it; if it fails,
//! all of those who waited fail with it. Between attempts lies a pause that grows with each failure up to a bound, and
//! is random between nothing and that (full jitter), so that many processes do not come back at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{Cmd, Pipeline, Value};

use crate::dial::Dialer;
use crate::error::RedisError;
use crate::outage::Outage;
use crate::sentinel::MasterWatch;
use crate::settings::Node;

/// The pause after the first failure; it doubles with each further one.
const BACKOFF_MIN: Duration = Duration::from_millis(20);

/// Which server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// This one.
    Node(Node),
    /// Whichever the sentinels call the master.
    Master,
}

/// One server.
pub(crate) struct Link {
    dialer: Arc<Dialer>,
    target: Target,
    /// Who is master, where sentinels say.
    master_watch: Arc<MasterWatch>,
    current: Mutex<Option<Current>>,
    /// How often somebody tried to connect; also the number of the present connection.
    attempts: AtomicU64,
    /// Held by the one who connects.
    connect_lock: tokio::sync::Mutex<Failures>,
}

#[derive(Clone)]
struct Current {
    number: u64,
    connection: MultiplexedConnection,
    epoch: u64,
}

/// A connection of one's own, and the epoch of masters in which it is of use.
pub(crate) struct OwnedConnection {
    pub(crate) connection: MultiplexedConnection,
    master_watch: Arc<MasterWatch>,
    epoch: u64,
}

impl OwnedConnection {
    /// Whether the server is still the one to talk to.
    pub(crate) fn is_current(&self) -> bool {
        self.master_watch.epoch() == self.epoch
    }
}

#[derive(Default)]
struct Failures {
    consecutive: u32,
    last: Option<RedisError>,
    /// From the first of them to the next connection.
    outage: Option<Outage>,
}

impl Link {
    pub(crate) fn new(dialer: Arc<Dialer>, target: Target) -> Self {
        Link {
            dialer,
            target,
            master_watch: Arc::default(),
            current: Mutex::new(None),
            attempts: AtomicU64::new(0),
            connect_lock: tokio::sync::Mutex::new(Failures::default()),
        }
    }

    /// The name of the server in messages.
    pub(crate) fn name(&self) -> String {
        match &self.target {
            Target::Node(node) => node.to_string(),
            Target::Master => format!("master {}", self.dialer.settings().master_name),
        }
    }

    /// Sends a command. The reply may be an error that Redis replied.
    pub(crate) async fn command(&self, command: &Cmd) -> Result<Value, RedisError> {
        let mut current = self.connected().await?;
        let result = current.connection.req_packed_command(command).await;
        self.check(current.number, result)
    }

    /// Sends commands and gives back `count` replies after the first `skip`. Each may be an error that Redis replied.
    pub(crate) async fn commands(
        &self,
        pipeline: &Pipeline,
        skip: usize,
        count: usize,
    ) -> Result<Vec<Value>, RedisError> {
        let mut current = self.connected().await?;
        let result = current.connection.req_packed_commands(pipeline, skip, count).await;
        self.check(current.number, result)
    }

    /// A connection of one's own.
    pub(crate) async fn dial(
        &self,
        response_timeout: Option<Duration>,
    ) -> Result<OwnedConnection, RedisError> {
        let seen = self.attempts.load(Ordering::Acquire);
        let mut failures = self.connect_lock.lock().await;
        let connection = self.attempt(&mut failures, seen, response_timeout).await?;
        Ok(OwnedConnection {
            connection,
            master_watch: self.master_watch.clone(),
            epoch: self.master_watch.epoch(),
        })
    }

    async fn connected(&self) -> Result<Current, RedisError> {
        let seen = self.attempts.load(Ordering::Acquire);
        if let Some(current) = self.current() {
            return Ok(current);
        }
        let mut failures = self.connect_lock.lock().await;
        if let Some(current) = self.current() {
            return Ok(current);
        }
        let timeout = Some(self.dialer.settings().response_timeout);
        let connection = self.attempt(&mut failures, seen, timeout).await?;
        let number = self.attempts.load(Ordering::Acquire);
        let current = Current { number, connection, epoch: self.master_watch.epoch() };
        *self.current.lock() = Some(current.clone());
        Ok(current)
    }

    /// The shared connection, unless there is none or the master has changed since.
    fn current(&self) -> Option<Current> {
        let epoch = self.master_watch.epoch();
        self.current.lock().clone().filter(|current| current.epoch == epoch)
    }

    /// Connects, after the pause that past failures ask for. `seen` is how many attempts there had been when the caller
    /// came: if one failed since, that failure is the caller's too.
    async fn attempt(
        &self,
        failures: &mut Failures,
        seen: u64,
        response_timeout: Option<Duration>,
    ) -> Result<MultiplexedConnection, RedisError> {
        if let Some(error) = &failures.last
            && self.attempts.load(Ordering::Acquire) != seen
        {
            return Err(error.clone());
        }
        if failures.consecutive > 0 {
            tokio::time::sleep(backoff(failures.consecutive, self.dialer.settings().backoff_max)).await;
        }
        let result = match &self.target {
            Target::Node(node) => self.dialer.dial(node, response_timeout).await,
            Target::Master => self.dialer.dial_master(response_timeout).await.map(|(connection, master)| {
                self.master_watch.set_and_poll(&self.dialer, master);
                connection
            }),
        };
        self.attempts.fetch_add(1, Ordering::AcqRel);
        match &result {
            Ok(_) => {
                let Failures { consecutive, outage, .. } = std::mem::take(failures);
                if let Some(outage) = outage {
                    outage.end(consecutive + 1);
                }
            }
            Err(error) => {
                failures.outage.get_or_insert_with(|| Outage::begin(self.name(), error));
                failures.consecutive = failures.consecutive.saturating_add(1);
                failures.last = Some(error.clone());
            }
        }
        result
    }

    /// Drops a connection that is of no use any more.
    fn check<T: Replies>(&self, number: u64, result: Result<T, redis::RedisError>) -> Result<T, RedisError> {
        let is_stale = match &result {
            // After a failover the old master lives on as a replica.
            Ok(replies) => self.target == Target::Master && replies.has_error_code("READONLY"),
            Err(error) => match error.clone().into_server_errors() {
                Some(replies) => {
                    self.target == Target::Master
                        && replies.iter().any(|(_, reply)| reply.code() == "READONLY")
                }
                None => true,
            },
        };
        if result.as_ref().is_err_and(|error| error.clone().into_server_errors().is_none()) {
            self.dialer.counters().unanswered.fetch_add(1, Ordering::Relaxed);
        }
        if is_stale {
            let mut current = self.current.lock();
            if current.as_ref().is_some_and(|current| current.number == number) {
                *current = None;
            }
        }
        result.map_err(|error| RedisError::from_send(&self.name(), &error))
    }
}

/// One reply or several.
pub(crate) trait Replies {
    fn has_error_code(&self, code: &str) -> bool;
}

impl Replies for Value {
    fn has_error_code(&self, code: &str) -> bool {
        matches!(self, Value::ServerError(error) if error.code() == code)
    }
}

impl Replies for Vec<Value> {
    fn has_error_code(&self, code: &str) -> bool {
        self.iter().any(|reply| reply.has_error_code(code))
    }
}

/// Random up to a bound that doubles with each failure.
pub(crate) fn backoff(failures: u32, max: Duration) -> Duration {
    let bound = BACKOFF_MIN.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(max);
    // Never nothing at all: that would be a busy loop, now and then.
    let random = bound.mul_f64(fastrand::f64());
    random.max(Duration::from_millis(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_their_bound() {
        let max = Duration::from_secs(2);
        for failures in [1, 2, 10, 31, 32, 1000, u32::MAX] {
            let bound = Duration::from_millis(20).saturating_mul(2_u32.saturating_pow(failures - 1)).min(max);
            for _ in 0..50 {
                let pause = backoff(failures, max);
                assert!(pause > Duration::ZERO && pause <= bound, "{failures}: {pause:?}");
            }
        }
    }
}

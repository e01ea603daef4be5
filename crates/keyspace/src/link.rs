//! The shared connection to one server, with reconnects.
//!
//! Without a connection, one caller connects and the others wait for its result, also for its failure. Attempts use
//! exponential backoff with jitter and an upper bound, so that many processes do not reconnect at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::Backoff;
use parking_lot::Mutex;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{Cmd, Pipeline, Value};

use crate::dial::Dialer;
use crate::error::RedisError;
use crate::outage::Outage;
use crate::sentinel::MasterWatch;
use crate::settings::Node;

/// Upper bound of the delay after the first failure; doubles with each further one.
pub(crate) const BACKOFF_MIN: Duration = Duration::from_millis(20);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Node(Node),
    /// The master that the sentinels name.
    Master,
}

pub(crate) struct Link {
    dialer: Arc<Dialer>,
    target: Target,
    /// Used with [`Target::Master`] only.
    master_watch: Arc<MasterWatch>,
    current: Mutex<Option<Current>>,
    /// Connection attempts; also the number of the present connection.
    attempts: AtomicU64,
    /// Held while connecting.
    connect_lock: tokio::sync::Mutex<Failures>,
}

#[derive(Clone)]
struct Current {
    number: u64,
    connection: MultiplexedConnection,
    epoch: u64,
}

/// A dedicated connection, valid in one epoch of [`MasterWatch`].
pub(crate) struct OwnedConnection {
    pub(crate) connection: MultiplexedConnection,
    master_watch: Arc<MasterWatch>,
    epoch: u64,
}

impl OwnedConnection {
    /// Whether the server is still the master.
    pub(crate) fn is_current(&self) -> bool {
        self.master_watch.epoch() == self.epoch
    }
}

#[derive(Default)]
struct Failures {
    consecutive: u32,
    last: Option<RedisError>,
    /// Open from the first failure to the next connection.
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

    /// For logs and errors.
    pub(crate) fn name(&self) -> String {
        match &self.target {
            Target::Node(node) => node.to_string(),
            Target::Master => format!("master {}", self.dialer.settings().master_name),
        }
    }

    /// The value may be an error reply.
    pub(crate) async fn command(&self, command: &Cmd) -> Result<Value, RedisError> {
        let mut current = self.connected().await?;
        let result = current.connection.req_packed_command(command).await;
        self.check(current.number, result)
    }

    /// Sends commands and returns `count` replies after the first `skip`. Each may be an error reply.
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

    /// Opens a dedicated connection.
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

    /// The shared connection; none if there is none or the master has changed.
    fn current(&self) -> Option<Current> {
        let epoch = self.master_watch.epoch();
        self.current.lock().clone().filter(|current| current.epoch == epoch)
    }

    /// Connects, after the backoff of past failures. `seen` is the number of attempts when the call began: if an
    /// attempt failed since, its error is returned without another attempt.
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
        if let Some(earlier) = failures.consecutive.checked_sub(1) {
            let mut backoff = Backoff::new(BACKOFF_MIN, self.dialer.settings().backoff_max);
            tokio::time::sleep(backoff.delay_after(earlier)).await;
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

    /// Drops the shared connection if the result shows that it is broken or leads to a former master.
    fn check<T: Replies>(&self, number: u64, result: Result<T, redis::RedisError>) -> Result<T, RedisError> {
        let is_stale = match &result {
            // After a failover the old master is a replica.
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

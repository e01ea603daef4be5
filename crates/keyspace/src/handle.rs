//! The handle: commands, pipelines, transactions and dedicated connections.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::ConnectionLike;
use redis::{Cmd, FromRedisValue, Pipeline, Value};

use crate::cluster::Cluster;
use crate::dial::{Counters, Dialer};
use crate::error::RedisError;
use crate::hash_slots::{is_read_only, slot_of};
use crate::link::{Link, OwnedConnection, Replies, Target};
use crate::scripts;
use crate::settings::{Mode, Node, RedisSettings};

/// The outcome of one command of a pipeline.
pub type Reply = Result<Value, RedisError>;

/// A handle to a single server, a sentinel group or a cluster. Clones share connections.
///
/// Connects when first used. Belongs to the Tokio runtime it is used on.
#[derive(Clone)]
pub struct Redis {
    dialer: Arc<Dialer>,
    route: Arc<Route>,
}

enum Route {
    Single(Link),
    Cluster(Cluster),
}

impl Redis {
    /// Makes no connection yet; reads the TLS files.
    pub fn new(settings: RedisSettings) -> Result<Redis, RedisError> {
        let mode = settings.mode;
        let dialer = Arc::new(Dialer::new(settings)?);
        let route = match (mode, dialer.settings().nodes.first()) {
            (_, None) => return Err(RedisError::settings("the address of Redis names no server")),
            (Mode::Single, Some(node)) => {
                Route::Single(Link::new(dialer.clone(), Target::Node(node.clone())))
            }
            (Mode::Sentinel, _) => Route::Single(Link::new(dialer.clone(), Target::Master)),
            (Mode::Cluster, _) => Route::Cluster(Cluster::new(dialer.clone())),
        };
        Ok(Redis { dialer, route: Arc::new(route) })
    }

    /// As [`Redis::new`], then sends `PING`, so that wrong settings fail here.
    pub async fn connect(settings: RedisSettings) -> Result<Redis, RedisError> {
        let redis = Redis::new(settings)?;
        redis.ping().await?;
        Ok(redis)
    }

    pub async fn ping(&self) -> Result<(), RedisError> {
        self.query::<String>(&redis::cmd("PING")).await.map(drop)
    }

    pub fn mode(&self) -> Mode {
        self.dialer.settings().mode
    }

    /// `Display` and `Debug` of the settings contain no password.
    pub fn settings(&self) -> &RedisSettings {
        self.dialer.settings()
    }

    pub fn counters(&self) -> &Counters {
        self.dialer.counters()
    }

    /// Sends one command; on a cluster to the master of its first key.
    pub async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, RedisError> {
        let mut reply = self.send(command).await?;
        if reply.has_error_code("NOSCRIPT")
            && let Some(as_eval) = scripts::as_eval(command)
        {
            reply = self.send(&as_eval).await?;
        }
        read_reply(Ok(reply))
    }

    /// Sends commands together; on a cluster each to the master of its first key. Each has its own outcome, in the
    /// order of the commands.
    pub async fn pipeline(&self, pipeline: &Pipeline) -> Vec<Reply> {
        let mut replies = self.send_all(pipeline).await;
        let is_unknown_script =
            |reply: &Reply| reply.as_ref().is_ok_and(|reply| reply.has_error_code("NOSCRIPT"));
        if replies.iter().any(is_unknown_script) {
            let mut again = Pipeline::new();
            let mut positions = Vec::new();
            for (position, command) in pipeline.cmd_iter().enumerate() {
                if is_unknown_script(&replies[position])
                    && let Some(as_eval) = scripts::as_eval(command)
                {
                    again.add_command(as_eval);
                    positions.push(position);
                }
            }
            for (position, reply) in positions.into_iter().zip(self.send_all(&again).await) {
                replies[position] = reply;
            }
        }
        replies.into_iter().map(error_reply_to_err).collect()
    }

    /// Sends commands as one `MULTI` transaction, whose keys must share a slot. An error means that no command was
    /// executed, except for [`RedisError::Unanswered`], after which that is unknown. Executed commands may still have
    /// failed individually.
    pub async fn transaction(&self, pipeline: &Pipeline) -> Result<Vec<Reply>, RedisError> {
        let mut atomic = pipeline.clone();
        atomic.atomic();
        let replies = match &*self.route {
            Route::Single(link) => link.commands(&atomic, atomic.len() + 1, 1).await?,
            Route::Cluster(cluster) => cluster.transaction(&atomic).await?,
        };
        match error_reply_to_err(
            replies.into_iter().next().ok_or_else(|| RedisError::malformed_reply("no reply to EXEC")),
        )? {
            Value::Array(replies) => {
                Ok(replies.into_iter().map(|reply| error_reply_to_err(Ok(reply))).collect())
            }
            other => Err(RedisError::malformed_reply(format!("{other:?} from EXEC"))),
        }
    }

    /// A dedicated connection to the master of this key: for state of a connection, such as `WATCH`.
    pub async fn dedicated(&self, key: &str) -> Result<DedicatedConnection, RedisError> {
        self.dial(key, Some(self.settings().response_timeout)).await
    }

    /// As [`Redis::dedicated`], without a response timeout: for `XREAD … BLOCK`.
    pub async fn blocking(&self, key: &str) -> Result<DedicatedConnection, RedisError> {
        self.dial(key, None).await
    }

    pub(crate) fn dialer(&self) -> &Arc<Dialer> {
        &self.dialer
    }

    /// The present masters, according to the sentinels or the cluster.
    pub(crate) async fn masters(&self) -> Result<Vec<Node>, RedisError> {
        match (&*self.route, self.mode()) {
            (Route::Cluster(cluster), _) => Ok(cluster.fetch_topology().await?.masters),
            (Route::Single(_), Mode::Sentinel) => Ok(vec![self.dialer.ask_sentinels().await?]),
            (Route::Single(_), _) => Ok(self.settings().nodes.clone()),
        }
    }

    /// The masters and, on a cluster, their replicas.
    pub(crate) async fn servers(&self) -> Result<Vec<Node>, RedisError> {
        match &*self.route {
            Route::Cluster(cluster) => {
                let topology = cluster.fetch_topology().await?;
                Ok([topology.masters, topology.replicas].concat())
            }
            Route::Single(_) => self.masters().await,
        }
    }

    async fn dial(
        &self,
        key: &str,
        response_timeout: Option<Duration>,
    ) -> Result<DedicatedConnection, RedisError> {
        let (own, server) = match &*self.route {
            Route::Single(link) => (link.dial(response_timeout).await?, link.name()),
            Route::Cluster(cluster) => {
                let link = cluster.link_for(Some(slot_of(key.as_bytes()))).await?;
                let own = link.dial(response_timeout).await.inspect_err(|_| cluster.mark_stale())?;
                (own, link.name())
            }
        };
        Ok(DedicatedConnection { own, server, redis: self.clone() })
    }

    async fn send(&self, command: &Cmd) -> Reply {
        match self.send_once(command).await {
            // An idle connection that broke is noticed only now; reads may be repeated.
            Err(RedisError::Unanswered { .. }) if is_read_only(command) => self.send_once(command).await,
            reply => reply,
        }
    }

    async fn send_once(&self, command: &Cmd) -> Reply {
        match &*self.route {
            Route::Single(link) => link.command(command).await,
            Route::Cluster(cluster) => cluster.command(command).await,
        }
    }

    async fn send_all(&self, pipeline: &Pipeline) -> Vec<Reply> {
        if pipeline.is_empty() {
            return Vec::new();
        }
        match &*self.route {
            Route::Single(link) => match link.commands(pipeline, 0, pipeline.len()).await {
                Ok(replies) => replies.into_iter().map(Ok).collect(),
                Err(error) => pipeline.cmd_iter().map(|_| Err(error.clone())).collect(),
            },
            Route::Cluster(cluster) => cluster.commands(pipeline).await,
        }
    }
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redis({})", self.settings())
    }
}

/// Not reconnected: after any error other than an error reply, open another.
pub struct DedicatedConnection {
    own: OwnedConnection,
    server: String,
    redis: Redis,
}

impl DedicatedConnection {
    pub async fn query<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, RedisError> {
        self.check_epoch()?;
        let result = self.own.connection.req_packed_command(command).await;
        read_reply(self.check_result(result))
    }

    /// Sends commands unchanged. Each returned value may be an error reply.
    pub async fn pipeline(&mut self, pipeline: &Pipeline) -> Result<Vec<Value>, RedisError> {
        self.check_epoch()?;
        let result = self.own.connection.req_packed_commands(pipeline, 0, pipeline.len()).await;
        self.check_result(result)
    }

    fn check_epoch(&self) -> Result<(), RedisError> {
        match self.own.is_current() {
            true => Ok(()),
            false => Err(RedisError::unavailable(format!("{} is no longer the master", self.server))),
        }
    }

    /// On a cluster, marks the slot map stale if the slot may have moved.
    fn check_result<T: Replies>(&self, result: Result<T, redis::RedisError>) -> Result<T, RedisError> {
        if let Route::Cluster(cluster) = &*self.redis.route {
            let is_stale = match &result {
                Ok(replies) => ["MOVED", "ASK", "READONLY", "CLUSTERDOWN"]
                    .iter()
                    .any(|code| replies.has_error_code(code)),
                Err(_) => true,
            };
            if is_stale {
                cluster.mark_stale();
            }
        }
        result.map_err(|error| RedisError::from_send(&self.server, &error))
    }
}

impl fmt::Debug for DedicatedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DedicatedConnection({})", self.server)
    }
}

/// Converts a reply; an error reply is an error.
pub fn read_reply<T: FromRedisValue>(reply: Reply) -> Result<T, RedisError> {
    T::from_redis_value(error_reply_to_err(reply)?).map_err(RedisError::malformed_reply)
}

fn error_reply_to_err(reply: Reply) -> Reply {
    match reply? {
        Value::ServerError(error) => Err(RedisError::from_reply(&error)),
        value => Ok(value),
    }
}

//! The handle: what the rest of the program sees of Redis.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::ConnectionLike;
use redis::{Cmd, FromRedisValue, Pipeline, Value};

use crate::cluster::Cluster;
use crate::dial::{Counters, Dialer};
use crate::error::Trouble;
use crate::link::{Link, Own, Replies, Target};
use crate::scripts;
use crate::settings::{Mode, Node, RedisSettings};
use crate::slots::{is_reading, slot_of};

/// What came of one command of several.
pub type Reply = Result<Value, Trouble>;

/// Redis, single or many. Clones share their connections.
///
/// It connects when first used, and belongs to the runtime it is used on.
#[derive(Clone)]
pub struct Redis {
    dialer: Arc<Dialer>,
    route: Arc<Route>,
}

enum Route {
    One(Link),
    Cluster(Cluster),
}

impl Redis {
    /// A handle. Nothing is connected yet; only files for TLS are read.
    pub fn new(settings: RedisSettings) -> Result<Redis, Trouble> {
        let mode = settings.mode;
        let dialer = Arc::new(Dialer::new(settings)?);
        let route = match (mode, dialer.settings().nodes.first()) {
            (_, None) => return Err(Trouble::settings("no server is named in the address of Redis")),
            (Mode::Single, Some(node)) => Route::One(Link::new(dialer.clone(), Target::Node(node.clone()))),
            (Mode::Sentinel, _) => Route::One(Link::new(dialer.clone(), Target::Master)),
            (Mode::Cluster, _) => Route::Cluster(Cluster::new(dialer.clone())),
        };
        Ok(Redis { dialer, route: Arc::new(route) })
    }

    /// A handle that has been used once, so that wrong settings come out.
    pub async fn connect(settings: RedisSettings) -> Result<Redis, Trouble> {
        let redis = Redis::new(settings)?;
        redis.ping().await?;
        Ok(redis)
    }

    /// Whether it answers.
    pub async fn ping(&self) -> Result<(), Trouble> {
        self.query::<String>(&redis::cmd("PING")).await.map(drop)
    }

    /// How this Redis is run.
    pub fn mode(&self) -> Mode {
        self.dialer.settings().mode
    }

    /// Where it is. What this shows holds no password.
    pub fn settings(&self) -> &RedisSettings {
        self.dialer.settings()
    }

    /// What happened to its connections.
    pub fn counters(&self) -> &Counters {
        self.dialer.counters()
    }

    /// Sends one command, on a cluster to where its first key lies.
    pub async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Trouble> {
        let mut reply = self.send(command).await?;
        if reply.any_says("NOSCRIPT")
            && let Some(with_text) = scripts::with_text(command)
        {
            reply = self.send(&with_text).await?;
        }
        read_reply(Ok(reply))
    }

    /// Sends commands together, on a cluster each to where its first key lies. Each fails or succeeds for itself; the
    /// replies stand in the order of the commands.
    pub async fn pipeline(&self, pipeline: &Pipeline) -> Vec<Reply> {
        let mut replies = self.send_all(pipeline).await;
        let unknown = |reply: &Reply| reply.as_ref().is_ok_and(|reply| reply.any_says("NOSCRIPT"));
        if replies.iter().any(unknown) {
            let mut again = Pipeline::new();
            let mut positions = Vec::new();
            for (position, command) in pipeline.cmd_iter().enumerate() {
                if unknown(&replies[position])
                    && let Some(with_text) = scripts::with_text(command)
                {
                    again.add_command(with_text);
                    positions.push(position);
                }
            }
            for (position, reply) in positions.into_iter().zip(self.send_all(&again).await) {
                replies[position] = reply;
            }
        }
        replies.into_iter().map(refuse_errors).collect()
    }

    /// Sends commands as one transaction: all of them are run, with nothing between them, or none. Their keys share a
    /// slot. An error means that none was run (or, if it is [`Trouble::Unanswered`], that nobody knows); each that was
    /// run may still have failed for itself.
    pub async fn transaction(&self, pipeline: &Pipeline) -> Result<Vec<Reply>, Trouble> {
        let mut atomic = pipeline.clone();
        atomic.atomic();
        let replies = match &*self.route {
            Route::One(link) => link.commands(&atomic, atomic.len() + 1, 1).await?,
            Route::Cluster(cluster) => cluster.transaction(&atomic).await?,
        };
        match refuse_errors(
            replies.into_iter().next().ok_or_else(|| Trouble::unexpected("no reply to EXEC")),
        )? {
            Value::Array(replies) => Ok(replies.into_iter().map(|reply| refuse_errors(Ok(reply))).collect()),
            other => Err(Trouble::unexpected(format!("{other:?} from EXEC"))),
        }
    }

    /// A connection of one's own to where this key lies: for what is bound to a connection, such as `WATCH`.
    pub async fn dedicated(&self, key: &str) -> Result<Dedicated, Trouble> {
        self.dial(key, Some(self.settings().response_timeout)).await
    }

    /// A connection of one's own to where this key lies, on which an answer may take any time: for `XREAD … BLOCK`.
    pub async fn blocking(&self, key: &str) -> Result<Dedicated, Trouble> {
        self.dial(key, None).await
    }

    /// How to get in.
    pub(crate) fn dialer(&self) -> &Arc<Dialer> {
        &self.dialer
    }

    /// Who is master now, by the word of the sentinels or of the cluster.
    pub(crate) async fn masters(&self) -> Result<Vec<Node>, Trouble> {
        match (&*self.route, self.mode()) {
            (Route::Cluster(cluster), _) => Ok(cluster.look_around().await?.masters),
            (Route::One(_), Mode::Sentinel) => Ok(vec![self.dialer.ask_sentinels().await?]),
            (Route::One(_), _) => Ok(self.settings().nodes.clone()),
        }
    }

    /// The masters and, on a cluster, their replicas.
    pub(crate) async fn servers(&self) -> Result<Vec<Node>, Trouble> {
        match &*self.route {
            Route::Cluster(cluster) => {
                let around = cluster.look_around().await?;
                Ok([around.masters, around.replicas].concat())
            }
            Route::One(_) => self.masters().await,
        }
    }

    async fn dial(&self, key: &str, response_timeout: Option<Duration>) -> Result<Dedicated, Trouble> {
        let (own, server) = match &*self.route {
            Route::One(link) => (link.dial(response_timeout).await?, link.name()),
            Route::Cluster(cluster) => {
                let link = cluster.link_for(Some(slot_of(key.as_bytes()))).await?;
                let own = link.dial(response_timeout).await.inspect_err(|_| cluster.mark_stale())?;
                (own, link.name())
            }
        };
        Ok(Dedicated { own, server, redis: self.clone() })
    }

    async fn send(&self, command: &Cmd) -> Reply {
        match self.send_once(command).await {
            // A connection that broke while nobody used it comes out only now; reading again harms nobody.
            Err(Trouble::Unanswered { .. }) if is_reading(command) => self.send_once(command).await,
            reply => reply,
        }
    }

    async fn send_once(&self, command: &Cmd) -> Reply {
        match &*self.route {
            Route::One(link) => link.command(command).await,
            Route::Cluster(cluster) => cluster.command(command).await,
        }
    }

    async fn send_all(&self, pipeline: &Pipeline) -> Vec<Reply> {
        if pipeline.is_empty() {
            return Vec::new();
        }
        match &*self.route {
            Route::One(link) => match link.commands(pipeline, 0, pipeline.len()).await {
                Ok(replies) => replies.into_iter().map(Ok).collect(),
                Err(trouble) => pipeline.cmd_iter().map(|_| Err(trouble.clone())).collect(),
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

/// A connection of one's own. It does not come back: after any error but one that Redis replied, get another.
pub struct Dedicated {
    own: Own,
    server: String,
    redis: Redis,
}

impl Dedicated {
    /// Sends one command.
    pub async fn query<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, Trouble> {
        self.check()?;
        let result = self.own.connection.req_packed_command(command).await;
        read_reply(self.judge(result))
    }

    /// Sends commands as they are, and gives back every reply, each of which may be an error that Redis replied.
    pub async fn pipeline(&mut self, pipeline: &Pipeline) -> Result<Vec<Value>, Trouble> {
        self.check()?;
        let result = self.own.connection.req_packed_commands(pipeline, 0, pipeline.len()).await;
        self.judge(result)
    }

    fn check(&self) -> Result<(), Trouble> {
        match self.own.is_current() {
            true => Ok(()),
            false => Err(Trouble::unavailable(format!("{} has been replaced", self.server))),
        }
    }

    /// On a cluster, learns that the key may lie elsewhere by now.
    fn judge<T: Replies>(&self, result: Result<T, redis::RedisError>) -> Result<T, Trouble> {
        if let Route::Cluster(cluster) = &*self.redis.route {
            let is_suspect = match &result {
                Ok(replies) => {
                    ["MOVED", "ASK", "READONLY", "CLUSTERDOWN"].iter().any(|code| replies.any_says(code))
                }
                Err(_) => true,
            };
            if is_suspect {
                cluster.mark_stale();
            }
        }
        result.map_err(|error| Trouble::of_sending(&self.server, &error))
    }
}

impl fmt::Debug for Dedicated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dedicated({})", self.server)
    }
}

/// Reads a reply as what it should be.
pub fn read_reply<T: FromRedisValue>(reply: Reply) -> Result<T, Trouble> {
    T::from_redis_value(refuse_errors(reply)?).map_err(Trouble::unexpected)
}

/// An error that Redis replied is an error.
fn refuse_errors(reply: Reply) -> Reply {
    match reply? {
        Value::ServerError(error) => Err(Trouble::of_reply(&error)),
        value => Ok(value),
    }
}

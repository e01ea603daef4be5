//! Single connection attempts, without backoff or retry.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::aio::{MultiplexedConnection, PubSub};
use redis::io::tcp::{TcpSettings, socket2};
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo,
    TlsCertificates,
};

use crate::error::RedisError;
use crate::settings::{Credentials, Node, RedisSettings, TlsFiles};

/// TCP keepalive: detects a silently lost idle connection.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(30);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(10);
/// `TCP_USER_TIMEOUT`: unacknowledged data for this long means that the connection is lost.
const UNRECEIVED_MAX: Duration = Duration::from_secs(20);
/// Requests queued on one connection before callers wait: announces come in bursts.
const WAITING_REQUESTS_MAX: usize = 512;

/// Counted since the handle was created.
#[derive(Debug, Default)]
pub struct Counters {
    /// Successful connection attempts.
    pub connected: AtomicU64,
    /// Failed connection attempts.
    pub connect_failures: AtomicU64,
    /// `MOVED` and `ASK` redirects.
    pub redirected: AtomicU64,
    /// Commands or pipelines without a reply: the connection broke or the response timeout passed.
    pub unanswered: AtomicU64,
}

/// Settings and certificates for new connections.
#[derive(Debug)]
pub(crate) struct Dialer {
    settings: RedisSettings,
    counters: Counters,
    certificates: Option<TlsCertificates>,
}

impl Dialer {
    /// Reads the TLS files.
    pub(crate) fn new(settings: RedisSettings) -> Result<Dialer, RedisError> {
        let certificates = settings.tls.as_ref().map(certificates_of).transpose()?;
        if certificates.is_some() {
            // Fails if a provider is already installed, which serves as well.
            let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        }
        Ok(Dialer { settings, counters: Counters::default(), certificates })
    }

    pub(crate) fn settings(&self) -> &RedisSettings {
        &self.settings
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) async fn dial(
        &self,
        node: &Node,
        response_timeout: Option<Duration>,
    ) -> Result<MultiplexedConnection, RedisError> {
        self.dial_as(node, &self.settings.credentials, self.settings.db, response_timeout).await
    }

    /// Connects to the master that the sentinels name; returns its address, too.
    pub(crate) async fn dial_master(
        &self,
        response_timeout: Option<Duration>,
    ) -> Result<(MultiplexedConnection, Node), RedisError> {
        let master = self.ask_sentinels().await?;
        let mut connection = self.dial(&master, response_timeout).await?;
        // Right after a failover a sentinel may still name the old master.
        let role = redis::cmd("ROLE").query_async::<Vec<redis::Value>>(&mut connection).await;
        match role.ok().and_then(|role| role.into_iter().next()) {
            Some(redis::Value::BulkString(role)) if role != b"master" => Err(RedisError::unavailable(
                format!("{master} is not a master: the failover has not ended yet"),
            )),
            _ => Ok((connection, master)),
        }
    }

    /// The master, according to the first sentinel that answers.
    pub(crate) async fn ask_sentinels(&self) -> Result<Node, RedisError> {
        let mut error = RedisError::unavailable("the settings name no sentinel");
        for sentinel in &self.settings.nodes {
            match self.ask_sentinel(sentinel).await {
                Ok(master) => return Ok(master),
                Err(other) => error = other,
            }
        }
        Err(error)
    }

    async fn ask_sentinel(&self, sentinel: &Node) -> Result<Node, RedisError> {
        let timeout = Some(self.settings.connect_timeout);
        let mut connection = self.dial_as(sentinel, &self.settings.sentinel_credentials, 0, timeout).await?;
        let name = &self.settings.master_name;
        let answer: Option<(String, u16)> = redis::cmd("SENTINEL")
            .arg("GET-MASTER-ADDR-BY-NAME")
            .arg(name)
            .query_async(&mut connection)
            .await
            .map_err(|error| RedisError::from_connect(&format!("sentinel {sentinel}"), &error))?;
        let (host, port) = answer.ok_or_else(|| RedisError::Refused {
            code: "SENTINEL".to_owned(),
            reason: format!("sentinel {sentinel} has no master named {name}: correct the name in redis.url"),
        })?;
        Ok(Node { host, port })
    }

    pub(crate) async fn dial_pubsub(&self, node: &Node) -> Result<PubSub, RedisError> {
        let explain = |error| RedisError::from_connect(&node.to_string(), &error);
        let client = self.client_for(node, &self.settings.credentials, self.settings.db).map_err(explain)?;
        // The driver has no timeout here.
        let result =
            match tokio::time::timeout(self.settings.connect_timeout, client.get_async_pubsub()).await {
                Ok(result) => result.map_err(explain),
                Err(_) => Err(RedisError::unavailable(format!("{node}: connection timed out"))),
            };
        self.count(result)
    }

    fn count<T>(&self, result: Result<T, RedisError>) -> Result<T, RedisError> {
        let counter = match result {
            Ok(_) => &self.counters.connected,
            Err(_) => &self.counters.connect_failures,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        result
    }

    async fn dial_as(
        &self,
        node: &Node,
        credentials: &Credentials,
        db: u32,
        response_timeout: Option<Duration>,
    ) -> Result<MultiplexedConnection, RedisError> {
        let explain = |error| RedisError::from_connect(&node.to_string(), &error);
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.settings.connect_timeout))
            .set_response_timeout(response_timeout)
            .set_pipeline_buffer_size(WAITING_REQUESTS_MAX);
        let client = self.client_for(node, credentials, db).map_err(explain)?;
        self.count(client.get_multiplexed_async_connection_with_config(&config).await.map_err(explain))
    }

    fn client_for(&self, node: &Node, credentials: &Credentials, db: u32) -> redis::RedisResult<Client> {
        let (host, port) = (node.host.clone(), node.port);
        let address = match self.certificates {
            Some(_) => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
            None => ConnectionAddr::Tcp(host, port),
        };
        let mut login = RedisConnectionInfo::default().set_db(i64::from(db)).set_skip_set_lib_name();
        if let Some(user) = &credentials.user {
            login = login.set_username(user);
        }
        if let Some(password) = &credentials.password {
            login = login.set_password(password.reveal());
        }
        let info = address.into_connection_info()?.set_redis_settings(login).set_tcp_settings(tcp_settings());
        match &self.certificates {
            Some(certificates) => Client::build_with_tls(info, certificates.clone()),
            None => Client::open(info),
        }
    }
}

fn tcp_settings() -> TcpSettings {
    let keepalive = socket2::TcpKeepalive::new().with_time(KEEPALIVE_AFTER).with_interval(KEEPALIVE_EVERY);
    TcpSettings::default().set_nodelay(true).set_keepalive(keepalive).set_user_timeout(UNRECEIVED_MAX)
}

fn certificates_of(files: &TlsFiles) -> Result<TlsCertificates, RedisError> {
    let client_tls = match (&files.cert, &files.key) {
        (Some(cert), Some(key)) => Some(ClientTlsConfig { client_cert: read(cert)?, client_key: read(key)? }),
        _ => None,
    };
    Ok(TlsCertificates { client_tls, root_cert: files.ca.as_deref().map(read).transpose()? })
}

fn read(path: &Path) -> Result<Vec<u8>, RedisError> {
    std::fs::read(path).map_err(|error| {
        RedisError::settings(format!(
            "cannot read {} (named in the address of Redis): {error}",
            path.display()
        ))
    })
}

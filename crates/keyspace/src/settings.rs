//! Connection settings. Plain data: makes no connection and reads no file.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::RedisError;

mod url;

const DEFAULT_PORT: u16 = 6379;
const DEFAULT_SENTINEL_PORT: u16 = 26379;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Single,
    /// One master, named by sentinels.
    Sentinel,
    Cluster,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// Name or IP address, without brackets.
    pub host: String,
    pub port: u16,
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// A password; `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(password: impl Into<String>) -> Self {
        Secret(password.into())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// PEM files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Trusted authorities; none for those of the system.
    pub ca: Option<PathBuf>,
    /// Client certificate.
    pub cert: Option<PathBuf>,
    /// Key of the client certificate.
    pub key: Option<PathBuf>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The ACL user; none means `default`.
    pub user: Option<String>,
    pub password: Option<Secret>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisSettings {
    pub mode: Mode,
    /// The server, the sentinels, or some nodes of the cluster.
    pub nodes: Vec<Node>,
    /// Empty without sentinels.
    pub master_name: String,
    pub credentials: Credentials,
    pub sentinel_credentials: Credentials,
    /// 0 on a cluster.
    pub db: u32,
    /// None: no TLS.
    pub tls: Option<TlsFiles>,
    /// Default: 5 s.
    pub response_timeout: Duration,
    /// Default: 3 s.
    pub connect_timeout: Duration,
    /// Upper bound of the reconnect backoff. Default: 2 s.
    pub backoff_max: Duration,
}

impl RedisSettings {
    /// Parses an address:
    ///
    /// - `redis://[user[:password]@]host[:port][/db]`
    /// - `redis+sentinel://[user[:password]@]host[:port],host[:port]/master-name[/db]`
    /// - `redis+cluster://[user[:password]@]host[:port],host[:port]`
    ///
    /// each also with `rediss` for TLS. Query parameters: `ca=FILE`, `cert=FILE` and `key=FILE` for TLS,
    /// `sentinel_user=` and `sentinel_password=`. Special characters are percent-encoded.
    pub fn from_url(url: &str) -> Result<RedisSettings, RedisError> {
        url::parse(url)
    }

    fn new(mode: Mode, nodes: Vec<Node>) -> Self {
        RedisSettings {
            mode,
            nodes,
            master_name: String::new(),
            credentials: Credentials::default(),
            sentinel_credentials: Credentials::default(),
            db: 0,
            tls: None,
            response_timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(3),
            backoff_max: Duration::from_secs(2),
        }
    }
}

impl fmt::Display for RedisSettings {
    /// The address, without user and password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls.is_some() { "rediss" } else { "redis" };
        let kind = match self.mode {
            Mode::Single => "",
            Mode::Sentinel => "+sentinel",
            Mode::Cluster => "+cluster",
        };
        let nodes: Vec<String> = self.nodes.iter().map(Node::to_string).collect();
        write!(f, "{scheme}{kind}://{}", nodes.join(","))?;
        if !self.master_name.is_empty() {
            write!(f, "/{}", self.master_name)?;
        }
        if self.db != 0 {
            write!(f, "/{}", self.db)?;
        }
        Ok(())
    }
}

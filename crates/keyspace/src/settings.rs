//! Where Redis is, and how to get in.
//!
//! Plain data: nothing here connects, and no file is read.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::RedisError;

mod url;

/// The port of Redis, unless another is named.
const DEFAULT_PORT: u16 = 6379;
/// The port of a sentinel, unless another is named.
const DEFAULT_SENTINEL_PORT: u16 = 26379;

/// How Redis is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One server.
    Single,
    /// One master, found and replaced by sentinels.
    Sentinel,
    /// Many masters that share the keys.
    Cluster,
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// A name or an address.
    pub host: String,
    /// The port.
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

/// A word that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a word.
    pub fn new(word: impl Into<String>) -> Self {
        Secret(word.into())
    }

    /// The word, for the one who connects.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Files for TLS, beyond what the system trusts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Whom to trust, instead of whom the system trusts (PEM).
    pub ca: Option<PathBuf>,
    /// Our certificate (PEM), where Redis wants one.
    pub cert: Option<PathBuf>,
    /// Its key (PEM).
    pub key: Option<PathBuf>,
}

/// A user and a password.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The ACL user; none means `default`.
    pub user: Option<String>,
    /// The password.
    pub password: Option<Secret>,
}

/// Where Redis is, and how to get in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisSettings {
    /// How it is run.
    pub mode: Mode,
    /// The server; or the sentinels; or some nodes of the cluster.
    pub nodes: Vec<Node>,
    /// What the sentinels call the master. Empty without sentinels.
    pub master_name: String,
    /// How to get in.
    pub credentials: Credentials,
    /// How to get in with the sentinels.
    pub sentinel_credentials: Credentials,
    /// The number of the database; 0 on a cluster.
    pub db: u32,
    /// TLS, where it is wanted.
    pub tls: Option<TlsFiles>,
    /// How long an answer may take. The default is 5 s.
    pub response_timeout: Duration,
    /// How long connecting may take. The default is 3 s.
    pub connect_timeout: Duration,
    /// The longest pause between two attempts to connect. The default is 2 s.
    pub backoff_max: Duration,
}

impl RedisSettings {
    /// Reads an address:
    ///
    /// - `redis://[user[:password]@]host[:port][/db]`
    /// - `redis+sentinel://[user[:password]@]host[:port],host[:port]/master-name[/db]`
    /// - `redis+cluster://[user[:password]@]host[:port],host[:port]`
    ///
    /// each also with `rediss` for TLS, and behind a `?`: `ca=FILE`, `cert=FILE` and `key=FILE` for TLS,
    /// `sentinel_user=` and `sentinel_password=`. Special characters are written as `%40`.
    pub fn from_url(url: &str) -> Result<RedisSettings, RedisError> {
        url::parse(url)
    }

    /// From `REDIS_HOST`, `REDIS_PORT`, `REDIS_PASSWORD` and `REDIS_DB` (W8).
    pub fn from_parts(
        host: &str,
        port: Option<u16>,
        password: Option<&str>,
        db: Option<u32>,
    ) -> Result<RedisSettings, RedisError> {
        let host = host.trim();
        if host.is_empty() || host.contains(['/', '@', ' ', ',']) {
            return Err(RedisError::settings(format!(
                "REDIS_HOST must be the name or address of one server ({host:?} is not): use redis.url for anything else"
            )));
        }
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let node = Node { host, port: port.unwrap_or(DEFAULT_PORT) };
        let mut settings = RedisSettings::new(Mode::Single, vec![node]);
        settings.credentials.password = password.filter(|word| !word.is_empty()).map(Secret::new);
        settings.db = db.unwrap_or(0);
        Ok(settings)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w8_parts_make_a_single_server() {
        let settings = RedisSettings::from_parts("cache.example", None, Some("geheim"), Some(3)).unwrap();
        assert_eq!(settings.to_string(), "redis://cache.example:6379/3");
        assert!(!format!("{settings:?}").contains("geheim"));
        assert!(RedisSettings::from_parts("a,b", None, None, None).is_err());
        assert!(RedisSettings::from_parts("", None, None, None).is_err());
    }
}

//! The stores that a server under test uses beside its data folder, each a server on the core of the server.

use std::any::Any;
use std::path::{Path, PathBuf};

use testkit::{MariaDbServer, PostgresServer, RedisServer};

use crate::process::{Cores, need};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// SQLite in the data folder.
    Embedded,
    /// For journal and views; the database is SQLite.
    Redis,
    /// For the database.
    PostgreSql,
    /// For the database.
    MariaDb,
}

/// A running store. It ends when this is dropped.
pub struct Store {
    /// None without a server.
    pub pid: Option<u32>,
    /// The database of a server with this data folder.
    database_url: Option<String>,
    redis_url: Option<String>,
    _server: Box<dyn Any>,
}

impl StoreKind {
    pub const fn name(self) -> &'static str {
        match self {
            StoreKind::Embedded => "embedded",
            StoreKind::Redis => "Redis",
            StoreKind::PostgreSql => "PostgreSQL",
            StoreKind::MariaDb => "MariaDB",
        }
    }

    /// Fails unless its programs are installed.
    pub fn need(self) -> anyhow::Result<()> {
        match self {
            StoreKind::Embedded => Ok(()),
            StoreKind::Redis => {
                need("redis-server", "redis-server", &[])?;
                need("redis-cli", "redis-tools", &[])
            }
            StoreKind::PostgreSql => {
                // Debian installs the programs of each version in a folder of its own.
                let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
                let folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
                need("initdb", "postgresql", &folders)
            }
            StoreKind::MariaDb => {
                need("mariadbd", "mariadb-server", &["/usr/sbin".into(), "/usr/bin".into()])
            }
        }
    }

    /// Starts it on the server's core.
    pub fn start(self, cores: Cores) -> anyhow::Result<Store> {
        self.need()?;
        let (mut database_url, mut redis_url) = (None, None);
        let (pid, server): (Option<u32>, Box<dyn Any>) = match self {
            StoreKind::Embedded => (None, Box::new(())),
            StoreKind::Redis => {
                let server = cores.on_server(RedisServer::start)?;
                redis_url = Some(server.url());
                (Some(server.pid()), Box::new(server))
            }
            StoreKind::PostgreSql => {
                let server = cores.on_server(PostgresServer::start)?;
                database_url = Some(server.fresh_database());
                (Some(server.pid()), Box::new(server))
            }
            StoreKind::MariaDb => {
                let server = cores.on_server(MariaDbServer::start)?;
                database_url = Some(server.fresh_database());
                (Some(server.pid()), Box::new(server))
            }
        };
        Ok(Store { pid, database_url, redis_url, _server: server })
    }
}

impl Store {
    /// The settings of a server that uses it.
    pub fn settings(&self) -> String {
        let line = |key: &str, url: &Option<String>| {
            url.as_ref().map_or_else(String::new, |url| format!("{key} = \"{url}\"\n"))
        };
        line("database.url", &self.database_url) + &line("redis.url", &self.redis_url)
    }

    /// The database of a server with this data folder.
    pub fn database_url(&self, data: &Path) -> String {
        let embedded = || format!("sqlite:{}", data.join("rollcall.db").display());
        self.database_url.clone().unwrap_or_else(embedded)
    }
}

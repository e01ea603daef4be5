//! A separate database for each test.

use std::path::{Path, PathBuf};

use access::{NewTorrent, NewUser, Store};
use domain::{InfoHash, Passkey, PeerId, TorrentId, UnixTime, UserId};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, MySqlConnection, PgConnection, SqliteConnection};
use tempfile::TempDir;
use testkit::{MariaDbServer, PostgresServer};

pub const NOW: UnixTime = UnixTime(1_750_000_000);

/// Runs each test on SQLite, PostgreSQL and MariaDB. The compiler reports an unlisted test as unused.
macro_rules! on_every_database {
    ($($test:ident),+ $(,)?) => {
        on_every_database!(@ sqlite $($test)+);
        on_every_database!(@ postgres $($test)+);
        on_every_database!(@ mariadb $($test)+);
    };
    (@ $kind:ident $($test:ident)+) => {
        mod $kind {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    super::$test(super::Fixture::$kind()).await;
                }
            )+
        }
    };
}
pub(crate) use on_every_database;

pub enum Fixture {
    /// A temporary folder with the file.
    Sqlite(TempDir),
    /// The URL of a new database on a server shared by the tests of a process.
    Postgres(String),
    /// The same on MariaDB.
    MariaDb(String),
}

impl Fixture {
    pub fn sqlite() -> Self {
        Fixture::Sqlite(tempfile::tempdir().unwrap())
    }

    pub fn postgres() -> Self {
        Fixture::Postgres(PostgresServer::shared().fresh_database())
    }

    pub fn mariadb() -> Self {
        Fixture::MariaDb(MariaDbServer::shared().fresh_database())
    }

    pub fn folder(&self) -> &Path {
        match self {
            Fixture::Sqlite(folder) => folder.path(),
            _ => panic!("a server's folder is its own"),
        }
    }

    pub fn path(&self) -> PathBuf {
        self.folder().join("rollcall.db")
    }

    pub fn url(&self) -> String {
        match self {
            Fixture::Sqlite(_) => format!("sqlite:{}", self.path().display()),
            Fixture::Postgres(url) | Fixture::MariaDb(url) => url.clone(),
        }
    }

    /// Another store on the same database, as in another process.
    pub async fn store(&self) -> Store {
        Store::open(&self.url()).await.unwrap()
    }

    /// A plain connection, as of a site.
    pub async fn raw(&self) -> Raw {
        match self {
            Fixture::Sqlite(_) => {
                Raw::Sqlite(SqliteConnectOptions::new().filename(self.path()).connect().await.unwrap())
            }
            Fixture::Postgres(url) => Raw::Postgres(PgConnection::connect(url).await.unwrap()),
            Fixture::MariaDb(url) => Raw::MariaDb(MySqlConnection::connect(url).await.unwrap()),
        }
    }

    pub fn pick<T>(&self, sqlite: T, postgres: T, mariadb: T) -> T {
        match self {
            Fixture::Sqlite(_) => sqlite,
            Fixture::Postgres(_) => postgres,
            Fixture::MariaDb(_) => mariadb,
        }
    }

    /// Begins a write transaction.
    pub fn begin(&self) -> &'static str {
        self.pick("BEGIN IMMEDIATE", "BEGIN", "START TRANSACTION")
    }
}

pub enum Raw {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
    MariaDb(MySqlConnection),
}

pub async fn execute(connection: &mut Raw, sql: &str) {
    try_execute(connection, sql).await.unwrap();
}

pub async fn try_execute(connection: &mut Raw, sql: &str) -> Result<(), sqlx::Error> {
    let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
    match connection {
        Raw::Sqlite(connection) => sql.execute(connection).await.map(|_| ()),
        Raw::Postgres(connection) => sql.execute(connection).await.map(|_| ()),
        Raw::MariaDb(connection) => sql.execute(connection).await.map(|_| ()),
    }
}

pub async fn count(connection: &mut Raw, table: &str) -> i64 {
    let sql = AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
    match connection {
        Raw::Sqlite(connection) => sqlx::query_scalar(sql).fetch_one(connection).await,
        Raw::Postgres(connection) => sqlx::query_scalar(sql).fetch_one(connection).await,
        Raw::MariaDb(connection) => sqlx::query_scalar(sql).fetch_one(connection).await,
    }
    .unwrap()
}

pub fn user_id(number: u64) -> UserId {
    UserId::new(number).unwrap()
}

pub fn torrent_id(number: u64) -> TorrentId {
    TorrentId::new(number).unwrap()
}

pub fn passkey(number: u64) -> Passkey {
    format!("{number:032x}").parse().unwrap()
}

pub fn info_hash(number: u64) -> InfoHash {
    format!("{number:040x}").parse().unwrap()
}

pub fn peer_id(prefix: &str) -> PeerId {
    let mut bytes = [b'x'; 20];
    bytes[..prefix.len()].copy_from_slice(prefix.as_bytes());
    PeerId(bytes)
}

pub fn new_user(number: u64) -> NewUser {
    NewUser { id: Some(user_id(number)), passkey: Some(passkey(number)), created_at: NOW }
}

pub fn new_torrent(number: u64) -> NewTorrent {
    NewTorrent {
        id: Some(torrent_id(number)),
        info_hash: info_hash(number),
        info_hash_v2: None,
        name: format!("torrent {number}"),
        total_bytes: 1 << 30,
        created_at: NOW,
    }
}

pub fn new_torrent_without_id(number: u64) -> NewTorrent {
    NewTorrent { id: None, ..new_torrent(number) }
}

//! Each test has its own database.

use database::Database;
use domain::{UnixTime, UserId};
use friends::{FriendStore, FriendsSettings};
use presence::{Audience, Privacy};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, MySqlConnection, PgConnection, SqliteConnection};
use tempfile::TempDir;
use testkit::{MariaDbServer, PostgresServer};

pub const NOW: UnixTime = UnixTime(1_750_000_000);

/// Runs each test on SQLite, PostgreSQL and MariaDB. The compiler reports a test that is not listed as unused.
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
                    super::$test(crate::conformance::fixture::Fixture::$kind()).await;
                }
            )+
        }
    };
}
pub(crate) use on_every_database;

pub enum Fixture {
    /// Deleted with the test.
    Sqlite(TempDir),
    /// A new database on the server that all tests of a process share.
    Postgres(String),
    /// A new database on the shared server.
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

    fn path(&self) -> std::path::PathBuf {
        match self {
            Fixture::Sqlite(folder) => folder.path().join("rollcall.db"),
            _ => panic!("a server's folder is its own"),
        }
    }

    pub fn url(&self) -> String {
        match self {
            Fixture::Sqlite(_) => format!("sqlite:{}", self.path().display()),
            Fixture::Postgres(url) | Fixture::MariaDb(url) => url.clone(),
        }
    }

    /// Another handle on the same database, as another process would open it.
    pub async fn store(&self) -> FriendStore {
        self.store_with(FriendsSettings::default()).await
    }

    pub async fn store_with(&self, settings: FriendsSettings) -> FriendStore {
        FriendStore::open(Database::open(&self.url()).await.unwrap(), settings).await.unwrap()
    }

    /// A connection without this crate's code, as a site has it.
    pub async fn raw(&self) -> Raw {
        match self {
            Fixture::Sqlite(_) => {
                let options = sqlx::sqlite::SqliteConnectOptions::new().filename(self.path());
                Raw::Sqlite(options.connect().await.unwrap())
            }
            Fixture::Postgres(url) => Raw::Postgres(PgConnection::connect(url).await.unwrap()),
            Fixture::MariaDb(url) => Raw::MariaDb(MySqlConnection::connect(url).await.unwrap()),
        }
    }

    /// How a site begins a write transaction.
    pub fn begin(&self) -> &'static str {
        match self {
            Fixture::Sqlite(_) => "BEGIN IMMEDIATE",
            Fixture::Postgres(_) => "BEGIN",
            Fixture::MariaDb(_) => "START TRANSACTION",
        }
    }
}

/// A site's own connection.
pub enum Raw {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
    MariaDb(MySqlConnection),
}

impl Raw {
    pub async fn try_execute(&mut self, sql: &str) -> Result<(), sqlx::Error> {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        match self {
            Raw::Sqlite(connection) => sql.execute(connection).await.map(|_| ()),
            Raw::Postgres(connection) => sql.execute(connection).await.map(|_| ()),
            Raw::MariaDb(connection) => sql.execute(connection).await.map(|_| ()),
        }
    }

    pub async fn execute(&mut self, sql: &str) {
        self.try_execute(sql).await.unwrap();
    }

    pub async fn count(&mut self, table: &str) -> i64 {
        let sql = AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
        match self {
            Raw::Sqlite(connection) => sqlx::query_scalar(sql).fetch_one(connection).await,
            Raw::Postgres(connection) => sqlx::query_scalar(sql).fetch_one(connection).await,
            Raw::MariaDb(connection) => sqlx::query_scalar(sql).fetch_one(connection).await,
        }
        .unwrap()
    }
}

pub fn user(number: u64) -> UserId {
    UserId::new(number).unwrap()
}

pub fn users(numbers: impl IntoIterator<Item = u64>) -> Vec<UserId> {
    numbers.into_iter().map(user).collect()
}

pub fn pair(one: u64, other: u64) -> (UserId, UserId) {
    (user(one), user(other))
}

pub fn chosen(status: Audience, last_seen: Audience, never: &[u64]) -> Privacy {
    Privacy { status, last_seen, never: users(never.iter().copied()) }
}

//! A database of one's own for each test.

use database::Database;
use domain::{UnixTime, UserId};
use people::{People, PeopleSettings};
use presence::{Privacy, Visibility};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, MySqlConnection, PgConnection, SqliteConnection};
use tempfile::TempDir;
use testkit::{MariaDbServer, PostgresServer};

pub const NOW: UnixTime = UnixTime(1_750_000_000);

/// Runs each test on SQLite, PostgreSQL and MariaDB. A test that is not listed is found by the compiler, as unused.
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
                    super::$test(crate::fixture::Fixture::$kind()).await;
                }
            )+
        }
    };
}
pub(crate) use on_every_database;

/// A database of one's own.
pub enum Fixture {
    /// A folder with a file in it, gone with the test.
    Sqlite(TempDir),
    /// The address of a new database on the server that all tests of a process share.
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

    /// Another handle on the same database, as another process has it.
    pub async fn people(&self) -> People {
        self.people_with(PeopleSettings::default()).await
    }

    pub async fn people_with(&self, settings: PeopleSettings) -> People {
        People::on(Database::open(&self.url()).await.unwrap(), settings).await.unwrap()
    }

    /// A connection that knows nothing of this crate, as a site's has none.
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

    /// How a site begins to write.
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
    /// Runs SQL as a site would, which may fail.
    pub async fn try_execute(&mut self, sql: &str) -> Result<(), sqlx::Error> {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        match self {
            Raw::Sqlite(connection) => sql.execute(connection).await.map(|_| ()),
            Raw::Postgres(connection) => sql.execute(connection).await.map(|_| ()),
            Raw::MariaDb(connection) => sql.execute(connection).await.map(|_| ()),
        }
    }

    /// Runs SQL as a site would.
    pub async fn execute(&mut self, sql: &str) {
        self.try_execute(sql).await.unwrap();
    }

    /// How many rows a table has.
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

pub fn chosen(status: Visibility, last_seen: Visibility, never: &[u64]) -> Privacy {
    Privacy { status, last_seen, never: users(never.iter().copied()) }
}

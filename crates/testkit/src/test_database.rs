//! A database for each test, on each kind of server, and a site's own connection to it.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection, MySqlConnection, PgConnection};
use tempfile::TempDir;

use crate::servers::{MariaDbServer, PostgresServer};

/// How long a statement waits for another writer of a SQLite file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs each test on SQLite, PostgreSQL and MariaDB, with an empty [`TestDatabase`]. The compiler reports a test that is
/// not listed as unused.
#[macro_export]
macro_rules! on_every_database {
    ($($test:ident),+ $(,)?) => {
        $crate::on_every_database!(@ sqlite $($test)+);
        $crate::on_every_database!(@ postgres $($test)+);
        $crate::on_every_database!(@ mariadb $($test)+);
    };
    (@ $kind:ident $($test:ident)+) => {
        mod $kind {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    super::$test($crate::TestDatabase::$kind()).await;
                }
            )+
        }
    };
}

pub enum TestDatabase {
    /// A temporary folder with the file.
    Sqlite(TempDir),
    /// The URL of a new database on a server shared by the tests of a process.
    Postgres(String),
    /// The same on MariaDB.
    MariaDb(String),
}

impl TestDatabase {
    pub fn sqlite() -> Self {
        TestDatabase::Sqlite(tempfile::tempdir().expect("a temporary folder can be created"))
    }

    pub fn postgres() -> Self {
        TestDatabase::Postgres(PostgresServer::shared().fresh_database())
    }

    pub fn mariadb() -> Self {
        TestDatabase::MariaDb(MariaDbServer::shared().fresh_database())
    }

    pub fn folder(&self) -> &Path {
        match self {
            TestDatabase::Sqlite(folder) => folder.path(),
            _ => panic!("a server's folder is its own"),
        }
    }

    pub fn path(&self) -> PathBuf {
        self.folder().join("rollcall.db")
    }

    pub fn url(&self) -> String {
        match self {
            TestDatabase::Sqlite(_) => format!("sqlite:{}", self.path().display()),
            TestDatabase::Postgres(url) | TestDatabase::MariaDb(url) => url.clone(),
        }
    }

    /// A plain connection, as of a site.
    pub async fn raw(&self) -> RawConnection {
        match self {
            TestDatabase::Sqlite(_) => {
                let connection = rusqlite::Connection::open(self.path()).expect("the file can be opened");
                connection.busy_timeout(BUSY_TIMEOUT).expect("the timeout can be set");
                RawConnection::Sqlite(Mutex::new(connection))
            }
            TestDatabase::Postgres(url) => {
                RawConnection::Postgres(PgConnection::connect(url).await.expect("PostgreSQL answers"))
            }
            TestDatabase::MariaDb(url) => {
                RawConnection::MariaDb(MySqlConnection::connect(url).await.expect("MariaDB answers"))
            }
        }
    }

    pub fn pick<T>(&self, sqlite: T, postgres: T, mariadb: T) -> T {
        match self {
            TestDatabase::Sqlite(_) => sqlite,
            TestDatabase::Postgres(_) => postgres,
            TestDatabase::MariaDb(_) => mariadb,
        }
    }

    /// Begins a write transaction.
    pub fn begin(&self) -> &'static str {
        self.pick("BEGIN IMMEDIATE", "BEGIN", "START TRANSACTION")
    }
}

pub enum RawConnection {
    Sqlite(Mutex<rusqlite::Connection>),
    Postgres(PgConnection),
    MariaDb(MySqlConnection),
}

impl RawConnection {
    pub async fn try_execute(&mut self, sql: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
        let text = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        match self {
            RawConnection::Sqlite(connection) => lock(connection).execute_batch(sql)?,
            RawConnection::Postgres(connection) => text.execute(connection).await.map(|_| ())?,
            RawConnection::MariaDb(connection) => text.execute(connection).await.map(|_| ())?,
        }
        Ok(())
    }

    pub async fn execute(&mut self, sql: &str) {
        self.try_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    pub async fn count(&mut self, table: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        if let RawConnection::Sqlite(connection) = self {
            let count = lock(connection).query_row(&sql, [], |row| row.get(0));
            return count.unwrap_or_else(|error| panic!("{table}: {error}"));
        }
        let sql = AssertSqlSafe(sql);
        let count = match self {
            RawConnection::Sqlite(_) => Ok(0),
            RawConnection::Postgres(connection) => sqlx::query_scalar(sql).fetch_one(connection).await,
            RawConnection::MariaDb(connection) => sqlx::query_scalar(sql).fetch_one(connection).await,
        };
        count.unwrap_or_else(|error| panic!("{table}: {error}"))
    }
}

fn lock(connection: &mut Mutex<rusqlite::Connection>) -> &mut rusqlite::Connection {
    connection.get_mut().expect("no test panics while it uses its connection")
}

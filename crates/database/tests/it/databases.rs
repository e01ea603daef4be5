//! Opening, migrating and failing, on each kind of database.

mod damage;
mod full_disk;

use std::path::Path;

use database::{
    Database, DatabaseError, Durability, Kind, Migrations, SqliteDatabase, SqliteOptions, is_retryable,
    migrate, migrate_sqlite,
};
use sqlx::migrate::Migrator;
use sqlx::{AssertSqlSafe, Row};
use tempfile::TempDir;
use testkit::{MariaDbServer, PostgresServer};

static SQLITE: Migrator = sqlx::migrate!("tests/migrations/sqlite");
static POSTGRES: Migrator = sqlx::migrate!("tests/migrations/postgres");
static MYSQL: Migrator = sqlx::migrate!("tests/migrations/mysql");

fn migrations() -> Migrations<'static> {
    Migrations { table: "notes_migrations", sqlite: &SQLITE, postgres: &POSTGRES, mysql: &MYSQL }
}

/// The addresses of a new database of each kind.
fn one_of_each(folder: &TempDir) -> [String; 3] {
    let path = folder.path().join("deep/er/notes.db");
    [
        format!("sqlite:{}", path.display()),
        PostgresServer::shared().fresh_database(),
        MariaDbServer::shared().fresh_database(),
    ]
}

async fn execute(database: &Database, sql: &str) -> Result<(), sqlx::Error> {
    let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
    match database {
        Database::Sqlite(file) => sql.execute(&file.pool).await.map(|_| ()),
        Database::Postgres(pool) => sql.execute(pool).await.map(|_| ()),
        Database::MySql(pool) => sql.execute(pool).await.map(|_| ()),
    }
}

#[tokio::test]
async fn each_kind_opens_with_its_kind_and_address() {
    let folder = tempfile::tempdir().unwrap();
    let expected =
        [(Kind::Sqlite, "/deep/er/notes.db"), (Kind::Postgres, "postgres://"), (Kind::MySql, "mysql://")];
    for (url, (kind, shown)) in one_of_each(&folder).iter().zip(expected) {
        let database = Database::open(url).await.unwrap();
        assert_eq!(database.kind(), kind);
        assert!(database.shown().contains(shown), "{}", database.shown());
        assert_eq!(database.is_new(), kind == Kind::Sqlite);
        database.close().await;
    }
}

#[tokio::test]
async fn an_unreachable_server_is_retryable_and_its_error_has_no_password() {
    for scheme in ["postgres", "mysql"] {
        let error = Database::open(&format!("{scheme}://me:s3cret@127.0.0.1:1/site")).await.unwrap_err();
        assert!(matches!(error, DatabaseError::Unreachable { .. }), "{error}");
        assert!(error.is_retryable());
        let text = format!("{error} {error:?}");
        assert!(text.contains("me@127.0.0.1:1/site") && !text.contains("s3cret"), "{text}");
    }
}

#[tokio::test]
async fn opening_a_silent_server_times_out() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://me:s3cret@{}/site", silent.local_addr().unwrap());
    let error = Database::open(&url).await.unwrap_err();
    assert!(matches!(error, DatabaseError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn a_missing_database_and_a_wrong_password_are_different_permanent_errors() {
    let (postgres, mariadb) = (PostgresServer::shared(), MariaDbServer::shared());
    mariadb.mariadb("mysql", "CREATE OR REPLACE USER shy@'127.0.0.1' IDENTIFIED BY 'right'");
    let refused = format!("mysql://shy:wr0ng@127.0.0.1:{}/mysql", mariadb.port());
    for (url, is_expected) in [
        (postgres.url("nowhere"), (|error| matches!(error, DatabaseError::Missing { .. })) as fn(_) -> bool),
        (mariadb.url("nowhere"), |error| matches!(error, DatabaseError::Missing { .. })),
        (refused, |error| matches!(error, DatabaseError::Refused { .. })),
    ] {
        let error = Database::open(&url).await.unwrap_err();
        assert!(!error.is_retryable() && !error.to_string().contains("wr0ng"), "{error}");
        assert!(is_expected(error), "{url}");
    }
}

#[tokio::test]
async fn sessions_override_the_servers_defaults() {
    let Database::Postgres(pool) = Database::open(&PostgresServer::shared().fresh_database()).await.unwrap()
    else {
        panic!("it is PostgreSQL");
    };
    let setting: String =
        sqlx::query_scalar("SHOW default_transaction_isolation").fetch_one(&pool).await.unwrap();
    assert_eq!(setting, "read committed");

    let Database::MySql(pool) = Database::open(&MariaDbServer::shared().fresh_database()).await.unwrap()
    else {
        panic!("it is MariaDB");
    };
    let row = sqlx::query("SELECT @@tx_isolation, @@time_zone, @@character_set_client, @@sql_mode")
        .fetch_one(&pool)
        .await
        .unwrap();
    let settings: Vec<String> = (0..4).map(|column| row.get(column)).collect();
    assert_eq!(settings[..3], ["READ-COMMITTED", "+00:00", "utf8mb4"]);
    assert!(settings[3].contains("STRICT_ALL_TABLES"), "{}", settings[3]);
}

#[tokio::test]
async fn errors_of_a_row_are_not_retryable() {
    let folder = tempfile::tempdir().unwrap();
    for url in one_of_each(&folder) {
        let database = Database::open(&url).await.unwrap();
        migrate(&database, migrations()).await.unwrap();
        execute(&database, "INSERT INTO notes VALUES (1, 'first')").await.unwrap();
        for bad in [
            "INSERT INTO notes VALUES (1, 'the same id')",
            "INSERT INTO notes VALUES (2, NULL)",
            "INSERT INTO nowhere VALUES (1)",
            "INSERT nonsense",
        ] {
            let error = execute(&database, bad).await.unwrap_err();
            assert!(!is_retryable(&error), "{url}: {bad}: {error}");
        }
        if database.kind() != Kind::Sqlite {
            let cut = format!("INSERT INTO notes VALUES (3, '{}')", "x".repeat(21));
            let error = execute(&database, &cut).await.unwrap_err();
            assert!(!is_retryable(&error), "{error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_starts_migrate_once() {
    let folder = tempfile::tempdir().unwrap();
    for url in one_of_each(&folder) {
        let starters: Vec<_> = (0..8)
            .map(|number| {
                let url = url.clone();
                tokio::spawn(async move {
                    let database = Database::open(&url).await.unwrap();
                    migrate(&database, migrations()).await.unwrap();
                    execute(&database, &format!("INSERT INTO notes VALUES ({number}, 'here')"))
                        .await
                        .unwrap();
                    database.close().await;
                })
            })
            .collect();
        for starter in starters {
            starter.await.unwrap();
        }
        let database = Database::open(&url).await.unwrap();
        let count = AssertSqlSafe("SELECT count(*) FROM notes_migrations".to_owned());
        let rows: i64 = match &database {
            Database::Sqlite(file) => sqlx::query_scalar(count).fetch_one(&file.pool).await.unwrap(),
            Database::Postgres(pool) => sqlx::query_scalar(count).fetch_one(pool).await.unwrap(),
            Database::MySql(pool) => sqlx::query_scalar(count).fetch_one(pool).await.unwrap(),
        };
        assert_eq!(rows, 1, "{url}");
    }
}

#[tokio::test]
async fn tables_of_a_newer_version_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for url in one_of_each(&folder) {
        let database = Database::open(&url).await.unwrap();
        migrate(&database, migrations()).await.unwrap();
        execute(&database, "UPDATE notes_migrations SET version = 9999").await.unwrap();
        let error = migrate(&database, migrations()).await.unwrap_err();
        assert!(matches!(error, DatabaseError::Schema { .. }) && !error.is_retryable(), "{url}: {error}");
    }
}

#[tokio::test]
async fn an_interrupted_migration_on_mariadb_is_run_again() {
    let database = Database::open(&MariaDbServer::shared().fresh_database()).await.unwrap();
    migrate(&database, migrations()).await.unwrap();
    execute(&database, "DROP TABLE notes; UPDATE notes_migrations SET success = 0").await.unwrap();
    migrate(&database, migrations()).await.unwrap();
    execute(&database, "INSERT INTO notes VALUES (1, 'repaired')").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_is_retryable_and_the_pool_reconnects() {
    let (mut postgres, mut mariadb) = (PostgresServer::start(), MariaDbServer::start());
    let databases = [
        Database::open(&postgres.fresh_database()).await.unwrap(),
        Database::open(&mariadb.fresh_database()).await.unwrap(),
    ];
    for database in &databases {
        migrate(database, migrations()).await.unwrap();
    }
    postgres.kill();
    mariadb.kill();
    for database in &databases {
        let error = execute(database, "INSERT INTO notes VALUES (1, 'lost')").await.unwrap_err();
        assert!(is_retryable(&error), "{error}");
    }
    postgres.restart();
    mariadb.restart();
    for database in &databases {
        execute(database, "INSERT INTO notes VALUES (1, 'found')").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadlock_is_retryable() {
    for url in [PostgresServer::shared().fresh_database(), MariaDbServer::shared().fresh_database()] {
        let database = Database::open(&url).await.unwrap();
        migrate(&database, migrations()).await.unwrap();
        execute(&database, "INSERT INTO notes VALUES (1, 'a'), (2, 'b')").await.unwrap();
        let first = cross(&database, 1, 2);
        let second = cross(&database, 2, 1);
        let outcomes = tokio::join!(first, second);
        let errors: Vec<_> = [outcomes.0, outcomes.1].into_iter().filter_map(Result::err).collect();
        assert!(errors.iter().all(is_retryable), "{url}: {errors:?}");
        assert_eq!(errors.len(), 1, "{url}: one of the two is the victim");
    }
}

/// Writes two rows in one transaction, with a pause between, so that two crossing transactions deadlock.
async fn cross(database: &Database, from: i64, to: i64) -> Result<(), sqlx::Error> {
    let pause = match database.kind() {
        Kind::Postgres => "SELECT pg_sleep(0.5)",
        _ => "SELECT sleep(0.5)",
    };
    let write = |id| format!("UPDATE notes SET text = 'x' WHERE id = {id}");
    let begin = if database.kind() == Kind::Postgres { "BEGIN" } else { "START TRANSACTION" };
    execute(database, &format!("{begin}; {}; {pause}; {}; COMMIT", write(from), write(to))).await
}

#[tokio::test]
async fn one_sqlite_writer_waits_for_another_and_readers_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let file = SqliteDatabase::open(&folder.path().join("notes.db"), SqliteOptions::default()).await.unwrap();
    migrate_sqlite(&file, "notes_migrations", &SQLITE).await.unwrap();
    let mut first = file.begin_write().await.unwrap();
    sqlx::query("INSERT INTO notes VALUES (1, 'first')").execute(&mut *first).await.unwrap();
    let second = tokio::spawn({
        let file = file.clone();
        async move {
            let second = file.begin_write().await.unwrap();
            second.commit().await.unwrap();
        }
    });
    let seen: i64 = sqlx::query_scalar("SELECT count(*) FROM notes").fetch_one(&file.pool).await.unwrap();
    assert_eq!(seen, 0, "uncommitted rows are invisible, and the reader does not wait");
    first.commit().await.unwrap();
    second.await.unwrap();
    assert_eq!(file.path(), Path::new(&file.shown()));
}

#[tokio::test]
async fn durability_sets_the_synchronous_pragma() {
    let folder = tempfile::tempdir().unwrap();
    for (durability, expected) in
        [(Durability::PowerLoss, 2), (Durability::ProcessCrash, 1), (Durability::Rebuildable, 0)]
    {
        let options = SqliteOptions { durability, ..SqliteOptions::default() };
        let file = SqliteDatabase::open(&folder.path().join("notes.db"), options).await.unwrap();
        let level: i64 = sqlx::query_scalar("PRAGMA synchronous").fetch_one(&file.pool).await.unwrap();
        assert_eq!(level, expected, "{durability:?}");
        file.close().await;
    }
}

//! Opening, migrating and failing, on each kind of database.

mod damage;
mod full_disk;

use std::path::Path;

use database::{
    Column, Database, DatabaseError, Durability, Kind, Migrations, Relation, Rows, SqlError, SqliteDatabase,
    SqliteOptions, SqliteSession, Statement, Type, Value, migrate,
};
use tempfile::TempDir;
use testkit::{MariaDbServer, PostgresServer};

static MIGRATIONS: Migrations =
    database::migrations!("notes_migrations" in "tests/migrations": each "0001_notes");

/// The addresses of a new database of each kind.
fn one_of_each(folder: &TempDir) -> [String; 3] {
    let path = folder.path().join("deep/er/notes.db");
    [
        format!("sqlite:{}", path.display()),
        PostgresServer::shared().fresh_database(),
        MariaDbServer::shared().fresh_database(),
    ]
}

/// Runs several statements.
async fn execute(database: &Database, sql: &str) -> Result<(), SqlError> {
    let mut session = database.session().await?;
    let outcome = session.batch(sql).await;
    session.close().await;
    outcome
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
    let postgres = Database::open(&PostgresServer::shared().fresh_database()).await.unwrap();
    let setting: Option<String> =
        postgres.query_one("SHOW default_transaction_isolation", &[]).await.unwrap();
    assert_eq!(setting.unwrap(), "read committed");

    let mariadb = Database::open(&MariaDbServer::shared().fresh_database()).await.unwrap();
    let settings = "SELECT @@tx_isolation, @@time_zone, @@character_set_client, @@sql_mode";
    let settings: Option<(String, String, String, String)> = mariadb.query_one(settings, &[]).await.unwrap();
    let (isolation, time_zone, charset, mode) = settings.unwrap();
    assert_eq!([isolation.as_str(), &time_zone, &charset], ["READ-COMMITTED", "+00:00", "utf8mb4"]);
    assert!(mode.contains("STRICT_ALL_TABLES"), "{mode}");
}

#[tokio::test]
async fn errors_of_a_row_are_not_retryable() {
    let folder = tempfile::tempdir().unwrap();
    for url in one_of_each(&folder) {
        let database = Database::open(&url).await.unwrap();
        migrate(&database, MIGRATIONS).await.unwrap();
        execute(&database, "INSERT INTO notes VALUES (1, 'first')").await.unwrap();
        for bad in [
            "INSERT INTO notes VALUES (1, 'the same id')",
            "INSERT INTO notes VALUES (2, NULL)",
            "INSERT INTO nowhere VALUES (1)",
            "INSERT nonsense",
        ] {
            let error = execute(&database, bad).await.unwrap_err();
            assert!(!error.is_retryable(), "{url}: {bad}: {error}");
        }
        if database.kind() != Kind::Sqlite {
            let cut = format!("INSERT INTO notes VALUES (3, '{}')", "x".repeat(21));
            let error = execute(&database, &cut).await.unwrap_err();
            assert!(!error.is_retryable(), "{error}");
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
                    migrate(&database, MIGRATIONS).await.unwrap();
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
        let rows: Option<i64> =
            database.query_one("SELECT count(*) FROM notes_migrations", &[]).await.unwrap();
        assert_eq!(rows, Some(1), "{url}");
    }
}

#[tokio::test]
async fn tables_of_a_newer_version_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for url in one_of_each(&folder) {
        let database = Database::open(&url).await.unwrap();
        migrate(&database, MIGRATIONS).await.unwrap();
        execute(&database, "UPDATE notes_migrations SET version = 9999").await.unwrap();
        let error = migrate(&database, MIGRATIONS).await.unwrap_err();
        assert!(matches!(error, DatabaseError::Schema { .. }) && !error.is_retryable(), "{url}: {error}");
    }
}

#[tokio::test]
async fn an_interrupted_migration_on_mariadb_is_run_again() {
    let database = Database::open(&MariaDbServer::shared().fresh_database()).await.unwrap();
    migrate(&database, MIGRATIONS).await.unwrap();
    execute(&database, "DROP TABLE notes; UPDATE notes_migrations SET success = 0").await.unwrap();
    migrate(&database, MIGRATIONS).await.unwrap();
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
        migrate(database, MIGRATIONS).await.unwrap();
    }
    postgres.kill();
    mariadb.kill();
    for database in &databases {
        let error = execute(database, "INSERT INTO notes VALUES (1, 'lost')").await.unwrap_err();
        assert!(error.is_retryable(), "{error}");
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
        migrate(&database, MIGRATIONS).await.unwrap();
        execute(&database, "INSERT INTO notes VALUES (1, 'a'), (2, 'b')").await.unwrap();
        let first = cross(&database, 1, 2);
        let second = cross(&database, 2, 1);
        let outcomes = tokio::join!(first, second);
        let errors: Vec<_> = [outcomes.0, outcomes.1].into_iter().filter_map(Result::err).collect();
        assert!(errors.iter().all(SqlError::is_retryable), "{url}: {errors:?}");
        assert_eq!(errors.len(), 1, "{url}: one of the two is the victim");
    }
}

/// Writes two rows in one transaction, with a pause between, so that two crossing transactions deadlock.
async fn cross(database: &Database, from: i64, to: i64) -> Result<(), SqlError> {
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
    assert_eq!(file.path(), Path::new(&file.shown()));
    // Of another process.
    let other = SqliteDatabase::open(file.path(), SqliteOptions::default()).await.unwrap();
    let database = Database::Sqlite(file);
    migrate(&database, MIGRATIONS).await.unwrap();
    let mut first = database.begin().await.unwrap();
    first.execute("INSERT INTO notes VALUES (1, 'first')", &[]).await.unwrap();
    let waiting = [database.clone(), Database::Sqlite(other)]
        .map(|database| tokio::spawn(async move { database.begin().await.unwrap().commit().await.unwrap() }));
    let seen: Option<i64> = database.query_one("SELECT count(*) FROM notes", &[]).await.unwrap();
    assert_eq!(seen, Some(0), "uncommitted rows are invisible, and the reader does not wait");
    assert!(waiting.iter().all(|writer| !writer.is_finished()));
    first.commit().await.unwrap();
    for writer in waiting {
        writer.await.unwrap();
    }
}

#[tokio::test]
async fn a_transaction_that_is_dropped_is_rolled_back() {
    let folder = tempfile::tempdir().unwrap();
    for url in one_of_each(&folder) {
        let database = Database::open(&url).await.unwrap();
        migrate(&database, MIGRATIONS).await.unwrap();
        let mut dropped = database.begin().await.unwrap();
        dropped.execute("INSERT INTO notes VALUES (1, 'dropped')", &[]).await.unwrap();
        drop(dropped);
        let mut kept = database.begin().await.unwrap();
        let refused = kept.attempt("INSERT INTO notes VALUES (2, NULL)", &[]).await.unwrap_err();
        assert!(refused.is_constraint() && !refused.is_retryable() && !refused.is_conflict(), "{refused}");
        kept.execute("INSERT INTO notes VALUES (2, 'kept')", &[]).await.unwrap();
        kept.commit().await.unwrap();
        let notes: Vec<(i64, String)> = database.query("SELECT id, text FROM notes", &[]).await.unwrap();
        assert_eq!(notes, [(2, "kept".to_owned())], "{url}");
        database.close().await;
    }
}

#[tokio::test]
async fn values_and_lists_are_the_same_in_each_kind() {
    let folder = tempfile::tempdir().unwrap();
    for url in one_of_each(&folder) {
        let database = Database::open(&url).await.unwrap();
        migrate(&database, MIGRATIONS).await.unwrap();
        let texts = ["plain", "it's", "\\\" ?{x}", "é\u{1f980}"];
        let rows = Rows::new((1..).zip(texts).map(|(id, text)| [Value::Integer(id), text.into()]));
        let mut transaction = database.begin().await.unwrap();
        let insert = "INSERT INTO notes (id, text) {values} {upsert id} text = {new text}";
        for _ in 0..2 {
            transaction.write_rows(insert, &rows).await.unwrap();
        }
        let ignored =
            "{insert or ignore} notes (id, text) SELECT k.c0, 'x' FROM {rows 2} WHERE true {or ignore}";
        let keys = Value::Rows(Rows::new([[Value::Integer(4), 0.into()], [5.into(), 0.into()]]));
        transaction.execute(ignored, std::slice::from_ref(&keys)).await.unwrap();
        transaction.commit().await.unwrap();
        let found: Vec<String> =
            database.query("SELECT text FROM notes WHERE id < ? ORDER BY id", &[5.into()]).await.unwrap();
        assert_eq!(found, texts, "{url}");
        let by = |list: Value| {
            let database = database.clone();
            async move {
                let sql = match list {
                    Value::Texts(_) => "SELECT id FROM notes WHERE text {in} ORDER BY id",
                    _ => "SELECT id FROM notes WHERE id {not in} ORDER BY id",
                };
                let ids: Vec<i64> = database.query(sql, &[list]).await.unwrap();
                ids
            }
        };
        assert_eq!(by(Value::texts([texts[1], texts[2], "absent"])).await, [2, 3], "{url}");
        assert_eq!(by(Value::integers([1, 2, 5])).await, [3, 4], "{url}");
        assert_eq!(by(Value::integers([])).await.len(), 5, "{url}");
        let joined = "SELECT t.text FROM {rows 2} {join} notes t ON t.id = k.c0 AND k.c1 = ? ORDER BY t.id";
        let joined: Vec<String> = database.query(joined, &[keys, 0.into()]).await.unwrap();
        assert_eq!(joined.len(), 2, "{url}");
        let null: Option<(Option<String>, bool)> = database
            .query_one("SELECT max(text), count(*) > 0 FROM notes WHERE id > ?", &[9.into()])
            .await
            .unwrap();
        assert_eq!(null, Some((None, false)), "{url}");
        database.close().await;
    }
}

#[tokio::test]
async fn durability_sets_the_synchronous_pragma() {
    let folder = tempfile::tempdir().unwrap();
    let level = |session: &SqliteSession| session.query_one::<i64>("PRAGMA synchronous", &[]);
    for (durability, expected) in
        [(Durability::PowerLoss, 2), (Durability::ProcessCrash, 1), (Durability::Rebuildable, 0)]
    {
        let options = SqliteOptions { durability, ..SqliteOptions::default() };
        let file = SqliteDatabase::open(&folder.path().join("notes.db"), options).await.unwrap();
        assert_eq!(file.write(level).await.unwrap(), Some(expected), "{durability:?}");
        assert_eq!(file.write_with(Durability::ProcessCrash, level).await.unwrap(), Some(1));
        assert_eq!(file.write(level).await.unwrap(), Some(expected), "{durability:?} again");
        file.close().await;
    }
}

type RelationRow = (i64, String, Option<i64>, Option<String>, Option<Vec<u8>>);

const RELATION: &[Column] = &[
    Column { name: "id", kind: Type::Integer },
    Column { name: "amount", kind: Type::Decimal },
    Column { name: "flag", kind: Type::Boolean },
    Column { name: "name", kind: Type::Text },
    Column { name: "bytes", kind: Type::Bytes },
];

#[tokio::test]
async fn a_relation_is_joined_like_a_table_on_each_kind() {
    let folder = tempfile::tempdir().unwrap();
    for url in one_of_each(&folder) {
        let database = Database::open(&url).await.unwrap();
        let bytes = if database.kind() == Kind::Postgres { "BYTEA" } else { "VARBINARY(20)" };
        execute(
            &database,
            &format!(
                "CREATE TABLE t (id BIGINT PRIMARY KEY, amount DECIMAL(20) NOT NULL, flag INT, name VARCHAR(60), bytes {bytes});
                 INSERT INTO t (id, amount) VALUES (1, 5), (3, 10)"
            ),
        )
        .await
        .unwrap();
        let rows = [
            vec![
                1.into(),
                Value::Decimal("-3".to_owned()),
                true.into(),
                "it's \"ä\" \\ ?".into(),
                Value::Bytes(vec![0, 255, 39]),
            ],
            vec![
                2.into(),
                Value::Decimal("18446744073709551615".to_owned()),
                false.into(),
                Value::Null(Type::Text),
                Value::Null(Type::Bytes),
            ],
        ];
        let relation = || Value::Relation(Relation::new(RELATION, rows.clone()));
        let update = Statement::each(
            "UPDATE t SET amount = t.amount + r.amount, name = r.name, bytes = r.bytes, flag = r.flag
             FROM {rows} r WHERE t.id = r.id AND r.id > ?",
            "UPDATE t SET amount = t.amount + r.amount, name = r.name, bytes = r.bytes, flag = r.flag::INT
             FROM {rows} r WHERE t.id = r.id AND r.id > ?",
            "UPDATE {rows} r STRAIGHT_JOIN t ON t.id = r.id SET t.amount = t.amount + r.amount, t.name = r.name,
                 t.bytes = r.bytes, t.flag = r.flag WHERE r.id > ?",
        );
        let mut transaction = database.begin().await.unwrap();
        assert_eq!(transaction.execute(update, &[relation(), 0.into()]).await.unwrap(), 1);
        let insert = Statement::each(
            "INSERT INTO t (id, amount, name) SELECT r.id + 10, 7, r.name FROM {rows} r WHERE r.id = ?",
            "INSERT INTO t (id, amount, name) SELECT r.id + 10, r.amount, r.name FROM {rows} r WHERE r.id = ?",
            "INSERT INTO t (id, amount, name) SELECT r.id + 10, r.amount, r.name FROM {rows} r WHERE r.id = ?",
        );
        assert_eq!(transaction.execute(insert, &[relation(), 2.into()]).await.unwrap(), 1);
        // No rows, of whatever type.
        let nothing = Value::Relation(Relation::new(RELATION, []));
        assert_eq!(transaction.execute(update, &[nothing, 0.into()]).await.unwrap(), 0);
        transaction.commit().await.unwrap();
        let read: Vec<RelationRow> = database
            .query("SELECT id, {text amount}, flag, name, bytes FROM t ORDER BY id", &[])
            .await
            .unwrap();
        let large = if database.kind() == Kind::Sqlite { "7" } else { "18446744073709551615" };
        let expected = [
            (1, "2".to_owned(), Some(1), Some("it's \"ä\" \\ ?".to_owned()), Some(vec![0, 255, 39])),
            (3, "10".to_owned(), None, None, None),
            (12, large.to_owned(), None, None, None),
        ];
        assert_eq!(read, expected, "{url}");
    }
}

//! What a transaction on SQLite keeps for the next one on the same connection.

use database::{Database, SqlError, SqliteDatabase, SqliteOptions, SqliteSession};

const ADD: &str = "INSERT INTO t VALUES (1)";

async fn kept(file: &SqliteDatabase) -> Option<u32> {
    let take = |session: &SqliteSession| -> Result<_, SqlError> { session.take_kept::<u32>() };
    file.write(take).await.unwrap().map(|kept| *kept)
}

async fn keep(file: &SqliteDatabase, value: u32) {
    let keep = move |session: &SqliteSession| -> Result<(), SqlError> {
        session.execute(ADD, &[])?;
        session.keep(value)
    };
    file.write(keep).await.unwrap();
}

#[tokio::test]
async fn a_kept_value_is_taken_once_and_not_after_another_connection_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kept.db");
    let file = SqliteDatabase::open(&path, SqliteOptions::default()).await.unwrap();
    Database::Sqlite(file.clone()).execute("CREATE TABLE t (a INTEGER)", &[]).await.unwrap();
    assert_eq!(kept(&file).await, None);
    keep(&file, 7).await;
    let of_other_type = |session: &SqliteSession| -> Result<_, SqlError> { session.take_kept::<i64>() };
    assert_eq!(kept(&file).await, Some(7));
    assert_eq!(kept(&file).await, None, "taken");
    keep(&file, 8).await;
    assert_eq!(file.write(of_other_type).await.unwrap(), None);

    // Reads, and writes of this connection, leave it.
    keep(&file, 9).await;
    let database = Database::Sqlite(file.clone());
    database.query::<i64>("SELECT a FROM t", &[]).await.unwrap();
    database.execute(ADD, &[]).await.unwrap();
    assert_eq!(kept(&file).await, Some(9));

    // Another connection does not, be it of another process.
    keep(&file, 10).await;
    let other = SqliteDatabase::open(&path, SqliteOptions::default()).await.unwrap();
    Database::Sqlite(other).execute(ADD, &[]).await.unwrap();
    assert_eq!(kept(&file).await, None);

    // Nor does a transaction that fails, although it kept something.
    keep(&file, 11).await;
    let fail = |session: &SqliteSession| -> Result<(), SqlError> {
        session.keep(12_u32)?;
        session.execute("INSERT INTO missing VALUES (1)", &[]).map(drop)
    };
    file.write(fail).await.unwrap_err();
    assert_eq!(kept(&file).await, None);
}

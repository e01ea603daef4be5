//! A SQLite file on a disk that is temporarily full.

use database::{SqliteDatabase, SqliteOptions, is_retryable};
use testkit::SmallDisk;

const ROW_BYTES: i64 = 64 * 1024;
const ROUNDS: usize = 5;
/// More rows than the disk has room for.
const ROWS_MAX: usize = 1_000;

async fn insert(database: &SqliteDatabase) -> Result<(), sqlx::Error> {
    let mut transaction = database.begin_write().await?;
    sqlx::query("INSERT INTO bulk (bytes) VALUES (randomblob(?))")
        .bind(ROW_BYTES)
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await
}

async fn count(database: &SqliteDatabase) -> usize {
    let count: i64 = sqlx::query_scalar("SELECT count(*) FROM bulk").fetch_one(&database.pool).await.unwrap();
    usize::try_from(count).unwrap()
}

/// A check writes one page, for which SQLite's log may have room left; so it is repeated until that is used up.
async fn is_found_full(database: &SqliteDatabase) -> bool {
    for _ in 0..ROWS_MAX {
        if let Err(error) = database.check_writable().await {
            assert!(error.is_retryable(), "{error}");
            return true;
        }
    }
    false
}

#[tokio::test]
async fn a_full_disk_is_retryable_and_leaves_no_broken_connection() {
    let folder = tempfile::tempdir().unwrap();
    if let Some(obstacle) = SmallDisk::unavailable() {
        eprintln!("skipped: this machine does not let tests mount a tmpfs: {obstacle}");
        return;
    }
    let disk = SmallDisk::mount(&folder.path().join("disk"), 8);
    let database =
        SqliteDatabase::open(&disk.path().join("bulk.db"), SqliteOptions::default()).await.unwrap();
    sqlx::query("CREATE TABLE bulk (id INTEGER PRIMARY KEY, bytes BLOB)")
        .execute(&database.pool)
        .await
        .unwrap();
    let mut written = 0;
    for round in 0..ROUNDS {
        disk.fill();
        let mut failures = 0;
        for _ in 0..ROWS_MAX {
            match insert(&database).await {
                Ok(()) => written += 1,
                Err(error) => {
                    assert!(is_retryable(&error), "round {round}: {error}");
                    failures += 1;
                }
            }
            // Until each connection of the pool has failed.
            if failures > 3 * database.usage().max {
                break;
            }
        }
        assert!(failures > 0, "round {round}: the disk was never full");
        assert!(is_found_full(&database).await, "round {round}: the check fails");
        disk.free();
        database.check_writable().await.unwrap();
        for _ in 0..database.usage().max {
            insert(&database).await.unwrap_or_else(|error| panic!("round {round}, with room again: {error}"));
            written += 1;
        }
        assert_eq!(count(&database).await, written, "all committed rows exist");
    }
    database.close().await;
}

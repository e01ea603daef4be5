//! A SQLite file on a disk that is temporarily full.

use database::{SqlError, SqliteDatabase, SqliteOptions, SqliteSession};
use testkit::SmallDisk;

const ROW_BYTES: i64 = 64 * 1024;
const ROUNDS: usize = 5;
/// More rows than the disk has room for.
const ROWS_MAX: usize = 1_000;

async fn insert(database: &SqliteDatabase) -> Result<(), SqlError> {
    let insert = "INSERT INTO bulk (bytes) VALUES (randomblob(?))";
    database.write(move |session| session.execute(insert, &[ROW_BYTES.into()]).map(drop)).await
}

async fn count(database: &SqliteDatabase) -> usize {
    let count = |session: &SqliteSession| session.query_one::<i64>("SELECT count(*) FROM bulk", &[]);
    let count = database.read(count).await.unwrap().unwrap();
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
    let create = "CREATE TABLE bulk (id INTEGER PRIMARY KEY, bytes BLOB)";
    database.write(move |session| session.execute(create, &[])).await.unwrap();
    let mut written = 0;
    for round in 0..ROUNDS {
        disk.fill();
        let mut failures = 0;
        for _ in 0..ROWS_MAX {
            match insert(&database).await {
                Ok(()) => written += 1,
                Err(error) => {
                    assert!(error.is_retryable(), "round {round}: {error}");
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

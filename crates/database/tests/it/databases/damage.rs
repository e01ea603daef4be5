//! Damaged, empty and foreign files are detected before use.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use database::integrity::{self, Integrity, check_sqlite};
use database::{DatabaseError, SqliteDatabase, SqliteOptions};

const BUDGET: Duration = Duration::from_secs(60);

async fn fill(path: &Path, rows: i64) {
    let database = SqliteDatabase::open(path, SqliteOptions::default()).await.unwrap();
    sqlx::query("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL)")
        .execute(&database.pool)
        .await
        .unwrap();
    sqlx::query(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
         INSERT INTO notes (text) SELECT hex(randomblob(100)) FROM n",
    )
    .bind(rows)
    .execute(&database.pool)
    .await
    .unwrap();
    database.close().await;
}

#[tokio::test]
async fn zeroed_pages_are_detected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.db");
    assert_eq!(check_sqlite(&path, BUDGET).await.unwrap(), Integrity::Empty);
    fill(&path, 2_000).await;
    assert_eq!(check_sqlite(&path, BUDGET).await.unwrap(), Integrity::Intact);
    let file = File::options().write(true).open(&path).unwrap();
    file.write_all_at(&[0; 8192], 16 * 4096).unwrap();
    let error = check_sqlite(&path, BUDGET).await.unwrap_err();
    assert!(matches!(error, DatabaseError::Damaged { .. }), "{error}");
    assert!(!error.is_retryable() && error.to_string().contains("restore a backup"), "{error}");
}

#[tokio::test]
async fn a_check_ends_with_its_budget() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.db");
    fill(&path, 20_000).await;
    assert_eq!(check_sqlite(&path, Duration::ZERO).await.unwrap(), Integrity::Unfinished);
}

#[tokio::test]
async fn foreign_and_empty_files_are_distinguished() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.db");
    fs::write(&path, "").unwrap();
    assert_eq!(check_sqlite(&path, BUDGET).await.unwrap(), Integrity::Empty);
    for junk in ["x".to_owned(), "x".repeat(8192), "\0".repeat(8192)] {
        fs::write(&path, junk).unwrap();
        let error = check_sqlite(&path, BUDGET).await.unwrap_err();
        assert!(matches!(error, DatabaseError::NotADatabase { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_file_keeps_its_first_identity() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.db");
    fill(&path, 1).await;
    assert_eq!(integrity::identity(&path).await.unwrap(), 0);
    let database = SqliteDatabase::open(&path, SqliteOptions::default()).await.unwrap();
    assert_eq!(integrity::ensure_identity(&database, -7).await.unwrap(), -7);
    assert_eq!(integrity::ensure_identity(&database, 8).await.unwrap(), -7);
    assert_eq!(integrity::identity(&path).await.unwrap(), -7);
    database.close().await;
}

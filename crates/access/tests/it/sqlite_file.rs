//! The SQLite file: creation, permissions, and errors.

use access::{AccessError, Store};
use database::DatabaseError;

use crate::fixture::{Fixture, OpenStore, new_user};

#[tokio::test]
async fn a_missing_folder_is_created() {
    let fixture = Fixture::sqlite();
    let path = fixture.folder().join("deep/er/rollcall.db");
    let store = Store::open(&format!("sqlite://{}", path.display())).await.unwrap();
    assert_eq!(store.shown(), path.display().to_string());
    assert!(path.exists());
}

#[tokio::test]
async fn malformed_urls_have_clear_errors() {
    for (url, expected) in [
        ("oracle://me:secret@host/db", "oracle://…"),
        ("postgres://me:secret@127.0.0.1:1/db", "postgres://me@127.0.0.1:1/db cannot be reached"),
        ("mysql://me:secret@127.0.0.1:1/db", "mysql://me@127.0.0.1:1/db cannot be reached"),
        ("mysql://me:secret@127.0.0.1:1", "names no database"),
        ("data/rollcall.db", "write sqlite:"),
        ("sqlite:", "write sqlite:"),
        ("sqlite::memory:", "in memory"),
    ] {
        let text = Store::open(url).await.unwrap_err().to_string();
        assert!(text.contains(expected) && !text.contains("secret"), "{url}: {text}");
    }
}

#[tokio::test]
async fn a_foreign_or_damaged_file_has_a_clear_error() {
    let fixture = Fixture::sqlite();
    std::fs::write(fixture.path(), "this is a letter to my aunt. ".repeat(400)).unwrap();
    let error = Store::open(&fixture.url()).await.unwrap_err();
    assert!(matches!(error, AccessError::Database(DatabaseError::NotADatabase { .. })), "{error}");
    assert!(error.to_string().contains("rollcall.db is not a SQLite database"), "{error}");
    assert!(!error.is_retryable());

    let damaged = Fixture::sqlite();
    damaged.store().await.close().await;
    let mut bytes = std::fs::read(damaged.path()).unwrap();
    bytes[100..].fill(0xa5);
    std::fs::write(damaged.path(), bytes).unwrap();
    let error = Store::open(&damaged.url()).await.unwrap_err();
    assert!(matches!(error, AccessError::Database(DatabaseError::Damaged { .. })), "{error}");
}

#[tokio::test]
async fn an_impossible_path_has_a_clear_error() {
    let fixture = Fixture::sqlite();
    let file = fixture.folder().join("file");
    std::fs::write(&file, "").unwrap();
    let below_a_file = Store::open(&format!("sqlite:{}/rollcall.db", file.display())).await.unwrap_err();
    assert!(matches!(below_a_file, AccessError::Database(DatabaseError::Folder { .. })), "{below_a_file}");
    let a_folder = Store::open(&format!("sqlite:{}", fixture.folder().display())).await.unwrap_err();
    assert!(matches!(a_folder, AccessError::Database(DatabaseError::CannotOpen { .. })), "{a_folder}");
}

#[tokio::test]
async fn the_file_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::sqlite();
    let store = fixture.store().await;
    assert!(store.is_new());
    store.add_user(new_user(7)).await.unwrap();
    for suffix in ["", "-wal", "-shm"] {
        let path = format!("{}{suffix}", store.shown());
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{path}");
    }
    assert!(!fixture.store().await.is_new());
}

/// Existing files contain this checksum of the migration, whose text must not change.
#[tokio::test]
async fn files_of_the_first_version_can_be_opened() {
    let fixture = Fixture::sqlite();
    fixture.store().await.close().await;
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(fixture.path());
    let mut connection = sqlx::ConnectOptions::connect(&options).await.unwrap();
    let found: (i64, String) =
        sqlx::query_as("SELECT version, lower(hex(checksum)) FROM access_migrations WHERE version = 1")
            .fetch_one(&mut connection)
            .await
            .unwrap();
    let checksum =
        "bc5b254648a4d2225fed12afa6ccf27f20051888ae5b612a91b5896796465605950372aa85bc01cc017abfc689d51391";
    assert_eq!(found, (1, checksum.to_owned()));
}

/// SQLite reports "disk full" when the highest id is in use.
#[tokio::test]
async fn exhausted_ids_are_not_reported_as_a_full_disk() {
    let fixture = Fixture::sqlite();
    let store = Store::open(&fixture.url()).await.unwrap();
    store.add_user(new_user(i64::MAX as u64)).await.unwrap();
    let nameless = access::NewUser { id: None, ..new_user(1) };
    let error = store.add_user(nameless).await.unwrap_err();
    assert!(matches!(error, AccessError::NoNextId) && !error.is_retryable(), "{error}");
    store.add_user(new_user(1)).await.unwrap();
}

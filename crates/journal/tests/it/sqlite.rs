//! The conformance suite on SQLite.

use std::path::PathBuf;
use std::sync::Arc;

use domain::clock::SystemClock;
use journal::{Journal, SqliteJournal};
use tempfile::TempDir;

use crate::conformance;

/// A file in a folder of its own.
struct File {
    folder: TempDir,
}

impl File {
    fn new() -> Self {
        File { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("journal.db")
    }
}

impl conformance::Fixture for File {
    async fn fresh() -> Self {
        File::new()
    }

    async fn open(&self) -> Arc<dyn Journal> {
        Arc::new(SqliteJournal::open(&self.path(), Arc::new(SystemClock)).await.unwrap())
    }
}

conformance_suite!(File);

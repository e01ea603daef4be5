//! A journal whose traffic lane an earlier version stored as rows.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use database::{Database, Session, SqliteDatabase, SqliteOptions, Value};
use domain::clock::SystemClock;
use journal::{
    AppendToken, EntryId, Fields, Journal, JournalError, Lane, SqliteJournal, StartAt, Stored, TrafficEntry,
};
use tempfile::TempDir;

use crate::events::varied_event;

const ALL: usize = 100_000;
const NO_WAIT: Duration = Duration::ZERO;
/// The place of the first entry, and its id.
const FIRST: i64 = 1_794_742_234_000 << 18;
const FIRST_MS: u64 = 1_794_742_234_000;

/// What earlier versions did to a file.
struct OldFile {
    _folder: TempDir,
    path: PathBuf,
    raw: Session,
    places: Vec<i64>,
}

impl OldFile {
    /// An empty journal with the tables of before.
    async fn new() -> OldFile {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        SqliteJournal::open(&path, Arc::new(SystemClock)).await.unwrap().close().await;
        let database = SqliteDatabase::open(&path, SqliteOptions::default()).await.unwrap();
        let raw = Database::Sqlite(database).session().await.unwrap();
        let mut file = OldFile { _folder: folder, path, raw, places: Vec::new() };
        file.execute("DROP TABLE blocks").await;
        file.execute("DROP TABLE pending_ranges").await;
        file.execute("ALTER TABLE lanes DROP COLUMN kept_from").await;
        file.execute("DELETE FROM journal_migrations WHERE version = 3").await;
        file
    }

    async fn execute(&mut self, sql: &str) {
        self.raw.batch(sql).await.unwrap();
    }

    /// As an earlier version appended, also while the present one runs.
    async fn append(&mut self, entries: &[Fields]) {
        let last: Option<i64> =
            self.raw.query_one("SELECT last FROM lanes WHERE lane = 0", &[]).await.unwrap();
        let first = FIRST.max(last.unwrap() + 1);
        for (place, fields) in (first..).zip(entries) {
            let insert = "INSERT INTO entries (place, fields) VALUES (?, ?)";
            let values: [Value; 2] = [place.into(), fields.as_bytes().into()];
            self.raw.execute(insert, &values).await.unwrap();
            self.places.push(place);
        }
        let count = entries.len();
        self.execute(&format!(
            "UPDATE lanes SET last = {}, appended = appended + {count}, length = length + {count} WHERE lane = 0;
             UPDATE groups SET unread = unread + {count} WHERE lane = 0",
            self.places.last().unwrap()
        ))
        .await;
    }

    /// A group to which the entries up to this one were delivered.
    async fn group(&mut self, name: &str, delivered: usize) {
        let last = if delivered == 0 { 0 } else { self.places[delivered - 1] };
        let unread = self.places.len() - delivered;
        self.execute(&format!(
            "INSERT INTO groups (lane, name, last_delivered, unread) VALUES (0, '{name}', {last}, {unread})"
        ))
        .await;
    }

    async fn pending(&mut self, group: &str, consumer: &str, entries: &[usize]) {
        let id = format!("(SELECT id FROM groups WHERE lane = 0 AND name = '{group}')");
        self.execute(&format!(
            "INSERT INTO consumers (group_id, name, seen_ms) VALUES ({id}, '{consumer}', 0)"
        ))
        .await;
        for entry in entries {
            let place = self.places[*entry];
            self.execute(&format!(
                "INSERT INTO pending VALUES ({id}, {place}, (SELECT id FROM consumers WHERE name = '{consumer}'))"
            ))
            .await;
        }
    }

    async fn open(&self) -> SqliteJournal {
        SqliteJournal::open(&self.path, Arc::new(SystemClock)).await.unwrap()
    }

    async fn rows(&mut self) -> i64 {
        let count = "SELECT (SELECT count(*) FROM entries) + (SELECT count(*) FROM pending)";
        self.raw.query_one(count, &[]).await.unwrap().unwrap()
    }
}

/// Entries of our tracker, and of any producer.
fn mixed(numbers: std::ops::Range<u64>) -> Vec<Fields> {
    let entry = |number: u64| match number % 5 {
        0 => [("number", number.to_string()), ("strange", "\u{0}".to_owned())].into_iter().collect(),
        1 if number.is_multiple_of(2) => Fields::new(),
        _ => TrafficEntry::fields_of(&varied_event(number)),
    };
    numbers.map(entry).collect()
}

fn fields(stored: &[Stored]) -> Vec<Fields> {
    stored.iter().map(|stored| stored.fields.clone()).collect()
}

fn token(number: u64) -> AppendToken {
    AppendToken { producer: "producer".to_owned(), number }
}

async fn all(journal: &SqliteJournal) -> Vec<Stored> {
    journal.list(Lane::Traffic, EntryId::ZERO, ALL).await.unwrap()
}

#[tokio::test]
async fn l6_entries_and_what_is_pending_of_them_are_moved_when_the_journal_is_opened() {
    let mut file = OldFile::new().await;
    let entries = mixed(0..12_000);
    // The journal was trimmed before.
    file.execute("UPDATE lanes SET appended = 40 WHERE lane = 0").await;
    for batch in entries.chunks(1_700) {
        file.append(batch).await;
    }
    file.group("behind", 30).await;
    file.group("done", 12_000).await;
    file.group("new", 0).await;
    file.pending("behind", "dead", &[3, 4, 5, 20, 29]).await;
    file.pending("behind", "other", &[6, 21]).await;

    let journal = file.open().await;
    assert_eq!(file.rows().await, 0);
    let stored = all(&journal).await;
    assert_eq!(fields(&stored), entries);
    assert_eq!(stored[0].id, EntryId { ms: FIRST_MS, seq: 0 });
    assert!(stored.iter().map(|stored| stored.id).is_sorted());
    let status = journal.status(Lane::Traffic).await.unwrap();
    assert_eq!((status.length, status.appended), (12_000, 12_040));
    let counts: Vec<_> =
        status.groups.iter().map(|group| (group.name.as_str(), group.unread, group.pending)).collect();
    assert_eq!(counts, [("behind", 11_970, 7), ("done", 0, 0), ("new", 12_000, 0)]);
    assert_eq!(status.groups[0].oldest_pending, Some(stored[3].id));

    let taken = journal.take_over(Lane::Traffic, "behind", "dead", "live", ALL).await.unwrap();
    let expected = [3, 4, 5, 20, 29].map(|at: usize| stored[at].clone());
    assert_eq!(taken, expected);
    let unread = journal.read(Lane::Traffic, "behind", "live", ALL, NO_WAIT).await.unwrap();
    assert_eq!(unread, stored[30..]);
    journal.append(Lane::Traffic, &mixed(12_000..12_010), &token(1)).await.unwrap();
    assert_eq!(fields(&all(&journal).await), mixed(0..12_010));
    // The slowest group still holds trimming back.
    let trimmed = journal.trim(Lane::Traffic, EntryId::MAX).await.unwrap();
    assert_eq!((trimmed.removed, trimmed.held_back_by.as_deref()), (0, Some("new")));
    journal.close().await;
    assert_eq!(fields(&all(&file.open().await).await), mixed(0..12_010));
}

/// During an upgrade without interruption, the earlier version stores its last entries in a file that is moved already.
#[tokio::test]
async fn l6_entries_of_an_earlier_version_that_still_runs_are_delivered_in_order() {
    let mut file = OldFile::new().await;
    file.append(&mixed(0..10)).await;
    file.group("g", 4).await;
    let journal = file.open().await;
    journal.append(Lane::Traffic, &mixed(10..15), &token(1)).await.unwrap();
    file.append(&mixed(15..20)).await;
    // It delivered some of them to a consumer of its own, which then ended.
    file.execute("UPDATE groups SET last_delivered = (SELECT max(place) - 2 FROM entries)").await;
    let delivered = file.places.len() - 3;
    file.pending("g", "dead", &[delivered]).await;
    let consumers = journal.consumers(Lane::Traffic, "g").await.unwrap();
    assert_eq!((consumers[0].name.as_str(), consumers[0].pending), ("dead", 1));
    let given = journal.read(Lane::Traffic, "g", "live", ALL, NO_WAIT).await.unwrap();
    assert_eq!(fields(&given), mixed(18..20)[..]);
    let taken = journal.take_over(Lane::Traffic, "g", "dead", "live", ALL).await.unwrap();
    assert_eq!(fields(&taken), mixed(17..18)[..]);
    file.append(&mixed(20..22)).await;
    journal.append(Lane::Traffic, &mixed(22..23), &token(2)).await.unwrap();
    assert_eq!(fields(&all(&journal).await), mixed(0..23));
    assert_eq!(journal.status(Lane::Traffic).await.unwrap().groups[0].unread, 3);
    assert_eq!(file.rows().await, 0);
}

#[tokio::test]
async fn a_full_disk_stops_the_move_and_loses_nothing() {
    let mut file = OldFile::new().await;
    let large: Fields = [("text", "x".repeat(2_000))].into_iter().collect();
    file.append(&vec![large.clone(); 6_000]).await;
    file.group("g", 5_990).await;
    let pages: Option<i64> = file.raw.query_one("PRAGMA page_count", &[]).await.unwrap();
    let database =
        SqliteDatabase::open(&file.path, SqliteOptions { connections_max: 1, ..SqliteOptions::default() });
    let database = database.await.unwrap();
    let set_max = |pages: i64| {
        let database = Database::Sqlite(database.clone());
        async move { database.execute(&format!("PRAGMA max_page_count = {pages}"), &[]).await.unwrap() }
    };
    set_max(pages.unwrap() + 100).await;
    let refused = SqliteJournal::on(database.clone(), Arc::new(SystemClock)).await.err().unwrap();
    assert!(matches!(&refused, JournalError::Unavailable { reason } if reason.contains("full")), "{refused}");
    assert_eq!(file.rows().await, 6_000);
    set_max(1_000_000).await;
    let journal = SqliteJournal::on(database, Arc::new(SystemClock)).await.unwrap();
    assert_eq!(fields(&all(&journal).await), vec![large; 6_000]);
    assert_eq!(journal.status(Lane::Traffic).await.unwrap().groups[0].unread, 10);
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_named_when_the_journal_is_opened() {
    let mut file = OldFile::new().await;
    file.append(&mixed(0..3)).await;
    file.execute(&format!("UPDATE entries SET fields = x'ff00' WHERE place = {}", file.places[1])).await;
    let error = SqliteJournal::open(&file.path, Arc::new(SystemClock)).await.err().unwrap();
    let named = EntryId { ms: FIRST_MS, seq: 1 }.to_string();
    assert!(matches!(&error, JournalError::Damaged { what, .. } if what.contains(&named)), "{error}");
    assert_eq!(file.rows().await, 3);
    file.execute(&format!("DELETE FROM entries WHERE place = {}", file.places[1])).await;
    let journal = file.open().await;
    assert_eq!(all(&journal).await.len(), 2);
    journal.ensure_group(Lane::Traffic, "g", StartAt::Beginning).await.unwrap();
    assert_eq!(journal.read(Lane::Traffic, "g", "c", ALL, NO_WAIT).await.unwrap().len(), 2);
}

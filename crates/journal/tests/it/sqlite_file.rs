//! Specific to a journal in a file: clock, concurrent processes, disk failures.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use database::{Database, Session, SqliteDatabase, SqliteOptions};
use domain::clock::{Clock, ManualClock, SystemClock};
use domain::{Seconds, TrafficEvent, UnixTime};
use journal::{
    AppendToken, EntryId, Fields, Journal, JournalError, Lane, PackedEvents, SqliteJournal, StartAt, Stored,
};
use tempfile::TempDir;

use crate::events::event;

const NOW: UnixTime = UnixTime(1_750_000_000);
const ALL: usize = 100_000;

struct File {
    folder: TempDir,
}

impl File {
    fn new() -> Self {
        File { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("data").join("journal.db")
    }

    async fn open(&self) -> SqliteJournal {
        self.open_at(Arc::new(SystemClock)).await
    }

    async fn open_at(&self, clock: Arc<dyn Clock>) -> SqliteJournal {
        SqliteJournal::open(&self.path(), clock).await.unwrap()
    }

    /// A journal on a single connection, so that a test can change its settings.
    async fn open_single(&self) -> (SqliteJournal, SqliteDatabase) {
        let options = SqliteOptions { connections_max: 1, ..SqliteOptions::default() };
        let database = SqliteDatabase::open(&self.path(), options).await.unwrap();
        let journal = SqliteJournal::on(database.clone(), Arc::new(SystemClock)).await.unwrap();
        (journal, database)
    }

    /// A connection outside of this crate.
    async fn raw(&self) -> Session {
        let file = SqliteDatabase::open(&self.path(), SqliteOptions::default()).await.unwrap();
        Database::Sqlite(file).session().await.unwrap()
    }
}

async fn execute(connection: &mut Session, sql: &str) {
    connection.batch(sql).await.unwrap();
}

/// On the connection that writes.
async fn set(database: &SqliteDatabase, pragma: &str) {
    Database::Sqlite(database.clone()).execute(pragma, &[]).await.unwrap();
}

fn token(number: u64) -> AppendToken {
    AppendToken { producer: "producer".to_owned(), number }
}

fn entry(text: &str) -> Fields {
    [("text", text)].into_iter().collect()
}

async fn texts(journal: &SqliteJournal, lane: Lane) -> Vec<String> {
    let stored = journal.list(lane, EntryId::ZERO, ALL).await.unwrap();
    let text = |stored: &Stored| String::from_utf8(stored.fields.get("text").unwrap().to_vec()).unwrap();
    stored.iter().map(text).collect()
}

async fn ids(journal: &SqliteJournal, lane: Lane) -> Vec<EntryId> {
    journal.list(lane, EntryId::ZERO, ALL).await.unwrap().iter().map(|stored| stored.id).collect()
}

#[tokio::test]
async fn ids_contain_millisecond_and_sequence() {
    let (file, clock) = (File::new(), ManualClock::at(NOW));
    let journal = file.open_at(Arc::new(clock.clone())).await;
    journal.append(Lane::Dead, &[entry("a"), entry("b")], &token(1)).await.unwrap();
    clock.advance(Seconds(2));
    journal.append(Lane::Dead, &[entry("c")], &token(2)).await.unwrap();
    let shown: Vec<String> = ids(&journal, Lane::Dead).await.iter().map(EntryId::to_string).collect();
    assert_eq!(shown, ["1750000000000-0", "1750000000000-1", "1750000002000-0"]);
}

#[tokio::test]
async fn ids_rise_when_the_clock_steps_back() {
    let file = File::new();
    let journal = file.open_at(Arc::new(ManualClock::at(NOW))).await;
    journal.append(Lane::Dead, &[entry("a")], &token(1)).await.unwrap();
    let first = ids(&journal, Lane::Dead).await;
    journal.delete(Lane::Dead, None, &first).await.unwrap();
    for (number, earlier) in [(2, NOW.0 - 3_600), (3, 0)] {
        let journal = file.open_at(Arc::new(ManualClock::at(UnixTime(earlier)))).await;
        journal.append(Lane::Dead, &[entry("b")], &token(number)).await.unwrap();
    }
    let expected = [EntryId { ms: first[0].ms, seq: 1 }, EntryId { ms: first[0].ms, seq: 2 }];
    assert_eq!(ids(&journal, Lane::Dead).await, expected);
}

#[tokio::test]
async fn ids_rise_from_a_clock_at_zero() {
    let file = File::new();
    let journal = file.open_at(Arc::new(ManualClock::at(UnixTime(0)))).await;
    journal.append(Lane::Traffic, &vec![Fields::new(); 3], &token(1)).await.unwrap();
    let expected: Vec<EntryId> = (1..=3).map(|seq| EntryId { ms: 0, seq }).collect();
    assert_eq!(ids(&journal, Lane::Traffic).await, expected);
}

/// More entries than a millisecond has sequence numbers: they continue in the next.
#[tokio::test]
async fn a_full_millisecond_continues_in_the_next() {
    let file = File::new();
    let journal = file.open_at(Arc::new(ManualClock::at(NOW))).await;
    journal.append(Lane::Traffic, &[entry("a")], &token(1)).await.unwrap();
    execute(&mut file.raw().await, "UPDATE lanes SET last = last + (1 << 18) - 2 WHERE lane = 0").await;
    journal.append(Lane::Traffic, &[entry("b"), entry("c")], &token(2)).await.unwrap();
    let shown: Vec<String> = ids(&journal, Lane::Traffic).await.iter().map(EntryId::to_string).collect();
    assert_eq!(shown, ["1750000000000-0", "1750000000000-262143", "1750000000001-0"]);
}

#[tokio::test]
async fn a_group_may_start_after_future_entries() {
    let (file, clock) = (File::new(), ManualClock::at(NOW));
    let journal = file.open_at(Arc::new(clock.clone())).await;
    let start = EntryId { ms: u64::from(NOW.0) * 1_000, seq: 1 };
    journal.ensure_group(Lane::Traffic, "g", StartAt::After(start)).await.unwrap();
    journal.append(Lane::Traffic, &[entry("a"), entry("b"), entry("c")], &token(1)).await.unwrap();
    assert_eq!(journal.status(Lane::Traffic).await.unwrap().groups[0].unread, 1);
    let given = journal.read(Lane::Traffic, "g", "c", ALL, Duration::ZERO).await.unwrap();
    assert_eq!(given[0].fields, entry("c"));
    assert_eq!(journal.status(Lane::Traffic).await.unwrap().groups[0].lag(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_file_may_be_opened_concurrently() {
    let file = File::new();
    let (first, second, third) = tokio::join!(file.open(), file.open(), file.open());
    for (number, journal) in (1..).zip([&first, &second, &third]) {
        journal.append(Lane::Traffic, &[entry("a")], &token(number)).await.unwrap();
    }
    assert_eq!(texts(&file.open().await, Lane::Traffic).await.len(), 3);
    let mode = std::fs::metadata(file.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "entries hold passkeys");
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_passes() {
    let file = File::new();
    let (journal, database) = file.open_single().await;
    journal.ensure_group(Lane::Traffic, "g", StartAt::Beginning).await.unwrap();
    journal.append(Lane::Traffic, &[entry("before")], &token(1)).await.unwrap();
    set(&database, "PRAGMA max_page_count = 1").await;

    let large = [entry("large"), [("text", "x".repeat(1 << 20))].into_iter().collect()];
    for _ in 0..3 {
        let error = journal.append(Lane::Traffic, &large, &token(2)).await.unwrap_err();
        assert!(matches!(&error, JournalError::Unavailable { reason } if reason.contains("full")), "{error}");
        assert!(error.is_retryable());
        assert_eq!(texts(&journal, Lane::Traffic).await, ["before"]);
    }
    // What needs no space still works.
    assert_eq!(journal.read(Lane::Traffic, "g", "c", ALL, Duration::ZERO).await.unwrap().len(), 1);

    set(&database, "PRAGMA max_page_count = 1000000").await;
    journal.append(Lane::Traffic, &large, &token(2)).await.unwrap();
    assert_eq!(journal.read(Lane::Traffic, "g", "c", ALL, Duration::ZERO).await.unwrap().len(), 2);
    assert_eq!(journal.status(Lane::Traffic).await.unwrap().appended, 3);
}

#[tokio::test]
async fn a_file_that_is_read_only_for_now_loses_nothing() {
    let file = File::new();
    let (journal, database) = file.open_single().await;
    journal.append(Lane::Traffic, &[entry("a")], &token(1)).await.unwrap();
    set(&database, "PRAGMA query_only = 1").await;
    let error = journal.append(Lane::Traffic, &[entry("b")], &token(2)).await.unwrap_err();
    assert!(matches!(error, JournalError::Unavailable { .. }), "{error}");
    assert_eq!(texts(&journal, Lane::Traffic).await, ["a"]);
    set(&database, "PRAGMA query_only = 0").await;
    journal.append(Lane::Traffic, &[entry("b")], &token(2)).await.unwrap();
    assert_eq!(texts(&journal, Lane::Traffic).await, ["a", "b"]);
}

#[tokio::test]
async fn a_process_that_does_not_stop_writing_is_reported() {
    let file = File::new();
    let journal = file.open().await;
    journal.append(Lane::Traffic, &[entry("a")], &token(1)).await.unwrap();
    let mut neighbour = file.raw().await;
    execute(&mut neighbour, "BEGIN IMMEDIATE").await;
    let error = journal.append(Lane::Traffic, &[entry("b")], &token(2)).await.unwrap_err();
    assert!(matches!(&error, JournalError::Unavailable { reason } if reason.contains("busy")), "{error}");
    // Reading needs no lock.
    assert_eq!(texts(&journal, Lane::Traffic).await, ["a"]);
    execute(&mut neighbour, "COMMIT").await;
    journal.append(Lane::Traffic, &[entry("b")], &token(2)).await.unwrap();
    assert_eq!(texts(&journal, Lane::Traffic).await, ["a", "b"]);
}

/// Any change of a block is noticed, and nothing of it or after it is delivered.
#[tokio::test]
async fn a_damaged_block_is_reported_and_blocks_what_comes_after_it() {
    let file = File::new();
    let journal = file.open().await;
    journal.ensure_group(Lane::Traffic, "g", StartAt::Beginning).await.unwrap();
    for (number, text) in (1..).zip(["a", "b", "c"]) {
        journal.append(Lane::Traffic, &[entry(text), entry(text)], &token(number)).await.unwrap();
    }
    let second = ids(&journal, Lane::Traffic).await[2];
    let mut raw = file.raw().await;
    let sound = "(SELECT first FROM blocks ORDER BY first LIMIT 1 OFFSET 1)";
    execute(&mut raw, "CREATE TABLE saved AS SELECT * FROM blocks").await;
    for damage in [
        "data = substr(data, 1, length(data) - 1)",
        "data = CAST(data || x'00' AS BLOB)",
        "data = CAST(x'02' || substr(data, 2) AS BLOB)",
        "data = x''",
        "entries = 1",
        "ordinal = ordinal + 1",
    ] {
        execute(&mut raw, &format!("UPDATE blocks SET {damage} WHERE first = {sound}")).await;
        let error = journal.list(Lane::Traffic, second.previous(), ALL).await.unwrap_err();
        let is_named = |error: &JournalError| {
            matches!(error, JournalError::Damaged { what, reason }
            if what.contains(&second.to_string()) && reason.contains("restore a backup"))
        };
        assert!(is_named(&error), "{damage}: {error}");
        assert!(is_named(&journal.get(Lane::Traffic, second).await.unwrap_err()), "{damage}");
        assert!(
            is_named(&journal.list_newest(Lane::Traffic, EntryId::MAX, ALL).await.unwrap_err()),
            "{damage}"
        );
        let delivered = journal.read(Lane::Traffic, "g", "c", ALL, Duration::ZERO).await;
        assert!(is_named(&delivered.unwrap_err()), "{damage}");
        assert_eq!(
            journal.status(Lane::Traffic).await.unwrap().groups[0].pending,
            0,
            "{damage}: nothing was given"
        );
        execute(&mut raw, &format!("REPLACE INTO blocks SELECT * FROM saved WHERE first = {sound}")).await;
    }
    // What comes before it can be read meanwhile.
    execute(&mut raw, &format!("UPDATE blocks SET data = x'' WHERE first = {sound}")).await;
    assert_eq!(journal.read(Lane::Traffic, "g", "c", 2, Duration::ZERO).await.unwrap().len(), 2);
    // The remedy of the error: the row is deleted.
    execute(&mut raw, &format!("DELETE FROM blocks WHERE first = {sound}")).await;
    let rest = journal.read(Lane::Traffic, "g", "c", ALL, Duration::ZERO).await.unwrap();
    assert_eq!(rest.iter().map(|stored| &stored.fields).collect::<Vec<_>>(), [&entry("c"), &entry("c")]);
    let all: Vec<EntryId> = ids(&journal, Lane::Traffic).await;
    journal.acknowledge(Lane::Traffic, "g", &all).await.unwrap();
    let status = journal.status(Lane::Traffic).await.unwrap();
    assert_eq!((status.groups[0].unread, status.groups[0].pending), (0, 0));
}

#[tokio::test]
async fn a_damaged_row_is_reported_and_blocks_those_after_it() {
    let file = File::new();
    let journal = file.open().await;
    journal.ensure_group(Lane::Dead, "g", StartAt::Beginning).await.unwrap();
    journal.append(Lane::Dead, &[entry("a"), entry("b"), entry("c")], &token(1)).await.unwrap();
    let second = ids(&journal, Lane::Dead).await[1];
    let mut raw = file.raw().await;
    let sound = "(SELECT place FROM entries ORDER BY place LIMIT 1 OFFSET 1)";
    execute(&mut raw, "CREATE TABLE saved AS SELECT * FROM entries").await;
    execute(&mut raw, &format!("UPDATE entries SET fields = x'ff00ff' WHERE place = {sound}")).await;

    let error = journal.read(Lane::Dead, "g", "c", ALL, Duration::ZERO).await.unwrap_err();
    let is_named = |error: &JournalError| matches!(error, JournalError::Damaged { what, .. } if what.contains(&second.to_string()));
    assert!(is_named(&error), "{error}");
    assert!(is_named(&journal.get(Lane::Dead, second).await.unwrap_err()));
    let status = journal.status(Lane::Dead).await.unwrap();
    assert_eq!((status.groups[0].unread, status.groups[0].pending), (3, 0), "nothing was given");

    execute(&mut raw, &format!("UPDATE entries SET fields = (SELECT fields FROM saved WHERE saved.place = entries.place) WHERE place = {sound}")).await;
    assert_eq!(journal.read(Lane::Dead, "g", "c", ALL, Duration::ZERO).await.unwrap().len(), 3);
}

/// An entry of a tracker needs at most 100 bytes of the file.
#[tokio::test]
async fn an_entry_of_a_tracker_is_small() {
    const ENTRIES: u64 = 20_000;
    let file = File::new();
    let journal = file.open().await;
    let events: Vec<TrafficEvent> = (0..ENTRIES).map(event).collect();
    for (number, batch) in (1..).zip(events.chunks(200)) {
        let mut packed = PackedEvents::of(&batch[0]);
        assert!(batch[1..].iter().all(|event| packed.push(event)));
        journal.append_events(&[packed], &token(number)).await.unwrap();
    }
    journal.close().await;
    let bytes = std::fs::metadata(file.path()).unwrap().len();
    assert!(bytes <= 100 * ENTRIES, "{} bytes an entry", bytes / ENTRIES);
}

#[tokio::test]
async fn a_file_that_is_something_else_is_left_alone() {
    let file = File::new();
    std::fs::create_dir_all(file.path().parent().unwrap()).unwrap();
    let dead_letter = "Dear diary, ".repeat(1_000);
    std::fs::write(file.path(), &dead_letter).unwrap();
    let error = SqliteJournal::open(&file.path(), Arc::new(SystemClock)).await.err().unwrap();
    assert!(matches!(error, JournalError::Damaged { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(file.path()).unwrap(), dead_letter);
}

#[tokio::test]
async fn a_missing_table_is_damage_not_panic() {
    let file = File::new();
    let journal = file.open().await;
    execute(&mut file.raw().await, "DROP TABLE pending").await;
    let error = journal.status(Lane::Traffic).await.unwrap_err();
    assert!(matches!(error, JournalError::Damaged { .. }), "{error}");
}

/// An idle server must not write to the disk: waiting reads are read-only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_read_does_not_write() {
    let file = File::new();
    let journal = file.open_at(Arc::new(ManualClock::at(NOW))).await;
    journal.ensure_group(Lane::Traffic, "g", StartAt::Beginning).await.unwrap();
    assert_eq!(journal.read(Lane::Traffic, "g", "c", ALL, Duration::ZERO).await.unwrap(), []);
    let mut raw = file.raw().await;
    let version = "PRAGMA data_version";
    let before: Option<i64> = raw.query_one(version, &[]).await.unwrap();
    let waited = journal.read(Lane::Traffic, "g", "c", ALL, Duration::from_millis(400)).await.unwrap();
    assert_eq!(waited, []);
    let after: Option<i64> = raw.query_one(version, &[]).await.unwrap();
    assert_eq!(before, after);
}

#[tokio::test]
async fn old_producers_are_dropped() {
    const STARTS: u64 = 1_050;
    let file = File::new();
    let journal = file.open().await;
    let start = |number: u64| AppendToken { producer: format!("start {number}"), number: 1 };
    for number in 1..=STARTS {
        journal.append(Lane::Risk, &[Fields::new()], &start(number)).await.unwrap();
    }
    let tracked: Option<i64> =
        file.raw().await.query_one("SELECT count(*) FROM producers", &[]).await.unwrap();
    assert_eq!(tracked, Some(1_000));
    journal.append(Lane::Risk, &[Fields::new()], &start(STARTS - 900)).await.unwrap();
    assert_eq!(journal.status(Lane::Risk).await.unwrap().appended, STARTS);
}

#[tokio::test]
async fn more_than_one_step_is_trimmed_in_one_call() {
    let file = File::new();
    let journal = file.open().await;
    journal.append(Lane::Failed, &vec![Fields::new(); 5_001], &token(1)).await.unwrap();
    let last = journal.status(Lane::Failed).await.unwrap().last.unwrap();
    assert_eq!(journal.trim(Lane::Failed, last).await.unwrap().removed, 5_000);
    assert_eq!(journal.status(Lane::Failed).await.unwrap().length, 1);
}

/// The process that writes until it is killed: this test, started again by itself.
const WRITER_VARIABLE: &str = "JOURNAL_TEST_WRITER_FILE";
const BATCH: u64 = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_process_was_promised_is_there_and_whole() {
    if let Ok(path) = std::env::var(WRITER_VARIABLE) {
        write_for_ever(PathBuf::from(path)).await;
        return;
    }
    let file = File::new();
    let mut random = fastrand::Rng::with_seed(7);
    let mut promised = 0;
    for _ in 0..5 {
        promised = promised.max(run_and_kill(&file, random.usize(1..40)));
        let journal = file.open().await;
        let stored = texts(&journal, Lane::Traffic).await;
        let batches = stored.len() as u64 / BATCH;
        assert_eq!(stored.len() as u64 % BATCH, 0, "a batch is not whole");
        assert!(batches >= promised, "{promised} were promised, {batches} are there");
        assert!(stored.iter().enumerate().all(|(at, text)| *text == format!("{}", at as u64 / BATCH + 1)));
    }
}

/// Sends each batch as if the reply had been lost: from the last one stored.
async fn write_for_ever(path: PathBuf) {
    let journal = SqliteJournal::open(&path, Arc::new(SystemClock)).await.unwrap();
    let mut number = (journal.status(Lane::Traffic).await.unwrap().appended / BATCH).max(1);
    loop {
        let batch = vec![entry(&number.to_string()); BATCH as usize];
        journal.append(Lane::Traffic, &batch, &token(number)).await.unwrap();
        let mut out = std::io::stdout().lock();
        writeln!(out, "\npromised {number}").unwrap();
        out.flush().unwrap();
        number += 1;
    }
}

/// Lets a writer confirm so many batches, then kills it. Returns the number of the last confirmed one.
fn run_and_kill(file: &File, promises: usize) -> u64 {
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "sqlite_file::what_a_killed_process_was_promised_is_there_and_whole",
            "--nocapture",
        ])
        .env(WRITER_VARIABLE, file.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(writer.stdout.take().unwrap()).lines().map_while(Result::ok);
    let numbers = lines.filter_map(|line| line.strip_prefix("promised ")?.parse().ok());
    let last = numbers.take(promises).last();
    writer.kill().unwrap();
    writer.wait().unwrap();
    last.unwrap()
}

#[tokio::test]
async fn a_closed_journal_returns_an_error() {
    let file = File::new();
    let journal = file.open().await;
    journal.close().await;
    let error = journal.append(Lane::Traffic, &[entry("a")], &token(1)).await.unwrap_err();
    assert!(matches!(error, JournalError::Unavailable { .. }), "{error}");
    file.raw().await.close().await;
}

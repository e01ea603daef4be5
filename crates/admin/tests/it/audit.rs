//! The audit trail (W7): several writers, crashes, full disks, and manipulation of the file.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use admin::audit::verify::verify_trail;
use admin::audit::{AuditQuery, Entry, LineHash, Record, Subject, Verdict};
use admin::{Audit, AuditError, AuditSettings};
use domain::UnixTime;
use domain::clock::ManualClock;
use proptest::prelude::*;
use tempfile::TempDir;

const NOW: UnixTime = UnixTime(1_750_000_000);

/// A trail in a folder of its own.
struct Scene {
    folder: TempDir,
    settings: AuditSettings,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = AuditSettings { file: folder.path().join("logs/audit.log"), is_synced: false };
        Scene { folder, settings }
    }

    fn path(&self) -> &Path {
        &self.settings.file
    }

    /// The trail as another process has it.
    fn open(&self) -> Audit {
        Audit::open(self.settings.clone(), Arc::new(ManualClock::at(NOW))).unwrap()
    }

    /// So many records, numbered in their details.
    fn write(&self, count: u64) {
        let audit = self.open();
        for number in 0..count {
            audit.record_blocking(&record(number)).unwrap();
        }
    }

    fn verify(&self) -> Verdict {
        verify_trail(self.path(), None).unwrap()
    }

    fn expect(&self, hash: &LineHash) -> Verdict {
        verify_trail(self.path(), Some(hash)).unwrap()
    }

    /// What does not fit: which line, and why.
    fn fault(&self) -> (u64, String) {
        let fault = self.verify().fault.unwrap();
        (fault.line, fault.reason)
    }

    fn lines(&self) -> Vec<String> {
        fs::read_to_string(self.path()).unwrap().lines().map(str::to_owned).collect()
    }

    fn put_lines(&self, lines: &[String]) {
        fs::write(self.path(), lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    }

    fn append_raw(&self, bytes: &[u8]) {
        OpenOptions::new().append(true).open(self.path()).unwrap().write_all(bytes).unwrap();
    }
}

fn record(number: u64) -> Record {
    Record::ok("user.add", "cli:ada", Subject::new("user", number)).with("number", number)
}

fn newest(scene: &Scene, query: AuditQuery) -> admin::audit::AuditPage {
    admin::audit::read::newest(scene.path(), &query).unwrap()
}

/// All records, page by page.
fn all(scene: &Scene, limit: usize, action: Option<&str>) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut query = AuditQuery { before: None, limit, action: action.map(str::to_owned) };
    loop {
        let page = newest(scene, query.clone());
        entries.extend(page.entries);
        match page.next {
            Some(next) => query.before = Some(next),
            None => return entries,
        }
    }
}

#[test]
fn w7_records_are_chained_and_only_the_owner_can_read_them() {
    let scene = Scene::new();
    scene.write(3);
    let verdict = scene.verify();
    assert_eq!((verdict.records, verdict.torn, verdict.fault), (3, 0, None));
    let last = verdict.last.unwrap();
    assert_eq!((last.seq, last.at.as_str()), (3, "2025-06-15T15:06:40.000Z"));
    let mode = fs::metadata(scene.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let line: serde_json::Value = serde_json::from_str(&scene.lines()[2]).unwrap();
    assert_eq!(line["subjectId"], "2");
    assert_eq!(line["details"], serde_json::json!({ "number": 2 }));
}

#[test]
fn a_line_can_be_checked_with_sha256sum() {
    let scene = Scene::new();
    scene.write(1);
    let script = r#"sed 's/,"hash":"[0-9a-f]*"}$/}/' "$0" | tr -d '\n' | sha256sum | cut -d' ' -f1"#;
    let output = std::process::Command::new("sh").args(["-c", script]).arg(scene.path()).output().unwrap();
    let hash = scene.verify().last.unwrap().hash.to_string();
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), hash);
}

#[test]
fn counters_count_records_and_bytes() {
    let scene = Scene::new();
    let audit = scene.open();
    for number in 0..10 {
        audit.record_blocking(&record(number)).unwrap();
    }
    let counters = audit.counters();
    assert_eq!((counters.records.get(), counters.failures.get(), counters.repairs.get()), (10, 0, 0));
    assert_eq!(counters.written_bytes.get(), fs::metadata(scene.path()).unwrap().len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn w7_a_change_to_any_byte_of_any_line_is_found(at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let scene = Scene::new();
        scene.write(7);
        let mut bytes = fs::read(scene.path()).unwrap();
        let at = at.index(bytes.len());
        prop_assume!(bytes[at] != to);
        bytes[at] = to;
        fs::write(scene.path(), bytes).unwrap();
        let verdict = scene.verify();
        prop_assert!(verdict.fault.is_some());
        prop_assert!(verdict.records < 7);
    }
}

#[test]
fn w7_a_line_taken_out_is_found() {
    let scene = Scene::new();
    scene.write(5);
    let mut lines = scene.lines();
    lines.remove(2);
    scene.put_lines(&lines);
    assert_eq!(scene.fault(), (3, "records 3 to 3 are missing before it".to_owned()));
    // The first one as well.
    lines.remove(0);
    lines.remove(0);
    scene.put_lines(&lines);
    assert_eq!(scene.fault(), (1, "records 1 to 3 are missing before it".to_owned()));
}

#[test]
fn w7_lines_that_change_places_and_lines_that_come_twice_are_found() {
    let scene = Scene::new();
    scene.write(5);
    let lines = scene.lines();
    let mut swapped = lines.clone();
    swapped.swap(1, 2);
    scene.put_lines(&swapped);
    assert_eq!(scene.fault(), (2, "records 2 to 2 are missing before it".to_owned()));
    let mut twice = lines.clone();
    twice.insert(2, lines[1].clone());
    scene.put_lines(&twice);
    assert_eq!(scene.fault(), (3, "it is record 2 and follows record 2".to_owned()));
}

#[test]
fn w7_a_line_from_another_chain_is_found() {
    let (scene, other) = (Scene::new(), Scene::new());
    scene.write(4);
    other.open().record_blocking(&Record::ok("user.remove", "cli:eve", Subject::new("user", 1))).unwrap();
    other.write(3);
    let mut lines = scene.lines();
    lines[2] = other.lines()[2].clone();
    scene.put_lines(&lines);
    let (line, reason) = scene.fault();
    assert_eq!(line, 3);
    assert!(reason.ends_with("one of them was replaced"), "{reason}");
}

#[test]
fn w7_an_end_that_was_cut_off_shows_against_a_hash_that_was_kept() {
    let scene = Scene::new();
    scene.write(5);
    let kept = scene.verify().last.unwrap().hash;
    let lines = scene.lines();
    for end in 0..5 {
        scene.put_lines(&lines[..end]);
        assert_eq!(scene.verify().fault, None, "without the hash these {end} are intact");
        let fault = scene.expect(&kept).fault.unwrap();
        assert!(fault.reason.starts_with(&format!("no record has the hash {kept}")), "{fault}");
    }
    scene.put_lines(&lines);
    assert_eq!(scene.expect(&kept).fault, None);
    scene.write(2);
    assert_eq!(scene.expect(&kept).fault, None, "further records follow it");
}

/// Earlier versions also recorded `audit.damaged` and `audit.truncated`, and named the file as the subject.
#[test]
fn a_trail_of_an_earlier_version_verifies_and_continues() {
    let scene = Scene::new();
    let audit = scene.open();
    audit.record_blocking(&record(0)).unwrap();
    scene.append_raw(b"half a li");
    for action in ["audit.damaged", "audit.truncated"] {
        let subject = Subject::new("audit", "audit.log");
        audit.record_blocking(&Record::ok(action, "rollcall", subject).with("anchored", 9)).unwrap();
    }
    scene.write(1);
    let verdict = scene.verify();
    assert_eq!((verdict.records, verdict.torn, verdict.fault), (5, 1, None));
    assert_eq!(all(&scene, 10, Some("audit.")).len(), 3);
}

#[test]
fn many_threads_and_openers_write_one_chain() {
    let scene = Scene::new();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let audit = if thread % 2 == 0 { scene.open() } else { scene.open().clone() };
            scope.spawn(move || {
                for number in 0..50 {
                    audit.record_blocking(&record(thread * 1000 + number)).unwrap();
                }
            });
        }
    });
    let verdict = scene.verify();
    assert_eq!((verdict.records, verdict.torn, verdict.fault), (400, 0, None));
    let mut numbers: Vec<u64> =
        all(&scene, 100, None).iter().map(|entry| entry.details["number"].as_u64().unwrap()).collect();
    numbers.sort_unstable();
    let expected: Vec<u64> = (0..8).flat_map(|thread| (0..50).map(move |n| thread * 1000 + n)).collect();
    assert_eq!(numbers, expected);
}

#[test]
fn readers_see_an_intact_chain_while_others_write() {
    let scene = Scene::new();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let audit = scene.open();
            scope.spawn(|| {
                let audit = audit;
                for number in 0..300 {
                    audit.record_blocking(&record(number)).unwrap();
                }
                done.store(true, Ordering::SeqCst);
            });
        }
        while !done.load(Ordering::SeqCst) {
            assert_eq!(scene.verify().fault, None);
            let seqs: Vec<u64> = newest(&scene, AuditQuery { before: None, limit: 30, action: None })
                .entries
                .iter()
                .map(|entry| entry.seq)
                .collect();
            assert!(seqs.windows(2).all(|pair| pair[0] == pair[1] + 1), "{seqs:?}");
        }
    });
    assert_eq!((scene.verify().records, scene.verify().fault), (600, None));
}

#[test]
fn files_belong_to_the_owner_of_the_folder() {
    let scene = Scene::new();
    // Only root can change the owner.
    let _ = std::os::unix::fs::chown(scene.folder.path(), Some(65_534), None);
    scene.write(1);
    let owner = |path: &Path| fs::metadata(path).unwrap().uid();
    let expected = owner(scene.folder.path());
    assert_eq!((owner(scene.path().parent().unwrap()), owner(scene.path())), (expected, expected));
}

#[test]
fn w7_half_a_line_after_a_crash_is_kept_and_reported() {
    let scene = Scene::new();
    scene.write(2);
    let half = scene.lines()[1].as_bytes()[..100].to_vec();
    scene.append_raw(&half);
    let (line, reason) = scene.fault();
    assert_eq!(line, 3);
    assert!(reason.contains("has no end"), "{reason}");
    scene.write(2);
    let verdict = scene.verify();
    assert_eq!((verdict.records, verdict.torn, verdict.fault), (5, 1, None));
    let entries = all(&scene, 10, None);
    assert_eq!((entries[2].action.as_str(), entries[2].details["bytes"].as_u64()), ("audit.torn", Some(100)));
    assert_eq!(entries[2].seq, 3);
    // It can be neither changed nor removed.
    let lines = scene.lines();
    let mut changed = lines.clone();
    changed[2].replace_range(..1, "[");
    scene.put_lines(&changed);
    assert_eq!(scene.fault().0, 3);
    let mut without = lines;
    without.remove(2);
    scene.put_lines(&without);
    assert_eq!(scene.fault(), (3, "the bytes that it reports are missing before it".to_owned()));
}

#[test]
fn every_length_of_a_torn_line_is_survived() {
    let whole = Scene::new();
    whole.write(2);
    let bytes = fs::read(whole.path()).unwrap();
    let first = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for cut in first..bytes.len() {
        let scene = Scene::new();
        fs::create_dir_all(scene.path().parent().unwrap()).unwrap();
        fs::write(scene.path(), &bytes[..cut]).unwrap();
        scene.write(1);
        let verdict = scene.verify();
        let is_torn = cut > first && cut < bytes.len() - 1;
        // A line that lacks only its end is a record.
        let records = if cut == first { 2 } else { 3 };
        assert_eq!((verdict.torn, verdict.records), (u64::from(is_torn), records), "cut at {cut}");
        assert_eq!(verdict.fault, None, "cut at {cut}");
    }
}

#[test]
fn lines_of_another_writer_are_a_fault_and_the_chain_goes_on() {
    for foreign in ["I was here\nand here\n".to_owned(), "x".repeat(1 << 20) + "\n"] {
        let scene = Scene::new();
        scene.write(2);
        scene.append_raw(foreign.as_bytes());
        scene.write(1);
        assert_eq!(scene.fault(), (3, "it is not a record".to_owned()));
        let seqs: Vec<u64> = all(&scene, 10, None).iter().map(|entry| entry.seq).collect();
        assert_eq!(seqs, [3, 2, 1]);
    }
}

#[test]
fn pages_hold_every_record_once_newest_first() {
    let scene = Scene::new();
    scene.write(57);
    for limit in [1, 7, 1000] {
        let seqs: Vec<u64> = all(&scene, limit, None).iter().map(|entry| entry.seq).collect();
        assert_eq!(seqs, (1..=57).rev().collect::<Vec<_>>());
    }
    let page = newest(&scene, AuditQuery { before: Some(30), limit: 3, action: None });
    assert_eq!(page.entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [29, 28, 27]);
    assert_eq!(page.next, Some(27));
    assert_eq!(newest(&scene, AuditQuery { before: Some(1), limit: 3, action: None }).entries, []);
    assert_eq!(newest(&scene, AuditQuery { before: None, limit: 0, action: None }).entries, []);
}

#[test]
fn deep_pages_of_a_large_file_are_found() {
    let scene = Scene::new();
    let audit = scene.open();
    let long = "x".repeat(3000);
    for number in 0..500 {
        let record = record(number).with("text", &long[..(number as usize * 7) % 3000]);
        audit.record_blocking(&record).unwrap();
    }
    for before in [2, 3, 100, 251, 499, 500, 501, 9999] {
        let page = newest(&scene, AuditQuery { before: Some(before), limit: 2, action: None });
        let highest = (before - 1).min(500);
        let seqs: Vec<u64> = page.entries.iter().map(|entry| entry.seq).collect();
        let expected: Vec<u64> = [highest, highest - 1].into_iter().filter(|seq| *seq > 0).collect();
        assert_eq!(seqs, expected, "before {before}");
    }
}

#[test]
fn records_of_one_action_or_one_family_are_picked() {
    let scene = Scene::new();
    let audit = scene.open();
    for action in ["user.add", "user.remove", "torrent.add", "user.add"] {
        audit.record_blocking(&Record::ok(action, "cli:ada", Subject::new("user", 1))).unwrap();
    }
    let seqs = |action| all(&scene, 2, Some(action)).iter().map(|entry| entry.seq).collect::<Vec<_>>();
    assert_eq!(seqs("user.add"), [4, 1]);
    assert_eq!(seqs("user."), [4, 2, 1]);
    assert_eq!(seqs("user"), [0; 0]);
}

#[test]
fn an_empty_trail_is_whole_and_has_no_pages() {
    let scene = Scene::new();
    assert_eq!(scene.verify(), Verdict::default());
    assert_eq!(newest(&scene, AuditQuery { before: None, limit: 5, action: None }).entries, []);
    scene.open();
    assert_eq!(scene.verify(), Verdict::default());
}

#[tokio::test]
async fn records_can_be_written_and_read_from_tasks() {
    for is_synced in [true, false] {
        let mut scene = Scene::new();
        scene.settings.is_synced = is_synced;
        let audit = scene.open();
        for number in 0..10 {
            audit.check().await.unwrap();
            assert_eq!(audit.record(record(number)).await.unwrap(), number + 1);
        }
        let page = audit.read_newest(AuditQuery { before: None, limit: 3, action: None }).await.unwrap();
        assert_eq!(page.entries[0].hash, scene.verify().last.unwrap().hash);
        assert_eq!(scene.verify().fault, None);
    }
}

#[test]
fn a_file_that_cannot_be_written_fails_before_the_change() {
    let mut scene = Scene::new();
    scene.settings.file = PathBuf::from("/dev/full");
    let outcome = Audit::open(scene.settings.clone(), Arc::new(ManualClock::at(NOW)));
    assert!(matches!(outcome, Err(AuditError::NotAFile(_))), "{:?}", outcome.err());
    scene.settings.file = scene.folder.path().join("file/audit.log");
    fs::write(scene.folder.path().join("file"), "").unwrap();
    let outcome = Audit::open(scene.settings.clone(), Arc::new(ManualClock::at(NOW)));
    assert!(outcome.is_err());
}

#[test]
fn a_file_that_was_moved_or_deleted_is_made_again() {
    let scene = Scene::new();
    let audit = scene.open();
    audit.record_blocking(&record(1)).unwrap();
    fs::remove_dir_all(scene.path().parent().unwrap()).unwrap();
    audit.record_blocking(&record(2)).unwrap();
    // A new chain begins, which only a hash kept elsewhere shows.
    assert_eq!(scene.verify().records, 1);
}

#[test]
fn a_reader_that_holds_the_file_does_not_hold_up_writers_for_ever() {
    let scene = Scene::new();
    let audit = scene.open();
    let reader = File::open(scene.path()).unwrap();
    reader.lock_shared().unwrap();
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| audit.record_blocking(&record(1)));
        drop(reader);
        writing.join().unwrap().unwrap();
    });
}

//! The check of the chain, line by line, in bounded memory.
//!
//! It finds a line that was changed, removed, inserted or moved, and an end that was cut off, against the anchor. A chain
//! that was computed anew together with its anchor shows only against a hash that was kept elsewhere.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::file::{self, Anchor, Foreign, Lines};
use super::line::{Entry, LineHash, Link};
use super::{AuditError, DAMAGED, TORN, TRUNCATED, cannot_read};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub seq: u64,
    pub at: String,
    pub hash: LineHash,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub file: PathBuf,
    /// From 1; 0 for the file as a whole.
    pub line: u64,
    pub reason: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file.display(), self.reason),
            line => write!(f, "{} line {line}: {}", self.file.display(), self.reason),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Records up to the first fault.
    pub records: u64,
    /// Half-written lines, each reported by the record after it.
    pub torn: u64,
    pub first: Option<Place>,
    /// The last record before the first fault.
    pub last: Option<Place>,
    /// The number that the anchor names; none without an anchor.
    pub anchored: Option<u64>,
    /// The first fault. None: the chain is intact.
    pub fault: Option<Fault>,
}

/// Verifies the trail from its first record, with its anchor. One of the records must have the hash `expected`.
pub fn verify_trail(path: &Path, expected: Option<&LineHash>) -> Result<Verdict, AuditError> {
    let anchor_path = file::anchor_path(path);
    // Before the file: records are written before their anchor.
    let anchor = Anchor::read(&anchor_path).map_err(|error| cannot_read(&anchor_path, error))?;
    let mut check = Check::new(anchor, expected);
    check.from_the_first = true;
    if let Some((file, length)) = file::open_to_read(path)? {
        check.read(path, &file, length)?;
    }
    if check.anchor == Anchor::Missing && check.verdict.records > 0 {
        let reason = "the anchor is missing: it was deleted; the next record writes another";
        check.fail(&anchor_path, reason.to_owned());
    }
    Ok(check.finish(path))
}

/// Verifies files as one chain, in the order of their first records; with the anchor, if it is among them.
pub fn verify_files(paths: &[PathBuf], expected: Option<&LineHash>) -> Result<Verdict, AuditError> {
    let (mut files, mut anchor) = (Vec::new(), Anchor::Missing);
    for path in paths {
        if file::is_anchor(path) {
            anchor = Anchor::read(path).map_err(|error| cannot_read(path, error))?;
            continue;
        }
        let opened = file::open_to_read(path)?;
        let (file, length) = opened.ok_or_else(|| cannot_read(path, io::ErrorKind::NotFound.into()))?;
        let mut lines = Lines::between(&file, 0, length).map_err(|error| cannot_read(path, error))?;
        let first = lines.next().map_err(|error| cannot_read(path, error))?;
        let first_seq = first.and_then(|(_, read)| read.ok()).map_or(u64::MAX, |entry| entry.seq);
        drop(lines);
        files.push((first_seq, path, file, length));
    }
    files.sort_by_key(|(first_seq, ..)| *first_seq);
    let mut check = Check::new(anchor, expected);
    for (_, path, file, length) in &files {
        check.read(path, file, *length)?;
    }
    Ok(check.finish(files.last().map_or(Path::new(""), |(_, path, ..)| path)))
}

struct Check<'a> {
    expected: Option<&'a LineHash>,
    has_expected: bool,
    from_the_first: bool,
    anchor: Anchor,
    /// Whether the record of the anchor's number has its hash, once it was read.
    anchor_fits: Option<bool>,
    verdict: Verdict,
}

impl<'a> Check<'a> {
    fn new(anchor: Anchor, expected: Option<&'a LineHash>) -> Self {
        let anchored = if let Anchor::At(link, _) = &anchor { Some(link.seq) } else { None };
        let verdict = Verdict { anchored, ..Verdict::default() };
        let (has_expected, from_the_first, anchor_fits) = (expected.is_none(), false, None);
        Check { expected, has_expected, from_the_first, anchor, anchor_fits, verdict }
    }

    /// A fault of a file as a whole, unless there is another.
    fn fail(&mut self, file: &Path, reason: String) {
        self.verdict.fault.get_or_insert_with(|| Fault { file: file.to_owned(), line: 0, reason });
    }

    /// Reads a file up to the first fault.
    fn read(&mut self, path: &Path, file: &File, length: u64) -> Result<(), AuditError> {
        let explain = |error| cannot_read(path, error);
        let mut lines = Lines::between(file, 0, length).map_err(explain)?;
        let mut foreign: Option<(Fault, Foreign)> = None;
        while self.verdict.fault.is_none() {
            let line = lines.count + 1;
            let fault = |reason| Fault { file: path.to_owned(), line, reason };
            match lines.next().map_err(explain)? {
                Some((piece, Err(misfit))) => {
                    let begin = || (fault(misfit.to_string()), Foreign::default());
                    foreign.get_or_insert_with(begin).1.add(piece);
                }
                Some((_, Ok(entry))) => {
                    let is_torn = match foreign.take() {
                        Some((_, foreign)) if is_reported(&foreign, &entry) => true,
                        Some((fault, _)) => {
                            self.verdict.fault = Some(fault);
                            break;
                        }
                        None => false,
                    };
                    self.verdict.fault = self.add(entry, is_torn).err().map(fault);
                }
                None => {
                    self.verdict.fault = foreign.map(|(fault, foreign)| fault_at_end(fault, &foreign));
                    break;
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, entry: Entry, is_torn: bool) -> Result<(), String> {
        if !is_torn && (entry.action == TORN || entry.action == DAMAGED) {
            return Err("the bytes that it reports are missing before it".to_owned());
        }
        self.check_order(&entry)?;
        if entry.action == TRUNCATED {
            return Err("records were missing before it when it was written".to_owned());
        }
        if let Anchor::At(link, _) = &self.anchor
            && link.seq == entry.seq
        {
            self.anchor_fits = Some(link.hash == entry.hash);
        }
        self.has_expected |= self.expected == Some(&entry.hash);
        self.verdict.records += 1;
        self.verdict.torn += u64::from(is_torn);
        let place = Place { seq: entry.seq, at: entry.at, hash: entry.hash };
        self.verdict.first.get_or_insert_with(|| place.clone());
        self.verdict.last = Some(place);
        Ok(())
    }

    fn check_order(&self, entry: &Entry) -> Result<(), String> {
        let start = Link::start();
        let (last, last_hash) = match &self.verdict.last {
            Some(last) => (last.seq, &last.hash),
            None if self.from_the_first || entry.seq == 1 => (start.seq, &start.hash),
            None => return Ok(()),
        };
        if entry.seq > last + 1 {
            return Err(format!("records {} to {} are missing before it", last + 1, entry.seq - 1));
        }
        if entry.seq <= last {
            return Err(format!("it is record {} and follows record {last}", entry.seq));
        }
        match entry.prev == *last_hash {
            true => Ok(()),
            false => {
                Err("it was not written after the record before it: one of them was replaced".to_owned())
            }
        }
    }

    fn finish(mut self, path: &Path) -> Verdict {
        if let (Some(hash), false) = (self.expected, self.has_expected) {
            self.fail(
                path,
                format!("no record has the hash {hash}: the end was cut off, or records were rewritten"),
            );
        }
        let last = self.verdict.last.as_ref().map_or(0, |last| last.seq);
        let reason = match (&self.anchor, self.anchor_fits) {
            (Anchor::Unreadable, _) => "the anchor is malformed: it was changed".to_owned(),
            (Anchor::At(link, _), Some(false)) => {
                format!("record {} is not the one that the anchor names: records were rewritten", link.seq)
            }
            (Anchor::At(link, _), None) if link.seq > last => {
                format!(
                    "the end was cut off: the anchor names record {}, and the last one is {last}",
                    link.seq
                )
            }
            _ => return self.verdict,
        };
        self.fail(path, reason);
        self.verdict
    }
}

/// Whether this is a half-written line, and the record after it says so.
fn is_reported(foreign: &Foreign, entry: &Entry) -> bool {
    let detail = |name: &str| entry.details.get(name);
    entry.action == TORN
        && foreign.is_one_line()
        && detail("bytes").and_then(|bytes| bytes.as_u64()) == Some(foreign.bytes)
        && detail("sha256").and_then(|hash| hash.as_str()) == Some(foreign.hash().as_str())
}

fn fault_at_end(mut fault: Fault, foreign: &Foreign) -> Fault {
    if foreign.is_one_line() && !foreign.ends_line {
        fault.reason =
            "the last line has no end: a crash, a full disk, or it was cut; the next record reports it"
                .to_owned();
    }
    fault
}

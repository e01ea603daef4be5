//! Whether the chain of a trail holds, line by line, in bounded memory.
//!
//! What it finds: a line that was changed, taken out, put in or moved; files that are missing between others; an end
//! that was cut off, against the anchor beside the file. What it cannot find by itself: a chain that was counted anew
//! from some line on, together with its anchor. That shows against a hash that was remembered elsewhere.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::LINE_BYTES_MAX;
use super::anchor::{self, Anchor};
use super::error::AuditError;
use super::files;
use super::line::{Entry, LineHash, Link, Misfit, decode};
use super::trail::{DAMAGED, TORN, TRUNCATED};

/// What must hold besides the chain itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expectations {
    /// The trail must reach back to its first record: nothing was put away by intention.
    pub from_the_first: bool,
    /// A hash that was the last one once, or stood at any place since; it must still be there.
    pub hash: Option<LineHash>,
}

/// A record, as a verdict names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its number.
    pub seq: u64,
    /// When it was written.
    pub at: String,
    /// Its hash.
    pub hash: LineHash,
}

/// What does not fit, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1 on; 0 for the file as a whole.
    pub line: u64,
    /// What is wrong, in words.
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

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Records that fit, up to the first fault.
    pub records: u64,
    /// Half-written lines that a crash or a full disk left behind, of which a record tells.
    pub torn: u64,
    /// The first record.
    pub first: Option<Place>,
    /// The last record that fits.
    pub last: Option<Place>,
    /// The number of the record that the anchor names; none where there is no anchor to be compared with.
    pub anchored: Option<u64>,
    /// The first thing that does not fit. None: the chain holds.
    pub fault: Option<Fault>,
}

/// Verifies the trail in this file and those put aside from it. What is appended meanwhile is left for the next time.
pub fn verify_trail(path: &Path, expectations: Expectations) -> Result<Verdict, AuditError> {
    // Before the files: records are written before their anchor, so all that it names is there.
    let anchor = anchor::read(&anchor::path_of(path))?;
    // Opened first: should it be put aside meanwhile, it is met again under its number, and what has a higher one is newer.
    let current = Source::open(path)?;
    let mut check = Check::new(expectations, anchor);
    for aside in files::list_aside(path)? {
        if current.as_ref().is_some_and(|current| files::is_named(&current.file, &aside.path)) {
            break;
        }
        if let Some(source) = Source::open(&aside.path)? {
            check.take_file(source)?;
        }
    }
    if let Some(current) = current {
        check.take_file(current)?;
    }
    if anchor == Anchor::Missing && check.verdict.records > 0 {
        let reason = "its anchor is missing: it was deleted, or an earlier version wrote the trail; the next record makes another";
        check.fail(&anchor::path_of(path), reason.to_owned());
    }
    Ok(check.finish(path))
}

/// Verifies these files as one chain, in the order of their first records, however they are given. If the anchor is
/// among them, its record must be there.
pub fn verify_files(paths: &[PathBuf], expectations: Expectations) -> Result<Verdict, AuditError> {
    let mut sources = Vec::new();
    let mut anchor = Anchor::Missing;
    for path in paths {
        if anchor::is_anchor(path) {
            anchor = anchor::read(path)?;
            continue;
        }
        let source = Source::open(path)?.ok_or_else(|| cannot_read(path, io::ErrorKind::NotFound.into()))?;
        sources.push((source.first_seq()?, source));
    }
    sources.sort_by_key(|(first_seq, _)| *first_seq);
    let mut check = Check::new(expectations, anchor);
    let mut last = PathBuf::new();
    for (_, source) in sources {
        last.clone_from(&source.path);
        check.take_file(source)?;
    }
    Ok(check.finish(&last))
}

fn cannot_read(path: &Path, source: io::Error) -> AuditError {
    AuditError::File { doing: "read", path: path.to_owned(), source }
}

/// A file up to where it reached when nobody wrote.
struct Source {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Source {
    /// None if there is no such file.
    fn open(path: &Path) -> Result<Option<Source>, AuditError> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(cannot_read(path, error)),
        };
        let length = files::settled_length(&file, path)?;
        Ok(Some(Source { path: path.to_owned(), file, length }))
    }

    /// The number of the first line; the highest if that is no record.
    fn first_seq(&self) -> Result<u64, AuditError> {
        let mut chunks = Chunks::of(self);
        let chunk = chunks.next().map_err(|error| cannot_read(&self.path, error))?;
        Ok(chunk.and_then(|chunk| decode(&chunk.bytes).ok()).map_or(u64::MAX, |entry| entry.seq))
    }
}

/// A line without its end, or a part of one that is longer than any of ours.
struct Chunk {
    bytes: Vec<u8>,
    /// It goes on a line that is too long.
    goes_on: bool,
    /// A newline stands behind it.
    is_ended: bool,
}

/// The lines of a file from the first to the last, in bounded memory.
struct Chunks<'a> {
    reader: BufReader<SourceReader<'a>>,
    goes_on: bool,
}

impl<'a> Chunks<'a> {
    fn of(source: &'a Source) -> Self {
        let reader = SourceReader { file: &source.file, position: 0, end: source.length };
        Chunks { reader: BufReader::with_capacity(1 << 16, reader), goes_on: false }
    }

    fn next(&mut self) -> io::Result<Option<Chunk>> {
        let mut bytes = Vec::new();
        self.reader.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let is_ended = bytes.last() == Some(&b'\n');
        if is_ended {
            bytes.pop();
        }
        let goes_on = std::mem::replace(&mut self.goes_on, !is_ended);
        Ok(Some(Chunk { bytes, goes_on, is_ended }))
    }
}

/// Reads a file up to where it is to be read, without moving its shared position.
struct SourceReader<'a> {
    file: &'a File,
    position: u64,
    end: u64,
}

impl Read for SourceReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = usize::try_from(self.end - self.position).unwrap_or(usize::MAX).min(buffer.len());
        let length = self.file.read_at(&mut buffer[..room], self.position)?;
        self.position += length as u64;
        Ok(length)
    }
}

/// Bytes that are no record, since the last one.
struct Strange {
    fault: Fault,
    bytes: u64,
    hasher: Sha256,
    /// Lines with an end, before the last.
    lines: u64,
    /// The last line has an end; it may be that of whoever tells of it.
    is_ended: bool,
}

impl Strange {
    fn beginning_with(chunk: &Chunk, fault: Fault) -> Self {
        let mut strange = Strange { fault, bytes: 0, hasher: Sha256::new(), lines: 0, is_ended: false };
        strange.add(chunk);
        strange
    }

    fn add(&mut self, chunk: &Chunk) {
        self.add_end();
        self.hasher.update(&chunk.bytes);
        self.bytes += chunk.bytes.len() as u64;
        self.is_ended = chunk.is_ended;
    }

    fn add_end(&mut self) {
        if std::mem::take(&mut self.is_ended) {
            self.hasher.update(b"\n");
            self.bytes += 1;
            self.lines += 1;
        }
    }

    /// Whether the record behind it tells of exactly this.
    fn is_told_by(&self, entry: &Entry) -> bool {
        let told = |name: &str| entry.details.get(name);
        told("bytes").and_then(|bytes| bytes.as_u64()) == Some(self.bytes)
            && told("sha256").and_then(|hash| hash.as_str())
                == Some(LineHash::finish(self.hasher.clone()).to_string().as_str())
    }

    /// Why it does not fit; none if it is half a line, and the record behind it says so.
    fn judge(mut self, entry: &Entry) -> Option<Fault> {
        if entry.action == TORN && self.lines == 0 && self.is_told_by(entry) {
            return None;
        }
        let is_told = self.is_told_by(entry) || {
            self.add_end();
            self.is_told_by(entry)
        };
        if entry.action == DAMAGED && is_told {
            self.fault.reason.push_str(&format!("; record {} tells when it was found", entry.seq));
        }
        Some(self.fault)
    }
}

/// Where the check is.
struct Check {
    expectations: Expectations,
    verdict: Verdict,
    last: Option<Link>,
    /// The hash that is expected was met.
    is_met: bool,
    anchor: Anchor,
    /// The record of the anchor's number was met, with its hash or with another.
    anchored: Option<bool>,
}

impl Check {
    fn new(expectations: Expectations, anchor: Anchor) -> Self {
        let mut verdict = Verdict::default();
        if let Anchor::At(link) = anchor {
            verdict.anchored = Some(link.seq);
        }
        Check { expectations, verdict, last: None, is_met: false, anchor, anchored: None }
    }

    /// Takes note of what is wrong with a file as a whole, unless something else is already.
    fn fail(&mut self, file: &Path, reason: String) {
        self.verdict.fault.get_or_insert_with(|| Fault { file: file.to_owned(), line: 0, reason });
    }

    /// Takes in a file. After a fault nothing more is looked at.
    fn take_file(&mut self, source: Source) -> Result<(), AuditError> {
        if self.verdict.fault.is_some() {
            return Ok(());
        }
        let mut chunks = Chunks::of(&source);
        let mut strange: Option<Strange> = None;
        let mut line = 0;
        while let Some(chunk) = chunks.next().map_err(|error| cannot_read(&source.path, error))? {
            line += u64::from(!chunk.goes_on);
            let fault = |reason: String| Fault { file: source.path.clone(), line, reason };
            let read = if chunk.goes_on { Err(Misfit::NotARecord) } else { decode(&chunk.bytes) };
            match (read, &mut strange) {
                (Err(_), Some(strange)) => strange.add(&chunk),
                (Err(misfit), None) => {
                    strange = Some(Strange::beginning_with(&chunk, fault(misfit.to_string())));
                }
                (Ok(entry), _) => {
                    let outcome = self.take_entry(entry, strange.take());
                    self.verdict.fault = outcome.err().map(|refusal| refusal.placed(fault));
                }
            }
            if self.verdict.fault.is_some() {
                return Ok(());
            }
        }
        self.verdict.fault = strange.map(at_the_end);
        Ok(())
    }

    fn take_entry(&mut self, entry: Entry, strange: Option<Strange>) -> Result<(), Refusal> {
        let tells = entry.action == TORN || entry.action == DAMAGED;
        match strange {
            Some(strange) => match strange.judge(&entry) {
                Some(fault) => return Err(Refusal::Elsewhere(fault)),
                None => self.verdict.torn += 1,
            },
            None if tells => {
                return Err(Refusal::Here("what it says stood before it is gone".to_owned()));
            }
            None => {}
        }
        self.check_place(&entry).map_err(Refusal::Here)?;
        if entry.action == TRUNCATED {
            return Err(Refusal::Here("records were missing before it when it was written".to_owned()));
        }
        if let Anchor::At(link) = self.anchor
            && link.seq == entry.seq
        {
            self.anchored = Some(link.hash == entry.hash);
        }
        self.last = Some(Link { seq: entry.seq, hash: entry.hash });
        self.is_met |= self.expectations.hash == Some(entry.hash);
        self.verdict.records += 1;
        let place = Place { seq: entry.seq, at: entry.at, hash: entry.hash };
        self.verdict.first.get_or_insert_with(|| place.clone());
        self.verdict.last = Some(place);
        Ok(())
    }

    /// Whether it fits behind the record before it.
    fn check_place(&self, entry: &Entry) -> Result<(), String> {
        let Some(last) = self.last else {
            let is_first = entry.seq == Link::START.seq + 1;
            return match (is_first, self.expectations.from_the_first) {
                (true, _) if entry.prev != LineHash::BEFORE_THE_FIRST => {
                    Err("it is number 1 and yet names a record before it".to_owned())
                }
                (false, true) => {
                    Err(format!("records 1 to {} are missing before it", entry.seq.saturating_sub(1)))
                }
                _ => Ok(()),
            };
        };
        let expected = last.seq.saturating_add(1);
        if entry.seq > expected {
            return Err(format!("records {expected} to {} are missing before it", entry.seq - 1));
        }
        if entry.seq < expected {
            return Err(format!("it is record {} and stands behind record {}", entry.seq, last.seq));
        }
        match entry.prev == last.hash {
            true => Ok(()),
            false => {
                Err("it was not written behind the record that stands before it: one was replaced".to_owned())
            }
        }
    }

    fn finish(mut self, path: &Path) -> Verdict {
        if let (Some(hash), false) = (self.expectations.hash, self.is_met) {
            let reason = format!(
                "no record has the hash {hash}: the end was cut off, or the records were written anew"
            );
            self.fail(path, reason);
        }
        if let Some(reason) = self.anchor_misfit() {
            self.fail(path, reason);
        }
        self.verdict
    }

    /// Why the anchor does not fit the records.
    fn anchor_misfit(&self) -> Option<String> {
        let link = match self.anchor {
            Anchor::Missing => return None,
            Anchor::Unreadable => return Some("its anchor cannot be read: it was changed".to_owned()),
            Anchor::At(link) => link,
        };
        let last = self.last.map_or(0, |last| last.seq);
        match self.anchored {
            Some(true) => None,
            Some(false) => Some(format!(
                "record {} is not the one that the anchor names: records were written anew",
                link.seq
            )),
            None if link.seq > last => Some(format!(
                "the end was cut off: the anchor names record {}, and the last one is {last}",
                link.seq
            )),
            // Nothing was recorded when it was written, or the file of its record is no longer kept.
            None => None,
        }
    }
}

/// What is wrong when a record comes: itself, or what stood before it.
enum Refusal {
    Here(String),
    Elsewhere(Fault),
}

impl Refusal {
    fn placed(self, here: impl FnOnce(String) -> Fault) -> Fault {
        match self {
            Refusal::Here(reason) => here(reason),
            Refusal::Elsewhere(fault) => fault,
        }
    }
}

/// Something strange with no record behind it that could tell of it.
fn at_the_end(strange: Strange) -> Fault {
    let Strange { mut fault, lines, is_ended, .. } = strange;
    if lines == 0 && !is_ended {
        fault.reason =
            "it is the last one and has no end: a crash or a full disk left half a line, or somebody cut \
                        it; the next record will tell of it"
                .to_owned();
    }
    fault
}

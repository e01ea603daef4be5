//! The trail newest first, page by page, across its files.
//!
//! Reading holds up no writer: only how far to read is asked for under the file's lock. Memory is bounded by
//! [`LIMIT_MAX`] lines, and the time by [`SCAN_BYTES_MAX`] where few lines fit the question. Lines that are no records are
//! left out; finding fault with them is for [`super::verify`].

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::LINE_BYTES_MAX;
use super::error::AuditError;
use super::files;
use super::line::{Entry, decode};
use super::tail::BackwardLines;

/// Records in one page, at the most.
pub const LIMIT_MAX: usize = 1000;
/// What one page reads, at the most.
pub const SCAN_BYTES_MAX: u64 = 16 << 20;
/// Where the search for a record gives way to reading line by line.
const NEAR_BYTES: u64 = 4 * LINE_BYTES_MAX as u64;

/// Which records are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// Only those with lower numbers; from the newest on if left out.
    pub before: Option<u64>,
    /// So many at the most; never more than [`LIMIT_MAX`].
    pub limit: usize,
    /// Only those of this action, or of all that begin with it where it ends in a dot: `user.`.
    pub action: Option<String>,
}

/// Some records, newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuditPage {
    /// The records. Where a search took long there may be fewer than asked for, though there are more.
    pub entries: Vec<Entry>,
    /// What to ask for [`AuditQuery::before`] to go on; none where the trail begins.
    pub next: Option<u64>,
}

/// Reads a page of the trail in this file and those put aside from it.
pub fn newest(path: &Path, query: &AuditQuery) -> Result<AuditPage, AuditError> {
    let mut reading = Reading::new(query);
    // The file that is written is opened first: should it be put aside meanwhile, it is met again under its number, and
    // its lines are known by theirs.
    reading.take_file(path)?;
    for aside in files::list_aside(path)?.iter().rev() {
        if reading.is_full() {
            break;
        }
        reading.take_file(&aside.path)?;
    }
    Ok(reading.finish())
}

struct Reading<'a> {
    query: &'a AuditQuery,
    limit: usize,
    entries: Vec<Entry>,
    /// Only lower numbers are still of interest.
    before: u64,
    scanned_bytes: u64,
    is_full: bool,
}

impl<'a> Reading<'a> {
    fn new(query: &'a AuditQuery) -> Self {
        let limit = query.limit.min(LIMIT_MAX);
        let before = query.before.unwrap_or(u64::MAX);
        Reading { query, limit, entries: Vec::new(), before, scanned_bytes: 0, is_full: limit == 0 }
    }

    fn is_full(&self) -> bool {
        self.is_full
    }

    fn finish(self) -> AuditPage {
        let next = (self.is_full && self.before > 1 && self.before < u64::MAX).then_some(self.before);
        AuditPage { entries: self.entries, next }
    }

    fn take_file(&mut self, path: &Path) -> Result<(), AuditError> {
        let explain = |source| AuditError::File { doing: "read", path: path.to_owned(), source };
        match File::open(path) {
            Ok(file) => {
                let length = files::settled_length(&file, path)?;
                self.take_lines(&file, length).map_err(explain)
            }
            // Not written yet, or too old to be kept.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(explain(error)),
        }
    }

    fn take_lines(&mut self, file: &File, length: u64) -> io::Result<()> {
        let end = end_of_records_before(file, length, self.before)?;
        let mut lines = BackwardLines::before(file, end)?;
        while !self.is_full {
            let Some(piece) = lines.next()? else { return Ok(()) };
            self.scanned_bytes += piece.end - piece.start;
            if let Some(entry) = decode(&piece.bytes).ok().filter(|entry| entry.seq < self.before) {
                self.before = entry.seq;
                if self.fits(&entry) {
                    self.entries.push(entry);
                }
            }
            self.is_full = self.entries.len() >= self.limit || self.scanned_bytes >= SCAN_BYTES_MAX;
        }
        Ok(())
    }

    fn fits(&self, entry: &Entry) -> bool {
        match self.query.action.as_deref() {
            None => true,
            Some(family) if family.ends_with('.') => entry.action.starts_with(family),
            Some(action) => entry.action == action,
        }
    }
}

/// Some place behind the last record with a lower number than `before`, and not far behind it: numbers grow towards the
/// end, so it is found by halving. Deep pages cost no more than the first.
fn end_of_records_before(file: &File, length: u64, before: u64) -> io::Result<u64> {
    if before == u64::MAX {
        return Ok(length);
    }
    let (mut low, mut high) = (0, length);
    while high - low > NEAR_BYTES {
        let middle = low + (high - low) / 2;
        match first_record_from(file, middle, high)? {
            Some((start, seq)) if seq < before => low = start,
            _ => high = middle,
        }
    }
    // Where the search ended may be within a line.
    Ok((high + NEAR_BYTES).min(length))
}

/// Where the first record begins that begins in this part of the file, and its number.
fn first_record_from(file: &File, from: u64, until: u64) -> io::Result<Option<(u64, u64)>> {
    let mut block = vec![0; NEAR_BYTES as usize];
    let length = read_at_most(file, &mut block, from)?;
    let block = &block[..length];
    let mut start = match block.iter().position(|byte| *byte == b'\n') {
        Some(newline) => newline + 1,
        None => return Ok(None),
    };
    while let Some(end) = block[start..].iter().position(|byte| *byte == b'\n').map(|length| start + length) {
        let offset = from + start as u64;
        if offset >= until {
            return Ok(None);
        }
        if let Ok(entry) = decode(&block[start..end]) {
            return Ok(Some((offset, entry.seq)));
        }
        start = end + 1;
    }
    Ok(None)
}

fn read_at_most(file: &File, block: &mut [u8], from: u64) -> io::Result<usize> {
    let mut length = 0;
    while length < block.len() {
        match file.read_at(&mut block[length..], from + length as u64)? {
            0 => break,
            more => length += more,
        }
    }
    Ok(length)
}

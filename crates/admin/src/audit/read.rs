//! The trail newest first, page by page, without holding up writers. Lines that are not records are skipped: see
//! [`super::verify`].

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::file;
use super::line::{Entry, decode};
use super::{AuditError, LINE_BYTES_MAX, cannot_read};

/// Records per page.
pub const LIMIT_MAX: usize = 1000;
/// Read for a page at most: a page of a rare action may be short.
const SCANNED_BYTES_MAX: u64 = 16 << 20;
/// Read at once; longer than a line.
const WINDOW_BYTES: u64 = 4 * LINE_BYTES_MAX as u64;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// Only records with lower numbers.
    pub before: Option<u64>,
    /// At most [`LIMIT_MAX`].
    pub limit: usize,
    /// Only this action, or all that begin with it if it ends in a dot: `user.`.
    pub action: Option<String>,
}

impl AuditQuery {
    fn fits(&self, entry: &Entry) -> bool {
        match self.action.as_deref() {
            None => true,
            Some(family) if family.ends_with('.') => entry.action.starts_with(family),
            Some(action) => entry.action == action,
        }
    }
}

/// Records, newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuditPage {
    pub entries: Vec<Entry>,
    /// [`AuditQuery::before`] of the next page; none at the beginning of the trail.
    pub next: Option<u64>,
}

pub fn newest(path: &Path, query: &AuditQuery) -> Result<AuditPage, AuditError> {
    match file::open_to_read(path)? {
        Some((file, length)) => read_page(&file, length, query).map_err(|error| cannot_read(path, error)),
        None => Ok(AuditPage::default()),
    }
}

fn read_page(file: &File, length: u64, query: &AuditQuery) -> io::Result<AuditPage> {
    let limit = query.limit.min(LIMIT_MAX);
    let mut end = match query.before {
        Some(seq) => position_of(file, length, seq)?,
        None => length,
    };
    let (mut entries, mut next, mut scanned) = (Vec::new(), None, 0);
    while end > 0 && entries.len() < limit && scanned < SCANNED_BYTES_MAX {
        let (start, found) = read_window(file, end)?;
        scanned += end - start;
        for entry in found.into_iter().rev() {
            if entries.len() == limit {
                break;
            }
            next = Some(entry.seq);
            if query.before.is_none_or(|before| entry.seq < before) && query.fits(&entry) {
                entries.push(entry);
            }
        }
        end = start;
    }
    Ok(AuditPage { entries, next: next.filter(|seq| *seq > 1) })
}

/// The records of the last whole lines before `end`, and where the first of these lines begins.
fn read_window(file: &File, end: u64) -> io::Result<(u64, Vec<Entry>)> {
    let from = end.saturating_sub(WINDOW_BYTES);
    let mut bytes = vec![0; usize::try_from(end - from).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut bytes, from)?;
    // The first line began before the window. One without an end in the whole window is no record.
    let begin = if from == 0 {
        0
    } else {
        bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1)
    };
    let start = if begin == bytes.len() { from } else { from + begin as u64 };
    Ok((start, bytes[begin..].split(|byte| *byte == b'\n').filter_map(|line| decode(line).ok()).collect()))
}

/// The end of a window that holds the records before this number, found by bisection: numbers rise towards the end.
fn position_of(file: &File, length: u64, seq: u64) -> io::Result<u64> {
    let (mut low, mut high) = (0, length);
    while high - low > WINDOW_BYTES {
        let middle = low + (high - low) / 2;
        match read_window(file, middle)?.1.last() {
            Some(entry) if entry.seq >= seq => high = middle,
            _ => low = middle,
        }
    }
    Ok(high)
}

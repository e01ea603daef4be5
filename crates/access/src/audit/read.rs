//! The trail newest first, page by page, without holding up writers. Lines that are not records are skipped: see
//! [`super::verify`].

use std::fs::File;
use std::io;
use std::path::Path;

use super::file::{self, End, Lines};
use super::line::Entry;
use super::{AuditError, LINE_BYTES_MAX, cannot_read};

/// Records per page.
pub const LIMIT_MAX: usize = 1000;
/// Records that are read for a page: a page of a rare action may be short.
const SCANNED_MAX: u64 = 40_000;
/// Where the binary search ends.
const NEAR_BYTES: u64 = 4 * LINE_BYTES_MAX as u64;

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
        Some((file, length)) => {
            read_page(path, &file, length, query).map_err(|error| cannot_read(path, error))
        }
        None => Ok(AuditPage::default()),
    }
}

fn read_page(path: &Path, file: &File, length: u64, query: &AuditQuery) -> io::Result<AuditPage> {
    let limit = query.limit.min(LIMIT_MAX);
    let after_last = End::read(file, path)?.last.seq.saturating_add(1);
    let newest = query.before.unwrap_or(u64::MAX).min(after_last);
    let (mut entries, mut before) = (Vec::new(), newest);
    while before > 1 && entries.len() < limit && newest - before < SCANNED_MAX {
        let from = before.saturating_sub(LIMIT_MAX as u64);
        let mut found = read_between(file, length, from, before)?;
        found.reverse();
        before = from;
        for entry in found.into_iter().filter(|entry| query.fits(entry)).take(limit - entries.len()) {
            before = if entries.len() + 1 == limit { entry.seq } else { before };
            entries.push(entry);
        }
    }
    Ok(AuditPage { entries, next: (before > 1 && limit > 0).then_some(before) })
}

/// The records with numbers from `from` up to `before`.
fn read_between(file: &File, length: u64, from: u64, before: u64) -> io::Result<Vec<Entry>> {
    let mut lines = Lines::between(file, position_before(file, length, from)?, length)?;
    let mut entries = Vec::new();
    while let Some((_, read)) = lines.next()? {
        match read {
            Ok(entry) if entry.seq >= before => break,
            Ok(entry) if entry.seq >= from => entries.push(entry),
            _ => {}
        }
    }
    Ok(entries)
}

/// A position before the record of this number, and near it: numbers rise towards the end.
fn position_before(file: &File, length: u64, seq: u64) -> io::Result<u64> {
    let (mut low, mut high) = (0, length);
    while high - low > NEAR_BYTES {
        let middle = low + (high - low) / 2;
        let mut lines = Lines::between(file, middle, high)?;
        // The first line began before the middle.
        lines.next()?;
        let first = loop {
            match lines.next()? {
                Some((_, Ok(entry))) => break Some(entry),
                Some(_) => {}
                None => break None,
            }
        };
        match first {
            Some(entry) if entry.seq < seq => low = middle,
            _ => high = middle,
        }
    }
    Ok(low)
}

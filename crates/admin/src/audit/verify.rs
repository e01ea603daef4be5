//! The check of the chain, line by line, in bounded memory: finds a line that was changed, removed, inserted or moved.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use super::file;
use super::line::{Entry, LineHash, decode, link_after};
use super::{AuditError, LINE_BYTES_MAX, TORN, cannot_read};

const NO_END: &str =
    "the last line has no end: a crash, a full disk, or it was cut; the next record reports it";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// From 1; 0 for the file as a whole.
    pub line: u64,
    pub reason: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.reason),
            line => write!(f, "line {line}: {}", self.reason),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Records up to the first fault.
    pub records: u64,
    /// Half-written lines, each reported by the record after it.
    pub torn: u64,
    /// The last record before the first fault.
    pub last: Option<Entry>,
    /// The first fault. None: the chain is intact.
    pub fault: Option<Fault>,
}

/// Verifies the trail. One of its records must have the hash `expected`.
pub fn verify_trail(path: &Path, expected: Option<&LineHash>) -> Result<Verdict, AuditError> {
    let mut check =
        Check { expected, has_expected: expected.is_none(), torn: None, verdict: Verdict::default() };
    if let Some((file, length)) = file::open_to_read(path)? {
        check.read(&file, length).map_err(|error| cannot_read(path, error))?;
    }
    if let (Some(hash), false) = (expected, check.has_expected) {
        let reason = format!("no record has the hash {hash}: the end was cut off, or records were rewritten");
        check.verdict.fault.get_or_insert(Fault { line: 0, reason });
    }
    Ok(check.verdict)
}

struct Check<'a> {
    expected: Option<&'a LineHash>,
    has_expected: bool,
    /// The line before, if it is no record.
    torn: Option<TornLine>,
    verdict: Verdict,
}

/// A fault, unless the next record reports it.
struct TornLine {
    fault: Fault,
    bytes: u64,
    hash: LineHash,
}

impl Check<'_> {
    /// Reads up to the first fault.
    fn read(&mut self, file: &File, length: u64) -> io::Result<()> {
        let mut reader = BufReader::with_capacity(1 << 16, file.take(length));
        let mut bytes = Vec::new();
        let mut line = 0;
        while self.verdict.fault.is_none() {
            line += 1;
            bytes.clear();
            // A longer line is no record; no more of it is needed.
            reader.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut bytes)?;
            if bytes.is_empty() {
                self.verdict.fault = self.torn.take().map(|torn| torn.fault);
                break;
            }
            self.verdict.fault = self.add_line(line, &bytes).err();
        }
        Ok(())
    }

    fn add_line(&mut self, line: u64, bytes: &[u8]) -> Result<(), Fault> {
        let content = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        match (self.torn.take(), decode(content)) {
            (None, Ok(entry)) if entry.action == TORN => {
                Err(Fault { line, reason: "the bytes that it reports are missing before it".to_owned() })
            }
            (None, Ok(entry)) => self.add(entry).map_err(|reason| Fault { line, reason }),
            (Some(torn), Ok(entry)) if torn.is_reported_by(&entry) => {
                self.verdict.torn += 1;
                self.add(entry).map_err(|reason| Fault { line, reason })
            }
            (Some(torn), _) => Err(torn.fault),
            (None, Err(misfit)) => {
                let is_cut = content.len() == bytes.len() && bytes.len() <= LINE_BYTES_MAX;
                let reason = if is_cut { NO_END.to_owned() } else { misfit.to_string() };
                let (bytes, hash) = (content.len() as u64, LineHash::of(content));
                self.torn = Some(TornLine { fault: Fault { line, reason }, bytes, hash });
                Ok(())
            }
        }
    }

    fn add(&mut self, entry: Entry) -> Result<(), String> {
        let (seq, prev) = link_after(self.verdict.last.as_ref());
        if entry.seq > seq {
            return Err(format!("records {seq} to {} are missing before it", entry.seq - 1));
        }
        if entry.seq < seq {
            return Err(format!("it is record {} and follows record {}", entry.seq, seq - 1));
        }
        if entry.prev != prev {
            let reason = "it was not written after the record before it: one of them was replaced";
            return Err(reason.to_owned());
        }
        self.has_expected |= self.expected == Some(&entry.hash);
        self.verdict.records += 1;
        self.verdict.last = Some(entry);
        Ok(())
    }
}

impl TornLine {
    fn is_reported_by(&self, entry: &Entry) -> bool {
        let detail = |name: &str| entry.details.get(name);
        entry.action == TORN
            && detail("bytes").and_then(|bytes| bytes.as_u64()) == Some(self.bytes)
            && detail("sha256").and_then(|hash| hash.as_str()) == Some(self.hash.as_str())
    }
}

//! The end of a file: its lines from the last to the first, and the last record with what stands behind it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use sha2::{Digest, Sha256};

use super::LINE_BYTES_MAX;
use super::line::{Entry, LineHash, Link, decode};

/// Read at a time, from the end towards the beginning.
const BLOCK_BYTES: usize = 16 * 1024;

/// A line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Where it begins.
    pub(super) start: u64,
    /// Where it ends; its newline, if it has one, stands there.
    pub(super) end: u64,
    /// What it says; nothing if it is longer than any line of ours.
    pub(super) bytes: Vec<u8>,
}

/// The lines of a file from the last to the first, in bounded memory.
#[derive(Debug)]
pub(super) struct BackwardLines<'a> {
    file: &'a File,
    /// Where the buffer begins in the file.
    buffer_start: u64,
    /// What was read and not yet handed out.
    buffer: Vec<u8>,
    /// Where the line that is being looked for ends.
    end: u64,
    /// Its end was thrown away: it is longer than any line of ours.
    is_too_long: bool,
    is_done: bool,
}

impl<'a> BackwardLines<'a> {
    /// The lines before `end`. If a newline is the last byte before it, the first piece is the line that it ends.
    pub(super) fn before(file: &'a File, end: u64) -> io::Result<Self> {
        let mut last = [0];
        let mut end_of_line = end;
        if end > 0 {
            file.read_exact_at(&mut last, end - 1)?;
            end_of_line -= u64::from(last == *b"\n");
        }
        Ok(BackwardLines {
            file,
            buffer_start: end_of_line,
            buffer: Vec::new(),
            end: end_of_line,
            is_too_long: false,
            is_done: end == 0,
        })
    }

    /// The next line towards the beginning.
    pub(super) fn next(&mut self) -> io::Result<Option<Piece>> {
        while !self.is_done {
            if let Some(newline) = self.buffer.iter().rposition(|byte| *byte == b'\n') {
                let bytes = self.buffer.split_off(newline + 1);
                self.buffer.truncate(newline);
                let start = self.buffer_start + newline as u64 + 1;
                return Ok(Some(self.take_piece(start, bytes)));
            }
            if self.buffer_start == 0 {
                self.is_done = true;
                let bytes = std::mem::take(&mut self.buffer);
                return Ok(Some(self.take_piece(0, bytes)));
            }
            if self.buffer.len() > LINE_BYTES_MAX {
                self.is_too_long = true;
                self.buffer.clear();
            }
            self.read_block()?;
        }
        Ok(None)
    }

    fn take_piece(&mut self, start: u64, bytes: Vec<u8>) -> Piece {
        let bytes = if std::mem::take(&mut self.is_too_long) { Vec::new() } else { bytes };
        let piece = Piece { start, end: self.end, bytes };
        // The newline before it ends the next one.
        self.end = start.saturating_sub(1);
        piece
    }

    fn read_block(&mut self) -> io::Result<()> {
        let length = self.buffer_start.min(BLOCK_BYTES as u64);
        let start = self.buffer_start - length;
        let mut block = vec![0; length as usize];
        self.file.read_exact_at(&mut block, start)?;
        block.append(&mut self.buffer);
        self.buffer = block;
        self.buffer_start = start;
        Ok(())
    }
}

/// What stands behind the last record: half a line after a crash, or what somebody else wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Remains {
    pub(super) bytes: u64,
    pub(super) hash: LineHash,
    /// Whole lines are among it, which no crash of ours leaves behind.
    pub(super) has_lines: bool,
}

/// How a file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tail {
    /// The last record; none if there is none in the file.
    pub(super) last: Option<Link>,
    /// What stands behind it.
    pub(super) remains: Option<Remains>,
    /// Whether the file ends in the middle of a line.
    pub(super) is_open: bool,
}

/// Looks at the end of a file of this length. Whether the last record fits the one before is not looked at: that is for
/// those who verify.
pub(super) fn read(file: &File, length: u64) -> io::Result<Tail> {
    let mut lines = BackwardLines::before(file, length)?;
    let mut last = None;
    let mut remains_start = 0;
    let mut is_open = false;
    let mut is_first = true;
    while let Some(piece) = lines.next()? {
        is_open |= is_first && piece.end == length;
        is_first = false;
        if let Ok(Entry { seq, hash, .. }) = decode(&piece.bytes) {
            last = Some(Link { seq, hash });
            remains_start = (piece.end + 1).min(length);
            break;
        }
    }
    Ok(Tail { last, remains: read_remains(file, remains_start, length)?, is_open })
}

fn read_remains(file: &File, start: u64, end: u64) -> io::Result<Option<Remains>> {
    if start >= end {
        return Ok(None);
    }
    let mut hasher = Sha256::new();
    let mut has_lines = false;
    let mut block = vec![0; BLOCK_BYTES];
    let mut position = start;
    while position < end {
        let length = (end - position).min(BLOCK_BYTES as u64) as usize;
        file.read_exact_at(&mut block[..length], position)?;
        has_lines |= block[..length].contains(&b'\n');
        hasher.update(&block[..length]);
        position += length as u64;
    }
    Ok(Some(Remains { bytes: end - start, hash: LineHash::finish(hasher), has_lines }))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn pieces(text: &[u8]) -> Vec<Piece> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        let mut lines = BackwardLines::before(&file, text.len() as u64).unwrap();
        let mut pieces = Vec::new();
        while let Some(piece) = lines.next().unwrap() {
            pieces.push(piece);
        }
        pieces
    }

    #[test]
    fn lines_come_from_the_last_to_the_first() {
        let texts = |text: &str| -> Vec<String> {
            pieces(text.as_bytes()).into_iter().map(|piece| String::from_utf8(piece.bytes).unwrap()).collect()
        };
        assert_eq!(texts("a\nbb\nccc\n"), ["ccc", "bb", "a"]);
        assert_eq!(texts("a\nbb\nccc"), ["ccc", "bb", "a"]);
        assert_eq!(texts("\n\na\n"), ["a", "", ""]);
        assert_eq!(texts(""), [""; 0]);
        assert_eq!(texts("a"), ["a"]);
    }

    #[test]
    fn lines_that_cross_blocks_are_whole_and_too_long_ones_are_empty() {
        fastrand::seed(7);
        let mut lines: Vec<Vec<u8>> = Vec::new();
        for _ in 0..200 {
            let length = fastrand::usize(0..LINE_BYTES_MAX);
            lines.push(vec![b'x'; length]);
        }
        lines.insert(100, vec![b'y'; 5 * LINE_BYTES_MAX]);
        let text: Vec<u8> = lines.iter().flat_map(|line| [line.as_slice(), b"\n"].concat()).collect();
        let mut found = pieces(&text);
        found.reverse();
        assert_eq!(found.len(), lines.len());
        let mut start = 0;
        for (piece, line) in found.iter().zip(&lines) {
            assert_eq!((piece.start, piece.end), (start, start + line.len() as u64));
            let expected: &[u8] = if line.len() > 4 * LINE_BYTES_MAX { b"" } else { line };
            assert!(piece.bytes == expected);
            start = piece.end + 1;
        }
    }
}

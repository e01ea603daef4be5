//! Friendships as text: one pair a line.
//!
//! A pair is two ids separated by a comma, a semicolon or blanks. Empty lines and lines that begin with `#` are
//! skipped. Any other line is an error that names its line number.

use domain::UserId;

/// Comment lines included.
const LINE_BYTES_MAX: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} {}", problem.text())]
pub struct PairLineError {
    /// Counted from 1.
    pub line: u64,
    pub problem: PairLineProblem,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairLineProblem {
    /// The line is neither a pair nor a comment.
    NotAPair,
    /// Both ids are the same.
    OwnFriend,
    TooLong,
}

impl PairLineProblem {
    const fn text(self) -> &'static str {
        match self {
            PairLineProblem::NotAPair => {
                "is not a pair of users: write two ids on each line (7,9 or 7 9), or a comment that begins with #"
            }
            PairLineProblem::OwnFriend => "names one user twice: a user cannot be their own friend",
            PairLineProblem::TooLong => "is longer than 4096 bytes: write one pair on each line",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairLine {
    /// Counted from 1.
    pub line: u64,
    pub pair: (UserId, UserId),
}

/// Parses pairs from text that arrives in chunks of any size.
#[derive(Debug, Default)]
pub struct PairLines {
    /// The beginning of an incomplete line.
    begun: Vec<u8>,
    /// Complete lines so far.
    lines: u64,
}

impl PairLines {
    /// Takes a chunk. Returns the pairs of all lines that end in it.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<Vec<PairLine>, PairLineError> {
        let mut pairs = Vec::new();
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = bytes.split_at(end);
            bytes = &rest[1..];
            pairs.extend(self.end_line(line)?);
        }
        if self.begun.len() + bytes.len() > LINE_BYTES_MAX {
            return Err(self.error(PairLineProblem::TooLong));
        }
        self.begun.extend_from_slice(bytes);
        Ok(pairs)
    }

    /// Ends the text: returns the pair of a last line without a newline.
    pub fn finish(mut self) -> Result<Option<PairLine>, PairLineError> {
        self.end_line(b"")
    }

    /// Parses the line that ends with `last_part`.
    fn end_line(&mut self, last_part: &[u8]) -> Result<Option<PairLine>, PairLineError> {
        if self.begun.len() + last_part.len() > LINE_BYTES_MAX {
            return Err(self.error(PairLineProblem::TooLong));
        }
        self.begun.extend_from_slice(last_part);
        let pair = read_line(&self.begun).map_err(|problem| self.error(problem))?;
        self.begun.clear();
        self.lines += 1;
        Ok(pair.map(|pair| PairLine { line: self.lines, pair }))
    }

    fn error(&self, problem: PairLineProblem) -> PairLineError {
        PairLineError { line: self.lines + 1, problem }
    }
}

fn read_line(line: &[u8]) -> Result<Option<(UserId, UserId)>, PairLineProblem> {
    let text = str::from_utf8(line).map_err(|_| PairLineProblem::NotAPair)?.trim();
    if text.is_empty() || text.starts_with('#') {
        return Ok(None);
    }
    let mut ids = text.splitn(2, [',', ';', ' ', '\t']);
    let mut id =
        || ids.next().and_then(|id| id.trim().parse::<UserId>().ok()).ok_or(PairLineProblem::NotAPair);
    match (id()?, id()?) {
        (one, other) if one == other => Err(PairLineProblem::OwnFriend),
        pair => Ok(Some(pair)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(text: &[u8], piece: usize) -> Result<Vec<(u64, u64, u64)>, PairLineError> {
        let mut lines = PairLines::default();
        let mut pairs = Vec::new();
        for bytes in text.chunks(piece) {
            pairs.extend(lines.push(bytes)?);
        }
        pairs.extend(lines.finish()?);
        Ok(pairs.iter().map(|read| (read.line, read.pair.0.get(), read.pair.1.get())).collect())
    }

    #[test]
    fn pairs_are_read_however_the_text_is_cut() {
        let text = b"# pairs of friends\n1,2\r\n\n 3 4 \n5;6\n7\t8\n9, 10\n11   12";
        let expected = [(2, 1, 2), (4, 3, 4), (5, 5, 6), (6, 7, 8), (7, 9, 10), (8, 11, 12)];
        for piece in [1, 2, 7, 1000] {
            assert_eq!(read_all(text, piece).unwrap(), expected);
        }
    }

    #[test]
    fn a_line_that_is_no_pair_is_named() {
        for bad in [
            "1",
            "1,2,3",
            "a,b",
            "0,1",
            "-1,2",
            "1,",
            ",1",
            "1 2 x",
            "1.0,2",
            "\u{feff}1,2",
            "9223372036854775808,1",
        ] {
            let text = format!("1,2\n# fine\n{bad}\n");
            let error = read_all(text.as_bytes(), 3).unwrap_err();
            assert_eq!(error, PairLineError { line: 3, problem: PairLineProblem::NotAPair }, "{bad}");
        }
        assert_eq!(read_all(b"\xff,1", 9).unwrap_err().line, 1);
        let twice = read_all(b"7,7", 9).unwrap_err();
        assert_eq!(twice.to_string(), "line 1 names one user twice: a user cannot be their own friend");
        let long = [b'1'; 5000];
        assert_eq!(read_all(&long, 100).unwrap_err().problem, PairLineProblem::TooLong);
        assert_eq!(read_all(&long, 9000).unwrap_err().problem, PairLineProblem::TooLong);
    }
}

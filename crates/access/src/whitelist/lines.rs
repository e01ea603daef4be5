//! Parser for lists of passkeys, one per line.
//!
//! Surrounding blanks, empty lines and lines that begin with `#` are ignored. Upper case is normalised (W1). An error names the
//! line number and not its text, which is probably a mistyped passkey.

use domain::Passkey;

const LINE_BYTES_MAX: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} {}", problem.text())]
pub struct LineError {
    /// From 1.
    pub line: u64,
    pub problem: LineProblem,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineProblem {
    NotAPasskey,
    TooLong,
}

impl LineProblem {
    const fn text(self) -> &'static str {
        match self {
            LineProblem::NotAPasskey => {
                "is not a passkey: write one on each line, 8 to 64 hexadecimal digits, or a comment that begins with #"
            }
            LineProblem::TooLong => "is longer than 4096 bytes: write one passkey on each line",
        }
    }
}

/// Accepts text in chunks of any size.
#[derive(Debug, Default)]
pub struct PasskeyLines {
    /// The last line so far, not ended yet.
    begun: Vec<u8>,
    /// Complete lines.
    lines: u64,
}

impl PasskeyLines {
    /// Returns the passkeys of all lines that end in this chunk.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<Vec<Passkey>, LineError> {
        let mut passkeys = Vec::new();
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = bytes.split_at(end);
            bytes = &rest[1..];
            passkeys.extend(self.end_line(line)?);
        }
        if self.begun.len() + bytes.len() > LINE_BYTES_MAX {
            return Err(self.error(LineProblem::TooLong));
        }
        self.begun.extend_from_slice(bytes);
        Ok(passkeys)
    }

    /// Ends the text. Returns the passkey of a last line without a line feed.
    pub fn finish(mut self) -> Result<Option<Passkey>, LineError> {
        self.end_line(b"")
    }

    fn end_line(&mut self, last_part: &[u8]) -> Result<Option<Passkey>, LineError> {
        if self.begun.len() + last_part.len() > LINE_BYTES_MAX {
            return Err(self.error(LineProblem::TooLong));
        }
        let passkey = if self.begun.is_empty() {
            read_line(last_part)
        } else {
            self.begun.extend_from_slice(last_part);
            read_line(&self.begun)
        };
        let passkey = passkey.map_err(|problem| self.error(problem))?;
        self.begun.clear();
        self.lines += 1;
        Ok(passkey)
    }

    fn error(&self, problem: LineProblem) -> LineError {
        LineError { line: self.lines + 1, problem }
    }
}

fn read_line(line: &[u8]) -> Result<Option<Passkey>, LineProblem> {
    let text = line.trim_ascii();
    if text.is_empty() || text.starts_with(b"#") {
        return Ok(None);
    }
    Passkey::from_ascii(text).map(Some).map_err(|_| LineProblem::NotAPasskey)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(text: &[u8], piece: usize) -> Result<Vec<String>, LineError> {
        let mut lines = PasskeyLines::default();
        let mut passkeys = Vec::new();
        for bytes in text.chunks(piece) {
            passkeys.extend(lines.push(bytes)?);
        }
        passkeys.extend(lines.finish()?);
        Ok(passkeys.iter().map(Passkey::to_string).collect())
    }

    #[test]
    fn w1_a_list_is_parsed_from_chunks_of_any_size() {
        let text = b"# the site's users\r\n\n  0123456789ABCDEF \r\n\t\nfedcba98\n#00\nabcdef0123";
        for piece in 1..=text.len() {
            let read = read_all(text, piece).unwrap();
            assert_eq!(read, ["0123456789abcdef", "fedcba98", "abcdef0123"], "{piece}");
        }
        assert_eq!(read_all(b"", 1).unwrap(), [""; 0]);
    }

    #[test]
    fn w1_an_error_names_the_line_and_does_not_show_it() {
        for (text, line) in [
            (&b"abcd"[..], 1),
            (b"01234567\nnot hex!\n", 2),
            (b"01234567\n\n#\n0123456789 89abcdef", 4),
            (b"\xef\xbb\xbf01234567\n", 1),
            (b"01234567\x00\n", 1),
            (&[b'a'; 65], 1),
        ] {
            for piece in 1..=text.len() {
                let error = read_all(text, piece).unwrap_err();
                assert_eq!(error, LineError { line, problem: LineProblem::NotAPasskey }, "{piece}");
            }
        }
        let shown = read_all(b"01234567\n0123456789abcdeX\n", 7).unwrap_err().to_string();
        assert!(shown.starts_with("line 2 is not a passkey: ") && !shown.contains("abcde"), "{shown}");
    }

    #[test]
    fn the_length_of_a_line_is_bounded() {
        let mut lines = PasskeyLines::default();
        assert!(lines.push(b"01234567\n").is_ok());
        let piece = [b'a'; 1000];
        let error = (0..5).find_map(|_| lines.push(&piece).err()).unwrap();
        assert_eq!(error, LineError { line: 2, problem: LineProblem::TooLong });
        assert!(lines.begun.len() <= LINE_BYTES_MAX);
        let comment = [b"#".as_slice(), &[b' '; LINE_BYTES_MAX - 1]].concat();
        assert_eq!(read_all(&comment, 100).unwrap(), [""; 0]);
        assert!(read_all(&[&comment[..], b" \n"].concat(), 100).is_err());
    }
}

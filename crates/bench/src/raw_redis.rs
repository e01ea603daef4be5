//! The limit of one connection to Redis: commands encoded beforehand, over a blocking socket.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, bail};

/// Pieces sent before the replies to the first one are read, so that Redis is never idle.
const PIECES_AHEAD: usize = 2;
/// Timeout without replies.
const SILENCE_S_MAX: u64 = 30;

/// Encoded commands.
#[derive(Clone, Debug, Default)]
pub struct Piece {
    bytes: Vec<u8>,
    commands: usize,
}

impl Piece {
    pub fn add(&mut self, words: &[&str]) {
        self.push(words.iter().map(|word| word.as_bytes()));
    }

    pub fn push<'a>(&mut self, words: impl ExactSizeIterator<Item = &'a [u8]>) {
        // Writing to memory cannot fail.
        let _ = write!(self.bytes, "*{}\r\n", words.len());
        for word in words {
            let _ = write!(self.bytes, "${}\r\n", word.len());
            self.bytes.extend_from_slice(word);
            self.bytes.extend_from_slice(b"\r\n");
        }
        self.commands += 1;
    }
}

#[derive(Debug)]
pub struct RawRedis {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl RawRedis {
    /// Connects to a Redis on this machine.
    pub fn connect(port: u16) -> anyhow::Result<Self> {
        let connect = || -> std::io::Result<TcpStream> {
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(Duration::from_secs(SILENCE_S_MAX)))?;
            stream.set_write_timeout(Some(Duration::from_secs(SILENCE_S_MAX)))?;
            Ok(stream)
        };
        let stream = connect().context("connecting to Redis")?;
        Ok(RawRedis { stream, unread: Vec::with_capacity(1 << 16) })
    }

    /// Sends commands and waits for all replies. An error reply ends it.
    pub fn send(&mut self, pieces: &[Piece]) -> anyhow::Result<()> {
        for (position, piece) in pieces.iter().enumerate() {
            self.stream.write_all(&piece.bytes).context("writing to Redis")?;
            if position + 1 >= PIECES_AHEAD {
                self.read_replies(pieces[position + 1 - PIECES_AHEAD].commands)?;
            }
        }
        let answered = (pieces.len() + 1).saturating_sub(PIECES_AHEAD);
        self.read_replies(pieces[answered..].iter().map(|piece| piece.commands).sum())
    }

    pub fn command(&mut self, words: &[&str]) -> anyhow::Result<()> {
        let mut piece = Piece::default();
        piece.add(words);
        self.send(&[piece])
    }

    fn read_replies(&mut self, count: usize) -> anyhow::Result<()> {
        let mut missing = count;
        let mut at = 0;
        while missing > 0 {
            while let Some(length) = reply_length(&self.unread[at..])? {
                at += length;
                missing -= 1;
                if missing == 0 {
                    break;
                }
            }
            if missing > 0 {
                self.unread.drain(..at);
                at = 0;
                self.read_more()?;
            }
        }
        self.unread.drain(..at);
        Ok(())
    }

    fn read_more(&mut self) -> anyhow::Result<()> {
        let mut chunk = [0; 1 << 16];
        let length = self.stream.read(&mut chunk).context("reading from Redis")?;
        if length == 0 {
            bail!("Redis closed the connection");
        }
        self.unread.extend_from_slice(&chunk[..length]);
        Ok(())
    }
}

/// The length of the first reply; none if it is incomplete. Supports lines, integers, bulk strings and arrays.
fn reply_length(bytes: &[u8]) -> anyhow::Result<Option<usize>> {
    let Some(line_length) = memchr::memchr(b'\n', bytes).map(|position| position + 1) else {
        return Ok(None);
    };
    let line = &bytes[..line_length];
    let text = || String::from_utf8_lossy(line).trim_end().to_owned();
    let whole = match line[0] {
        b'+' | b':' => line_length,
        b'$' => {
            let length = text()[1..].parse::<i64>().with_context(text)?;
            usize::try_from(length).map_or(line_length, |length| line_length + length + 2)
        }
        b'*' => {
            let count = text()[1..].parse::<i64>().with_context(text)?;
            let mut length = line_length;
            for _ in 0..count.max(0) {
                let Some(next) = reply_length(&bytes[length..])? else { return Ok(None) };
                length += next;
            }
            length
        }
        _ => bail!("not a reply: {}", text()),
    };
    Ok((bytes.len() >= whole).then_some(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_told_apart() {
        assert_eq!(reply_length(b":1\r\n:2\r\n").unwrap(), Some(4));
        assert_eq!(reply_length(b"$3\r\n1-1\r\n+OK").unwrap(), Some(9));
        assert_eq!(reply_length(b"$-1\r\n").unwrap(), Some(5));
        assert_eq!(reply_length(b"$3\r\n1-").unwrap(), None);
        assert_eq!(reply_length(b"").unwrap(), None);
        assert_eq!(reply_length(b"*2\r\n:1\r\n*1\r\n$1\r\na\r\n:5").unwrap(), Some(19));
        assert_eq!(reply_length(b"*2\r\n:1\r\n").unwrap(), None);
        assert!(reply_length(b"-ERR no\r\n").unwrap_err().to_string().contains("no"));
    }

    #[test]
    fn a_command_is_written_as_redis_reads_it() {
        let mut piece = Piece::default();
        piece.push([&b"PING"[..], b"a"].into_iter());
        assert_eq!(piece.bytes, b"*2\r\n$4\r\nPING\r\n$1\r\na\r\n");
    }
}

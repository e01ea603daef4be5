//! Recording Redis commands with `MONITOR`, and replaying them.
//!
//! Only writes and scripts are kept: blocking reads are not work.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};

use crate::raw_redis::Piece;

/// Commands that are replayed.
const KEPT: [&[u8]; 7] = [b"EVALSHA", b"EVAL", b"XADD", b"ZADD", b"ZREM", b"SET", b"PEXPIRE"];
/// Commands per batch: the most that a gateway sends.
const BATCH: usize = 1_000;
/// Interval of checks whether to stop recording.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A command, word by word.
type Words = Vec<Vec<u8>>;

/// A connection in `MONITOR` mode.
pub(super) struct Recorder {
    is_enough: Arc<AtomicBool>,
    thread: JoinHandle<anyhow::Result<Vec<u8>>>,
}

impl Recorder {
    pub(super) fn start(port: u16) -> anyhow::Result<Recorder> {
        let begin = || -> std::io::Result<TcpStream> {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
            stream.write_all(b"MONITOR\r\n")?;
            let mut ok = [0; 5];
            stream.read_exact(&mut ok)?;
            stream.set_read_timeout(Some(LOOK_EVERY))?;
            Ok(stream)
        };
        let stream = begin().context("listening to Redis")?;
        let is_enough = Arc::new(AtomicBool::new(false));
        let of_thread = is_enough.clone();
        let thread = std::thread::spawn(move || record(stream, &of_thread));
        Ok(Recorder { is_enough, thread })
    }

    pub(super) fn finish(self) -> anyhow::Result<Recording> {
        self.is_enough.store(true, Ordering::Relaxed);
        let text = self.thread.join().map_err(|_| anyhow!("the recorder failed"))??;
        let kept = |words: &Words| {
            words.first().is_some_and(|name| KEPT.iter().any(|kept| name.eq_ignore_ascii_case(kept)))
        };
        let commands: Vec<Words> =
            text.split(|byte| *byte == b'\n').filter_map(words_of).filter(kept).collect();
        if commands.is_empty() {
            bail!("nothing was recorded: do the gateways share this Redis?");
        }
        Ok(Recording { commands })
    }
}

fn record(mut stream: TcpStream, is_enough: &AtomicBool) -> anyhow::Result<Vec<u8>> {
    let (mut text, mut chunk) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(text),
            Ok(count) => text.extend_from_slice(&chunk[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if is_enough.load(Ordering::Relaxed) {
                    return Ok(text);
                }
            }
            Err(error) => return Err(error).context("listening to Redis"),
        }
    }
}

/// Recorded commands.
pub(super) struct Recording {
    commands: Vec<Words>,
}

impl Recording {
    pub(super) fn commands(&self) -> usize {
        self.commands.len()
    }

    /// Batched as a busy gateway sends them.
    pub(super) fn in_batches(&self) -> Vec<Piece> {
        self.in_pieces_of(BATCH)
    }

    pub(super) fn in_pieces_of(&self, count: usize) -> Vec<Piece> {
        let piece = |commands: &[Words]| {
            let mut piece = Piece::default();
            commands.iter().for_each(|words| piece.push(words.iter().map(Vec::as_slice)));
            piece
        };
        self.commands.chunks(count.max(1)).map(piece).collect()
    }
}

/// The words of a line such as `+1700000000.123456 [0 127.0.0.1:5] "SET" "a" "b"`. Commands within scripts have `lua`
/// in place of an address and are skipped.
fn words_of(line: &[u8]) -> Option<Words> {
    let end = line.iter().position(|byte| *byte == b']')?;
    if line[..end].ends_with(b" lua") {
        return None;
    }
    let mut rest = line[end + 1..].iter().copied();
    let mut words = Vec::new();
    while let Some(byte) = rest.next() {
        if byte != b'"' {
            continue;
        }
        let mut word = Vec::new();
        loop {
            match rest.next()? {
                b'"' => break,
                b'\\' => word.push(escaped(&mut rest)?),
                plain => word.push(plain),
            }
        }
        words.push(word);
    }
    (!words.is_empty()).then_some(words)
}

fn escaped(rest: &mut impl Iterator<Item = u8>) -> Option<u8> {
    Some(match rest.next()? {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'a' => 7,
        b'b' => 8,
        b'x' => {
            let digits = [rest.next()?, rest.next()?];
            u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
        }
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_monitor_is_the_command_again() {
        let line = br#"+1.2 [0 127.0.0.1:5] "EVALSHA" "a\"b" "\x00\xff\n" """#;
        let expected: Words = vec![b"EVALSHA".to_vec(), b"a\"b".to_vec(), vec![0, 255, b'\n'], Vec::new()];
        assert_eq!(words_of(line), Some(expected));
        assert_eq!(words_of(br#"+1.2 [0 lua] "hset" "k""#), None);
        assert_eq!(words_of(b"+OK"), None);
        assert_eq!(words_of(br#"+1.2 [0 x] "cut"#), None);
    }
}

//! Lists that a command reads: from a file, or from standard input.
//!
//! A thread of its own reads, since a read from a terminal or a pipe cannot be broken off. It waits while what was read is
//! taken in, so memory stays bounded however long the list is.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::mpsc;

/// Bytes read at a time.
const PIECE: usize = 256 * 1024;
/// Pieces that may wait.
const PIECES_WAITING_MAX: usize = 4;

/// Where a list comes from.
pub enum Source {
    /// A file.
    File(PathBuf, File),
    /// Standard input.
    Stdin,
}

impl Source {
    /// Opens the file; standard input if there is none, or if it is `-`. `what` is what is expected there.
    pub fn open(path: Option<&Path>, what: &str) -> anyhow::Result<Source> {
        match path {
            Some(path) if path != Path::new("-") => {
                let opened = File::open(path).and_then(|file| match file.metadata()?.is_dir() {
                    true => Err(io::ErrorKind::IsADirectory.into()),
                    false => Ok(file),
                });
                let file = opened.with_context(|| format!("cannot read {}", path.display()))?;
                Ok(Source::File(path.to_owned(), file))
            }
            _ => {
                if io::stdin().is_terminal() {
                    eprintln!("reading {what} from the terminal, one a line; Ctrl-D ends the list");
                }
                Ok(Source::Stdin)
            }
        }
    }

    /// What it is called, for people.
    pub fn name(&self) -> String {
        match self {
            Source::File(path, _) => path.display().to_string(),
            Source::Stdin => "standard input".to_owned(),
        }
    }

    /// Progress on standard error, if that is a terminal and what is typed does not go there too.
    pub fn bar(&self) -> ProgressBar {
        let bytes = match self {
            Source::File(_, file) => file.metadata().ok().map(|about| about.len()).filter(|bytes| *bytes > 0),
            Source::Stdin if io::stdin().is_terminal() => return ProgressBar::hidden(),
            Source::Stdin => None,
        };
        let (bar, template) = match bytes {
            Some(bytes) => (ProgressBar::new(bytes), "{bar:30} {percent:>3} %  {msg}  {elapsed}"),
            None => (ProgressBar::no_length(), "{spinner}  {msg}  {bytes}  {elapsed}"),
        };
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        bar
    }

    /// Reads on a thread of its own, which ends when the list does, or when nobody wants any more of it.
    pub fn read_aside(self) -> mpsc::Receiver<io::Result<Vec<u8>>> {
        let (sender, pieces) = mpsc::channel(PIECES_WAITING_MAX);
        std::thread::spawn(move || match self {
            Source::File(_, file) => read_all(file, &sender),
            Source::Stdin => read_all(io::stdin().lock(), &sender),
        });
        pieces
    }
}

fn read_all(mut source: impl Read, sender: &mpsc::Sender<io::Result<Vec<u8>>>) {
    loop {
        let mut piece = vec![0; PIECE];
        let outcome = match source.read(&mut piece) {
            Ok(0) => return,
            Ok(length) => {
                piece.truncate(length);
                Ok(piece)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let is_over = outcome.is_err();
        if sender.blocking_send(outcome).is_err() || is_over {
            return;
        }
    }
}

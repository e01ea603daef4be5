//! Input lists of commands: a file, or standard input.
//!
//! Read on a thread, because a read from a terminal or a pipe cannot be cancelled. The thread waits while chunks are
//! processed, so memory is bounded.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::mpsc;

const CHUNK_BYTES: usize = 256 * 1024;
const CHUNKS_QUEUED_MAX: usize = 4;

pub enum Input {
    File(PathBuf, File),
    Stdin,
}

impl Input {
    /// Standard input without a path or for `-`. `what` is printed as a prompt on a terminal.
    pub fn open(path: Option<&Path>, what: &str) -> anyhow::Result<Input> {
        match path {
            Some(path) if path != Path::new("-") => {
                let opened = File::open(path).and_then(|file| match file.metadata()?.is_dir() {
                    true => Err(io::ErrorKind::IsADirectory.into()),
                    false => Ok(file),
                });
                let file = opened.with_context(|| format!("cannot read {}", path.display()))?;
                Ok(Input::File(path.to_owned(), file))
            }
            _ => {
                if io::stdin().is_terminal() {
                    eprintln!("reading {what} from the terminal, one per line; Ctrl-D ends the list");
                }
                Ok(Input::Stdin)
            }
        }
    }

    pub fn name(&self) -> String {
        match self {
            Input::File(path, _) => path.display().to_string(),
            Input::Stdin => "standard input".to_owned(),
        }
    }

    /// On standard error; hidden if the input is typed on a terminal.
    pub fn progress_bar(&self) -> ProgressBar {
        let bytes = match self {
            Input::File(_, file) => file.metadata().ok().map(|about| about.len()).filter(|bytes| *bytes > 0),
            Input::Stdin if io::stdin().is_terminal() => return ProgressBar::hidden(),
            Input::Stdin => None,
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

    /// The thread ends with the input, or when the receiver is dropped.
    pub fn read_on_thread(self) -> mpsc::Receiver<io::Result<Vec<u8>>> {
        let (sender, chunks) = mpsc::channel(CHUNKS_QUEUED_MAX);
        std::thread::spawn(move || match self {
            Input::File(_, file) => read_all(file, &sender),
            Input::Stdin => read_all(io::stdin().lock(), &sender),
        });
        chunks
    }
}

fn read_all(mut input: impl Read, sender: &mpsc::Sender<io::Result<Vec<u8>>>) {
    loop {
        let mut chunk = vec![0; CHUNK_BYTES];
        let outcome = match input.read(&mut chunk) {
            Ok(0) => return,
            Ok(length) => {
                chunk.truncate(length);
                Ok(chunk)
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

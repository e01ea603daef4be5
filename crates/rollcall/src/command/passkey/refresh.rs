//! `rollcall passkey refresh`: a full refresh, streamed from a file or from standard input.
//!
//! A thread of its own reads, since a read from a terminal or a pipe cannot be broken off; it waits while the whitelist
//! takes in what was read, so memory stays bounded however long the list is.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use access::audit::Subject;
use access::{Passkeys, Replaced, Upload};
use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::mpsc;

use super::{Desk, record, show_replaced, tell_of};
use crate::cli::RefreshArgs;

/// Bytes read at a time.
const PIECE: usize = 256 * 1024;
/// Pieces that may wait.
const PIECES_WAITING_MAX: usize = 4;

/// Where the list comes from.
enum Source {
    File(PathBuf, File),
    Stdin,
}

/// Runs it.
pub async fn run(desk: &Desk, passkeys: &Passkeys, args: &RefreshArgs) -> anyhow::Result<()> {
    let source = Source::open(args.file.as_deref())?;
    let record = record("passkey.refresh", Subject::whitelist()).with("source", source.name());
    let replaced = desk.recorded(record, refresh(passkeys, source, args.allow_empty), tell_of).await?;
    show_replaced(desk, replaced, "goes back")?;
    // The list is in force; what is left of older ones can also be cleared away by the server.
    if let Err(error) = passkeys.tidy().await {
        eprintln!("note: an old whitelist could not be cleared away yet ({error}); the server does it later");
    }
    Ok(())
}

async fn refresh(passkeys: &Passkeys, source: Source, allow_empty: bool) -> anyhow::Result<Replaced> {
    let name = source.name();
    let bar = source.bar();
    let mut pieces = source.read_aside();
    let mut upload = passkeys.upload().await?;
    let outcome = take_in(&mut pieces, &mut upload, &bar).await;
    bar.finish_and_clear();
    if let Err(error) = outcome {
        upload.abandon().await;
        return Err(error.context(format!("{name} cannot be taken")));
    }
    Ok(upload.finish(allow_empty).await?)
}

async fn take_in(
    pieces: &mut mpsc::Receiver<io::Result<Vec<u8>>>,
    upload: &mut Upload,
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    while let Some(piece) = pieces.recv().await {
        let piece = piece.context("nothing was changed, for reading failed")?;
        let passkeys = upload.push(&piece).await?;
        bar.inc(piece.len() as u64);
        bar.set_message(format!("{passkeys} passkeys"));
    }
    Ok(())
}

impl Source {
    fn open(path: Option<&Path>) -> anyhow::Result<Source> {
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
                    eprintln!("reading passkeys from the terminal, one a line; Ctrl-D ends the list");
                }
                Ok(Source::Stdin)
            }
        }
    }

    fn name(&self) -> String {
        match self {
            Source::File(path, _) => path.display().to_string(),
            Source::Stdin => "standard input".to_owned(),
        }
    }

    /// Progress on standard error, if that is a terminal and what is typed does not go there too.
    fn bar(&self) -> ProgressBar {
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
    fn read_aside(self) -> mpsc::Receiver<io::Result<Vec<u8>>> {
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

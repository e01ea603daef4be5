//! `rollcall passkey refresh`: a full refresh, streamed from a file or from standard input.
//!
//! Reading waits while the whitelist takes in what was read, so memory stays bounded however long the list is.

use std::io;

use access::audit::Subject;
use access::{Passkeys, Replaced, Upload};
use anyhow::Context;
use indicatif::ProgressBar;
use tokio::sync::mpsc;

use super::{Desk, record, show_replaced, tell_of};
use crate::cli::RefreshArgs;
use crate::command::source::Source;
use domain::counted;

/// Runs it.
pub async fn run(desk: &Desk, passkeys: &Passkeys, args: &RefreshArgs) -> anyhow::Result<()> {
    let source = Source::open(args.file.as_deref(), "passkeys")?;
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
        bar.set_message(counted(passkeys, "passkey"));
    }
    Ok(())
}

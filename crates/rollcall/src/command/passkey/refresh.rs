//! `rollcall passkey refresh`: a full refresh, streamed from a file or from standard input.
//!
//! Reading waits while the whitelist takes in what was read, so memory stays bounded however long the list is.

use std::io;

use access::audit::Subject;
use access::{Passkeys, Replaced, Upload};
use anyhow::Context;
use indicatif::ProgressBar;
use tokio::sync::mpsc;

use super::{CommandContext, record, show_replaced, tell_of};
use crate::cli::RefreshArgs;
use crate::command::input::Input;
use domain::counted;

/// Runs it.
pub async fn run(context: &CommandContext, passkeys: &Passkeys, args: &RefreshArgs) -> anyhow::Result<()> {
    let input = Input::open(args.file.as_deref(), "passkeys")?;
    let record = record("passkey.refresh", Subject::whitelist()).with("input", input.name());
    let replaced = context.audited(record, refresh(passkeys, input, args.allow_empty), tell_of).await?;
    show_replaced(context, replaced, "goes back")?;
    // The list is in force; what is left of older ones can also be cleared away by the server.
    if let Err(error) = passkeys.tidy().await {
        eprintln!("note: an old whitelist could not be cleared away yet ({error}); the server does it later");
    }
    Ok(())
}

async fn refresh(passkeys: &Passkeys, input: Input, allow_empty: bool) -> anyhow::Result<Replaced> {
    let name = input.name();
    let bar = input.progress_bar();
    let mut chunks = input.read_on_thread();
    let mut upload = passkeys.upload().await?;
    let outcome = take_in(&mut chunks, &mut upload, &bar).await;
    bar.finish_and_clear();
    if let Err(error) = outcome {
        upload.abandon().await;
        return Err(error.context(format!("{name} cannot be taken")));
    }
    Ok(upload.finish(allow_empty).await?)
}

async fn take_in(
    chunks: &mut mpsc::Receiver<io::Result<Vec<u8>>>,
    upload: &mut Upload,
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    while let Some(chunk) = chunks.recv().await {
        let chunk = chunk.context("nothing was changed, for reading failed")?;
        let passkeys = upload.push(&chunk).await?;
        bar.inc(chunk.len() as u64);
        bar.set_message(counted(passkeys, "passkey"));
    }
    Ok(())
}

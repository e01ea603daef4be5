//! `rollcall passkey refresh`: a full refresh, streamed from a file or from standard input.
//!
//! Reading waits while chunks are stored, so memory is bounded.

use std::io;

use access::{Passkeys, Replaced, Upload};
use admin::audit::Subject;
use anyhow::Context;
use indicatif::ProgressBar;
use tokio::sync::mpsc;

use super::{CommandContext, audit_details, record, show_replaced};
use crate::cli::RefreshArgs;
use crate::command::input::Input;
use domain::counted;

pub async fn run(context: &CommandContext, passkeys: &Passkeys, args: &RefreshArgs) -> anyhow::Result<()> {
    let input = Input::open(args.file.as_deref(), "passkeys")?;
    let record = record("passkey.refresh", Subject::whitelist()).with("source", input.name());
    let replaced = context.audited(record, refresh(passkeys, input, args.allow_empty), audit_details).await?;
    show_replaced(context, replaced, "restores it")?;
    // The new list is in force; the server also removes old ones.
    if let Err(error) = passkeys.tidy().await {
        eprintln!("note: cannot delete an old whitelist yet ({error}); the server does it later");
    }
    Ok(())
}

async fn refresh(passkeys: &Passkeys, input: Input, allow_empty: bool) -> anyhow::Result<Replaced> {
    let name = input.name();
    let bar = input.progress_bar();
    let mut chunks = input.read_on_thread();
    let mut upload = passkeys.upload().await?;
    let outcome = import(&mut chunks, &mut upload, &bar).await;
    bar.finish_and_clear();
    if let Err(error) = outcome {
        upload.abandon().await;
        return Err(error.context(format!("cannot import {name}")));
    }
    Ok(upload.finish(allow_empty).await?)
}

async fn import(
    chunks: &mut mpsc::Receiver<io::Result<Vec<u8>>>,
    upload: &mut Upload,
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    while let Some(chunk) = chunks.recv().await {
        let chunk = chunk.context("reading failed; nothing was changed")?;
        let passkeys = upload.push(&chunk).await?;
        bar.inc(chunk.len() as u64);
        bar.set_message(counted(passkeys, "passkey"));
    }
    Ok(())
}

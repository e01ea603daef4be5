//! `rollcall friend import`: many friendships, streamed from a file or from standard input.
//!
//! A thousand pairs per transaction. At an invalid line the import stops; earlier batches stay, and the error names
//! the last imported line. Importing again is harmless.

use std::path::Path;

use admin::audit::{Record, Subject};
use anyhow::Context;
use domain::UserId;
use domain::clock::{Clock, SystemClock};
use friends::{FriendStore, FriendsAdded, PairLine, PairLines};
use serde_json::json;

use super::{CommandContext, record};
use crate::command::input::Input;

const BATCH_MAX: usize = 1000;

pub async fn run(context: &CommandContext, friends: &FriendStore, file: &Path) -> anyhow::Result<()> {
    let input = Input::open(Some(file), "pairs of users")?;
    let record = record("friend.import", Subject::new("friends", "all")).with("source", input.name());
    let done = context.audited(record, import(friends, input), audit_details).await?;
    let FriendsAdded { added, already } = done;
    let text = match already {
        0 => format!("added {added} friendships\n"),
        _ => format!("added {added} friendships; {already} existed\n"),
    };
    Ok(context.output.show(&json!({ "added": added, "existing": already }), &text)?)
}

fn audit_details(record: Record, done: &FriendsAdded) -> Record {
    record.with("added", done.added).with("already", done.already)
}

async fn import(friends: &FriendStore, input: Input) -> anyhow::Result<FriendsAdded> {
    let name = input.name();
    let bar = input.progress_bar();
    let mut chunks = input.read_on_thread();
    let mut import =
        Import { friends, waiting: Vec::new(), done: FriendsAdded::default(), imported_lines: 0 };
    let mut lines = PairLines::default();
    let mut read = async || {
        while let Some(chunk) = chunks.recv().await {
            let chunk = chunk.context("reading failed")?;
            import.take(lines.push(&chunk)?).await?;
            bar.inc(chunk.len() as u64);
            bar.set_message(format!("{} pairs", import.done.added + import.done.already));
        }
        import.take(std::mem::take(&mut lines).finish()?.into_iter().collect()).await?;
        import.flush().await
    };
    let outcome: anyhow::Result<()> = read().await;
    bar.finish_and_clear();
    match outcome {
        Ok(()) => Ok(import.done),
        Err(error) => Err(error.context(import.progress_text(&name))),
    }
}

struct Import<'a> {
    friends: &'a FriendStore,
    /// Not stored yet.
    waiting: Vec<PairLine>,
    done: FriendsAdded,
    /// All lines up to this one are stored.
    imported_lines: u64,
}

impl Import<'_> {
    async fn take(&mut self, pairs: Vec<PairLine>) -> anyhow::Result<()> {
        for pair in pairs {
            self.waiting.push(pair);
            if self.waiting.len() == BATCH_MAX {
                self.flush().await?;
            }
        }
        Ok(())
    }

    async fn flush(&mut self) -> anyhow::Result<()> {
        let Some(PairLine { line: last, .. }) = self.waiting.last().copied() else { return Ok(()) };
        let pairs: Vec<(UserId, UserId)> = self.waiting.iter().map(|read| read.pair).collect();
        let added = self.friends.add_friends(&pairs, SystemClock.now()).await;
        let added = added.with_context(|| format!("lines {} to {last}", self.imported_lines + 1))?;
        self.done.added += added.added;
        self.done.already += added.already;
        self.imported_lines = last;
        self.waiting.clear();
        Ok(())
    }

    fn progress_text(&self, name: &str) -> String {
        match self.imported_lines {
            0 => format!("cannot import {name}; nothing was imported"),
            line => format!(
                "cannot import {name}; lines 1 to {line} were imported: correct the rest and import again"
            ),
        }
    }
}

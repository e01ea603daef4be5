//! `rollcall friend import`: many friendships, streamed from a file or from standard input.
//!
//! A thousand pairs are one transaction. What was added before a line that cannot be taken stays, and the error says up
//! to which line that is: importing the same again, corrected, does no harm.

use std::path::Path;

use access::audit::{Record, Subject};
use anyhow::Context;
use domain::UserId;
use domain::clock::{Clock, SystemClock};
use friends::{FriendStore, FriendsAdded, PairLine, PairLines};
use serde_json::json;

use super::{CommandContext, record};
use crate::command::input::Input;

/// Pairs in one transaction.
const BATCH_MAX: usize = 1000;

/// Runs it.
pub async fn run(context: &CommandContext, people: &FriendStore, file: &Path) -> anyhow::Result<()> {
    let input = Input::open(Some(file), "pairs of users")?;
    let record = record("friend.import", Subject::new("friends", "all")).with("input", input.name());
    let done = context.audited(record, import(people, input), tell_of).await?;
    let FriendsAdded { added, already } = done;
    let text = match already {
        0 => format!("added {added} friendships\n"),
        _ => format!("added {added} friendships; {already} were there already\n"),
    };
    Ok(context.output.show(&json!({ "added": added, "already": already }), &text)?)
}

fn tell_of(record: Record, done: &FriendsAdded) -> Record {
    record.with("added", done.added).with("already", done.already)
}

async fn import(people: &FriendStore, input: Input) -> anyhow::Result<FriendsAdded> {
    let name = input.name();
    let bar = input.progress_bar();
    let mut chunks = input.read_on_thread();
    let mut import = Import { people, waiting: Vec::new(), done: FriendsAdded::default(), in_up_to: 0 };
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
        Err(error) => Err(error.context(import.how_far(&name))),
    }
}

struct Import<'a> {
    people: &'a FriendStore,
    /// What is not in yet.
    waiting: Vec<PairLine>,
    done: FriendsAdded,
    /// All lines up to this one are in.
    in_up_to: u64,
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
        let added = self.people.add_friends(&pairs, SystemClock.now()).await;
        let added = added.with_context(|| format!("lines {} to {last}", self.in_up_to + 1))?;
        self.done.added += added.added;
        self.done.already += added.already;
        self.in_up_to = last;
        self.waiting.clear();
        Ok(())
    }

    fn how_far(&self, name: &str) -> String {
        match self.in_up_to {
            0 => format!("{name} cannot be taken; nothing of it is in"),
            line => format!(
                "{name} cannot be taken; lines 1 to {line} are in, correct the rest and import it again"
            ),
        }
    }
}

//! `rollcall dlq …` and `rollcall failed …`: entries that could not be taken (J7).

use std::sync::Arc;

use access::audit::{Record, Subject};
use anyhow::bail;
use domain::UnixTime;
use domain::clock::{Clock, SystemClock};
use journal::{EntryId, Fields as EntryFields, Journal, Lane, Letter, Stored, Transfer};
use serde_json::{Map, Value as Json, json};

use super::Desk;
use super::recorded::record;
use crate::cli::{LettersCommand, WhichLetters};
use crate::output::{Fields, Table};

/// Letters fetched at a time.
const PAGE: usize = 500;
/// Ids that a record names; how many there were it says in any case.
const IDS_RECORDED_MAX: usize = 100;

/// Runs it on one of the two lanes.
pub async fn run(desk: &Desk, lane: Lane, command: LettersCommand) -> anyhow::Result<()> {
    let journal = desk.open_journal().await?;
    match command {
        LettersCommand::List { limit, after } => {
            let after = after.unwrap_or(EntryId::ZERO);
            list(desk, lane, &journal.list(lane, after, limit as usize).await?)
        }
        LettersCommand::Show { id } => show(desk, &find(&journal, lane, id).await?),
        LettersCommand::Replay(which) => {
            let record = record_of(lane, "dlq.replay", "failed.replay", &which);
            let replaying = replay(&journal, lane, &which);
            let replayed =
                desk.recorded(record, replaying, |record, count| record.with("count", *count)).await?;
            let text = format!("{replayed} will be tried again now\n");
            Ok(desk.output.show(&json!({ "replayed": replayed }), &text)?)
        }
        LettersCommand::Drop(which) => {
            let record = record_of(lane, "dlq.drop", "failed.drop", &which);
            let dropping = drop_letters(&journal, lane, &which);
            let dropped =
                desk.recorded(record, dropping, |record, count| record.with("count", *count)).await?;
            Ok(desk.output.show(&json!({ "dropped": dropped }), &format!("dropped {dropped}\n"))?)
        }
    }
}

/// What a record says of letters: which, as long as the list is short.
fn record_of(lane: Lane, dead: &'static str, failed: &'static str, which: &WhichLetters) -> Record {
    let action = if lane == Lane::Dead { dead } else { failed };
    let ids: Vec<String> = which.ids.iter().take(IDS_RECORDED_MAX).map(ToString::to_string).collect();
    let subject = match which.all {
        true => "all".to_owned(),
        false => which.ids.first().map(ToString::to_string).unwrap_or_default(),
    };
    record(action, Subject::new("letter", subject)).with("ids", ids)
}

async fn find(journal: &Arc<dyn Journal>, lane: Lane, id: EntryId) -> anyhow::Result<Stored> {
    match journal.get(lane, id).await? {
        Some(stored) => Ok(stored),
        None => bail!("there is no {} entry {id}: see rollcall {} list", lane.name(), lane.name()),
    }
}

fn list(desk: &Desk, lane: Lane, letters: &[Stored]) -> anyhow::Result<()> {
    let now = SystemClock.now();
    let mut table = Table::new(&["entry", "view's group", "tries", "failed", "reason"]);
    for stored in letters {
        let letter = Letter::from_fields(&stored.fields);
        table.add(vec![
            stored.id.to_string(),
            letter.group,
            letter.retry.to_string(),
            format!("{} ago", now.since(letter.failed_at)),
            letter.reason,
        ]);
    }
    let entries: Vec<Json> = letters.iter().map(json_of).collect();
    Ok(desk.output.show(&json!({ "lane": lane.name(), "entries": entries }), &table)?)
}

fn show(desk: &Desk, stored: &Stored) -> anyhow::Result<()> {
    let letter = Letter::from_fields(&stored.fields);
    let mut fields = Fields::default()
        .with("entry", stored.id)
        .with("origin", letter.origin)
        .with("group", &letter.group)
        .with("tries", letter.retry)
        .with("reason", &letter.reason);
    for (name, value) in texts_of(&letter.original) {
        fields = fields.with(&format!("  {name}"), value);
    }
    Ok(desk.output.show(&json_of(stored), &fields)?)
}

fn json_of(stored: &Stored) -> Json {
    let letter = Letter::from_fields(&stored.fields);
    let fields: Map<String, Json> =
        texts_of(&letter.original).map(|(name, value)| (name, value.into())).collect();
    json!({
        "id": stored.id.to_string(),
        "origin": letter.origin.to_string(),
        "group": letter.group,
        "retry": letter.retry,
        "reason": letter.reason,
        "failed_at": letter.failed_at.0,
        "due_at": letter.due_at.0,
        "fields": fields,
    })
}

/// The fields as text; a passkey only by its first digits.
fn texts_of(fields: &EntryFields) -> impl Iterator<Item = (String, String)> {
    fields.iter().map(|(name, value)| {
        let (name, value) = (String::from_utf8_lossy(name), String::from_utf8_lossy(value));
        let shown = match &*name {
            "passkey" => format!("{}…", value.chars().take(4).collect::<String>()),
            _ => value.into_owned(),
        };
        (name.into_owned(), shown)
    })
}

/// Back among the dead letters, as if it had failed for the first time, and due at once.
async fn replay(journal: &Arc<dyn Journal>, lane: Lane, which: &WhichLetters) -> anyhow::Result<u64> {
    let mut replayed = 0;
    for letters in collect(journal, lane, which).await?.chunks(PAGE) {
        let transfers: Vec<Transfer> = letters.iter().map(renewed).collect();
        replayed += journal.transfer(lane, Lane::Dead, None, &transfers).await?;
    }
    Ok(replayed)
}

fn renewed(stored: &Stored) -> Transfer {
    let letter = Letter::from_fields(&stored.fields);
    let origin = if letter.origin == EntryId::ZERO { stored.id } else { letter.origin };
    let letter = Letter { retry: 0, due_at: UnixTime(0), origin, ..letter };
    Transfer { id: stored.id, fields: letter.to_fields() }
}

async fn drop_letters(journal: &Arc<dyn Journal>, lane: Lane, which: &WhichLetters) -> anyhow::Result<u64> {
    let mut dropped = 0;
    for letters in collect(journal, lane, which).await?.chunks(PAGE) {
        let ids: Vec<EntryId> = letters.iter().map(|stored| stored.id).collect();
        dropped += journal.delete(lane, None, &ids).await?;
    }
    Ok(dropped)
}

/// The letters that are meant. All of them are those that are there now, not those that come meanwhile.
async fn collect(
    journal: &Arc<dyn Journal>,
    lane: Lane,
    which: &WhichLetters,
) -> anyhow::Result<Vec<Stored>> {
    let mut letters = Vec::new();
    if !which.all {
        for id in &which.ids {
            letters.push(find(journal, lane, *id).await?);
        }
        return Ok(letters);
    }
    let newest = journal.list_newest(lane, 1).await?.first().map_or(EntryId::ZERO, |stored| stored.id);
    let mut after = EntryId::ZERO;
    loop {
        let page = journal.list(lane, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(letters) };
        after = last.id;
        letters.extend(page.into_iter().filter(|stored| stored.id <= newest));
        if after >= newest {
            return Ok(letters);
        }
    }
}

//! `rollcall dlq …` and `rollcall failed …`: entries that could not be taken (J7).

use std::sync::Arc;

use access::audit::{Record, Subject};
use anyhow::bail;
use domain::clock::{Clock, SystemClock};
use journal::dead_letters::{self, Chosen};
use journal::{DeadLetter, EntryId, Journal, Lane, Stored};
use serde_json::{Map, Value as Json, json};

use super::Desk;
use super::recorded::record;
use crate::cli::{LettersCommand, WhichLetters};
use crate::output::{self, Fields, Table};

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
            let replaying = async {
                check_all_are_there(&journal, lane, &which).await?;
                anyhow::Ok(dead_letters::replay(&*journal, lane, &which.named()).await?)
            };
            let replayed =
                desk.recorded(record, replaying, |record, count| record.with("count", *count)).await?;
            let text = format!("{replayed} will be tried again now\n");
            Ok(desk.output.show(&json!({ "replayed": replayed }), &text)?)
        }
        LettersCommand::Drop(which) => {
            let record = record_of(lane, "dlq.drop", "failed.drop", &which);
            let dropping = async {
                check_all_are_there(&journal, lane, &which).await?;
                anyhow::Ok(dead_letters::discard(&*journal, lane, &which.named()).await?)
            };
            let dropped =
                desk.recorded(record, dropping, |record, count| record.with("count", *count)).await?;
            Ok(desk.output.show(&json!({ "dropped": dropped }), &format!("dropped {dropped}\n"))?)
        }
    }
}

/// A slip of the pen changes nothing.
async fn check_all_are_there(
    journal: &Arc<dyn Journal>,
    lane: Lane,
    which: &WhichLetters,
) -> anyhow::Result<()> {
    for id in &which.ids {
        find(journal, lane, *id).await?;
    }
    Ok(())
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
        let letter = DeadLetter::from_fields(&stored.fields);
        table.add(vec![
            stored.id.to_string(),
            letter.group,
            letter.retry.to_string(),
            output::ago(letter.failed_at, now),
            letter.reason,
        ]);
    }
    let entries: Vec<Json> = letters.iter().map(json_of).collect();
    Ok(desk.output.show(&json!({ "lane": lane.name(), "entries": entries }), &table)?)
}

fn show(desk: &Desk, stored: &Stored) -> anyhow::Result<()> {
    let letter = DeadLetter::from_fields(&stored.fields);
    let mut fields = Fields::default()
        .with("entry", stored.id)
        .with("origin", letter.origin)
        .with("group", &letter.group)
        .with("tries", letter.retry)
        .with("reason", &letter.reason);
    for (name, value) in letter.shown_fields() {
        fields = fields.with(&format!("  {name}"), value);
    }
    Ok(desk.output.show(&json_of(stored), &fields)?)
}

fn json_of(stored: &Stored) -> Json {
    let letter = DeadLetter::from_fields(&stored.fields);
    let fields: Map<String, Json> = letter.shown_fields().map(|(name, value)| (name, value.into())).collect();
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

impl WhichLetters {
    /// Which letters are meant.
    fn named(&self) -> Chosen {
        if self.all { Chosen::All } else { Chosen::These(self.ids.clone()) }
    }
}

//! `rollcall dlq …` and `rollcall failed …`: entries that a view rejected (J7).

use std::sync::Arc;

use admin::audit::{Record, Subject};
use anyhow::bail;
use domain::clock::{Clock, SystemClock};
use journal::dead_letters::{self, Chosen};
use journal::{DeadLetter, EntryId, Journal, Lane, Stored};
use serde_json::{Map, Value as Json, json};

use super::CommandContext;
use super::audited::record;
use crate::cli::{DeadLetterCommand, DeadLetterSelection};
use crate::output::{self, Fields, Table};

/// Ids in an audit record; it always has the count.
const IDS_RECORDED_MAX: usize = 100;

pub async fn run(context: &CommandContext, lane: Lane, command: DeadLetterCommand) -> anyhow::Result<()> {
    let journal = context.open_journal().await?;
    match command {
        DeadLetterCommand::List { limit, after } => {
            let after = after.unwrap_or(EntryId::ZERO);
            list(context, lane, &journal.list(lane, after, limit as usize).await?)
        }
        DeadLetterCommand::Show { id } => show(context, &find(&journal, lane, id).await?),
        DeadLetterCommand::Replay(selection) => {
            let record = record_of(lane, "dlq.replay", "failed.replay", &selection);
            let replaying = async {
                check_exist(&journal, lane, &selection).await?;
                anyhow::Ok(dead_letters::replay(&*journal, lane, &selection.to_chosen()).await?)
            };
            let replayed =
                context.audited(record, replaying, |record, count| record.with("count", *count)).await?;
            let text = format!("{replayed} will be retried now\n");
            Ok(context.output.show(&json!({ "replayed": replayed }), &text)?)
        }
        DeadLetterCommand::Drop(selection) => {
            let record = record_of(lane, "dlq.drop", "failed.drop", &selection);
            let dropping = async {
                check_exist(&journal, lane, &selection).await?;
                anyhow::Ok(dead_letters::discard(&*journal, lane, &selection.to_chosen()).await?)
            };
            let dropped =
                context.audited(record, dropping, |record, count| record.with("count", *count)).await?;
            Ok(context.output.show(&json!({ "dropped": dropped }), &format!("dropped {dropped}\n"))?)
        }
    }
}

/// Fails before anything is changed if an id does not exist.
async fn check_exist(
    journal: &Arc<dyn Journal>,
    lane: Lane,
    selection: &DeadLetterSelection,
) -> anyhow::Result<()> {
    for id in &selection.ids {
        find(journal, lane, *id).await?;
    }
    Ok(())
}

fn record_of(
    lane: Lane,
    dead: &'static str,
    failed: &'static str,
    selection: &DeadLetterSelection,
) -> Record {
    let action = if lane == Lane::Dead { dead } else { failed };
    let ids: Vec<String> = selection.ids.iter().take(IDS_RECORDED_MAX).map(ToString::to_string).collect();
    let subject = match selection.all {
        true => "all".to_owned(),
        false => selection.ids.first().map(ToString::to_string).unwrap_or_default(),
    };
    record(action, Subject::new("dead_letter", subject)).with("ids", ids)
}

async fn find(journal: &Arc<dyn Journal>, lane: Lane, id: EntryId) -> anyhow::Result<Stored> {
    match journal.get(lane, id).await? {
        Some(stored) => Ok(stored),
        None => bail!("there is no {} entry {id}: see rollcall {} list", lane.name(), lane.name()),
    }
}

fn list(context: &CommandContext, lane: Lane, letters: &[Stored]) -> anyhow::Result<()> {
    let now = SystemClock.now();
    let mut table = Table::new(&["entry", "group", "tries", "failed", "reason"]);
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
    Ok(context.output.show(&json!({ "lane": lane.name(), "entries": entries }), &table)?)
}

fn show(context: &CommandContext, stored: &Stored) -> anyhow::Result<()> {
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
    Ok(context.output.show(&json_of(stored), &fields)?)
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

impl DeadLetterSelection {
    fn to_chosen(&self) -> Chosen {
        if self.all { Chosen::All } else { Chosen::These(self.ids.clone()) }
    }
}

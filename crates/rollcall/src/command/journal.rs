//! `rollcall journal …`

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use admin::audit::{Record, Subject};
use anyhow::{Context, bail, ensure};
use domain::clock::{Clock, Stopwatch, SystemClock};
use journal::consumer::foreign_consumers;
use journal::pause::{self, PausedView};
use journal::rewind::requeue_skipped;
use journal::{EntryId, GroupStatus, Journal, Lane, LaneStatus, Notes, Skipped};
use serde_json::{Map, Value as Json, json};

use super::CommandContext;
use super::audited::record;
use crate::cli::{JournalCommand, ViewName};
use crate::config::Config;
use domain::counted;

use crate::output::{self, Fields, Table};

const MEASURED: Duration = Duration::from_secs(1);

pub async fn run(context: &CommandContext, command: JournalCommand) -> anyhow::Result<()> {
    let journal = context.open_journal().await?;
    match command {
        JournalCommand::Status => status(context, &*journal).await,
        JournalCommand::Pause { view } => pause(context, &*journal, view).await,
        JournalCommand::Resume { view } => resume(context, &*journal, view).await,
        JournalCommand::Rewind { view, from_start: _ } => rewind(context, &*journal, view).await,
        JournalCommand::Risks { limit } => risks(context, &*journal, limit).await,
    }
}

impl ViewName {
    pub const fn name(self) -> &'static str {
        match self {
            ViewName::Ledger => "ledger",
            ViewName::Activity => "activity",
            ViewName::Mirror => "mirror",
            ViewName::Sites => sites::view::GROUP,
        }
    }
}

impl Config {
    fn group_of(&self, view: ViewName) -> &str {
        match view {
            ViewName::Ledger => self.ledger.group.as_str(),
            ViewName::Activity => views::activity::GROUP,
            ViewName::Mirror => views::redis_mirror::GROUP,
            ViewName::Sites => sites::view::GROUP,
        }
    }

    fn dead_after(&self) -> Duration {
        crate::wiring::background::DEAD_AFTER
    }
}

/// Returns once every process has confirmed the pause (J10).
async fn pause(context: &CommandContext, journal: &dyn Journal, view: ViewName) -> anyhow::Result<()> {
    let (name, dead_after) = (view.name(), context.config.dead_after());
    let paused = PausedView { name, group: context.config.group_of(view), dead_after };
    let token = format!("{}.{}", SystemClock.now_ms(), std::process::id());
    // A process that has not confirmed by then is dead.
    let pausing = pause::pause(journal, paused, &token, dead_after + MEASURED);
    let record = record("journal.pause", Subject::new("view", name));
    let details = |record: Record, unconfirmed: &BTreeSet<String>| match unconfirmed.is_empty() {
        true => record,
        false => record.with("unconfirmed", unconfirmed.iter().cloned().collect::<Vec<_>>()),
    };
    let unconfirmed = context.audited(record, pausing, details).await?;
    if !unconfirmed.is_empty() {
        let processes = unconfirmed.into_iter().collect::<Vec<_>>().join(", ");
        bail!(
            "{name} is paused, but these processes have not confirmed it and may still apply entries: {processes}"
        );
    }
    let text = format!("{name} is paused: its entries wait in the journal\n");
    Ok(context.output.show(&json!({ "view": name, "paused": true }), &text)?)
}

async fn resume(context: &CommandContext, journal: &dyn Journal, view: ViewName) -> anyhow::Result<()> {
    let name = view.name();
    let record = record("journal.resume", Subject::new("view", name));
    context.audited(record, pause::resume(journal, name), |record, ()| record).await?;
    Ok(context.output.show(&json!({ "view": name, "paused": false }), &format!("{name} is resumed\n"))?)
}

/// Applies skipped entries (J11).
async fn rewind(context: &CommandContext, journal: &dyn Journal, view: ViewName) -> anyhow::Result<()> {
    let name = view.name();
    ensure!(view != ViewName::Mirror, "the mirror shows the current state, which old entries do not change");
    ensure!(view != ViewName::Sites, "the site's tables follow the ledger: rewind that one");
    let record = record("journal.rewind", Subject::new("view", name));
    let group = context.config.group_of(view);
    let rewinding = async {
        let taken = requeue_skipped(journal, group).await?;
        taken.with_context(|| format!("{name} has skipped no entries: rollcall journal status"))
    };
    let taken = context.audited(record, rewinding, |record, count| record.with("count", *count)).await?;
    let text = format!("{name} applies {} that it had skipped\n", counted(taken, "entry"));
    Ok(context.output.show(&json!({ "view": name, "taken": taken }), &text)?)
}

/// Two readings of the journal, for rates.
struct Status {
    first: LaneStatus,
    traffic: LaneStatus,
    elapsed_s: f64,
    dead: u64,
    failed: u64,
    risks: u64,
    /// By group; groups without lag are absent.
    oldest_unacknowledged: BTreeMap<String, EntryId>,
    paused: BTreeSet<String>,
    notes: Notes,
    /// Foreign consumers in our groups, by group.
    foreign: BTreeMap<String, Vec<String>>,
    now_ms: u64,
    length_alarm: u64,
}

async fn status(context: &CommandContext, journal: &dyn Journal) -> anyhow::Result<()> {
    let first = journal.status(Lane::Traffic).await?;
    let watch = Stopwatch::start();
    tokio::time::sleep(MEASURED).await;
    let traffic = journal.status(Lane::Traffic).await?;
    let mut oldest_unacknowledged = BTreeMap::new();
    let mut foreign = BTreeMap::new();
    for group in &traffic.groups {
        if view_of(&context.config, &group.name).is_some() {
            let consumers = journal.consumers(Lane::Traffic, &group.name).await?;
            let names =
                foreign_consumers(&consumers, context.config.dead_after()).map(str::to_owned).collect();
            foreign.insert(group.name.clone(), names);
        }
        if let Some(id) = journal.oldest_unacknowledged(group).await? {
            oldest_unacknowledged.insert(group.name.clone(), id);
        }
    }
    let status = Status {
        first,
        traffic,
        oldest_unacknowledged,
        elapsed_s: watch.elapsed().as_secs_f64(),
        dead: journal.status(Lane::Dead).await?.length,
        failed: journal.status(Lane::Failed).await?.length,
        risks: journal.status(Lane::Risk).await?.length,
        paused: journal.paused().await?,
        notes: journal.notes().await?,
        foreign,
        now_ms: SystemClock.now_ms(),
        length_alarm: context.config.journal.length_alarm.into(),
    };
    let (fields, table) = (status.lane_fields(), status.group_table(&context.config));
    let shown = format!("{fields}\n{table}{}", status.warnings(&context.config));
    Ok(context.output.show(&status.to_json(&context.config), &shown)?)
}

impl Status {
    fn is_too_long(&self) -> bool {
        self.traffic.length > self.length_alarm
    }

    fn appended_per_s(&self) -> f64 {
        self.traffic.appended.saturating_sub(self.first.appended) as f64 / self.elapsed_s
    }

    /// Entries that a group finished per second: appended minus the growth of its lag.
    fn done_per_s(&self, group: &GroupStatus) -> f64 {
        let lag_before =
            self.first.groups.iter().find(|known| known.name == group.name).map_or(0, GroupStatus::lag);
        let appended = self.traffic.appended.saturating_sub(self.first.appended);
        let done = (lag_before + appended).saturating_sub(group.lag());
        done as f64 / self.elapsed_s
    }

    /// Age of the oldest unfinished entry. Not of the last delivered entry, which is old on a quiet site.
    fn behind_s(&self, group: &GroupStatus) -> f64 {
        let oldest = self.oldest_unacknowledged.get(&group.name);
        oldest.map_or(0.0, |id| self.now_ms.saturating_sub(id.ms) as f64 / 1000.0)
    }

    fn lane_fields(&self) -> Fields {
        let alarm = if self.is_too_long() { "  ALARM: longer than journal.length_alarm" } else { "" };
        Fields::default()
            .with("entries", format!("{}{alarm}", self.traffic.length))
            .with(
                "appended",
                format!("{} in all, {:.0} a second", self.traffic.appended, self.appended_per_s()),
            )
            .with("dead letters", self.dead)
            .with("failed", self.failed)
            .with("risks", self.risks)
    }

    fn group_table(&self, config: &Config) -> Table {
        let mut table = Table::new(&[
            "view",
            "group",
            "lag",
            "unread",
            "pending",
            "done/s",
            "behind",
            "consumers",
            "state",
        ]);
        for group in &self.traffic.groups {
            let view = view_of(config, &group.name);
            table.add(vec![
                view.unwrap_or("(foreign)").to_owned(),
                group.name.clone(),
                group.lag().to_string(),
                group.unread.to_string(),
                group.pending.to_string(),
                format!("{:.0}", self.done_per_s(group)),
                output::duration(self.behind_s(group) as u64),
                group.consumers.to_string(),
                self.state_of(view).to_owned(),
            ]);
        }
        table
    }

    /// One line per condition that needs action.
    fn warnings(&self, config: &Config) -> String {
        let mut lines = String::new();
        for group in &self.traffic.groups {
            let Some(view) = view_of(config, &group.name) else { continue };
            if let Some(Skipped { count, .. }) = Skipped::of_group(&self.notes, &group.name) {
                let skipped = counted(count, "entry");
                lines += &format!(
                    "{view} has skipped {skipped} older than this installation; \
                     to apply them, within a day: rollcall journal rewind {view} --from-start\n"
                );
            }
            if let Some(names) = self.foreign.get(&group.name).filter(|names| !names.is_empty()) {
                lines += &format!(
                    "another program consumes in the group {}; its entries are missing from {view}: {}\n",
                    group.name,
                    names.join(", ")
                );
            }
        }
        lines
    }

    fn state_of(&self, view: Option<&str>) -> &'static str {
        if view.is_some_and(|view| self.paused.contains(view)) { "paused" } else { "running" }
    }

    fn to_json(&self, config: &Config) -> Json {
        let groups: Vec<Json> = self
            .traffic
            .groups
            .iter()
            .map(|group| {
                let view = view_of(config, &group.name);
                json!({
                    "view": view,
                    "group": group.name,
                    "lag": group.lag(),
                    "unread": group.unread,
                    "pending": group.pending,
                    "done_per_s": self.done_per_s(group),
                    "behind_s": self.behind_s(group),
                    "consumers": group.consumers,
                    "paused": self.state_of(view) == "paused",
                    "skipped": Skipped::of_group(&self.notes, &group.name).map_or(0, |skipped| skipped.count),
                    "foreign_consumers": self.foreign.get(&group.name),
                })
            })
            .collect();
        json!({
            "entries": self.traffic.length,
            "too_long": self.is_too_long(),
            "appended": self.traffic.appended,
            "appended_per_s": self.appended_per_s(),
            "dlq": self.dead,
            "failed": self.failed,
            "risks": self.risks,
            "groups": groups,
        })
    }
}

fn view_of(config: &Config, group: &str) -> Option<&'static str> {
    if group == config.ledger.group.as_str() {
        return Some(ViewName::Ledger.name());
    }
    if config.has_mirror() && group == views::redis_mirror::GROUP {
        return Some(ViewName::Mirror.name());
    }
    (group == views::activity::GROUP).then_some(ViewName::Activity.name())
}

async fn risks(context: &CommandContext, journal: &dyn Journal, limit: u32) -> anyhow::Result<()> {
    let stored = journal.list_newest(Lane::Risk, EntryId::MAX, limit as usize).await?;
    let mut table = Table::new(&[
        "entry",
        "kind",
        "user",
        "within",
        "up claimed",
        "credited",
        "down claimed",
        "credited",
        "count",
        "ip",
    ]);
    let mut entries = Vec::new();
    for risk in &stored {
        let text =
            |name: &str| String::from_utf8_lossy(risk.fields.get(name).unwrap_or_default()).into_owned();
        let kind = String::from_utf8_lossy(journal::risk::kind_of(&risk.fields)).into_owned();
        // Non-numeric values are shown unchanged.
        let duration = |name: &str| text(name).parse().map_or_else(|_| text(name), output::duration);
        let bytes = |name: &str| text(name).parse().map_or_else(|_| text(name), output::bytes);
        table.add(vec![
            risk.id.to_string(),
            kind,
            text("user"),
            duration("dt"),
            bytes("du_claimed"),
            bytes("du_credited"),
            bytes("dd_claimed"),
            bytes("dd_credited"),
            text("count"),
            text("ip"),
        ]);
        let fields = risk.fields.iter().map(|(name, value)| {
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            (text(name), Json::from(text(value)))
        });
        let mut entry: Map<String, Json> = fields.collect();
        entry.insert("id".to_owned(), risk.id.to_string().into());
        entries.push(Json::from(entry));
    }
    Ok(context.output.show(&json!({ "risks": entries }), &table)?)
}

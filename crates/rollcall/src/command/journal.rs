//! `rollcall journal …`

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use access::audit::Subject;
use domain::clock::{Clock, Stopwatch, SystemClock};
use journal::{EntryId, GroupStatus, Journal, Lane, LaneStatus};
use serde_json::{Map, Value as Json, json};

use super::Desk;
use super::recorded::record;
use crate::cli::{JournalCommand, ViewName};
use crate::config::Config;
use crate::output::{Fields, Table};

/// How long rates are measured.
const MEASURED: Duration = Duration::from_secs(1);

/// Runs it.
pub async fn run(desk: &Desk, command: JournalCommand) -> anyhow::Result<()> {
    let journal = desk.open_journal().await?;
    match command {
        JournalCommand::Status => status(desk, &*journal).await,
        JournalCommand::Pause { view } => set_paused(desk, &*journal, view, true).await,
        JournalCommand::Resume { view } => set_paused(desk, &*journal, view, false).await,
        JournalCommand::Risks { limit } => risks(desk, &*journal, limit).await,
    }
}

impl ViewName {
    /// As the view calls itself.
    pub const fn name(self) -> &'static str {
        match self {
            ViewName::Ledger => "ledger",
            ViewName::Activity => "activity",
            ViewName::Mirror => "mirror",
        }
    }
}

async fn set_paused(desk: &Desk, journal: &dyn Journal, view: ViewName, paused: bool) -> anyhow::Result<()> {
    let action = if paused { "journal.pause" } else { "journal.resume" };
    let record = record(action, Subject::new("view", view.name()));
    desk.recorded(record, journal.set_paused(view.name(), paused), |record, ()| record).await?;
    let text = match paused {
        true => format!("{} is paused: its entries wait in the journal\n", view.name()),
        false => format!("{} goes on\n", view.name()),
    };
    Ok(desk.output.show(&json!({ "view": view.name(), "paused": paused }), &text)?)
}

/// What the journal looks like, at two moments.
struct Status {
    first: LaneStatus,
    traffic: LaneStatus,
    elapsed_s: f64,
    dead: u64,
    failed: u64,
    risks: u64,
    /// By the names of groups; those that have everything are not there.
    oldest_unfinished: BTreeMap<String, EntryId>,
    paused: BTreeSet<String>,
    now_ms: u64,
    length_alarm: u64,
}

async fn status(desk: &Desk, journal: &dyn Journal) -> anyhow::Result<()> {
    let first = journal.status(Lane::Traffic).await?;
    let watch = Stopwatch::start();
    tokio::time::sleep(MEASURED).await;
    let traffic = journal.status(Lane::Traffic).await?;
    let mut oldest_unfinished = BTreeMap::new();
    for group in &traffic.groups {
        if let Some(id) = journal.oldest_unfinished(group).await? {
            oldest_unfinished.insert(group.name.clone(), id);
        }
    }
    let status = Status {
        first,
        traffic,
        oldest_unfinished,
        elapsed_s: watch.elapsed().as_secs_f64(),
        dead: journal.status(Lane::Dead).await?.length,
        failed: journal.status(Lane::Failed).await?.length,
        risks: journal.status(Lane::Risk).await?.length,
        paused: journal.paused().await?,
        now_ms: SystemClock.now_ms(),
        length_alarm: desk.config.journal.length_alarm.into(),
    };
    let shown = format!("{}\n{}", status.lane_fields(), status.group_table(&desk.config));
    Ok(desk.output.show(&status.to_json(&desk.config), &shown)?)
}

impl Status {
    fn is_too_long(&self) -> bool {
        self.traffic.length > self.length_alarm
    }

    fn appended_per_s(&self) -> f64 {
        self.traffic.appended.saturating_sub(self.first.appended) as f64 / self.elapsed_s
    }

    /// Entries a group finished in a second: what came in, less what its lag grew by.
    fn done_per_s(&self, group: &GroupStatus) -> f64 {
        let lag_before =
            self.first.groups.iter().find(|known| known.name == group.name).map_or(0, GroupStatus::lag);
        let appended = self.traffic.appended.saturating_sub(self.first.appended);
        let done = (lag_before + appended).saturating_sub(group.lag());
        done as f64 / self.elapsed_s
    }

    /// How old the oldest entry is that the group has not finished. What it was given last says nothing about that: on a
    /// quiet site that was long ago.
    fn behind_s(&self, group: &GroupStatus) -> f64 {
        let oldest = self.oldest_unfinished.get(&group.name);
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
                format!("{:.0} s", self.behind_s(group)),
                group.consumers.to_string(),
                self.state_of(view).to_owned(),
            ]);
        }
        table
    }

    fn state_of(&self, view: Option<&str>) -> &'static str {
        if view.is_some_and(|view| self.paused.contains(view)) { "paused" } else { "on" }
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
    if config.has_layout() && group == config.mirror.group.as_str() {
        return Some(ViewName::Mirror.name());
    }
    (group == config.activity.group.as_str()).then_some(ViewName::Activity.name())
}

async fn risks(desk: &Desk, journal: &dyn Journal, limit: u32) -> anyhow::Result<()> {
    let stored = journal.list_newest(Lane::Risk, EntryId::MAX, limit as usize).await?;
    let mut table = Table::new(&[
        "entry",
        "kind",
        "user",
        "seconds",
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
        let columns = ["user", "dt", "du_claimed", "du_credited", "dd_claimed", "dd_credited", "count", "ip"];
        table.add([risk.id.to_string(), kind].into_iter().chain(columns.map(text)).collect());
        let fields = risk.fields.iter().map(|(name, value)| {
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            (text(name), Json::from(text(value)))
        });
        let mut entry: Map<String, Json> = fields.collect();
        entry.insert("id".to_owned(), risk.id.to_string().into());
        entries.push(Json::from(entry));
    }
    Ok(desk.output.show(&json!({ "risks": entries }), &table)?)
}

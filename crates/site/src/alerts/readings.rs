//! The values of alerts as the dashboard has them, from memory.
//!
//! One alert per cause: dependencies and views that fail because of a failing dependency are named in its alert.

use crate::health::{DependencyHealth, affected_by, cause_of, effect_of};
use crate::overview::schema::{JournalOverview, Overview, ViewOverview};

/// A view this far behind is affected by its failing store. Less than its alert needs: the cause comes first.
const AFFECTED_S: f64 = 60.0;

pub(crate) struct Observed<'a> {
    pub(crate) overview: &'a Overview,
    pub(crate) journal_status_age_s: f64,
    pub(crate) journal_length_alarm: u64,
    /// Age of the oldest undelivered webhook.
    pub(crate) webhook_age_s: u64,
}

/// A value, and what it is about.
#[derive(Default)]
pub(super) struct Reading {
    pub(super) subject: Option<String>,
    pub(super) value: f64,
    /// None if the evaluation determines it.
    pub(super) since: Option<u32>,
    pub(super) affected: Vec<String>,
    /// Cause, effects and remedy, in place of the remedy of the table.
    pub(super) explanation: Option<String>,
}

impl Reading {
    fn of(value: f64) -> Reading {
        Reading { value, ..Reading::default() }
    }

    fn about(subject: &str, value: f64) -> Reading {
        Reading { subject: Some(subject.to_owned()), value, ..Reading::default() }
    }
}

/// None while the values are unknown.
pub(super) type Readings = fn(&Observed<'_>) -> Option<Vec<Reading>>;

pub(super) fn journal_length(observed: &Observed<'_>) -> Option<Vec<Reading>> {
    of_journal(observed, |journal| journal.entries as f64 / observed.journal_length_alarm.max(1) as f64)
}

pub(super) fn dead_letters(observed: &Observed<'_>) -> Option<Vec<Reading>> {
    of_journal(observed, |journal| journal.dlq as f64)
}

pub(super) fn failed_entries(observed: &Observed<'_>) -> Option<Vec<Reading>> {
    of_journal(observed, |journal| journal.failed as f64)
}

fn of_journal(observed: &Observed<'_>, value: impl Fn(&JournalOverview) -> f64) -> Option<Vec<Reading>> {
    observed.overview.journal.as_ref().map(|journal| vec![Reading::of(value(journal))])
}

/// No value while the journal fails: that is an alert of its own.
pub(super) fn journal_status_age(observed: &Observed<'_>) -> Option<Vec<Reading>> {
    let is_failing = observed.overview.health.iter().any(|one| one.name == "journal" && one.is_failing());
    Some(if is_failing { Vec::new() } else { vec![Reading::of(observed.journal_status_age_s)] })
}

pub(super) fn webhook_age(observed: &Observed<'_>) -> Option<Vec<Reading>> {
    Some(vec![Reading::of(observed.webhook_age_s as f64)])
}

pub(super) fn view_paused(observed: &Observed<'_>) -> Option<Vec<Reading>> {
    let views = &observed.overview.journal.as_ref()?.views;
    Some(views.iter().map(|view| Reading::about(&view.view, f64::from(view.paused))).collect())
}

pub(super) fn view_lag(observed: &Observed<'_>) -> Option<Vec<Reading>> {
    let health = &observed.overview.health;
    let views = observed.overview.journal.as_ref()?.views.iter();
    let lagging = views.filter(|view| !view.paused && failing_store(view, health).is_none());
    Some(lagging.map(|view| Reading::about(&view.view, view.behind_s)).collect())
}

/// The root cause, if the store of the view fails.
fn failing_store<'a>(view: &ViewOverview, health: &'a [DependencyHealth]) -> Option<&'a DependencyHealth> {
    let store = match view.view.as_str() {
        "ledger" => "database",
        "mirror" => "redis",
        other => other,
    };
    let failing = health.iter().find(|one| one.name == store && one.is_failing())?;
    Some(cause_of(health, failing))
}

/// Dependencies that fail by themselves.
pub(super) fn failing_dependencies(observed: &Observed<'_>) -> Option<Vec<Reading>> {
    let health = &observed.overview.health;
    let failing = health.iter().filter(|one| one.is_failing());
    let causes = failing.filter(|one| cause_of(health, one).name == one.name);
    Some(causes.map(|cause| failing_dependency(cause, observed.overview)).collect())
}

fn failing_dependency(cause: &DependencyHealth, overview: &Overview) -> Reading {
    let mut affected = affected_by(&overview.health, cause);
    let views = overview.journal.iter().flat_map(|journal| &journal.views);
    let lagging = views.filter(|view| view.behind_s >= AFFECTED_S && !view.paused);
    let affected_views =
        lagging.filter(|view| failing_store(view, &overview.health).is_some_and(|by| by.name == cause.name));
    affected.extend(affected_views.map(|view| view.view.as_str()));
    let reason = cause.reason.as_deref().unwrap_or("no answer");
    let effects = std::iter::once(cause.name.as_str()).chain(affected.iter().copied()).map(effect_of);
    let effects: Vec<&str> = effects.filter(|effect| !effect.is_empty()).collect();
    Reading {
        since: Some(cause.since),
        affected: affected.iter().map(|name| (*name).to_owned()).collect(),
        explanation: Some(format!("{reason}. {} {}", effects.join(" "), remedy(&cause.name))),
        ..Reading::about(&cause.name, 1.0)
    }
}

fn remedy(dependency: &str) -> &'static str {
    match dependency {
        "database" => "Check the server of database.url, or the disk of the data folder.",
        "redis" | "presence_cluster" => "Check the server of redis.url.",
        "journal" => "Check Redis, or the disk of the data folder.",
        "audit" => "Check disk, owner and mode of access.audit_file; the log has the error.",
        _ => "`rollcall doctor` names the cause.",
    }
}

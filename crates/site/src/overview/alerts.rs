//! What is wrong, since when, and what to do about it.
//!
//! One alert for a cause: dependencies and views that fail because of a failing dependency are named in its alert, and have
//! none of their own.

use std::collections::BTreeMap;

use domain::{UnixTime, counted};

use super::polling::{AuditFailure, Polled};
use super::schema::{Alert, JournalOverview, Overview, Severity, ViewOverview};
use crate::health::{DependencyHealth, affected_by, cause_of, effect_of};

/// A view whose oldest entry is this old is behind, in seconds.
const BEHIND_S: f64 = 60.0;
/// And this is far too much.
const FAR_BEHIND_S: f64 = 300.0;
/// So many webhooks may wait.
const WEBHOOKS_WAITING: u64 = 1_000;

/// What only the journal tells of.
const OF_JOURNAL: [&str; 5] =
    ["journal_too_long", "dead_letters", "failed_entries", "view_paused", "view_behind"];

/// Something that is wrong now.
#[derive(Debug)]
pub(super) struct Found {
    code: String,
    subject: Option<String>,
    severity: Severity,
    detail: String,
    /// Since when, where that is known.
    since: Option<u32>,
    /// What fails because of it.
    affected: Vec<String>,
}

impl Found {
    fn new(code: impl Into<String>, severity: Severity, detail: impl Into<String>) -> Found {
        let (code, detail) = (code.into(), detail.into());
        Found { code, subject: None, severity, detail, since: None, affected: Vec::new() }
    }

    fn about(mut self, subject: &str) -> Found {
        self.subject = Some(subject.to_owned());
        self
    }
}

/// Since when each alert has been there.
#[derive(Default)]
pub(super) struct AlertBook(BTreeMap<(String, Option<String>), u32>);

impl AlertBook {
    /// The alerts of now, what is critical first, each with when it began. While the journal is not seen, what it told of
    /// is not shown, and not over either.
    pub(super) fn update(&mut self, found: Vec<Found>, sees_journal: bool, now: UnixTime) -> Vec<Alert> {
        let before = std::mem::take(&mut self.0);
        let mut alerts: Vec<Alert> = Vec::with_capacity(found.len());
        for Found { code, subject, severity, detail, since, affected } in found {
            let key = (code, subject);
            let since = since.or_else(|| before.get(&key).copied()).unwrap_or(now.0);
            self.0.insert(key.clone(), since);
            let (code, subject) = key;
            alerts.push(Alert { code, subject, severity, since, detail, affected });
        }
        if !sees_journal {
            let unseen = before.into_iter().filter(|((code, _), _)| OF_JOURNAL.contains(&code.as_str()));
            self.0.extend(unseen);
        }
        alerts.sort_by_key(|alert| (alert.severity, alert.since));
        alerts
    }
}

/// Everything that is wrong with what is seen.
pub(super) fn found(overview: &Overview, polled: &Polled) -> Vec<Found> {
    let health = &overview.health;
    let behind = overview.journal.iter().flat_map(|journal| views_behind(journal, health)).collect();
    let mut found = dependencies(health, &behind);
    match &overview.journal {
        Some(journal) => of_journal(journal, &behind, &mut found),
        // Its health says the same, and since when.
        None if health.iter().any(|one| one.name == "journal" && one.is_failing()) => {}
        None => found.extend(polled.journal_error().map(|trouble| {
            let detail = format!(
                "The journal does not answer: {trouble}. Announces wait in memory meanwhile. Look at Redis, or at the disk \
                 of the data folder."
            );
            Found::new("journal_silent", Severity::Critical, detail)
        })),
    }
    // Likewise.
    let is_audit_failing = health.iter().any(|one| one.name == "audit" && one.is_failing());
    found.extend(polled.audit_failure().filter(|_| !is_audit_failing).map(|trouble| {
        Found::new("audit_unavailable", Severity::Critical, match trouble {
            AuditFailure::Failing => {
                "The audit trail cannot be written, so changes over the API are refused. Free its disk, or mend its file: \
                 the server's log says what is wrong."
            }
            AuditFailure::NotResponding => {
                "The audit trail does not answer, so changes over the API wait. Look whether its disk hangs."
            }
        })
    }));
    let waiting = overview.gateway.as_ref().map_or(0, |gateway| gateway.webhooks_waiting);
    if waiting > WEBHOOKS_WAITING {
        let detail =
            format!("Waiting: {}. Look whether gateway.webhook_url answers.", counted(waiting, "webhook"));
        found.push(Found::new("webhooks_waiting", Severity::Warning, detail));
    }
    found
}

/// The views that are behind because their store fails, each with the dependency that is the cause.
type ViewsBehind<'a> = BTreeMap<&'a str, &'a str>;

fn views_behind<'a>(
    journal: &'a JournalOverview,
    health: &'a [DependencyHealth],
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let behind = journal.views.iter().filter(|view| view.behind_s >= BEHIND_S && !view.paused);
    behind.filter_map(|view| {
        let store = match view.view.as_str() {
            "ledger" => "database",
            "mirror" => "redis",
            other => other,
        };
        let failing = health.iter().find(|one| one.name == store && one.is_failing())?;
        Some((view.view.as_str(), cause_of(health, failing).name.as_str()))
    })
}

/// An alert for each dependency that fails by itself.
fn dependencies(health: &[DependencyHealth], behind: &ViewsBehind<'_>) -> Vec<Found> {
    let failing = health.iter().filter(|one| one.is_failing());
    let causes = failing.filter(|one| cause_of(health, one).name == one.name);
    causes
        .map(|cause| {
            let mut affected = affected_by(health, cause);
            affected.extend(behind.iter().filter(|(_, by)| **by == cause.name).map(|(view, _)| *view));
            dependency(cause, &affected)
        })
        .collect()
}

fn dependency(health: &DependencyHealth, affected: &[&str]) -> Found {
    let name = &health.name;
    let reason = health.reason.as_deref().unwrap_or("it does not answer");
    let effects = std::iter::once(name.as_str()).chain(affected.iter().copied()).map(effect_of);
    let effects: Vec<&str> = effects.filter(|effect| !effect.is_empty()).collect();
    let detail = format!("{name} does not work: {reason}. {} {}", effects.join(" "), remedy(name));
    Found {
        since: Some(health.since),
        affected: affected.iter().map(|name| (*name).to_owned()).collect(),
        ..Found::new("dependency_failing", Severity::Critical, detail).about(name)
    }
}

fn remedy(dependency: &str) -> &'static str {
    match dependency {
        "database" => "Look at the server of database.url, or at the disk of the data folder.",
        "redis" | "register" => "Look at the server of redis.url.",
        "journal" => "Look at Redis, or at the disk of the data folder.",
        "audit" => {
            "Free the disk of access.audit_file, or mend the file: the server's log says what is wrong."
        }
        _ => "rollcall doctor tells more.",
    }
}

fn of_journal(journal: &JournalOverview, behind: &ViewsBehind<'_>, found: &mut Vec<Found>) {
    if journal.too_long {
        let detail = format!(
            "The journal holds {}, more than journal.length_alarm: nothing is dropped, but find the reader that is \
             behind or paused.",
            counted(journal.entries, "entry")
        );
        found.push(Found::new("journal_too_long", Severity::Warning, detail));
    }
    if journal.dlq > 0 {
        let detail = format!(
            "Tried again by itself: {}. If that does not end it, look at the reason under Pipeline.",
            counted(journal.dlq, "dead letter")
        );
        found.push(Found::new("dead_letters", Severity::Warning, detail));
    }
    if journal.failed > 0 {
        let detail = format!(
            "Given up, and counted nowhere: {}. Mend the cause and replay, or drop, under Pipeline.",
            counted(journal.failed, "entry")
        );
        found.push(Found::new("failed_entries", Severity::Critical, detail));
    }
    found.extend(journal.views.iter().filter(|one| !behind.contains_key(one.view.as_str())).filter_map(view));
}

fn view(view: &ViewOverview) -> Option<Found> {
    let (name, lag) = (&view.view, counted(view.lag, "entry"));
    if view.paused {
        let detail = format!("The view {name} is paused, with {lag} behind it: resume it under Pipeline.");
        return Some(Found::new("view_paused", Severity::Warning, detail).about(name));
    }
    if view.behind_s < BEHIND_S {
        return None;
    }
    let severity = if view.behind_s < FAR_BEHIND_S { Severity::Warning } else { Severity::Critical };
    let detail = format!(
        "The view {name} is {:.0} s and {lag} behind: look whether a process with its role runs, and whether its \
         store is slow.",
        view.behind_s
    );
    Some(Found::new("view_behind", severity, detail).about(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(paused: bool, behind_s: f64) -> JournalOverview {
        let view = ViewOverview {
            view: "ledger".to_owned(),
            group: "g".to_owned(),
            lag: 7,
            behind_s,
            rate_per_s: 0.0,
            paused,
        };
        JournalOverview {
            entries: 9,
            too_long: false,
            appended: 9,
            appended_per_s: 0.0,
            dlq: 0,
            failed: 0,
            risks: 1,
            views: vec![view],
        }
    }

    fn codes(journal: &JournalOverview) -> Vec<(String, Severity)> {
        let mut found = Vec::new();
        of_journal(journal, &ViewsBehind::new(), &mut found);
        found.into_iter().map(|found| (found.code, found.severity)).collect()
    }

    #[test]
    fn j7_what_is_behind_paused_or_given_up_is_an_alert() {
        assert_eq!(codes(&seen(false, 3.0)), []);
        assert_eq!(codes(&seen(false, 61.0)), [("view_behind".to_owned(), Severity::Warning)]);
        assert_eq!(codes(&seen(false, 301.0)), [("view_behind".to_owned(), Severity::Critical)]);
        assert_eq!(codes(&seen(true, 301.0)), [("view_paused".to_owned(), Severity::Warning)]);
        let troubled = JournalOverview { too_long: true, dlq: 1, failed: 1, ..seen(false, 0.0) };
        let names: Vec<String> = codes(&troubled).into_iter().map(|(code, _)| code).collect();
        assert_eq!(names, ["journal_too_long", "dead_letters", "failed_entries"]);
    }

    #[test]
    fn an_alert_keeps_its_beginning_until_it_is_over() {
        let mut book = AlertBook::default();
        let of = |code: &str, severity| Found::new(code, severity, "…");
        book.update(vec![of("a", Severity::Warning)], true, UnixTime(10));
        let both = vec![of("a", Severity::Warning), of("b", Severity::Critical)];
        let alerts = book.update(both, true, UnixTime(20));
        let shown: Vec<(&str, u32)> = alerts.iter().map(|alert| (alert.code.as_str(), alert.since)).collect();
        assert_eq!(shown, [("b", 20), ("a", 10)], "what is critical comes first");
        book.update(Vec::new(), true, UnixTime(30));
        let again = book.update(vec![of("a", Severity::Warning)], true, UnixTime(40));
        assert_eq!(again[0].since, 40);
    }

    #[test]
    fn a_look_that_the_journal_missed_ends_no_alert_of_it() {
        let mut book = AlertBook::default();
        let behind = || Found::new("view_behind", Severity::Warning, "…").about("ledger");
        let webhooks = || Found::new("webhooks_waiting", Severity::Warning, "…");
        book.update(vec![behind(), webhooks()], true, UnixTime(10));
        for at in [20, 30] {
            assert!(
                book.update(Vec::new(), false, UnixTime(at)).is_empty(),
                "nobody knows whether it still is"
            );
        }
        let again = book.update(vec![behind(), webhooks()], true, UnixTime(40));
        let since: Vec<(&str, u32)> = again.iter().map(|alert| (alert.code.as_str(), alert.since)).collect();
        assert_eq!(since, [("view_behind", 10), ("webhooks_waiting", 40)]);
    }

    fn health(name: &str, is_failing: bool, needs: Option<&str>) -> DependencyHealth {
        DependencyHealth {
            name: name.to_owned(),
            state: if is_failing { "failing" } else { "ok" }.to_owned(),
            since: 7,
            needs: needs.map(str::to_owned),
            reason: is_failing.then(|| "connection refused".to_owned()),
        }
    }

    #[test]
    fn redis_that_is_down_is_one_alert_which_names_what_it_affects() {
        let parts = [
            health("database", false, None),
            health("journal", true, Some("redis")),
            health("journal_queue", true, Some("journal")),
            health("whitelist", true, Some("redis")),
            health("activity", true, Some("redis")),
            health("register", true, Some("redis")),
            health("redis", true, None),
        ];
        let found = dependencies(&parts, &ViewsBehind::new());
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].subject.as_deref(), found[0].severity), (Some("redis"), Severity::Critical));
        assert_eq!(found[0].affected, ["journal", "journal_queue", "whitelist", "activity", "register"]);
        for said in ["connection refused", "Announces wait", "New passkeys", "other gateways", "redis.url"] {
            assert!(found[0].detail.contains(said), "{said}: {}", found[0].detail);
        }
        let mended = [health("whitelist", true, Some("redis")), health("redis", false, None)];
        let found = dependencies(&mended, &ViewsBehind::new());
        assert_eq!(found[0].subject.as_deref(), Some("whitelist"), "a fault of its own is its own alert");
    }

    #[test]
    fn a_view_that_is_behind_because_its_store_fails_has_no_alert_of_its_own() {
        let (parts, journal) = ([health("database", true, None)], seen(false, 400.0));
        let behind: ViewsBehind<'_> = views_behind(&journal, &parts).collect();
        let mut found = dependencies(&parts, &behind);
        of_journal(&journal, &behind, &mut found);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].affected, ["ledger"]);
        assert!(found[0].detail.contains("Accounts are not updated."), "{}", found[0].detail);
    }
}

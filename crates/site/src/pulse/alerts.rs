//! What is wrong, since when, and what to do about it.

use std::collections::BTreeMap;

use domain::UnixTime;

use super::look::{AuditTrouble, Looks};
use super::overview::{Alert, JournalPulse, Overview, Severity, ViewPulse};
use crate::health::DependencyHealth;

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
}

impl Found {
    fn new(code: impl Into<String>, severity: Severity, detail: impl Into<String>) -> Found {
        Found { code: code.into(), subject: None, severity, detail: detail.into(), since: None }
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
        for Found { code, subject, severity, detail, since } in found {
            let key = (code, subject);
            let since = since.or_else(|| before.get(&key).copied()).unwrap_or(now.0);
            self.0.insert(key.clone(), since);
            let (code, subject) = key;
            alerts.push(Alert { code, subject, severity, since, detail });
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
pub(super) fn found(overview: &Overview, looks: &Looks) -> Vec<Found> {
    let mut found: Vec<Found> = overview.health.iter().filter_map(dependency).collect();
    match &overview.journal {
        Some(journal) => of_journal(journal, &mut found),
        // Its health says the same, and since when.
        None if found.iter().any(|found| found.subject.as_deref() == Some("journal")) => {}
        None => found.extend(looks.journal_trouble().map(|trouble| {
            let detail = format!(
                "The journal does not answer: {trouble}. Announces wait in memory meanwhile. Look at Redis, or at the disk \
                 of the data folder."
            );
            Found::new("journal_silent", Severity::Critical, detail)
        })),
    }
    found.extend(looks.audit_trouble().map(|trouble| {
        Found::new("audit_unavailable", Severity::Critical, match trouble {
            AuditTrouble::Fails => {
                "The audit trail cannot be written, so changes over the API are refused. Free its disk, or mend its file: \
                 the server's log says what is wrong."
            }
            AuditTrouble::Silent => {
                "The audit trail does not answer, so changes over the API wait. Look whether its disk hangs."
            }
        })
    }));
    let waiting = overview.gateway.as_ref().map_or(0, |gateway| gateway.webhooks_waiting);
    if waiting > WEBHOOKS_WAITING {
        let detail = format!("{waiting} webhooks wait: look whether gateway.webhook_url answers.");
        found.push(Found::new("webhooks_waiting", Severity::Warning, detail));
    }
    found
}

fn dependency(health: &DependencyHealth) -> Option<Found> {
    if health.state != "failing" {
        return None;
    }
    let reason = health.reason.as_deref().unwrap_or("it does not answer");
    let detail = format!("{} does not work: {reason}. {}", health.name, remedy(&health.name));
    let found = Found::new("dependency_failing", Severity::Critical, detail).about(&health.name);
    Some(Found { since: Some(health.since), ..found })
}

fn remedy(dependency: &str) -> &'static str {
    match dependency {
        "database" => "Look at the server of database.url; everybody known goes on from memory meanwhile.",
        "journal" => "Look at Redis, or at the disk of the data folder; announces wait in memory meanwhile.",
        "journal_queue" => "Clients are told to come back until the journal takes entries again.",
        "whitelist" => "Passkeys that are new cannot be checked until it answers.",
        "activity" => "Lists of who seeds and who leeches stand still until it answers.",
        "register" => "People at other gateways are not seen until Redis answers.",
        _ => "rollcall doctor tells more.",
    }
}

fn of_journal(journal: &JournalPulse, found: &mut Vec<Found>) {
    if journal.too_long {
        let detail = format!(
            "The journal holds {} entries, more than journal.length_alarm: nothing is dropped, but find the reader that is \
             behind or paused.",
            journal.entries
        );
        found.push(Found::new("journal_too_long", Severity::Warning, detail));
    }
    if journal.dlq > 0 {
        let detail = format!(
            "{} dead letters are tried again by themselves. If they stay, look at their reason under Pipeline.",
            journal.dlq
        );
        found.push(Found::new("dead_letters", Severity::Warning, detail));
    }
    if journal.failed > 0 {
        let detail = format!(
            "{} entries were given up and count nowhere: mend their cause and replay them, or drop them, under Pipeline.",
            journal.failed
        );
        found.push(Found::new("failed_entries", Severity::Critical, detail));
    }
    found.extend(journal.views.iter().filter_map(view));
}

fn view(view: &ViewPulse) -> Option<Found> {
    let (name, lag) = (&view.view, view.lag);
    if view.paused {
        let detail =
            format!("The view {name} is paused, and {lag} entries wait for it: resume it under Pipeline.");
        return Some(Found::new("view_paused", Severity::Warning, detail).about(name));
    }
    if view.behind_s < BEHIND_S {
        return None;
    }
    let severity = if view.behind_s < FAR_BEHIND_S { Severity::Warning } else { Severity::Critical };
    let detail = format!(
        "The view {name} is {:.0} s and {lag} entries behind: look whether a process with its role runs, and whether its \
         store is slow.",
        view.behind_s
    );
    Some(Found::new("view_behind", severity, detail).about(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(paused: bool, behind_s: f64) -> JournalPulse {
        let view = ViewPulse {
            view: "ledger".to_owned(),
            group: "g".to_owned(),
            lag: 7,
            behind_s,
            rate_per_s: 0.0,
            paused,
        };
        JournalPulse {
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

    fn codes(journal: &JournalPulse) -> Vec<(String, Severity)> {
        let mut found = Vec::new();
        of_journal(journal, &mut found);
        found.into_iter().map(|found| (found.code, found.severity)).collect()
    }

    #[test]
    fn j7_what_is_behind_paused_or_given_up_is_an_alert() {
        assert_eq!(codes(&seen(false, 3.0)), []);
        assert_eq!(codes(&seen(false, 61.0)), [("view_behind".to_owned(), Severity::Warning)]);
        assert_eq!(codes(&seen(false, 301.0)), [("view_behind".to_owned(), Severity::Critical)]);
        assert_eq!(codes(&seen(true, 301.0)), [("view_paused".to_owned(), Severity::Warning)]);
        let troubled = JournalPulse { too_long: true, dlq: 1, failed: 1, ..seen(false, 0.0) };
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
}

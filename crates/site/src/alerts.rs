//! Alerts: one table for the dashboard and for Prometheus.
//!
//! # Layout
//!
//! - this file: what an alert is, its evaluation for the dashboard, and `alerts.yml`
//! - `table`: the alerts
//! - `readings`: values that the dashboard evaluates, and which failures explain others
//!
//! An alert with a rate or a span of time is evaluated by Prometheus only. The dashboard shows an alert as soon as its
//! condition is true; `hold_min` delays the notification of Prometheus.

mod readings;
mod table;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use domain::UnixTime;

pub(crate) use self::readings::Observed;
use self::readings::{Reading, Readings};
use self::table::ALERTS;
use crate::overview::schema::{Alert, Severity};

struct Rule {
    /// `ViewPaused` is `RollcallViewPaused` in Prometheus and `view_paused` in the API.
    name: &'static str,
    severity: Severity,
    /// A condition; with `dashboard` the value that is compared with its threshold.
    promql: &'static str,
    /// Minutes.
    hold_min: u32,
    /// A template of Prometheus, as is `remedy`.
    summary: &'static str,
    remedy: &'static str,
    /// Threshold, and the value as the dashboard has it.
    dashboard: Option<(f64, Readings)>,
}

/// The operator must act now.
const fn critical(
    name: &'static str,
    promql: &'static str,
    hold_min: u32,
    summary: &'static str,
    remedy: &'static str,
) -> Rule {
    Rule { name, severity: Severity::Critical, promql, hold_min, summary, remedy, dashboard: None }
}

/// The operator must act within the day.
const fn warning(
    name: &'static str,
    promql: &'static str,
    hold_min: u32,
    summary: &'static str,
    remedy: &'static str,
) -> Rule {
    Rule { severity: Severity::Warning, ..critical(name, promql, hold_min, summary, remedy) }
}

impl Rule {
    /// Also evaluated by the dashboard: fires while the value is above the threshold.
    const fn on_dashboard(self, threshold: f64, readings: Readings) -> Rule {
        Rule { dashboard: Some((threshold, readings)), ..self }
    }

    fn code(&self) -> String {
        let mut code = String::new();
        for character in self.name.chars() {
            if character.is_uppercase() && !code.is_empty() {
                code.push('_');
            }
            code.push(character.to_ascii_lowercase());
        }
        code
    }

    fn alert(&self, reading: Reading, since: u32) -> Alert {
        let summary = fill_template(self.summary, &reading);
        let detail = match &reading.explanation {
            Some(explanation) => format!("{summary}: {explanation}"),
            None => format!("{summary}. {}", fill_template(self.remedy, &reading)),
        };
        let Reading { subject, affected, .. } = reading;
        Alert { code: self.code(), subject, severity: self.severity, since, detail, affected }
    }
}

/// Fills in the fields of a Prometheus template. A reading has one label, its subject.
fn fill_template(template: &str, reading: &Reading) -> String {
    let mut parts = template.split("{{ ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (field, rest) = part.split_once(" }}").unwrap_or((part, ""));
        // Writing to a string cannot fail.
        let _ = match field {
            "$value | humanizeDuration" => write!(text, "{:.0} s", reading.value),
            "$value | humanizePercentage" => write!(text, "{:.0} %", reading.value * 100.0),
            "$value | humanize" => write!(text, "{}", reading.value),
            _ => write!(text, "{}", reading.subject.as_deref().unwrap_or_default()),
        };
        text.push_str(rest);
    }
    text
}

/// When each active alert began, by name and subject.
#[derive(Default)]
pub(crate) struct ActiveAlerts(BTreeMap<(&'static str, Option<String>), u32>);

impl ActiveAlerts {
    /// The alerts of now, critical ones first. An alert whose value is unknown is not shown, and keeps its beginning.
    pub(crate) fn evaluate(&mut self, observed: &Observed<'_>, now: UnixTime) -> Vec<Alert> {
        let before = std::mem::take(&mut self.0);
        let mut alerts = Vec::new();
        for rule in ALERTS {
            let Some((threshold, readings)) = rule.dashboard else { continue };
            let Some(readings) = readings(observed) else {
                self.0.extend(
                    before.iter().filter(|((name, _), _)| *name == rule.name).map(|(k, v)| (k.clone(), *v)),
                );
                continue;
            };
            for reading in readings.into_iter().filter(|reading| reading.value > threshold) {
                let key = (rule.name, reading.subject.clone());
                let since = reading.since.or_else(|| before.get(&key).copied()).unwrap_or(now.0);
                self.0.insert(key, since);
                alerts.push(rule.alert(reading, since));
            }
        }
        alerts.sort_by_key(|alert| (alert.severity, alert.since));
        alerts
    }
}

/// `deploy/prometheus/alerts.yml`.
pub fn prometheus_rules() -> String {
    let mut text = String::from(
        "# Generated by `make docs` from crates/site/src/alerts/table.rs. Do not edit.\n\
         # `severity: critical`: act now. `severity: warning`: act within the day. alerts_test.yml has the tests.\n\
         groups:\n  - name: rollcall\n    rules:\n",
    );
    for Rule { name, severity, promql, hold_min, summary, remedy, dashboard } in ALERTS {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let expr = match dashboard {
            Some((threshold, _)) => quoted(&format!("{promql} > {threshold}")),
            None => quoted(promql),
        };
        let hold = if *hold_min > 0 { format!("        for: {hold_min}m\n") } else { String::new() };
        let severity = if *severity == Severity::Critical { "critical" } else { "warning" };
        let (summary, description) = (quoted(summary), quoted(remedy));
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "      - alert: Rollcall{name}\n        expr: {expr}\n{hold}        labels: {{severity: {severity}}}\n        \
             annotations:\n          summary: {summary}\n          description: {description}\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::DependencyHealth;
    use crate::overview::schema::{JournalOverview, Overview, ViewOverview};

    fn view(paused: bool, behind_s: f64) -> ViewOverview {
        let (view, group) = ("ledger".to_owned(), "ledger".to_owned());
        ViewOverview { view, group, lag: 7, behind_s, rate_per_s: 0.0, paused }
    }

    fn journal(view: ViewOverview) -> JournalOverview {
        JournalOverview {
            entries: 9,
            too_long: false,
            appended: 9,
            appended_per_s: 0.0,
            dlq: 3,
            failed: 0,
            risks: 1,
            views: vec![view],
        }
    }

    fn overview(journal: Option<JournalOverview>, health: Vec<DependencyHealth>) -> Overview {
        Overview { journal, health, ..Overview::default() }
    }

    fn observed(overview: &Overview) -> Observed<'_> {
        Observed { overview, journal_status_age_s: 1.0, journal_length_alarm: 100, webhook_age_s: 0 }
    }

    fn dependency(name: &str, is_failing: bool, needs: Option<&str>) -> DependencyHealth {
        DependencyHealth {
            name: name.to_owned(),
            state: if is_failing { "failing" } else { "ok" }.to_owned(),
            since: 7,
            needs: needs.map(str::to_owned),
            reason: is_failing.then(|| "connection refused".to_owned()),
        }
    }

    fn alerts(overview: &Overview) -> Vec<Alert> {
        ActiveAlerts::default().evaluate(&observed(overview), UnixTime(10))
    }

    fn codes(journal: JournalOverview) -> Vec<String> {
        alerts(&overview(Some(journal), Vec::new())).into_iter().map(|alert| alert.code).collect()
    }

    #[test]
    fn j7_a_lagging_or_paused_view_a_long_journal_and_failed_entries_are_alerts() {
        assert_eq!(codes(journal(view(false, 3.0))), [""; 0], "a healthy server has none");
        assert_eq!(codes(journal(view(false, 121.0))), ["view_lagging"]);
        assert_eq!(codes(journal(view(true, 301.0))), ["view_paused"]);
        let long = JournalOverview { entries: 101, dlq: 101, failed: 1, ..journal(view(false, 0.0)) };
        assert_eq!(codes(long), ["journal_too_long", "failed_entries", "dead_letters"]);
    }

    #[test]
    fn old_webhooks_and_an_old_journal_status_are_alerts() {
        let overview = overview(None, vec![dependency("journal", false, None)]);
        let late = Observed { journal_status_age_s: 61.0, webhook_age_s: 601, ..observed(&overview) };
        let alerts = ActiveAlerts::default().evaluate(&late, UnixTime(10));
        let codes: Vec<&str> = alerts.iter().map(|alert| alert.code.as_str()).collect();
        assert_eq!(codes, ["journal_status_stale", "webhooks_late"]);
        assert!(alerts[1].detail.starts_with("The oldest undelivered webhook is 601 s old. "), "{alerts:?}");
    }

    #[test]
    fn an_alert_keeps_its_beginning_until_it_is_over_or_while_the_journal_status_is_unknown() {
        let mut active = ActiveAlerts::default();
        let mut since = |journal, webhook_age_s, at| -> Vec<(String, u32)> {
            let overview = overview(journal, Vec::new());
            let observed = Observed { webhook_age_s, ..observed(&overview) };
            let alerts = active.evaluate(&observed, UnixTime(at));
            alerts.into_iter().map(|alert| (alert.code, alert.since)).collect()
        };
        let lagging = || Some(journal(view(false, 200.0)));
        let named = |code: &str, since| (code.to_owned(), since);
        assert_eq!(since(lagging(), 0, 10), [named("view_lagging", 10)]);
        assert_eq!(since(lagging(), 700, 20), [named("view_lagging", 10), named("webhooks_late", 20)]);
        assert_eq!(since(None, 0, 30), []);
        assert_eq!(since(lagging(), 700, 40), [named("view_lagging", 10), named("webhooks_late", 40)]);
        since(Some(journal(view(false, 0.0))), 0, 50);
        assert_eq!(since(lagging(), 0, 60), [named("view_lagging", 60)]);
    }

    #[test]
    fn redis_that_is_down_is_one_alert_which_names_what_it_affects() {
        let down = overview(
            None,
            vec![
                dependency("database", false, None),
                dependency("journal", true, Some("redis")),
                dependency("journal_queue", true, Some("journal")),
                dependency("whitelist", true, Some("redis")),
                dependency("activity", true, Some("redis")),
                dependency("presence_cluster", true, Some("redis")),
                dependency("redis", true, None),
            ],
        );
        let found = alerts(&down);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].subject.as_deref(), found[0].severity), (Some("redis"), Severity::Critical));
        assert_eq!((found[0].code.as_str(), found[0].since), ("dependency_failing", 7));
        assert_eq!(
            found[0].affected,
            ["journal", "journal_queue", "whitelist", "activity", "presence_cluster"]
        );
        for text in ["connection refused", "Announces wait", "New passkeys", "other gateways", "redis.url"] {
            assert!(found[0].detail.contains(text), "{text}: {}", found[0].detail);
        }
        let own = vec![dependency("whitelist", true, Some("redis")), dependency("redis", false, None)];
        assert_eq!(alerts(&overview(None, own))[0].subject.as_deref(), Some("whitelist"));
    }

    #[test]
    fn a_view_that_lags_because_its_store_fails_has_no_alert_of_its_own() {
        let down = overview(Some(journal(view(false, 400.0))), vec![dependency("database", true, None)]);
        let found = alerts(&down);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].affected, ["ledger"]);
        assert!(found[0].detail.contains("Accounts are not updated."), "{}", found[0].detail);
    }
}

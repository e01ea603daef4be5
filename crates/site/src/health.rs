//! Health of dependencies.
//!
//! A task checks every dependency periodically; requests read the last result and never wait for a dependency. The results
//! of one round are stored together, so that of dependencies that fail together only the cause is logged and is an alert.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use domain::UnixTime;
use domain::clock::Clock;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::watch;
use tracing::{info, warn};
use utoipa::ToSchema;

use crate::metrics::{Page, Source};

const CHECK_INTERVAL: Duration = Duration::from_secs(2);
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

type CheckFuture = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// A dependency and its check.
pub struct Dependency {
    name: &'static str,
    needs: Option<&'static str>,
    check: Box<dyn Fn() -> CheckFuture + Send + Sync>,
}

impl Dependency {
    pub fn new<F>(name: &'static str, check: impl Fn() -> F + Send + Sync + 'static) -> Dependency
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        Dependency { name, needs: None, check: Box::new(move || Box::pin(check())) }
    }

    /// Declares that this dependency fails whenever the named one does.
    pub fn depends_on(self, name: &'static str) -> Dependency {
        Dependency { needs: Some(name), ..self }
    }
}

/// Last result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Checked {
    error: Option<String>,
    since: UnixTime,
}

pub struct Health {
    dependencies: Vec<Dependency>,
    checked: Mutex<Vec<Option<Checked>>>,
    /// Whether a dependency was logged as failing, by position.
    logged: Mutex<Vec<bool>>,
    started_at: UnixTime,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct DependencyHealth {
    /// Name of the dependency.
    #[schema(example = "database")]
    pub name: String,
    /// `ok`, `failing`, or `unknown` before the first check.
    #[schema(example = "ok")]
    pub state: String,
    /// Start of this state, in unix seconds.
    pub since: u32,
    /// The dependency that this one depends on; null if none.
    #[schema(example = json!(null))]
    pub needs: Option<String>,
    /// The error; only for keys with `read`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Health {
    pub fn new(dependencies: Vec<Dependency>, started_at: UnixTime) -> Health {
        let checked = Mutex::new(vec![None; dependencies.len()]);
        let logged = Mutex::new(vec![false; dependencies.len()]);
        Health { dependencies, checked, logged, started_at }
    }

    /// Checks all dependencies periodically until stopped.
    pub async fn run(self: Arc<Self>, clock: Arc<dyn Clock>, mut stop: watch::Receiver<bool>) {
        loop {
            self.check_all(&*clock).await;
            tokio::select! {
                _ = stop.wait_for(|stopped| *stopped) => return,
                () = tokio::time::sleep(CHECK_INTERVAL) => {}
            }
        }
    }

    /// Checks all dependencies concurrently.
    pub async fn check_all(&self, clock: &dyn Clock) {
        let results = Mutex::new(vec![None; self.dependencies.len()]);
        let checks = self.dependencies.iter().enumerate().map(|(position, dependency)| {
            let results = &results;
            async move {
                let result = tokio::time::timeout(CHECK_TIMEOUT, (dependency.check)()).await;
                let result =
                    result.unwrap_or_else(|_| Err(format!("no result within {} s", CHECK_TIMEOUT.as_secs())));
                results.lock()[position] = result.err();
            }
        });
        join_all(checks).await;
        self.store(results.into_inner(), clock.now());
        self.log_changes();
    }

    /// Stores the errors of a round, by position.
    fn store(&self, results: Vec<Option<String>>, now: UnixTime) {
        let mut checked = self.checked.lock();
        for (known, error) in checked.iter_mut().zip(results) {
            let is_same = known.as_ref().is_some_and(|known| known.error.is_some() == error.is_some());
            let since = match known {
                Some(known) if is_same => known.since,
                _ => now,
            };
            *known = Some(Checked { error, since });
        }
    }

    /// Logs failures and recoveries, of dependent failures only the cause.
    fn log_changes(&self) {
        let report = self.report(true);
        for (health, is_logged) in report.iter().zip(self.logged.lock().iter_mut()) {
            let is_cause = health.is_failing() && cause_of(&report, health).name == health.name;
            match (is_cause, *is_logged) {
                (true, false) => {
                    let reason = health.reason.as_deref().unwrap_or_default();
                    let affected = affected_by(&report, health).join(", ");
                    warn!(dependency = health.name, reason, affected, "not ready");
                    *is_logged = true;
                }
                (_, true) if !health.is_failing() => {
                    info!(dependency = health.name, "ready again");
                    *is_logged = false;
                }
                _ => {}
            }
        }
    }

    pub fn report(&self, with_reasons: bool) -> Vec<DependencyHealth> {
        let checked = self.checked.lock();
        let one = |(dependency, standing): (&Dependency, &Option<Checked>)| DependencyHealth {
            name: dependency.name.to_owned(),
            state: match standing {
                None => "unknown",
                Some(Checked { error: None, .. }) => "ok",
                Some(_) => "failing",
            }
            .to_owned(),
            since: standing.as_ref().map_or(self.started_at, |standing| standing.since).0,
            needs: dependency.needs.map(str::to_owned),
            reason: standing.as_ref().and_then(|standing| standing.error.clone()).filter(|_| with_reasons),
        };
        self.dependencies.iter().zip(checked.iter()).map(one).collect()
    }

    /// Whether all dependencies were checked and work.
    pub fn is_ready(&self) -> bool {
        let checked = self.checked.lock();
        checked.iter().all(|standing| standing.as_ref().is_some_and(|standing| standing.error.is_none()))
    }
}

impl DependencyHealth {
    pub fn is_failing(&self) -> bool {
        self.state == "failing"
    }
}

/// The failing dependency at the root: `failing` itself, if what it depends on works.
pub fn cause_of<'a>(report: &'a [DependencyHealth], failing: &'a DependencyHealth) -> &'a DependencyHealth {
    let mut cause = failing;
    // Bounded by the number of dependencies, in case of a cycle.
    for _ in report {
        let needed = report.iter().find(|one| Some(&one.name) == cause.needs.as_ref() && one.is_failing());
        match needed {
            Some(needed) => cause = needed,
            None => break,
        }
    }
    cause
}

/// Names of the dependencies that fail because of `cause`.
pub fn affected_by<'a>(report: &'a [DependencyHealth], cause: &DependencyHealth) -> Vec<&'a str> {
    let fails_with = |one: &&DependencyHealth| {
        one.is_failing() && one.name != cause.name && cause_of(report, one).name == cause.name
    };
    report.iter().filter(fails_with).map(|one| one.name.as_str()).collect()
}

/// Effect of a failing dependency or view.
pub fn effect_of(name: &str) -> &'static str {
    match name {
        "database" => "Users and torrents are served from memory; changes of them fail.",
        "journal" => "Announces wait in memory; replies to announces with an event are delayed.",
        "journal_queue" => "Announces are refused; clients retry.",
        "whitelist" => "New passkeys cannot be checked.",
        "activity" => "The activity lists are not updated.",
        "presence_cluster" => "Presence at other gateways is not visible.",
        "audit" => "Changes over the API are refused.",
        "ledger" => "Accounts are not updated.",
        "sites" => "The site's tables are not written.",
        "mirror" => "The keys of the mirror in Redis are not updated.",
        _ => "",
    }
}

impl Source for Health {
    fn encode(&self, page: &mut Page) {
        let mut ready = page.gauge(
            "rollcall_dependency_ready",
            "Whether a dependency works, including writes, as reported by /readyz.",
        );
        for dependency in self.report(false) {
            // The alert rules use `needs` to suppress dependent failures.
            let needs = dependency.needs.as_deref().unwrap_or("");
            let labels = [("dependency", dependency.name.as_str()), ("needs", needs)];
            ready = ready.with(&labels, u64::from(dependency.state == "ok"));
        }
    }
}

async fn join_all(futures: impl Iterator<Item = impl Future<Output = ()>>) {
    let mut waiting: Vec<_> = futures.map(Box::pin).collect();
    std::future::poll_fn(|context| {
        waiting.retain_mut(|future| future.as_mut().poll(context).is_pending());
        if waiting.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use domain::clock::ManualClock;

    use super::*;

    #[tokio::test]
    async fn a_report_has_state_reason_and_start_time() {
        let is_up = Arc::new(AtomicBool::new(true));
        let params = Arc::clone(&is_up);
        let database = Dependency::new("database", move || {
            let is_up = params.load(Ordering::Relaxed);
            async move { if is_up { Ok(()) } else { Err("connection refused".to_owned()) } }
        });
        let clock = ManualClock::at(UnixTime(100));
        let health = Health::new(vec![database], UnixTime(90));
        assert!(!health.is_ready());
        assert_eq!((health.report(true)[0].state.as_str(), health.report(true)[0].since), ("unknown", 90));
        health.check_all(&clock).await;
        assert!(health.is_ready());
        is_up.store(false, Ordering::Relaxed);
        for _ in 0..2 {
            clock.advance(domain::Seconds(10));
            health.check_all(&clock).await;
        }
        let report = health.report(true);
        assert_eq!((report[0].state.as_str(), report[0].since), ("failing", 110));
        assert_eq!(report[0].reason.as_deref(), Some("connection refused"));
        assert_eq!(health.report(false)[0].reason, None);
        assert!(!health.is_ready());
    }

    #[tokio::test]
    async fn dependent_failures_have_a_common_cause() {
        let failing = |name, needs: Option<&'static str>| {
            let one = Dependency::new(name, || async { Err("connection refused".to_owned()) });
            match needs {
                Some(needs) => one.depends_on(needs),
                None => one,
            }
        };
        let works = Dependency::new("database", || async { Ok(()) });
        let health = Health::new(
            vec![
                failing("journal_queue", Some("journal")),
                failing("journal", Some("redis")),
                works,
                failing("audit", None),
                failing("whitelist", Some("database")),
                failing("redis", None),
            ],
            UnixTime(90),
        );
        health.check_all(&ManualClock::at(UnixTime(100))).await;
        let report = health.report(true);
        let causes: Vec<&str> = report.iter().map(|one| cause_of(&report, one).name.as_str()).collect();
        assert_eq!(causes, ["redis", "redis", "database", "audit", "whitelist", "redis"]);
        assert_eq!(affected_by(&report, &report[5]), ["journal_queue", "journal"]);
        assert_eq!(*health.logged.lock(), [false, false, false, true, true, true]);
    }
}

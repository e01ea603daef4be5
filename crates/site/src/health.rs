//! Health: what we depend on, how it is, and since when.
//!
//! A task asks every dependency now and then. Requests read what it found, so that a dead dependency makes nobody wait.

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

/// How often dependencies are asked.
const ASK_EVERY: Duration = Duration::from_secs(2);
/// How long one may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

type Asking = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// Something we depend on, and how to ask it whether it is there.
pub struct Dependency {
    name: &'static str,
    ask: Box<dyn Fn() -> Asking + Send + Sync>,
}

impl Dependency {
    /// A dependency that is asked by this.
    pub fn new<F>(name: &'static str, ask: impl Fn() -> F + Send + Sync + 'static) -> Dependency
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        Dependency { name, ask: Box::new(move || Box::pin(ask())) }
    }
}

/// How something is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Standing {
    trouble: Option<String>,
    since: UnixTime,
}

/// How everything is.
pub struct Health {
    dependencies: Vec<Dependency>,
    standings: Mutex<Vec<Option<Standing>>>,
    started_at: UnixTime,
}

/// How one dependency is, as it is written.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct DependencyHealth {
    /// What it is.
    #[schema(example = "database")]
    pub name: String,
    /// `ok`, `failing`, or `unknown` before it was first asked.
    #[schema(example = "ok")]
    pub state: String,
    /// Since when it has been so, in seconds since 1970.
    pub since: u32,
    /// What is wrong; told only to callers with a key for `read`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Health {
    /// Nothing is known yet.
    pub fn new(dependencies: Vec<Dependency>, started_at: UnixTime) -> Health {
        let standings = Mutex::new(vec![None; dependencies.len()]);
        Health { dependencies, standings, started_at }
    }

    /// Asks everything until told to stop.
    pub async fn run(self: Arc<Self>, clock: Arc<dyn Clock>, mut stop: watch::Receiver<bool>) {
        loop {
            self.ask_all(&*clock).await;
            tokio::select! {
                _ = stop.wait_for(|stopped| *stopped) => return,
                () = tokio::time::sleep(ASK_EVERY) => {}
            }
        }
    }

    /// Asks everything once. Nobody waits for another's answer.
    pub async fn ask_all(&self, clock: &dyn Clock) {
        let asking = self.dependencies.iter().enumerate().map(|(position, dependency)| async move {
            let answer = tokio::time::timeout(ANSWER_WITHIN, (dependency.ask)()).await;
            let answer =
                answer.unwrap_or_else(|_| Err(format!("no answer within {} s", ANSWER_WITHIN.as_secs())));
            self.note(position, answer.err(), clock.now());
        });
        join_all(asking).await;
    }

    fn note(&self, position: usize, trouble: Option<String>, now: UnixTime) {
        let name = self.dependencies[position].name;
        let mut standings = self.standings.lock();
        let known = &mut standings[position];
        let was_ok = known.as_ref().is_none_or(|known| known.trouble.is_none());
        match (&trouble, was_ok) {
            (Some(reason), true) => warn!(dependency = name, %reason, "not ready"),
            (None, false) => info!(dependency = name, "ready again"),
            _ => {}
        }
        let is_same_state = known.as_ref().is_some_and(|known| known.trouble.is_some() == trouble.is_some());
        let since = match known {
            Some(known) if is_same_state => known.since,
            _ => now,
        };
        *known = Some(Standing { trouble, since });
    }

    /// How each dependency is.
    pub fn report(&self, with_reasons: bool) -> Vec<DependencyHealth> {
        let standings = self.standings.lock();
        let one = |(dependency, standing): (&Dependency, &Option<Standing>)| DependencyHealth {
            name: dependency.name.to_owned(),
            state: match standing {
                None => "unknown",
                Some(Standing { trouble: None, .. }) => "ok",
                Some(_) => "failing",
            }
            .to_owned(),
            since: standing.as_ref().map_or(self.started_at, |standing| standing.since).0,
            reason: standing.as_ref().and_then(|standing| standing.trouble.clone()).filter(|_| with_reasons),
        };
        self.dependencies.iter().zip(standings.iter()).map(one).collect()
    }

    /// Whether everything was asked and is well.
    pub fn is_ready(&self) -> bool {
        let standings = self.standings.lock();
        standings.iter().all(|standing| standing.as_ref().is_some_and(|standing| standing.trouble.is_none()))
    }
}

impl Source for Health {
    fn encode(&self, page: &mut Page) {
        let mut ready = page.gauge(
            "rollcall_dependency_ready",
            "Whether what the server depends on works, writes included: what /readyz says.",
        );
        for dependency in self.report(false) {
            ready = ready.with(&[("dependency", &dependency.name)], u64::from(dependency.state == "ok"));
        }
    }
}

/// Waits for all of them; there are few.
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
    async fn health_says_what_is_wrong_and_since_when() {
        let is_up = Arc::new(AtomicBool::new(true));
        let asked = Arc::clone(&is_up);
        let database = Dependency::new("database", move || {
            let is_up = asked.load(Ordering::Relaxed);
            async move { if is_up { Ok(()) } else { Err("connection refused".to_owned()) } }
        });
        let clock = ManualClock::at(UnixTime(100));
        let health = Health::new(vec![database], UnixTime(90));
        assert!(!health.is_ready());
        assert_eq!((health.report(true)[0].state.as_str(), health.report(true)[0].since), ("unknown", 90));
        health.ask_all(&clock).await;
        assert!(health.is_ready());
        is_up.store(false, Ordering::Relaxed);
        for _ in 0..2 {
            clock.advance(domain::Seconds(10));
            health.ask_all(&clock).await;
        }
        let report = health.report(true);
        assert_eq!((report[0].state.as_str(), report[0].since), ("failing", 110));
        assert_eq!(report[0].reason.as_deref(), Some("connection refused"));
        assert_eq!(health.report(false)[0].reason, None);
        assert!(!health.is_ready());
    }
}

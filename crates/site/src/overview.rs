//! The overview: the state of the server, computed once a second while it is asked for, else every ten seconds.
//!
//! # Layout
//!
//! - this file: the collector
//! - `demand`: whether it is asked for
//! - [`schema`]: its JSON
//! - `polling`: sources that need I/O: the journal, other gateways
//! - `window`: rates and quantiles
//! - [`history`]: the last hour
//!
//! # Guarantees
//!
//! - It is serialised once a second at most, with and without invisible users, for all requests. None gets an older one
//!   than a second or two.
//! - A source that does not answer delays nothing: its part of the overview is null, and there is an alert.
//! - Rates are averages over five seconds, in the history and in the first overview asked for over the ten seconds of a
//!   step.
//!
//! # Deliberately absent
//!
//! Figures of other processes, except the number of online users. Persistence across restarts.

mod demand;
pub mod history;
mod polling;
pub mod schema;
mod window;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use domain::clock::{Clock, Stopwatch};
use domain::{Histogram, UnixTime};
use gateway::Gateway;
use journal::Journal;
use parking_lot::Mutex;
use tokio::sync::watch;
use tracing::error;
use tracker::Tracker;

use self::demand::Demand;
use self::history::{History, OverviewHistory};
use self::polling::Polled;
use self::schema::{DisconnectCause, GatewayOverview, HeartbeatDelay, Overview, TrackerOverview};
use self::window::{Window, quantile};
use crate::alerts::{ActiveAlerts, Observed};
use crate::api::PresenceCount;
use crate::health::Health;
use crate::site::ViewGroup;

/// The longest wait for the journal before an overview.
const POLL_WAIT: Duration = Duration::from_secs(1);
/// The longest wait of a request for an overview newer than the last one.
const FRESH_WAIT: Duration = Duration::from_secs(2);
/// Window of rates.
const RATE_WINDOW_S: f64 = 5.0;
/// Window of heartbeat delays, longer because there are few per second.
const DELAY_WINDOW_S: f64 = 60.0;

pub struct OverviewSources {
    pub clock: Arc<dyn Clock>,
    pub version: &'static str,
    /// Name of this process.
    pub node: String,
    /// None without the role `gateway`.
    pub gateway: Option<Arc<Gateway>>,
    /// None without the role `tracker`.
    pub tracker: Option<Arc<Tracker>>,
    pub journal: Arc<dyn Journal>,
    /// Views with their consumer groups.
    pub views: Vec<ViewGroup>,
    /// `journal.length_alarm`.
    pub journal_length_alarm: u64,
    pub health: Arc<Health>,
}

/// Computes the overview and keeps the last one.
pub struct OverviewCollector {
    sources: OverviewSources,
    started_at: UnixTime,
    polled: Polled,
    demand: Demand,
    latest: watch::Sender<Option<Published>>,
    history: Mutex<History>,
}

#[derive(Clone)]
struct Published {
    /// For keys with `admin`, including invisible users.
    with_hidden_json: Arc<str>,
    /// For keys with `read`.
    public_json: Arc<str>,
}

impl Published {
    fn new(mut overview: Overview) -> Result<Published, serde_json::Error> {
        let with_hidden_json = serde_json::to_string(&overview)?.into();
        overview.presence = overview.presence.map(PresenceCount::without_hidden);
        Ok(Published { with_hidden_json, public_json: serde_json::to_string(&overview)?.into() })
    }
}

/// Counters at one time.
#[derive(Clone, Copy, Default)]
struct CounterSample {
    connects: u64,
    disconnects: u64,
    announces: u64,
    refused: u64,
    uploaded: u64,
    downloaded: u64,
}

/// State of the collector between overviews.
struct CollectorState {
    since: Stopwatch,
    samples: Window<CounterSample>,
    delays: Window<domain::histogram::Snapshot>,
    alerts: ActiveAlerts,
}

impl OverviewCollector {
    /// Start it with [`OverviewCollector::run`].
    pub fn new(sources: OverviewSources) -> Arc<OverviewCollector> {
        let started_at = sources.clock.now();
        let collector = OverviewCollector {
            sources,
            started_at,
            polled: Polled::default(),
            demand: Demand::default(),
            latest: watch::Sender::new(None),
            history: Mutex::default(),
        };
        Arc::new(collector)
    }

    /// The last overview as JSON; waits for one if it may be old. `with_hidden` includes invisible users.
    pub async fn latest(&self, with_hidden: bool) -> Arc<str> {
        let mut latest = self.latest.subscribe();
        if self.demand.ask() {
            // During shutdown there is no newer one.
            let _ = tokio::time::timeout(FRESH_WAIT, latest.changed()).await;
        }
        // Cannot fail: this struct owns the sender.
        let found = latest.wait_for(Option::is_some).await;
        let found = found.ok().and_then(|found| found.clone());
        let shown = found.map(|found| if with_hidden { found.with_hidden_json } else { found.public_json });
        shown.unwrap_or_else(|| Arc::from("null"))
    }

    pub fn history(&self) -> OverviewHistory {
        self.history.lock().to_json()
    }

    /// Runs until stopped.
    pub async fn run(self: Arc<Self>, mut stopped: watch::Receiver<bool>) {
        let running = async {
            tokio::join!(
                self.polled.poll_journal(&self.sources, &self.demand),
                self.polled.poll_presence(&self.sources, &self.demand),
                self.collect(),
            )
        };
        tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => {}
            _ = running => {}
        }
    }

    async fn collect(&self) {
        let mut state = CollectorState {
            since: Stopwatch::start(),
            samples: Window::new(RATE_WINDOW_S),
            delays: Window::new(DELAY_WINDOW_S),
            alerts: ActiveAlerts::default(),
        };
        let mut polls = self.polled.journal_polls();
        loop {
            // Waits for the journal, so that a first overview after a pause includes it as it is now.
            let _ = tokio::time::timeout(POLL_WAIT, polls.changed()).await;
            let overview = self.overview(&mut state);
            match Published::new(overview) {
                Ok(published) => drop(self.latest.send_replace(Some(published))),
                Err(reason) => error!(%reason, "cannot serialise the overview"),
            }
            self.demand.pause().await;
        }
    }

    fn overview(&self, state: &mut CollectorState) -> Overview {
        let sources = &self.sources;
        let at_s = state.since.elapsed().as_secs_f64();
        let sample = self.sample_counters();
        state.samples.push(at_s, sample);
        let now = sources.clock.now();
        let mut overview = Overview {
            at_ms: sources.clock.now_ms(),
            version: sources.version.to_owned(),
            node: sources.node.clone(),
            started_at: self.started_at.0,
            presence: self.presence(),
            gateway: sources.gateway.as_ref().map(|gateway| gateway_overview(gateway, at_s, state)),
            tracker: sources.tracker.as_ref().map(|tracker| tracker_overview(tracker, &state.samples)),
            journal: self.polled.journal(),
            health: sources.health.report(true),
            alerts: Vec::new(),
        };
        let webhooks = sources.gateway.as_ref().map(|gateway| &gateway.counters.webhooks);
        let observed = Observed {
            overview: &overview,
            journal_status_age_s: self.polled.journal_age_s(),
            journal_length_alarm: sources.journal_length_alarm,
            webhook_age_s: webhooks.map_or(0, |webhooks| webhooks.oldest_seconds.get()),
        };
        overview.alerts = state.alerts.evaluate(&observed, now);
        self.history.lock().record(at_s, now, sample, &overview);
        overview
    }

    /// Online users over all gateways; of this one until the first poll.
    fn presence(&self) -> Option<PresenceCount> {
        let local = || {
            self.sources.gateway.as_ref().map(|gateway| PresenceCount::of(&gateway.hub.users.online_count()))
        };
        self.polled.presence().or_else(local)
    }

    fn sample_counters(&self) -> CounterSample {
        let mut sample = CounterSample::default();
        if let Some(gateway) = &self.sources.gateway {
            let sessions = &gateway.counters.sessions;
            (sample.connects, sample.disconnects) = (sessions.connected.get(), sessions.ended.total());
        }
        if let Some(tracker) = &self.sources.tracker {
            let counters = tracker.counters();
            sample.announces = counters.announces();
            sample.refused = counters.refused.total();
            sample.uploaded = counters.uploaded_bytes.get();
            sample.downloaded = counters.downloaded_bytes.get();
        }
        sample
    }
}

fn gateway_overview(gateway: &Gateway, at_s: f64, state: &mut CollectorState) -> GatewayOverview {
    let answers: &Histogram = &gateway.counters.sessions.ping_answers;
    state.delays.push(at_s, answers.snapshot());
    let delay = state.delays.ends().and_then(|(before, after)| {
        let (half, most) = (quantile(before, after, 0.5)?, quantile(before, after, 0.99)?);
        Some(HeartbeatDelay {
            p50: half.ms,
            p99: most.ms,
            p50_exceeds: half.exceeds,
            p99_exceeds: most.exceeds,
        })
    });
    let ended = &gateway.counters.sessions.ended;
    GatewayOverview {
        connects_per_s: state.samples.rate(|sample| sample.connects),
        disconnects_per_s: state.samples.rate(|sample| sample.disconnects),
        disconnects: ended
            .all()
            .map(|(cause, count)| DisconnectCause { cause: cause.name(), count })
            .collect(),
        heartbeat_delay_ms: delay,
        webhooks_waiting: gateway.counters.webhooks.waiting.get(),
    }
}

fn tracker_overview(tracker: &Tracker, samples: &Window<CounterSample>) -> TrackerOverview {
    let (totals, counters) = (tracker.swarms().totals(), tracker.counters());
    TrackerOverview {
        torrents_active: totals.swarms as u64,
        torrents_seeded: totals.seeded as u64,
        torrents_leeched: totals.leeched as u64,
        peers: totals.peers as u64,
        seeders: totals.seeders as u64,
        leechers: totals.leechers() as u64,
        announces: counters.announces(),
        announces_per_s: samples.rate(|sample| sample.announces),
        refused_per_s: samples.rate(|sample| sample.refused),
        uploaded: counters.uploaded_bytes.get().to_string(),
        downloaded: counters.downloaded_bytes.get().to_string(),
        upload_bytes_per_s: samples.rate(|sample| sample.uploaded),
        download_bytes_per_s: samples.rate(|sample| sample.downloaded),
    }
}

/// Lag by view.
fn lags(overview: &Overview) -> BTreeMap<String, u64> {
    let views = overview.journal.iter().flat_map(|journal| &journal.views);
    views.map(|view| (view.view.clone(), view.lag)).collect()
}

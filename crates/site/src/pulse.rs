//! The pulse: everything an operator sees at a glance, put together once a second.
//!
//! # Layout
//!
//! - this file: the task, and what it has published last
//! - [`overview`]: what is published
//! - `look`: what has to be asked, and may not answer: the journal, other gateways
//! - `window`: counters become rates
//! - [`history`]: the last hour
//!
//! # Guarantees
//!
//! - It is written as JSON once for those who may know who hides and once for the others, for those who ask and for the
//!   operators' feed.
//! - Whoever asks for the overview is given bytes that are there already: a thousand who ask cost what one costs.
//! - What does not answer holds up nothing: the overview comes every second, without what is not known, and says so.
//! - Rates are over the last five seconds; those of the history over the ten seconds of their step.
//!
//! # Deliberately absent
//!
//! Figures of other processes, but for who is online over all gateways. Anything kept across a restart.

pub mod history;
mod look;
pub mod overview;
mod window;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use domain::clock::{Clock, Stopwatch};
use domain::{Histogram, UnixTime};
use gateway::Gateway;
use gateway::counters::Kind;
use journal::Journal;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use tracing::error;
use tracker::Tracker;

use self::history::{History, OverviewHistory};
use self::look::Looks;
use self::overview::{Cause, Delay, GatewayPulse, Overview, TrackerPulse};
use self::window::{Window, quantile};
use crate::alerts::{ActiveAlerts, Observed};
use crate::api::CountShown;
use crate::health::Health;
use crate::site::ViewGroup;

/// How often the overview is put together.
const EVERY: Duration = Duration::from_secs(1);
/// Rates are over this long, in seconds.
const RATE_S: f64 = 5.0;
/// Delays of heartbeats are over this long: there are few in a second.
const DELAY_S: f64 = 60.0;

/// What the pulse is read from.
pub struct PulseSources {
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// The version of the program.
    pub version: &'static str,
    /// This process among others.
    pub node: String,
    /// The people, if this process knows them.
    pub gateway: Option<Arc<Gateway>>,
    /// The swarms, if this process has them.
    pub tracker: Option<Arc<Tracker>>,
    /// The log of every announce.
    pub journal: Arc<dyn Journal>,
    /// The views and the groups in which they read the journal.
    pub views: Vec<ViewGroup>,
    /// With more entries than this the journal is too long.
    pub journal_length_alarm: u64,
    /// How everything is.
    pub health: Arc<Health>,
}

/// Puts the overview together, and keeps the last one.
pub struct Pulse {
    sources: PulseSources,
    started_at: UnixTime,
    looks: Looks,
    latest: watch::Sender<Option<Published>>,
    history: Mutex<History>,
}

/// An overview, as JSON.
#[derive(Clone)]
struct Published {
    /// For who may know who hides.
    whole: Arc<str>,
    /// For everybody else.
    part: Arc<str>,
}

impl Published {
    fn of(mut overview: Overview) -> Result<Published, serde_json::Error> {
        let whole = serde_json::to_string(&overview)?.into();
        overview.people = overview.people.map(CountShown::without_hidden);
        Ok(Published { whole, part: serde_json::to_string(&overview)?.into() })
    }
}

/// Counters of one moment.
#[derive(Clone, Copy, Default)]
struct Counted {
    connects: u64,
    disconnects: u64,
    announces: u64,
    refused: u64,
    uploaded: u64,
    downloaded: u64,
}

/// What the task keeps from one second to the next.
struct Beat {
    since: Stopwatch,
    counted: Window<Counted>,
    delays: Window<domain::histogram::Snapshot>,
    alerts: ActiveAlerts,
}

impl Pulse {
    /// A pulse that has not begun to beat: see [`Pulse::run`].
    pub fn new(sources: PulseSources) -> Arc<Pulse> {
        let started_at = sources.clock.now();
        let pulse = Pulse {
            sources,
            started_at,
            looks: Looks::default(),
            latest: watch::Sender::new(None),
            history: Mutex::default(),
        };
        Arc::new(pulse)
    }

    /// The last overview, as JSON; waits for the first one. Only `with_hidden` does it say how many hide.
    pub async fn latest(&self, with_hidden: bool) -> Arc<str> {
        let mut latest = self.latest.subscribe();
        // The sender is ours, so it cannot be gone.
        let found = latest.wait_for(Option::is_some).await;
        let found = found.ok().and_then(|found| found.clone());
        let shown = found.map(|found| if with_hidden { found.whole } else { found.part });
        shown.unwrap_or_else(|| Arc::from("null"))
    }

    /// The last hour.
    pub fn history(&self) -> OverviewHistory {
        self.history.lock().shown()
    }

    /// Beats until told to stop.
    pub async fn run(self: Arc<Self>, mut stopped: watch::Receiver<bool>) {
        let beating = async {
            tokio::join!(
                self.looks.at_journal(&self.sources),
                self.looks.at_people(&self.sources),
                self.beat(),
            )
        };
        tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => {}
            _ = beating => {}
        }
    }

    async fn beat(&self) {
        let mut beat = Beat {
            since: Stopwatch::start(),
            counted: Window::new(RATE_S),
            delays: Window::new(DELAY_S),
            alerts: ActiveAlerts::default(),
        };
        let mut interval = tokio::time::interval(EVERY);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first overview should have something to say of the journal, if that answers.
        let _ = tokio::time::timeout(EVERY, self.looks.looked_once()).await;
        loop {
            interval.tick().await;
            let overview = self.overview(&mut beat);
            match Published::of(overview) {
                Ok(published) => self.publish(published),
                Err(reason) => error!(%reason, "the overview cannot be written"),
            }
        }
    }

    fn publish(&self, published: Published) {
        if let Some(gateway) = &self.sources.gateway {
            gateway.operators.publish_overview(&published.whole, &published.part);
        }
        self.latest.send_replace(Some(published));
    }

    fn overview(&self, beat: &mut Beat) -> Overview {
        let sources = &self.sources;
        let at_s = beat.since.elapsed().as_secs_f64();
        let counted = self.count();
        beat.counted.push(at_s, counted);
        let now = sources.clock.now();
        let mut overview = Overview {
            at_ms: sources.clock.now_ms(),
            version: sources.version.to_owned(),
            node: sources.node.clone(),
            started_at: self.started_at.0,
            people: self.people(),
            gateway: sources.gateway.as_ref().map(|gateway| gateway_pulse(gateway, at_s, beat)),
            tracker: sources.tracker.as_ref().map(|tracker| tracker_pulse(tracker, &beat.counted)),
            journal: self.looks.journal(),
            health: sources.health.report(true),
            alerts: Vec::new(),
        };
        let webhooks = sources.gateway.as_ref().map(|gateway| &gateway.counters.webhooks);
        let observed = Observed {
            overview: &overview,
            journal_status_age_s: self.looks.journal_age_s(),
            journal_length_alarm: sources.journal_length_alarm,
            webhook_age_s: webhooks.map_or(0, |webhooks| webhooks.oldest_seconds.get()),
        };
        overview.alerts = beat.alerts.evaluate(&observed, now);
        self.history.lock().note(at_s, now, counted, &overview);
        overview
    }

    /// Who is here; only at this gateway, until others have answered.
    fn people(&self) -> Option<CountShown> {
        let here =
            || self.sources.gateway.as_ref().map(|gateway| CountShown::of(&gateway.hub.online_count()));
        self.looks.people().or_else(here)
    }

    fn count(&self) -> Counted {
        let mut counted = Counted::default();
        if let Some(gateway) = &self.sources.gateway {
            let sessions = &gateway.counters.sessions;
            (counted.connects, counted.disconnects) = (sessions.connected.get(), sessions.ended.total());
        }
        if let Some(tracker) = &self.sources.tracker {
            let counters = tracker.counters();
            counted.announces = counters.announces();
            counted.refused = counters.refused.total();
            counted.uploaded = counters.uploaded_bytes.get();
            counted.downloaded = counters.downloaded_bytes.get();
        }
        counted
    }
}

fn gateway_pulse(gateway: &Gateway, at_s: f64, beat: &mut Beat) -> GatewayPulse {
    let answers: &Histogram = &gateway.counters.sessions.ping_answers;
    beat.delays.push(at_s, answers.snapshot());
    let delay = beat.delays.ends().and_then(|(before, after)| {
        let (half, most) = (quantile(before, after, 0.5)?, quantile(before, after, 0.99)?);
        Some(Delay { p50: half.ms, p99: most.ms, p50_exceeds: half.exceeds, p99_exceeds: most.exceeds })
    });
    let ended = &gateway.counters.sessions.ended;
    GatewayPulse {
        connects_per_s: beat.counted.rate(|counted| counted.connects),
        disconnects_per_s: beat.counted.rate(|counted| counted.disconnects),
        disconnects: ended.all().map(|(cause, count)| Cause { cause: cause.name(), count }).collect(),
        heartbeat_delay_ms: delay,
        webhooks_waiting: gateway.counters.webhooks.waiting.get(),
    }
}

fn tracker_pulse(tracker: &Tracker, counted: &Window<Counted>) -> TrackerPulse {
    let (totals, counters) = (tracker.swarms().totals(), tracker.counters());
    TrackerPulse {
        torrents_active: totals.swarms as u64,
        torrents_seeded: totals.seeded as u64,
        torrents_leeched: totals.leeched as u64,
        peers: totals.peers as u64,
        seeders: totals.seeders as u64,
        leechers: totals.leechers() as u64,
        announces: counters.announces(),
        announces_per_s: counted.rate(|counted| counted.announces),
        refused_per_s: counted.rate(|counted| counted.refused),
        uploaded: counters.uploaded_bytes.get().to_string(),
        downloaded: counters.downloaded_bytes.get().to_string(),
        upload_bytes_per_s: counted.rate(|counted| counted.uploaded),
        download_bytes_per_s: counted.rate(|counted| counted.downloaded),
    }
}

/// The lag of each view, by its name.
fn lags(overview: &Overview) -> BTreeMap<String, u64> {
    let views = overview.journal.iter().flat_map(|journal| &journal.views);
    views.map(|view| (view.view.clone(), view.lag)).collect()
}

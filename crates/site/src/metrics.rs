//! Metrics in the text format of Prometheus.
//!
//! # Layout
//!
//! - this file: the registry of sources
//! - [`page`]: metric families and their encoding
//! - [`journal_poller`]: polls the state of the journal
//! - `tracker`, `replication`, `journal`, `redis_mirror`, `stores`, `verification`, `presence`, `cluster`, `http`, `redis_source`, `sites`: one
//!   adapter per subsystem
//! - [`CertificateMetrics`]: expiry of certificates
//! - [`process`], [`Allocator`]: memory, CPU time, files and threads of this process
//!
//! # Guarantees
//!
//! - A scrape never waits for Redis or a database. [`JournalPoller::run`] polls them; the last result is shown with its
//!   age.
//! - There are no counters of the page itself: it reads those of each subsystem at the scrape.
//! - The number of labels is bounded.
//!
//! # Deliberately absent
//!
//! Labels by user, torrent or address: use the API. Global state: a subsystem implements [`Source`].

mod allocator;
mod cluster;
mod http;
mod journal;
pub mod journal_poller;
pub mod page;
mod presence;
pub mod process;
mod redis_mirror;
mod redis_source;
mod replication;
mod sites;
mod stores;
mod tracker;
mod verification;

use std::sync::Arc;

use ::journal::maintenance::MaintenanceCounters;
use ::journal::{ConsumerCounters, Journal, Queue};
use ::tracker::Tracker;
use access::{FollowCounters, Gate};
use database::Database;
use domain::clock::Clock;
use keyspace::Redis;
use ledger::Ledger;
use views::Activity;

pub use allocator::Allocator;
pub use cluster::ClusterMetrics;
pub use journal_poller::JournalPoller;
pub use page::{Family, Page};
pub use presence::PresenceMetrics;
pub use redis_mirror::RedisMirrorMetrics;
pub use redis_source::RedisSourceFigures;
pub use sites::SitesMetrics;
pub use stores::CertificateMetrics;

/// Content type of the page.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A source of metrics. `encode` is called at every scrape and must not wait.
pub trait Source: Send + Sync {
    fn encode(&self, page: &mut Page);
}

impl<S: Source + ?Sized> Source for Arc<S> {
    fn encode(&self, page: &mut Page) {
        (**self).encode(page);
    }
}

/// A view that this process maintains.
#[derive(Clone)]
pub struct ViewSource {
    pub view: &'static str,
    /// Consumer group.
    pub group: String,
    pub counters: Arc<ConsumerCounters>,
}

/// Subsystems of the server; absent ones are left out of the page.
pub struct MetricsSources {
    pub version: &'static str,
    pub clock: Arc<dyn Clock>,
    pub tracker: Option<Arc<Tracker>>,
    pub queue: Arc<Queue>,
    pub journal: Arc<dyn Journal>,
    pub maintenance: Arc<MaintenanceCounters>,
    /// Views that this process maintains.
    pub views: Vec<ViewSource>,
    pub ledger: Option<Arc<Ledger>>,
    pub activity: Option<Activity>,
    pub gate: Arc<Gate>,
    /// Polls of the database for the gate.
    pub follower: Option<Arc<FollowCounters>>,
    /// Databases by use, except the ledger's.
    pub databases: Vec<(&'static str, Database)>,
    /// Redis connections by use.
    pub redis: Vec<(&'static str, Redis)>,
}

pub struct Metrics {
    sources: Vec<Box<dyn Source>>,
    poller: Arc<JournalPoller>,
}

impl Metrics {
    /// The caller must run [`JournalPoller::run`] of [`Metrics::journal_poller`].
    pub fn new(parts: MetricsSources) -> Metrics {
        let groups = parts.views.iter().map(|view| (view.group.clone(), view.view)).collect();
        let poller = Arc::new(JournalPoller::new(Arc::clone(&parts.journal), parts.clock, groups));
        let mut metrics = Metrics { sources: Vec::new(), poller: Arc::clone(&poller) };
        metrics.add(poller);
        metrics.add(process::ProcessMetrics::new(parts.version));
        metrics.add(journal::QueueMetrics(parts.queue));
        metrics.add(journal::MaintenanceMetrics { counters: parts.maintenance, journal: parts.journal });
        metrics.add(journal::ViewMetrics(parts.views));
        metrics.add(stores::GateMetrics { gate: parts.gate, follower: parts.follower });
        metrics.add(stores::RedisMetrics(parts.redis));
        let mut databases = parts.databases;
        databases.extend(parts.ledger.iter().map(|ledger| ("ledger", ledger.database().clone())));
        metrics.add(stores::DatabaseMetrics(databases));
        if let Some(tracker) = parts.tracker {
            metrics.add(replication::ReplicationMetrics(Arc::clone(&tracker)));
            metrics.add(tracker::TrackerMetrics(tracker));
        }
        if let Some(ledger) = parts.ledger {
            metrics.add(stores::LedgerMetrics(ledger));
        }
        if let Some(activity) = parts.activity {
            metrics.add(stores::ActivityMetrics(activity));
        }
        metrics
    }

    /// Adds a source.
    pub fn add(&mut self, source: impl Source + 'static) {
        self.sources.push(Box::new(source));
    }

    pub fn journal_poller(&self) -> &Arc<JournalPoller> {
        &self.poller
    }

    /// The current page, of type [`CONTENT_TYPE`].
    pub fn render(&self) -> String {
        self.render_with(&[])
    }

    /// The page with further sources: those of the server that owns this value.
    pub fn render_with(&self, more: &[&dyn Source]) -> String {
        let mut page = Page::default();
        for source in self.sources.iter().map(|source| &**source).chain(more.iter().copied()) {
            source.encode(&mut page);
        }
        page.finish()
    }
}

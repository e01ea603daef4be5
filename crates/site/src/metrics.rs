//! The metrics page: everything an operator can watch, as text that Prometheus reads.
//!
//! # Layout
//!
//! - this file: the page's parts, put together
//! - [`page`]: families of numbers and how they are written
//! - [`watch`]: what has to be asked of the journal, asked now and then
//! - `announces`, `replication`, `entries`, `mirror`, `stores`, `strangers`, `people`, `requests`, `site_keys`: one adapter
//!   for each thing that counts
//! - [`CertificateFigures`]: when certificates expire
//! - [`process`], [`Allocator`]: memory, time, files and threads of this process
//!
//! # Guarantees
//!
//! - A scrape never waits for Redis or a database. What has to be asked there is asked by [`JournalPoller::run`]; the
//!   last answer is shown, with its age.
//! - Nothing is counted twice: the numbers are those that each part keeps beside what it does, read at the scrape.
//! - The page does not grow: labels come from lists that are fixed or bounded here.
//!
//! # Deliberately absent
//!
//! Anything by user, torrent or address: that belongs to the API. State of its own, global or otherwise: whoever wants
//! to be on the page implements [`Source`].

mod allocator;
mod cluster;
mod http;
mod journal;
pub mod journal_poller;
mod mirror;
pub mod page;
mod presence;
pub mod process;
mod replication;
mod site_keys;
mod stores;
mod strangers;
mod tracker;

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
pub use cluster::ClusterFigures;
pub use journal_poller::JournalPoller;
pub use mirror::MirrorFigures;
pub use page::{Family, Page};
pub use presence::PresenceFigures;
pub use site_keys::SiteKeyFigures;
pub use stores::CertificateFigures;

/// The type of the page, for whoever serves it.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Something that has numbers to show.
///
/// Called at every scrape: an implementer reads what it has in memory, and never waits.
pub trait Source: Send + Sync {
    /// Writes its numbers.
    fn encode(&self, page: &mut Page);
}

impl<S: Source + ?Sized> Source for Arc<S> {
    fn encode(&self, page: &mut Page) {
        (**self).encode(page);
    }
}

/// A view that this process keeps.
#[derive(Clone)]
pub struct ViewSource {
    /// Its name.
    pub view: &'static str,
    /// The group under which it reads the journal.
    pub group: String,
    /// What it counts.
    pub counters: Arc<ConsumerCounters>,
}

/// What a server is made of. What it does not have is left out of the page.
pub struct MetricsSources {
    /// The version of the program.
    pub version: &'static str,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// The tracker, where this process is one.
    pub tracker: Option<Arc<Tracker>>,
    /// The queue into the journal.
    pub queue: Arc<Queue>,
    /// The journal.
    pub journal: Arc<dyn Journal>,
    /// What the journal's maintenance found.
    pub maintenance: Arc<MaintenanceCounters>,
    /// The views that this process keeps.
    pub views: Vec<ViewSource>,
    /// The accounts, where this process keeps them.
    pub ledger: Option<Arc<Ledger>>,
    /// The lists of who seeds and who leeches, where this process keeps them.
    pub activity: Option<Activity>,
    /// Who may announce.
    pub gate: Arc<Gate>,
    /// How the gate follows the database.
    pub follower: Option<Arc<FollowCounters>>,
    /// Databases, each with what it is used for. The ledger's need not be named.
    pub databases: Vec<(&'static str, Database)>,
    /// Connections to Redis, each with what it is used for.
    pub redis: Vec<(&'static str, Redis)>,
}

/// The page's parts.
pub struct Metrics {
    sources: Vec<Box<dyn Source>>,
    poller: Arc<JournalPoller>,
}

impl Metrics {
    /// A page about these. Somebody has to run [`JournalPoller::run`] of [`Metrics::journal_poller`].
    pub fn new(parts: MetricsSources) -> Metrics {
        let groups = parts.views.iter().map(|view| (view.group.clone(), view.view)).collect();
        let poller = Arc::new(JournalPoller::new(Arc::clone(&parts.journal), parts.clock, groups));
        let mut metrics = Metrics { sources: Vec::new(), poller: Arc::clone(&poller) };
        metrics.add(poller);
        metrics.add(process::ProcessFigures::new(parts.version));
        metrics.add(journal::QueueFigures(parts.queue));
        metrics.add(journal::MaintenanceFigures { counters: parts.maintenance, journal: parts.journal });
        metrics.add(journal::ViewFigures(parts.views));
        metrics.add(stores::GateFigures { gate: parts.gate, follower: parts.follower });
        metrics.add(stores::RedisFigures(parts.redis));
        let mut databases = parts.databases;
        databases.extend(parts.ledger.iter().map(|ledger| ("ledger", ledger.database().clone())));
        metrics.add(stores::DatabaseFigures(databases));
        if let Some(tracker) = parts.tracker {
            metrics.add(replication::ReplicationFigures(Arc::clone(&tracker)));
            metrics.add(tracker::TrackerFigures(tracker));
        }
        if let Some(ledger) = parts.ledger {
            metrics.add(stores::LedgerFigures(ledger));
        }
        if let Some(activity) = parts.activity {
            metrics.add(stores::ActivityFigures(activity));
        }
        metrics
    }

    /// Puts something else on the page.
    pub fn add(&mut self, source: impl Source + 'static) {
        self.sources.push(Box::new(source));
    }

    /// What asks the journal now and then.
    pub fn journal_poller(&self) -> &Arc<JournalPoller> {
        &self.poller
    }

    /// The page as it is now, of the type [`CONTENT_TYPE`].
    pub fn render(&self) -> String {
        self.render_with(&[])
    }

    /// The page with some more on it: of whoever serves the page, and so cannot be part of it.
    pub fn render_with(&self, more: &[&dyn Source]) -> String {
        let mut page = Page::default();
        for source in self.sources.iter().map(|source| &**source).chain(more.iter().copied()) {
            source.encode(&mut page);
        }
        page.finish()
    }
}

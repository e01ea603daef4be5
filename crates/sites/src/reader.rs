//! Copies the site's users, torrents and clients into `access`, and its discounts into the ledger.
//!
//! # Guarantees
//!
//! - New rows are added before old ones are removed.
//! - A round that would remove more than half of the users or torrents is believed only the third time in a row.
//! - A failure changes nothing.
//! - Of several torrents with one infohash the one that may be announced counts: enabled, then approved, then the smallest id.
//! - External users and the sandbox are left alone.
//!
//! Rounds compare in pages; nothing but the infohashes is kept in memory.

mod rounds;
mod site_row;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use access::Store;
use database::Database;
use domain::clock::Clock;
use domain::{Backoff, InfoHash};
use ledger::Ledger;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};

use crate::counters::ReaderCounters;
use crate::error::SitesError;
use crate::profile::Profile;
use site_row::Rank;

/// New rows are read this often.
const NEW_ROWS_INTERVAL: Duration = Duration::from_secs(1);
/// Everything is read this often.
const ROUND_INTERVAL: Duration = Duration::from_secs(60);
/// A round takes at most this share of the time.
const PAUSE_PER_ROUND: u32 = 10;
/// When a row that was requested is read: the site may ask before it commits.
const RING_DELAYS: [Duration; 3] = [Duration::ZERO, Duration::from_secs(2), Duration::from_secs(10)];
/// Requests that wait; further ones are left to the next round.
const RINGS_MAX: usize = 10_000;

/// A row of the site that changed, or is about to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ring {
    User(u64),
    Torrent(u64),
    Clients,
}

/// Requests that a row is read now, and again in 2 and 10 seconds.
#[derive(Clone, Debug)]
pub struct Rings(mpsc::Sender<Ring>);

impl Rings {
    /// False if too many wait: the row is read within a minute.
    pub fn ring(&self, ring: Ring) -> bool {
        self.0.try_send(ring).is_ok()
    }
}

pub struct ReaderParts {
    pub profile: Arc<Profile>,
    /// Address of the site's database.
    pub url: String,
    pub store: Store,
    /// For discounts.
    pub ledger: Arc<Ledger>,
    pub clock: Arc<dyn Clock>,
}

pub struct Reader {
    profile: Arc<Profile>,
    url: String,
    store: Store,
    ledger: Arc<Ledger>,
    clock: Arc<dyn Clock>,
    counters: Arc<ReaderCounters>,
    rings: mpsc::Receiver<Ring>,
    ringer: Rings,
    due: Vec<(Instant, Ring)>,
    /// The torrent of each infohash, as of the last round.
    holders: HashMap<InfoHash, Rank>,
    /// The greatest ids that were read.
    newest: Newest,
    /// Rounds in a row whose removals were not believed.
    held: u32,
    round_interval: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct Newest {
    user: u64,
    torrent: u64,
}

impl Reader {
    pub fn new(parts: ReaderParts) -> Reader {
        let ReaderParts { profile, url, store, ledger, clock } = parts;
        let (sender, rings) = mpsc::channel(RINGS_MAX);
        Reader {
            profile,
            url,
            store,
            ledger,
            clock,
            counters: Arc::default(),
            rings,
            ringer: Rings(sender),
            due: Vec::new(),
            holders: HashMap::new(),
            newest: Newest::default(),
            held: 0,
            round_interval: ROUND_INTERVAL,
        }
    }

    /// Sets the pause between two rounds over everything.
    pub fn round_interval(mut self, interval: Duration) -> Reader {
        self.round_interval = interval;
        self
    }

    pub fn counters(&self) -> Arc<ReaderCounters> {
        Arc::clone(&self.counters)
    }

    pub fn rings(&self) -> Rings {
        self.ringer.clone()
    }

    /// Runs until `shutdown` is ready.
    pub async fn run(mut self, shutdown: impl Future) {
        tokio::select! {
            () = self.read_forever() => {}
            _ = shutdown => {}
        }
    }

    async fn read_forever(&mut self) {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));
        loop {
            let Err(error) = self.read_until_failure(&mut backoff).await;
            self.counters.failures.increment();
            if self.counters.failures_in_a_row.get() == 0 {
                tracing::warn!(%error, "the site's tables cannot be read; users and torrents stay as they are");
            }
            self.counters.failures_in_a_row.rise();
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    async fn read_until_failure(
        &mut self,
        backoff: &mut Backoff,
    ) -> Result<std::convert::Infallible, SitesError> {
        let site = Database::open(&self.url).await.map_err(SitesError::Site)?;
        let outcome = self.read_from(&site, backoff).await;
        let _ = tokio::time::timeout(Duration::from_secs(1), site.close()).await;
        outcome
    }

    async fn read_from(
        &mut self,
        site: &Database,
        backoff: &mut Backoff,
    ) -> Result<std::convert::Infallible, SitesError> {
        let mut ticks = tokio::time::interval(NEW_ROWS_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut next_round = Instant::now();
        loop {
            let next_due = self.due.iter().map(|(at, _)| *at).min();
            tokio::select! {
                _ = ticks.tick() => {
                    let begun = Instant::now();
                    if begun >= next_round {
                        self.round(site).await?;
                        next_round = begun + self.round_interval.max(PAUSE_PER_ROUND * begun.elapsed());
                    } else {
                        self.read_new(site).await?;
                    }
                }
                Some(ring) = self.rings.recv() => {
                    let now = Instant::now();
                    self.due.extend(RING_DELAYS.map(|delay| (now + delay, ring)));
                }
                () = sleep_until(next_due) => self.read_due(site).await?,
            }
            backoff.reset();
            if self.counters.failures_in_a_row.get() > 0 {
                self.counters.failures_in_a_row.set(0);
                tracing::info!("the site's tables are read again");
            }
        }
    }

    /// Reads the rows that are due.
    async fn read_due(&mut self, site: &Database) -> Result<(), SitesError> {
        let now = Instant::now();
        let mut due: Vec<Ring> =
            self.due.iter().filter(|(at, _)| *at <= now).map(|(_, ring)| *ring).collect();
        due.dedup();
        for ring in due {
            match ring {
                Ring::User(id) => self.read_user(site, id).await?,
                Ring::Torrent(id) => self.read_torrent(site, id).await?,
                Ring::Clients => self.read_clients(site).await?,
            }
        }
        self.due.retain(|(at, _)| *at > now);
        Ok(())
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

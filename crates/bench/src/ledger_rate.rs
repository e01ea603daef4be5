//! Entries per second into the ledger, on each database, against raw batched upserts of exactly the rows they touch.
//!
//! Both sides use tables of the same definition and size, on the same server, with the same durability, one transaction
//! per batch. The raw side has its rows ready before the timer starts and writes them in the fastest way known for its
//! database (`raw`); it reads nothing, so it could neither credit by totals nor detect a duplicate entry.

mod raw;
mod rows;

use std::sync::Arc;

use database::Database;
use domain::clock::ManualClock;
use domain::{InfoHash, Passkey, Seconds, TorrentId, UserId};
use journal::DeliveredEntry;
use ledger::{Directory, Ledger, LedgerSettings, LogRisks};
use tempfile::TempDir;
use testkit::{MariaDbServer, PostgresServer};

use crate::activity_rate::apply;
use crate::error::BenchError;
use crate::installed::{need_mariadb, need_postgres};
use crate::journal_append::new_runtime;
use crate::process::Cores;
use crate::progress::Stage;
use crate::rate_comparison::{Lap, LapWatch, RateComparison};
use crate::traffic::{Traffic, TrafficKind};
use raw::RawTables;

/// Entries in a batch: as many as a consumer reads at a time.
const BATCH: usize = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Sqlite,
    Postgres,
    MariaDb,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Sqlite, Kind::Postgres, Kind::MariaDb];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Sqlite => "SQLite",
            Kind::Postgres => "PostgreSQL",
            Kind::MariaDb => "MariaDB",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct LedgerPlan {
    pub cores: Cores,
    pub rounds: u32,
    /// Batches per round.
    pub batches: u32,
    /// Clients that the tables hold from the start.
    pub pairs: u32,
}

/// The databases of both sides. Dropping it ends the server.
struct Place {
    product_url: String,
    raw_url: String,
    _server: Server,
}

/// Dropped last.
enum Server {
    Folder { _folder: TempDir },
    Postgres { _server: Box<PostgresServer> },
    MariaDb { _server: Box<MariaDbServer> },
}

/// Entries of our own tracker contain their ids, so no lookup is needed.
struct NoLookup;

impl Directory for NoLookup {
    fn user_of(&self, _passkey: &Passkey) -> Option<UserId> {
        None
    }

    fn torrent_of(&self, _info_hash: &InfoHash) -> Option<TorrentId> {
        None
    }
}

/// Measures the ledger on one database.
pub fn measure(plan: &LedgerPlan, kind: Kind) -> Result<RateComparison, BenchError> {
    let place = Place::start(kind, plan.cores)?;
    let traffic = Traffic::new(plan.pairs, TrafficKind::Steady);
    let name = format!("ledger, {}", kind.name());
    let steps = traffic.lap() * 2 + u64::from(plan.rounds * plan.batches) * 2 * BATCH as u64;
    let mut stage = Stage::begin(name.clone(), steps);
    let mut comparison = RateComparison::new(name);
    let measuring = async {
        let clock = traffic.clock();
        let mut sides = Sides::open(&place, &clock).await?;
        let all = traffic.arrivals(0..traffic.lap())?;
        for (number, batch) in all.chunks(BATCH).enumerate() {
            sides.round(batch).await?;
            stage.at(2 * (number * BATCH) as u64);
        }
        let mut position = traffic.lap();
        let length = u64::from(plan.batches) * BATCH as u64;
        for _ in 0..plan.rounds {
            let arrivals = traffic.arrivals(position..position + length)?;
            let (product, raw) = sides.round(&arrivals).await?;
            comparison.add(arrivals.len(), product, raw);
            position += length;
            clock.advance(Seconds(1));
            stage.at(2 * position);
        }
        sides.close().await
    };
    new_runtime()?.block_on(measuring)?;
    stage.end(&comparison.summary());
    Ok(comparison)
}

/// The ledger and the raw tables.
struct Sides {
    ledger: Ledger,
    databases: [Database; 2],
    raw: RawTables,
}

impl Sides {
    async fn open(place: &Place, clock: &ManualClock) -> Result<Sides, BenchError> {
        let failed = |error: String| BenchError::Database(error);
        let product = Database::open(&place.product_url).await.map_err(|error| failed(error.to_string()))?;
        let raw = Database::open(&place.raw_url).await.map_err(|error| failed(error.to_string()))?;
        // Opening a ledger creates its tables; the raw side needs only these.
        open_ledger(raw.clone(), clock).await?;
        Ok(Sides {
            ledger: open_ledger(product.clone(), clock).await?,
            raw: RawTables::new(raw.clone()).await?,
            databases: [product, raw],
        })
    }

    /// What each side takes for the same entries.
    async fn round(&mut self, arrivals: &[DeliveredEntry]) -> Result<(Lap, Lap), BenchError> {
        // A server of many processes: their times are not summed.
        let watch = LapWatch::start(None)?;
        apply(&self.ledger, arrivals).await?;
        let product = watch.stop()?;
        let prepared: Vec<_> = arrivals.chunks(BATCH).map(|batch| self.raw.prepare(batch)).collect();
        let watch = LapWatch::start(None)?;
        for batch in prepared {
            self.raw.write(batch).await?;
        }
        Ok((product, watch.stop()?))
    }

    async fn close(self) -> Result<(), BenchError> {
        let risks = self.ledger.counts().risks;
        for database in &self.databases {
            database.close().await;
        }
        match risks {
            0 => Ok(()),
            _ => Err(BenchError::Database(format!("the ledger took {risks} entries for implausible"))),
        }
    }
}

async fn open_ledger(database: Database, clock: &ManualClock) -> Result<Ledger, BenchError> {
    let settings = LedgerSettings::default();
    Ledger::open(database, settings, Arc::new(NoLookup), Arc::new(clock.clone()), Arc::new(LogRisks))
        .await
        .map_err(|error| BenchError::Database(error.to_string()))
}

impl Place {
    fn start(kind: Kind, cores: Cores) -> Result<Place, BenchError> {
        match kind {
            Kind::Sqlite => {
                let folder = TempDir::with_prefix("loadgen-").map_err(BenchError::io("making a folder"))?;
                let url = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
                let (product_url, raw_url) = (url("ledger.db"), url("raw.db"));
                Ok(Place { product_url, raw_url, _server: Server::Folder { _folder: folder } })
            }
            Kind::Postgres => {
                need_postgres()?;
                let server = Box::new(cores.on_server(PostgresServer::start)?);
                let (product_url, raw_url) = (server.fresh_database(), server.fresh_database());
                Ok(Place { product_url, raw_url, _server: Server::Postgres { _server: server } })
            }
            Kind::MariaDb => {
                need_mariadb()?;
                let server = Box::new(cores.on_server(MariaDbServer::start)?);
                let (product_url, raw_url) = (server.fresh_database(), server.fresh_database());
                Ok(Place { product_url, raw_url, _server: Server::MariaDb { _server: server } })
            }
        }
    }
}

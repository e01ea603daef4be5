//! How fast entries become accounts, on each database, against raw batched upserts of exactly the rows they touch.
//!
//! Both sides work on tables of the same definition and size, on the same server, with the same durability, one
//! transaction for each batch. The raw side has its rows ready before the stopwatch starts and writes them in the
//! fastest way known for its database (`raw`); it reads nothing, so it could neither credit by totals nor tell an
//! entry that comes twice.

mod raw;
mod rows;

use std::sync::Arc;

use database::Database;
use domain::clock::ManualClock;
use domain::{InfoHash, Passkey, Seconds, TorrentId, UserId};
use journal::Arrival;
use ledger::{Directory, Ledger, LedgerSettings, LogRisks};
use tempfile::TempDir;
use testkit::{MariaDbServer, PostgresServer};

use crate::activity_rate::apply;
use crate::contest::{Contest, Lap, LapWatch};
use crate::error::LoadError;
use crate::installed::{need_mariadb, need_postgres};
use crate::journal_append::new_runtime;
use crate::process::Cores;
use crate::progress::Stage;
use crate::traffic::{Mood, Traffic};
use raw::RawTables;

/// Entries in a batch: as many as a consumer reads at a time.
const BATCH: usize = 1_000;

/// Which database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    Sqlite,
    /// A server.
    Postgres,
    /// A server.
    MariaDb,
}

impl Kind {
    /// All three.
    pub const ALL: [Kind; 3] = [Kind::Sqlite, Kind::Postgres, Kind::MariaDb];

    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Sqlite => "SQLite",
            Kind::Postgres => "PostgreSQL",
            Kind::MariaDb => "MariaDB",
        }
    }
}

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct LedgerPlan {
    /// Which core does what.
    pub cores: Cores,
    /// Rounds of each side.
    pub rounds: u32,
    /// Batches in a round.
    pub batches: u32,
    /// Clients of users on torrents that the tables hold from the start.
    pub pairs: u32,
}

/// Where the two sides keep their tables. Dropping it ends the server.
struct Place {
    product_url: String,
    raw_url: String,
    _server: Server,
}

/// Held for as long as it is needed.
enum Server {
    Folder { _folder: TempDir },
    Postgres { _server: Box<PostgresServer> },
    MariaDb { _server: Box<MariaDbServer> },
}

/// Entries of our own tracker bring their numbers, so nobody is ever asked.
struct NobodyAsked;

impl Directory for NobodyAsked {
    fn user_of(&self, _passkey: &Passkey) -> Option<UserId> {
        None
    }

    fn torrent_of(&self, _info_hash: &InfoHash) -> Option<TorrentId> {
        None
    }
}

/// Measures the ledger on one database.
pub fn measure(plan: &LedgerPlan, kind: Kind) -> Result<Contest, LoadError> {
    let place = Place::start(kind, plan.cores)?;
    let traffic = Traffic::new(plan.pairs, Mood::Steady);
    let name = format!("ledger, {}", kind.name());
    let steps = traffic.lap() * 2 + u64::from(plan.rounds * plan.batches) * 2 * BATCH as u64;
    let mut stage = Stage::begin(name.clone(), steps);
    let mut contest = Contest::new(name);
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
            contest.add(arrivals.len(), product, raw);
            position += length;
            clock.advance(Seconds(1));
            stage.at(2 * position);
        }
        sides.close().await
    };
    new_runtime()?.block_on(measuring)?;
    stage.end(&contest.summary());
    Ok(contest)
}

/// The ledger, and what it is held against.
struct Sides {
    ledger: Ledger,
    databases: [Database; 2],
    raw: RawTables,
}

impl Sides {
    async fn open(place: &Place, clock: &ManualClock) -> Result<Sides, LoadError> {
        let failed = |error: String| LoadError::Database(error);
        let product = Database::open(&place.product_url).await.map_err(|error| failed(error.to_string()))?;
        let raw = Database::open(&place.raw_url).await.map_err(|error| failed(error.to_string()))?;
        // Opening a ledger makes its tables; the raw side needs no more of it.
        open_ledger(raw.clone(), clock).await?;
        Ok(Sides {
            ledger: open_ledger(product.clone(), clock).await?,
            raw: RawTables::new(raw.clone()).await?,
            databases: [product, raw],
        })
    }

    /// What each side takes for the same entries.
    async fn round(&mut self, arrivals: &[Arrival]) -> Result<(Lap, Lap), LoadError> {
        // Where the server is many processes, their times are not summed up.
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

    async fn close(self) -> Result<(), LoadError> {
        let risks = self.ledger.counts().risks;
        for database in &self.databases {
            database.close().await;
        }
        match risks {
            0 => Ok(()),
            _ => Err(LoadError::Database(format!("the ledger took {risks} entries for implausible"))),
        }
    }
}

async fn open_ledger(database: Database, clock: &ManualClock) -> Result<Ledger, LoadError> {
    let settings = LedgerSettings::default();
    Ledger::open(database, settings, Arc::new(NobodyAsked), Arc::new(clock.clone()), Arc::new(LogRisks))
        .await
        .map_err(|error| LoadError::Database(error.to_string()))
}

impl Place {
    fn start(kind: Kind, cores: Cores) -> Result<Place, LoadError> {
        match kind {
            Kind::Sqlite => {
                let folder = TempDir::with_prefix("loadgen-").map_err(LoadError::io("making a folder"))?;
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

//! Entries per second into the ledger, on each database, against raw batched upserts of exactly the rows they touch:
//! one for each account, user and torrent, and the consumer's.
//!
//! Both sides use tables of the same definition and size, on the same server, with the same durability, one transaction
//! per batch. The raw side has its rows ready before the timer starts and writes them in the fastest way known for its
//! database (`raw`); it reads nothing, so it could neither credit by totals nor detect a duplicate entry.

mod raw;
mod rows;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::bail;
use database::Database;
use domain::clock::ManualClock;
use domain::{InfoHash, Passkey, Seconds, TorrentId, UserId};
use journal::DeliveredEntry;
use ledger::{Directory, Ledger, LedgerSettings, LogRisks};
use testkit::{MariaDbServer, PostgresServer};

use crate::load::{BATCH, Traffic, TrafficKind};
use crate::measure::{Comparison, Round, RoundWatch};
use crate::process::need;
use crate::progress::Stage;
use crate::run::{Run, new_folder};
use crate::server::new_runtime;
use crate::views::apply;
use raw::RawTables;

pub fn on_sqlite(run: &mut Run<'_>) -> anyhow::Result<()> {
    let folder = new_folder()?;
    let url = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
    measure(run, "ledger, SQLite", &[url("ledger.db"), url("raw.db")])
}

pub fn on_postgres(run: &mut Run<'_>) -> anyhow::Result<()> {
    need_postgres()?;
    let server = run.cores.on_server(PostgresServer::start)?;
    measure(run, "ledger, PostgreSQL", &[server.fresh_database(), server.fresh_database()])
}

pub fn on_mariadb(run: &mut Run<'_>) -> anyhow::Result<()> {
    need_mariadb()?;
    let server = run.cores.on_server(MariaDbServer::start)?;
    measure(run, "ledger, MariaDB", &[server.fresh_database(), server.fresh_database()])
}

/// Debian installs the programs of each PostgreSQL version in its own folder.
pub fn need_postgres() -> anyhow::Result<()> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    need("initdb", "postgresql", &folders)
}

pub fn need_mariadb() -> anyhow::Result<()> {
    need("mariadbd", "mariadb-server", &["/usr/sbin".into(), "/usr/bin".into()])
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

fn measure(run: &mut Run<'_>, name: &str, urls: &[String; 2]) -> anyhow::Result<()> {
    let sizes = run.sizes;
    let traffic = Traffic::new(sizes.ledger_clients, TrafficKind::Steady);
    let length = u64::from(sizes.ledger_batches) * BATCH as u64;
    let mut stage = Stage::begin(name, traffic.lap() + u64::from(sizes.rounds) * length);
    let mut comparison = Comparison::default();
    let measuring = async {
        let clock = traffic.clock();
        let sides = Sides::open(urls, &clock).await?;
        for (number, batch) in traffic.arrivals(0..traffic.lap())?.chunks(BATCH).enumerate() {
            sides.round(batch).await?;
            stage.at((number * BATCH) as u64);
        }
        let mut position = traffic.lap();
        for _ in 0..sizes.rounds {
            let (ours, limit) = sides.round(&traffic.arrivals(position..position + length)?).await?;
            comparison.add(ours, limit);
            position += length;
            clock.advance(Seconds(1));
            stage.at(position);
        }
        sides.close().await
    };
    new_runtime()?.block_on(measuring)?;
    stage.end(&comparison.summary());
    run.add_rates(name, &comparison, "");
    Ok(())
}

/// The ledger and the raw tables.
struct Sides {
    ledger: Ledger,
    databases: [Database; 2],
    raw: RawTables,
}

impl Sides {
    async fn open([ours, raw]: &[String; 2], clock: &ManualClock) -> anyhow::Result<Sides> {
        let (ours, raw) = (Database::open(ours).await?, Database::open(raw).await?);
        // Opening a ledger creates its tables; the raw side needs only these.
        open_ledger(raw.clone(), clock).await?;
        Ok(Sides {
            ledger: open_ledger(ours.clone(), clock).await?,
            raw: RawTables::new(raw.clone()).await?,
            databases: [ours, raw],
        })
    }

    /// What each side takes for the same entries. The processor times of a server of many processes are not summed.
    async fn round(&self, arrivals: &[DeliveredEntry]) -> anyhow::Result<(Round, Round)> {
        let count = arrivals.len() as u64;
        let watch = RoundWatch::start(None)?;
        apply(&self.ledger, arrivals).await?;
        let ours = watch.stop(count)?;
        let prepared: Vec<_> = arrivals.chunks(BATCH).map(|batch| self.raw.prepare(batch)).collect();
        let watch = RoundWatch::start(None)?;
        for batch in prepared {
            self.raw.write(batch).await?;
        }
        Ok((ours, watch.stop(count)?))
    }

    async fn close(self) -> anyhow::Result<()> {
        let risks = self.ledger.counts().risks;
        for database in &self.databases {
            database.close().await;
        }
        match risks {
            0 => Ok(()),
            _ => bail!("the ledger took {risks} entries for implausible"),
        }
    }
}

async fn open_ledger(database: Database, clock: &ManualClock) -> anyhow::Result<Ledger> {
    let settings = LedgerSettings::default();
    let clock = Arc::new(clock.clone());
    Ok(Ledger::open(database, settings, Arc::new(NoLookup), clock, Arc::new(LogRisks)).await?)
}

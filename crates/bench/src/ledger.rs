//! Entries per second into the ledger, on each database, against raw batched upserts of one row per (user, torrent).
//!
//! Both sides are on the same server, with the same durability, one transaction per batch. The raw side has its rows
//! ready before the timer starts and writes them in the fastest way known for its database (`raw`). It reads nothing and
//! has one table, so it could neither credit by totals nor detect a duplicate entry, nor sum up users and torrents.

mod raw;

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
use crate::progress::Stage;
use crate::run::{Run, new_folder};
use crate::server::new_runtime;
use crate::store::StoreKind;
use crate::views::apply;
use raw::RawTable;

pub fn on_sqlite(run: &mut Run<'_>) -> anyhow::Result<()> {
    let folder = new_folder()?;
    let url = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
    measure(run, "ledger, SQLite", &[url("ledger.db"), url("raw.db")])
}

pub fn on_postgres(run: &mut Run<'_>) -> anyhow::Result<()> {
    StoreKind::PostgreSql.need()?;
    let server = run.cores.on_server(PostgresServer::start)?;
    measure(run, "ledger, PostgreSQL", &[server.fresh_database(), server.fresh_database()])
}

pub fn on_mariadb(run: &mut Run<'_>) -> anyhow::Result<()> {
    StoreKind::MariaDb.need()?;
    let server = run.cores.on_server(MariaDbServer::start)?;
    measure(run, "ledger, MariaDB", &[server.fresh_database(), server.fresh_database()])
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
        let mut sides = Sides::open(urls, &clock).await?;
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
    raw: RawTable,
}

impl Sides {
    async fn open([ours, raw]: &[String; 2], clock: &ManualClock) -> anyhow::Result<Sides> {
        let (ours, raw) = (Database::open(ours).await?, Database::open(raw).await?);
        Ok(Sides {
            ledger: open_ledger(ours.clone(), clock).await?,
            raw: RawTable::create(raw.clone()).await?,
            databases: [ours, raw],
        })
    }

    /// What each side takes for the same entries. The processor times of a server of many processes are not summed.
    async fn round(&mut self, arrivals: &[DeliveredEntry]) -> anyhow::Result<(Round, Round)> {
        let count = arrivals.len() as u64;
        let watch = RoundWatch::start(None)?;
        apply(&self.ledger, arrivals).await?;
        let ours = watch.stop(count)?;
        let prepared = RawTable::prepare(arrivals, BATCH);
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

//! One transaction: reads marks and figures, writes the differences, and commits both together.
//!
//! A row that the site's database refuses, because its user or torrent is gone, would fail the statement for all: the rows are
//! halved until it is alone, and it is recorded. Its mark stays as it was.

use std::collections::{BTreeMap, BTreeSet};

use database::{Database, Kind, Relation, SqlError, Transaction, Value};
use domain::clock::Clock;
use domain::{TorrentId, UserId};
use journal::EntryId;
use ledger::{AccountKey, Ledger};

use super::marks::{Marks, Refused};
use super::rows::{self, Difference, StatementRow};
use crate::counters::WriterCounters;
use crate::error::SitesError;
use crate::profile::{Profile, Write};
use crate::stage::{Announced, PeerKey};

/// Rows of one transaction, of each kind.
pub(super) const CHUNK_ROWS: usize = 1000;

/// What one transaction writes: sorted by key, so that transactions lock rows in one order.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    pub(super) users: BTreeSet<UserId>,
    pub(super) torrents: BTreeSet<TorrentId>,
    /// With the latest announce; none for a comparison.
    pub(super) accounts: BTreeMap<AccountKey, Option<Announced>>,
    pub(super) peers: BTreeMap<PeerKey, Announced>,
    pub(super) stale_before: Option<u32>,
    pub(super) position: Option<EntryId>,
}

pub(super) struct Flush<'a> {
    pub(super) site: &'a Database,
    pub(super) profile: &'a Profile,
    pub(super) marks: &'a Marks,
    pub(super) ledger: &'a Ledger,
    pub(super) clock: &'a dyn Clock,
    pub(super) counters: &'a WriterCounters,
}

/// The first step of every transaction.
pub(crate) async fn set_time_zone(transaction: &mut Transaction, profile: &Profile) -> Result<(), SqlError> {
    // The profile allows no quote in the name.
    let zone = &profile.time_zone;
    let set = match transaction.kind() {
        Kind::Postgres => format!("SET LOCAL TIME ZONE '{zone}'"),
        Kind::MySql | Kind::Sqlite => format!("SET time_zone = '{zone}'"),
    };
    transaction.execute(&set, &[]).await.map(drop)
}

struct Written {
    rows: u64,
    negative: u64,
    refused: Vec<Refused>,
}

impl Flush<'_> {
    /// Commits the chunk. After an error, also a lost reply to the commit, the whole chunk is to be repeated. Returns the rows
    /// that were refused.
    pub(super) async fn commit(&self, chunk: &Chunk) -> Result<Vec<Refused>, SitesError> {
        let mut transaction = self.site.begin().await.map_err(SitesError::statement("beginning"))?;
        let written = self.write(&mut transaction, chunk).await?;
        transaction.commit().await.map_err(SitesError::statement("committing"))?;
        self.counters.flushes.increment();
        self.counters.rows.add(written.rows);
        self.counters.negative.add(written.negative);
        self.counters.refused.add(written.refused.len() as u64);
        Ok(written.refused)
    }

    async fn write(&self, transaction: &mut Transaction, chunk: &Chunk) -> Result<Written, SitesError> {
        let marks = SitesError::statement("reading or writing the tables of rollcall");
        let mut written = Written { rows: 0, negative: 0, refused: Vec::new() };
        set_time_zone(transaction, self.profile)
            .await
            .map_err(SitesError::statement("setting the time zone"))?;
        if self.marks.lock(transaction).await.map_err(&marks)?.is_none() {
            return Err(SitesError::Mismatch("the row of this ledger in site_writer is gone".to_owned()));
        }
        // Read once the lock is held: another writer may have written newer figures just before.
        self.write_users(transaction, chunk, &mut written).await?;
        self.write_torrents(transaction, chunk, &mut written).await?;
        self.write_accounts(transaction, chunk, &mut written).await?;
        self.write_peers(transaction, chunk, &mut written).await?;
        if !written.refused.is_empty() {
            let now = self.clock.now().0;
            self.marks.save_refused(transaction, &written.refused, now).await.map_err(&marks)?;
        }
        if let Some(position) = chunk.position {
            self.marks.set_position(transaction, position).await.map_err(&marks)?;
        }
        Ok(written)
    }

    async fn write_users(
        &self,
        transaction: &mut Transaction,
        chunk: &Chunk,
        written: &mut Written,
    ) -> Result<(), SitesError> {
        let ids: Vec<UserId> = chunk.users.iter().copied().collect();
        let figures: BTreeMap<_, _> = self.ledger.users(&ids).await?.into_iter().collect();
        let posted = self.marks.users(transaction, &ids).await.map_err(SitesError::statement("users"))?;
        let differences = figures.iter().filter_map(|(id, figures)| {
            let was = posted.get(id).copied().unwrap_or_default();
            Some((*id, rows::user(*id, figures, &was)?))
        });
        let saved = self.post(transaction, Write::Users, differences.collect(), written).await?;
        self.marks.save_users(transaction, &saved).await.map_err(SitesError::statement("users"))
    }

    async fn write_torrents(
        &self,
        transaction: &mut Transaction,
        chunk: &Chunk,
        written: &mut Written,
    ) -> Result<(), SitesError> {
        let ids: Vec<TorrentId> = chunk.torrents.iter().copied().collect();
        let figures: BTreeMap<_, _> = self.ledger.torrents(&ids).await?.into_iter().collect();
        let present: BTreeMap<_, _> = self.ledger.present_on(&ids).await?.into_iter().collect();
        let posted =
            self.marks.torrents(transaction, &ids).await.map_err(SitesError::statement("torrents"))?;
        let differences = figures.iter().filter_map(|(id, figures)| {
            let was = posted.get(id).copied().unwrap_or_default();
            let present = present.get(id).copied().unwrap_or_default();
            Some((*id, rows::torrent(*id, figures, present, &was)?))
        });
        let saved = self.post(transaction, Write::Torrents, differences.collect(), written).await?;
        self.marks.save_torrents(transaction, &saved).await.map_err(SitesError::statement("torrents"))
    }

    async fn write_accounts(
        &self,
        transaction: &mut Transaction,
        chunk: &Chunk,
        written: &mut Written,
    ) -> Result<(), SitesError> {
        let keys: Vec<AccountKey> = chunk.accounts.keys().copied().collect();
        let accounts: BTreeMap<_, _> = self.ledger.accounts(&keys).await?.into_iter().collect();
        let posted =
            self.marks.accounts(transaction, &keys).await.map_err(SitesError::statement("accounts"))?;
        let (mut differences, mut completions) = (Vec::new(), Vec::new());
        for (key, account) in &accounts {
            let was = posted.get(key).copied().unwrap_or_default();
            let latest = chunk.accounts.get(key).and_then(Option::as_ref);
            if let Some(difference) = rows::account(*key, account, latest, &was) {
                completions.extend(rows::completion(*key, account, latest, &was));
                differences.push((*key, difference));
            }
        }
        let saved = self.post(transaction, Write::Accounts, differences, written).await?;
        let is_saved: BTreeSet<(u64, u64)> =
            saved.iter().map(|(key, _)| (key.user.get(), key.torrent.get())).collect();
        completions.retain(|row| is_saved.contains(&(row.user, row.torrent)));
        self.run(transaction, Write::Completions, completions, written).await?;
        self.marks.save_accounts(transaction, &saved).await.map_err(SitesError::statement("accounts"))
    }

    async fn write_peers(
        &self,
        transaction: &mut Transaction,
        chunk: &Chunk,
        written: &mut Written,
    ) -> Result<(), SitesError> {
        let present = chunk.peers.iter().filter(|(_, announced)| announced.gone.is_none());
        let present = present.map(|(key, announced)| rows::peer(key, announced)).collect();
        self.run(transaction, Write::Peers, present, written).await?;
        let gone = chunk.peers.iter().filter_map(|(key, announced)| {
            announced.gone.map(|cause| rows::peer_gone(key, announced, cause))
        });
        self.run(transaction, Write::PeersGone, gone.collect(), written).await?;
        if let Some(before) = chunk.stale_before {
            let row = StatementRow { user: 0, torrent: 0, values: vec![before.into()] };
            self.run(transaction, Write::PeersStale, vec![row], written).await?;
        }
        Ok(())
    }

    /// Writes differences; returns the marks of the rows that were not refused.
    async fn post<K: Copy, M>(
        &self,
        transaction: &mut Transaction,
        write: Write,
        differences: Vec<(K, Difference<M>)>,
        written: &mut Written,
    ) -> Result<Vec<(K, M)>, SitesError> {
        written.negative +=
            differences.iter().filter(|(_, difference)| difference.is_negative).count() as u64;
        let (mut statement_rows, mut marks) = (Vec::new(), Vec::new());
        for (key, Difference { row, mark, .. }) in differences {
            marks.push(((row.user, row.torrent), key, mark));
            statement_rows.push(row);
        }
        let before = written.refused.len();
        self.run(transaction, write, statement_rows, written).await?;
        let refused: BTreeSet<(u64, u64)> =
            written.refused[before..].iter().map(|row| (row.user, row.torrent)).collect();
        marks.retain(|(about, _, _)| !refused.contains(about));
        Ok(marks.into_iter().map(|(_, key, mark)| (key, mark)).collect())
    }

    /// Runs a statement over all rows, or over halves of them until each refused row is alone.
    async fn run(
        &self,
        transaction: &mut Transaction,
        write: Write,
        statement_rows: Vec<StatementRow>,
        written: &mut Written,
    ) -> Result<(), SitesError> {
        let Some(text) = write.text(&self.profile.write) else { return Ok(()) };
        let mut parts = vec![&statement_rows[..]];
        while let Some(part) = parts.pop() {
            if part.is_empty() {
                continue;
            }
            let relation = Relation::new(write.columns(), part.iter().map(|row| row.values.clone()));
            match transaction.attempt(text, &[Value::Relation(relation)]).await {
                Ok(_) => written.rows += part.len() as u64,
                Err(error) if !error.is_row_error() => {
                    return Err(SitesError::Statement { what: write.name(), source: error });
                }
                Err(error) if part.len() == 1 => {
                    let row = &part[0];
                    tracing::warn!(
                        statement = write.name(), user = row.user, torrent = row.torrent, %error,
                        "the site's database refuses a row; it is in refused_rows"
                    );
                    written.refused.push(Refused {
                        statement: write.name(),
                        user: row.user,
                        torrent: row.torrent,
                        reason: error.to_string(),
                    });
                }
                Err(_) => {
                    let (first, second) = part.split_at(part.len() / 2);
                    parts.extend([second, first]);
                }
            }
        }
        Ok(())
    }
}

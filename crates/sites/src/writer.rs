//! Writes the ledger's figures, and who is present, into the site's tables.
//!
//! # Guarantees
//!
//! - Exactly once: a row's difference and its mark are committed together. Killed at any moment, or without the reply to a
//!   commit, the writer reads the marks and goes on.
//! - A row is compared again until the ledger has applied every entry for which it was staged.
//! - Writers of the same ledger exclude each other by a row lock, under which figures are read: an older figure never replaces
//!   a newer one.
//! - Tables that are not as the profile needs them stop the writer, and nothing else; it looks again every minute.
//!
//! # After an interruption
//!
//! A start, a site's database that was away for so long that the stage was full, tables that were repaired: the journal is read
//! again from where it was written, at most for as long as every live peer announces once; rows of older peers are marked as
//! gone; all figures are compared with the marks. The same comparison runs every hour, and finds what arrived as a dead letter.

mod flush;
mod marks;
mod rows;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use database::Database;
use domain::clock::Clock;
use domain::{Backoff, Seconds};
use journal::{DeliveredEntry, EntryId, Journal, Stored, TrafficEntry};
use ledger::{AccountKey, Directory, Ledger, PAGE_ROWS_MAX};
use tokio::time::Instant;

use crate::check::check;
use crate::counters::WriterCounters;
use crate::error::SitesError;
use crate::profile::Profile;
use crate::stage::{LANE, Stage, Staged, Taken};
use flush::{CHUNK_ROWS, Chunk, Flush};
use marks::Marks;

pub(crate) use flush::set_time_zone;
pub(crate) use marks::TABLE_NAMES;

const FLUSH_INTERVAL: Duration = Duration::from_secs(2);
const COMPARISON_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Pause after a deadlock.
const CONFLICT_PAUSE: Duration = Duration::from_millis(100);
const CHECK_INTERVAL: Duration = Duration::from_secs(60);
/// Entries per page when the journal is read again.
const REREAD_PAGE: usize = 4096;
/// Added to the time in which every live peer announces, for clocks that differ.
const REREAD_MARGIN: Seconds = Seconds(60);

pub struct WriterParts {
    pub profile: Arc<Profile>,
    /// Address of the site's database.
    pub url: String,
    /// See [`crate::ledger_number`].
    pub ledger_number: i64,
    pub ledger: Arc<Ledger>,
    /// The ledger's consumer group.
    pub ledger_group: String,
    pub journal: Arc<dyn Journal>,
    pub stage: Arc<Stage>,
    pub directory: Arc<dyn Directory>,
    pub clock: Arc<dyn Clock>,
    /// Every live peer announces within this time.
    pub silence: Seconds,
}

pub struct Writer {
    parts: WriterParts,
    marks: Marks,
    counters: Arc<WriterCounters>,
    /// Refused rows: not tried again before the next comparison of everything.
    refused: HashSet<(u64, u64)>,
    flush_interval: Duration,
    /// When the last flush began.
    flushed: Instant,
}

impl Writer {
    pub fn new(parts: WriterParts) -> Writer {
        let marks = Marks::new(&parts.profile, parts.ledger_number);
        let counters = Arc::default();
        Writer {
            parts,
            marks,
            counters,
            refused: HashSet::new(),
            flush_interval: FLUSH_INTERVAL,
            flushed: Instant::now(),
        }
    }

    /// Sets the pause between two flushes.
    pub fn flush_interval(mut self, interval: Duration) -> Writer {
        self.flush_interval = interval;
        self
    }

    pub fn counters(&self) -> Arc<WriterCounters> {
        Arc::clone(&self.counters)
    }

    /// Runs until `shutdown` is ready, then writes what is staged once more.
    pub async fn run(mut self, shutdown: impl Future) {
        tokio::select! {
            () = self.write_forever() => {}
            _ = shutdown => {}
        }
        self.last_flush().await;
    }

    async fn write_forever(&mut self) {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));
        loop {
            match self.write_until_failure(&mut backoff).await {
                Err(SitesError::Mismatch(reason)) => {
                    self.parts.stage.close();
                    self.stop(&reason, "site tables are not written: they are not as the profile needs them");
                    tokio::time::sleep(CHECK_INTERVAL).await;
                }
                Err(error) => {
                    self.counters.failures.increment();
                    self.stop(
                        &error.to_string(),
                        "site tables cannot be written; retrying, and nothing is lost",
                    );
                    tokio::time::sleep(backoff.next_delay()).await;
                }
                Ok(()) => {}
            }
        }
    }

    /// Logs a reason once.
    fn stop(&self, reason: &str, message: &str) {
        let mut stopped = self.counters.stopped.lock();
        if stopped.as_deref() != Some(reason) {
            tracing::warn!(reason, "{message}");
            *stopped = Some(reason.to_owned());
        }
    }

    /// Returns when the stage overflowed.
    async fn write_until_failure(&mut self, backoff: &mut Backoff) -> Result<(), SitesError> {
        let site = self.connect().await?;
        let outcome = self.write_to(&site, backoff).await;
        // Not gracefully: a connection that hangs must not.
        let _ = tokio::time::timeout(Duration::from_secs(1), site.close()).await;
        outcome
    }

    async fn connect(&self) -> Result<Database, SitesError> {
        let site = Database::open(&self.parts.url).await.map_err(SitesError::Site)?;
        if let Some(mismatch) =
            check(&site, &self.parts.profile).await?.into_iter().find(|found| found.is_problem)
        {
            return Err(SitesError::Mismatch(format!("{}: {}", mismatch.found, mismatch.remedy)));
        }
        self.marks.create(&site).await?;
        Ok(site)
    }

    async fn write_to(&mut self, site: &Database, backoff: &mut Backoff) -> Result<(), SitesError> {
        self.reread(site).await?;
        let mut next_comparison = Instant::now() + COMPARISON_INTERVAL;
        loop {
            self.flush(site).await?;
            backoff.reset();
            self.counters.rounds.increment();
            self.counters.written_at.set(self.parts.clock.now().0 as usize);
            if self.counters.stopped.lock().take().is_some() {
                tracing::info!("site tables are written again");
            }
            if self.parts.stage.take_overflow() {
                self.counters.overflows.increment();
                tracing::warn!("more rows of the site waited than are kept; everything is compared instead");
                return Ok(());
            }
            if Instant::now() >= next_comparison {
                self.compare_all(site).await?;
                next_comparison = Instant::now() + COMPARISON_INTERVAL;
            }
            tokio::time::sleep(self.flush_interval).await;
        }
    }

    /// Opens the stage: what the journal has since it was written is staged, older peers are marked as gone, and all figures are
    /// compared. A stage that is open has missed nothing.
    async fn reread(&mut self, site: &Database) -> Result<(), SitesError> {
        if self.parts.stage.is_following() {
            return Ok(());
        }
        let outcome = self.reread_journal(site).await;
        if outcome.is_err() {
            self.parts.stage.close();
        }
        outcome
    }

    async fn reread_journal(&mut self, site: &Database) -> Result<(), SitesError> {
        let silence = self.parts.silence + REREAD_MARGIN;
        let before = self.parts.clock.now() - silence;
        let mut transaction = site.begin().await.map_err(SitesError::statement("beginning"))?;
        let position = self.marks.lock(&mut transaction).await;
        drop(transaction);
        let position = position.map_err(SitesError::statement("reading the position"))?.unwrap_or_default();
        let mut after = position.max(EntryId::at_ms(u64::from(before.0) * 1000));
        // Far behind, what is staged is written in between. The view is not followed yet: an older entry would be written over a
        // newer one.
        self.parts.stage.open();
        while self.stage_page(&mut after, EntryId::MAX).await? {
            if self.parts.stage.is_half_full() {
                self.flush(site).await?;
            }
        }
        self.parts.stage.follow();
        let last = self.parts.journal.status(LANE).await?.last.unwrap_or_default();
        while after < last && self.stage_page(&mut after, last).await? {}
        self.flush(site).await?;
        self.commit(site, &Chunk { stale_before: Some(before.0), ..Chunk::default() }).await?;
        self.compare_all(site).await
    }

    /// Stages a page of the journal. False if it was the last one, or reached `until`.
    async fn stage_page(&self, after: &mut EntryId, until: EntryId) -> Result<bool, SitesError> {
        let page = self.parts.journal.list(LANE, *after, REREAD_PAGE).await?;
        let is_last = page.len() < REREAD_PAGE;
        *after = page.last().map_or(*after, |newest| newest.id);
        let read = |stored: &Stored| {
            let entry = TrafficEntry::parse_dated(&stored.fields, &*self.parts.clock).ok()?;
            Some(DeliveredEntry { id: stored.id, origin: stored.id, entry })
        };
        let arrivals: Vec<DeliveredEntry> = page.iter().filter_map(read).collect();
        self.parts.stage.add(&arrivals, &*self.parts.directory);
        Ok(!is_last && *after < until)
    }

    fn flusher<'a>(&'a self, site: &'a Database) -> Flush<'a> {
        Flush {
            site,
            profile: &self.parts.profile,
            marks: &self.marks,
            ledger: &self.parts.ledger,
            clock: &*self.parts.clock,
            counters: &self.counters,
        }
    }

    /// The first entry that the ledger has yet to apply.
    async fn unapplied(&self) -> Result<EntryId, SitesError> {
        let status = self.parts.journal.status(LANE).await?;
        let Some(group) = status.groups.iter().find(|group| group.name == self.parts.ledger_group) else {
            return Ok(EntryId::ZERO);
        };
        Ok(self.parts.journal.oldest_unacknowledged(group).await?.unwrap_or(EntryId::MAX))
    }

    /// Writes what is staged. What was not written, or is to be compared again, returns to the stage.
    async fn flush(&mut self, site: &Database) -> Result<(), SitesError> {
        self.flushed = Instant::now();
        // Before the figures are read.
        let unapplied = self.unapplied().await?;
        let Some(Taken { staged, position }) = self.parts.stage.take() else { return Ok(()) };
        self.counters.staged.set(staged.len());
        if staged.is_empty() {
            return Ok(());
        }
        let (mut chunks, waiting) = self.chunks_of(&staged, unapplied);
        if let Some(last) = chunks.last_mut() {
            last.position = Some(position);
        }
        let mut outcome = Ok(());
        let mut unwritten = waiting;
        let mut chunks = chunks.into_iter();
        for chunk in chunks.by_ref() {
            match self.commit(site, &chunk).await {
                Ok(()) => self.keep_unapplied(&chunk, &staged, unapplied, &mut unwritten),
                Err(error) => {
                    restage(&chunk, &staged, &mut unwritten);
                    outcome = Err(error);
                    break;
                }
            }
        }
        chunks.for_each(|chunk| restage(&chunk, &staged, &mut unwritten));
        self.parts.stage.put_back(unwritten);
        outcome
    }

    /// Chunks of what can be written, and what waits for the ledger.
    fn chunks_of(&self, staged: &Staged, unapplied: EntryId) -> (Vec<Chunk>, Staged) {
        let is_refused = |user: u64, torrent: u64| self.refused.contains(&(user, torrent));
        let mut waiting = Staged::default();
        let mut chunks: Vec<Chunk> = Vec::new();
        let mut users: Vec<_> = staged.users.iter().collect();
        users.sort_unstable_by_key(|(user, _)| **user);
        let mut torrents: Vec<_> = staged.torrents.iter().collect();
        torrents.sort_unstable_by_key(|(torrent, _)| **torrent);
        let mut accounts: Vec<_> = staged.accounts.iter().collect();
        accounts.sort_unstable_by_key(|(key, _)| **key);
        let mut peers: Vec<_> = staged.peers.iter().collect();
        peers.sort_unstable_by_key(|(key, _)| **key);
        let mut place = Places::default();
        for (user, span) in users {
            match span.first < unapplied {
                true => drop(place.users.next(&mut chunks).users.insert(*user)),
                false => drop(waiting.users.insert(*user, *span)),
            }
        }
        for (torrent, span) in torrents {
            match span.first < unapplied {
                true => drop(place.torrents.next(&mut chunks).torrents.insert(*torrent)),
                false => drop(waiting.torrents.insert(*torrent, *span)),
            }
        }
        for (key, account) in accounts {
            if is_refused(key.user.get(), key.torrent.get()) {
                continue;
            }
            match account.span.first < unapplied {
                true => drop(place.accounts.next(&mut chunks).accounts.insert(*key, account.latest)),
                false => drop(waiting.accounts.insert(*key, *account)),
            }
        }
        for (key, announced) in peers {
            if !is_refused(key.account.user.get(), key.account.torrent.get()) {
                place.peers.next(&mut chunks).peers.insert(*key, *announced);
            }
        }
        (chunks, waiting)
    }

    /// Rows with a later entry that the ledger had yet to apply are compared again.
    fn keep_unapplied(&self, chunk: &Chunk, staged: &Staged, unapplied: EntryId, kept: &mut Staged) {
        // From the first entry that was not applied on.
        let rest = |span: crate::stage::Span| {
            (span.last >= unapplied).then_some(crate::stage::Span { first: unapplied, last: span.last })
        };
        for user in &chunk.users {
            let span = staged.users.get(user).and_then(|span| rest(*span));
            span.map(|span| kept.users.insert(*user, span));
        }
        for torrent in &chunk.torrents {
            let span = staged.torrents.get(torrent).and_then(|span| rest(*span));
            span.map(|span| kept.torrents.insert(*torrent, span));
        }
        for key in chunk.accounts.keys() {
            let Some(account) = staged.accounts.get(key) else { continue };
            if let Some(span) = rest(account.span) {
                kept.accounts.insert(*key, crate::stage::StagedAccount { span, ..*account });
            }
        }
    }

    /// Compares all figures of the ledger with the marks.
    async fn compare_all(&mut self, site: &Database) -> Result<(), SitesError> {
        self.refused.clear();
        self.marks.clear_refused(site).await.map_err(SitesError::statement("refused_rows"))?;
        let ledger = Arc::clone(&self.parts.ledger);
        let mut after = None;
        loop {
            let page = ledger.user_ids_after(after).await?;
            after = page.last().copied();
            self.commit_comparison(site, Chunk { users: page.iter().copied().collect(), ..Chunk::default() })
                .await?;
            if page.len() < PAGE_ROWS_MAX as usize {
                break;
            }
        }
        let mut after = None;
        loop {
            let page = ledger.torrent_ids_after(after).await?;
            after = page.last().copied();
            self.commit_comparison(
                site,
                Chunk { torrents: page.iter().copied().collect(), ..Chunk::default() },
            )
            .await?;
            if page.len() < PAGE_ROWS_MAX as usize {
                break;
            }
        }
        let mut after: Option<AccountKey> = None;
        loop {
            let page = ledger.account_keys_after(after).await?;
            after = page.last().copied();
            let accounts = page.iter().map(|key| (*key, None)).collect();
            self.commit_comparison(site, Chunk { accounts, ..Chunk::default() }).await?;
            if page.len() < PAGE_ROWS_MAX as usize {
                break;
            }
        }
        self.counters.comparisons.increment();
        Ok(())
    }

    /// Commits a part of a comparison, and in between what is staged.
    async fn commit_comparison(&mut self, site: &Database, chunk: Chunk) -> Result<(), SitesError> {
        self.commit(site, &chunk).await?;
        if self.flushed.elapsed() >= self.flush_interval {
            self.flush(site).await?;
        }
        Ok(())
    }

    /// Commits a chunk; after a deadlock with the site's own transactions, again.
    async fn commit(&mut self, site: &Database, chunk: &Chunk) -> Result<(), SitesError> {
        loop {
            match self.flusher(site).commit(chunk).await {
                Err(SitesError::Statement { source, .. }) if source.is_conflict() => {
                    self.counters.conflicts.increment();
                    self.counters.failures.increment();
                    tokio::time::sleep(CONFLICT_PAUSE).await;
                }
                committed => {
                    self.refused.extend(committed?.iter().map(|row| (row.user, row.torrent)));
                    return Ok(());
                }
            }
        }
    }

    /// At shutdown: bounded, and without loss if it fails.
    async fn last_flush(&mut self) {
        if self.counters.stopped.lock().is_some() {
            return;
        }
        let flushing = async {
            let site = Database::open(&self.parts.url).await.map_err(SitesError::Site)?;
            self.flush(&site).await
        };
        if let Err(error) = flushing.await {
            tracing::warn!(%error, "the last rows for the site's tables are written after the next start");
        }
    }
}

/// Distributes rows over chunks.
#[derive(Default)]
struct Places {
    users: Place,
    torrents: Place,
    accounts: Place,
    peers: Place,
}

#[derive(Default)]
struct Place(usize);

impl Place {
    fn next<'c>(&mut self, chunks: &'c mut Vec<Chunk>) -> &'c mut Chunk {
        let chunk = self.0 / CHUNK_ROWS;
        self.0 += 1;
        while chunks.len() <= chunk {
            chunks.push(Chunk::default());
        }
        &mut chunks[chunk]
    }
}

fn restage(chunk: &Chunk, staged: &Staged, unwritten: &mut Staged) {
    let users = chunk.users.iter().filter_map(|user| Some((*user, *staged.users.get(user)?)));
    unwritten.users.extend(users);
    let torrents =
        chunk.torrents.iter().filter_map(|torrent| Some((*torrent, *staged.torrents.get(torrent)?)));
    unwritten.torrents.extend(torrents);
    let accounts = chunk.accounts.keys().filter_map(|key| Some((*key, *staged.accounts.get(key)?)));
    unwritten.accounts.extend(accounts);
    unwritten.peers.extend(chunk.peers.iter().map(|(key, announced)| (*key, *announced)));
}

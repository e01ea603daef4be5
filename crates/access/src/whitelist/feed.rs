//! The change feed: publishes changes of the whitelist that are made through Rollcall to every process, within a second.
//!
//! It is a table of the database, also if the whitelist is in Redis: all processes share the database, and a poll without
//! changes is one small query. [`super::Passkeys`] appends to it after each change of the whitelist.
//!
//! # Guarantees
//!
//! - **Complete.** What was published before a call of [`PasskeyFeed::next_changes`] is in its result or in an earlier one.
//!   If older entries were trimmed, the result is [`PasskeyChange::Replaced`].
//! - **Ordered.** The whitelist is changed before the change is published.
//! - **Bounded.** The feed keeps the last 10,000 entries. A change of more than 1,000 passkeys is published as one
//!   [`PasskeyChange::Replaced`].
//!
//! Changes that other programs make in Redis are not published; cached answers show them after their expiry.

use std::time::Duration;

use database::{ChangeLog, ChangeLogReader, FromRow, LogRead, Position, Row, SqlError};
use domain::Passkey;

use super::tables::{self, WhitelistTransaction};
use crate::error::AccessError;
use crate::store::Store;

/// Entries that are kept; a reader that is further behind gets [`PasskeyChange::Replaced`].
const ENTRIES_MAX: i64 = 10_000;
/// Passkeys published one by one.
const PUBLISHED_SINGLY_MAX: usize = 1000;
/// An unreachable server would block a query until the kernel gives up, after many minutes.
const QUERY_TIMEOUT: Duration = Duration::from_secs(10);

/// A change of the whitelist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasskeyChange {
    /// May have been on it before.
    Added(Passkey),
    /// May not have been on it.
    Removed(Passkey),
    /// Anything may have changed: a refresh, an undo, or more changes than the feed holds.
    Replaced,
}

/// Numbers are assigned under a row lock, so they follow the order of commits on every database.
const LOG: ChangeLog = ChangeLog {
    table: "passkey_changes",
    columns: "seq, kind, passkey",
    newest: tables::NEWEST_CHANGE,
    trimmed_postgres: None,
    channel_postgres: "passkey_changes",
    batch: None,
};

/// A reader of the feed with its own position.
///
/// Open it before the first answer of the whitelist is cached, poll it a few times a second, and drop the cached answers
/// that it names. An error does not change the position.
#[derive(Debug)]
pub struct PasskeyFeed {
    store: Store,
    /// All changes up to here were returned.
    position: Position,
    /// None after a failure: the next call opens another connection.
    log: Option<ChangeLogReader>,
}

impl PasskeyFeed {
    /// A reader of everything that is published from now on.
    pub async fn open(store: &Store) -> Result<PasskeyFeed, AccessError> {
        let opened = async {
            let mut log = ChangeLogReader::connect(store.database(), LOG).await?;
            Ok((log.position().await?, log))
        };
        let (position, log) = in_time(store, opened).await?;
        Ok(PasskeyFeed { store: store.clone(), position, log: Some(log) })
    }

    /// The changes since the last call, in order.
    pub async fn next_changes(&mut self) -> Result<Vec<PasskeyChange>, AccessError> {
        let known = self.log.take();
        let read = async {
            let mut log = match known {
                Some(log) => log,
                None => ChangeLogReader::connect(self.store.database(), LOG).await?,
            };
            let read = log.read_after(&self.position).await?;
            if !matches!(read, LogRead::UpToDate(_)) {
                log.end_snapshot().await?;
            }
            Ok((read, log))
        };
        let (read, log) = in_time(&self.store, read).await?;
        self.log = Some(log);
        let (position, changes) = match read {
            LogRead::UpToDate(position) => (position, Vec::new()),
            LogRead::Changes(rows, position) => {
                (position, in_order(rows).unwrap_or_else(|| vec![PasskeyChange::Replaced]))
            }
            LogRead::Truncated(position) => (position, vec![PasskeyChange::Replaced]),
        };
        self.position = position;
        Ok(changes)
    }
}

/// None if one of them is `all`, or of an unknown kind.
fn in_order(rows: Vec<Row>) -> Option<Vec<PasskeyChange>> {
    let rows = rows.into_iter().map(|mut row| <(i64, String, Option<String>)>::from_row(&mut row).ok());
    let mut rows: Vec<_> = rows.collect::<Option<_>>()?;
    rows.sort_unstable_by_key(|(seq, ..)| *seq);
    rows.iter().map(read).collect()
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    Added,
    Removed,
}

impl Action {
    const fn kind(self) -> &'static str {
        match self {
            Action::Added => "add",
            Action::Removed => "remove",
        }
    }
}

pub(super) async fn publish(store: &Store, action: Action, passkeys: &[Passkey]) -> Result<(), AccessError> {
    match passkeys.len() {
        0 => Ok(()),
        1..=PUBLISHED_SINGLY_MAX => in_time(store, append(store, action.kind(), passkeys)).await,
        _ => publish_replaced(store).await,
    }
}

pub(super) async fn publish_replaced(store: &Store) -> Result<(), AccessError> {
    in_time(store, append(store, "all", &[])).await
}

/// No passkeys stand for all.
async fn append(store: &Store, kind: &'static str, passkeys: &[Passkey]) -> Result<(), SqlError> {
    let count = passkeys.len().max(1) as i64;
    let mut transaction = WhitelistTransaction::begin(store.database()).await?;
    let newest = transaction.take_numbers(count).await?;
    transaction.insert_changes(newest - count + 1, kind, passkeys).await?;
    transaction.trim_changes(newest - ENTRIES_MAX).await?;
    transaction.commit().await
}

/// None for `all` and for an unknown kind.
fn read((_, kind, passkey): &(i64, String, Option<String>)) -> Option<PasskeyChange> {
    let passkey = passkey.as_deref()?.parse().ok()?;
    match kind.as_str() {
        "add" => Some(PasskeyChange::Added(passkey)),
        "remove" => Some(PasskeyChange::Removed(passkey)),
        _ => None,
    }
}

async fn in_time<T>(
    store: &Store,
    query: impl Future<Output = Result<T, SqlError>>,
) -> Result<T, AccessError> {
    let outcome = tokio::time::timeout(QUERY_TIMEOUT, query).await;
    outcome.unwrap_or(Err(SqlError::TimedOut)).map_err(|error| store.explain(error))
}

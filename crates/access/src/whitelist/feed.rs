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

use domain::Passkey;

use super::tables;
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

/// A reader of the feed with its own position.
///
/// Open it before the first answer of the whitelist is cached, poll it a few times a second, and drop the cached answers
/// that it names. An error does not change the position.
#[derive(Debug)]
pub struct PasskeyFeed {
    store: Store,
    /// All changes up to this number were returned.
    position: i64,
}

impl PasskeyFeed {
    /// A reader of everything that is published from now on.
    pub async fn open(store: &Store) -> Result<PasskeyFeed, AccessError> {
        let position = in_time(store, newest(store)).await?;
        Ok(PasskeyFeed { store: store.clone(), position })
    }

    /// The changes since the last call, in order.
    pub async fn next_changes(&mut self) -> Result<Vec<PasskeyChange>, AccessError> {
        let (position, changes) = in_time(&self.store, changes_after(&self.store, self.position)).await?;
        self.position = position;
        Ok(changes)
    }
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
async fn append(store: &Store, kind: &'static str, passkeys: &[Passkey]) -> Result<(), sqlx::Error> {
    let count = passkeys.len().max(1) as i64;
    let mut transaction = tables::begin(store.database()).await?;
    let newest = transaction.take_numbers(count).await?;
    transaction.insert_changes(newest - count + 1, kind, passkeys).await?;
    transaction.trim_changes(newest - ENTRIES_MAX).await?;
    transaction.commit().await
}

async fn newest(store: &Store) -> Result<i64, sqlx::Error> {
    tables::acquire(store.database()).await?.newest_change().await
}

async fn changes_after(store: &Store, position: i64) -> Result<(i64, Vec<PasskeyChange>), sqlx::Error> {
    let mut tables = tables::acquire(store.database()).await?;
    let newest = tables.newest_change().await?;
    if newest == position {
        return Ok((position, Vec::new()));
    }
    let missing = newest.saturating_sub(position);
    // A lower number comes from another database, such as a restored one.
    if !(0..=ENTRIES_MAX).contains(&missing) {
        return Ok((newest, vec![PasskeyChange::Replaced]));
    }
    // Numbers follow the order of commits, so all entries up to the newest are visible.
    let rows = tables.changes(position, newest).await?;
    // Fewer rows than numbers: the oldest were trimmed between the two queries.
    let changes = if rows.len() as i64 == missing { rows.iter().map(read).collect() } else { None };
    Ok((newest, changes.unwrap_or_else(|| vec![PasskeyChange::Replaced])))
}

/// None for `all` and for an unknown kind.
fn read((_, kind, passkey): &tables::ChangeRow) -> Option<PasskeyChange> {
    let passkey = passkey.as_deref()?.parse().ok()?;
    match kind.as_str() {
        "add" => Some(PasskeyChange::Added(passkey)),
        "remove" => Some(PasskeyChange::Removed(passkey)),
        _ => None,
    }
}

async fn in_time<T>(
    store: &Store,
    query: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, AccessError> {
    let outcome = tokio::time::timeout(QUERY_TIMEOUT, query).await;
    outcome.unwrap_or(Err(sqlx::Error::PoolTimedOut)).map_err(|error| store.explain(error))
}

//! The change feed: how every tracker process hears within a second of changes that were made through us.
//!
//! It lies in the database, also where the whitelist is in Redis: all processes of a site share it, and it costs one
//! small read to find that there is nothing new. [`super::Passkeys`] writes it after each change of the set.
//!
//! # Guarantees
//!
//! - **Nothing is missed.** What was told before a call to [`PasskeyFeed::news`] is in its answer or in an earlier one.
//!   Where the feed no longer reaches back that far, the answer is [`PasskeyChange::Replaced`]: anything may differ.
//! - **The change comes first.** Whoever hears of a change and asks the whitelist sees it.
//! - **Bounded.** It keeps the last 10,000 entries; whoever changes more than 1,000 passkeys at once leaves a single
//!   [`PasskeyChange::Replaced`].
//!
//! # Deliberately absent
//!
//! What others write to Redis: nobody tells us. Answers about that are as old as a cache keeps them.

use std::time::Duration;

use domain::Passkey;

use super::tables;
use crate::error::AccessError;
use crate::store::Store;

/// Entries that are kept. Who is further behind asks anew about everything.
const KEPT: i64 = 10_000;
/// Passkeys that are told one by one.
const TOLD_SINGLY_MAX: usize = 1000;
/// How long one look may take: a server that went away without a word would be waited for by the kernel for many
/// minutes.
const LOOK_TIMEOUT: Duration = Duration::from_secs(10);

/// What happened to the whitelist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasskeyChange {
    /// This one was put in; it may have been there before.
    Added(Passkey),
    /// This one was taken out; it may not have been there.
    Removed(Passkey),
    /// Anything may have changed: a refresh, a step back, or more changes than the feed holds. Forget every answer.
    Replaced,
}

/// A reader of the feed, with its own place in it.
///
/// Open it before the first answer of the whitelist is remembered, call [`PasskeyFeed::news`] a few times a second, and
/// forget what it names. After an error call it again: the place is kept, nothing is skipped.
#[derive(Debug)]
pub struct PasskeyFeed {
    store: Store,
    /// All changes up to this number are known.
    known: i64,
}

impl PasskeyFeed {
    /// A reader that hears of everything that is told from now on.
    pub async fn open(store: &Store) -> Result<PasskeyFeed, AccessError> {
        let known = look(store, newest(store)).await?;
        Ok(PasskeyFeed { store: store.clone(), known })
    }

    /// What happened since the last call, in order. Empty if nothing did.
    pub async fn news(&mut self) -> Result<Vec<PasskeyChange>, AccessError> {
        let (up_to, changes) = look(&self.store, news_behind(&self.store, self.known)).await?;
        self.known = up_to;
        Ok(changes)
    }
}

/// What was done to passkeys.
#[derive(Clone, Copy, Debug)]
pub(super) enum Deed {
    Added,
    Removed,
}

impl Deed {
    const fn kind(self) -> &'static str {
        match self {
            Deed::Added => "add",
            Deed::Removed => "remove",
        }
    }
}

/// Tells what was done to these passkeys.
pub(super) async fn tell(store: &Store, deed: Deed, passkeys: &[Passkey]) -> Result<(), AccessError> {
    match passkeys.len() {
        0 => Ok(()),
        1..=TOLD_SINGLY_MAX => look(store, append(store, deed.kind(), passkeys)).await,
        _ => tell_replaced(store).await,
    }
}

/// Tells that anything may have changed.
pub(super) async fn tell_replaced(store: &Store) -> Result<(), AccessError> {
    look(store, append(store, "all", &[])).await
}

/// None stands for all.
async fn append(store: &Store, kind: &'static str, passkeys: &[Passkey]) -> Result<(), sqlx::Error> {
    let count = passkeys.len().max(1) as i64;
    let mut transaction = tables::begin(store.database()).await?;
    let newest = transaction.take_numbers(count).await?;
    transaction.insert_changes(newest - count + 1, kind, passkeys).await?;
    transaction.trim_changes(newest - KEPT).await?;
    transaction.commit().await
}

async fn newest(store: &Store) -> Result<i64, sqlx::Error> {
    tables::acquire(store.database()).await?.newest_change().await
}

async fn news_behind(store: &Store, known: i64) -> Result<(i64, Vec<PasskeyChange>), sqlx::Error> {
    let mut tables = tables::acquire(store.database()).await?;
    let newest = tables.newest_change().await?;
    if newest == known {
        return Ok((known, Vec::new()));
    }
    let missing = newest.saturating_sub(known);
    // Numbers that went back are those of another database, such as a restored one.
    if !(0..=KEPT).contains(&missing) {
        return Ok((newest, vec![PasskeyChange::Replaced]));
    }
    // All up to the newest number are there: numbers follow the order of commits.
    let rows = tables.changes(known, newest).await?;
    // Fewer than there were numbers: the oldest were trimmed while we looked.
    let changes = if rows.len() as i64 == missing { rows.iter().map(read).collect() } else { None };
    Ok((newest, changes.unwrap_or_else(|| vec![PasskeyChange::Replaced])))
}

/// None if it says that anything may have changed, or nobody knows what it says.
fn read((_, kind, passkey): &tables::ChangeRow) -> Option<PasskeyChange> {
    let passkey = passkey.as_deref()?.parse().ok()?;
    match kind.as_str() {
        "add" => Some(PasskeyChange::Added(passkey)),
        "remove" => Some(PasskeyChange::Removed(passkey)),
        _ => None,
    }
}

/// Puts a time limit to a look at the database, and what it says into our words.
async fn look<T>(
    store: &Store,
    work: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, AccessError> {
    let outcome = tokio::time::timeout(LOOK_TIMEOUT, work).await;
    outcome.unwrap_or(Err(sqlx::Error::PoolTimedOut)).map_err(|error| store.explain(error))
}

//! Opening the friend store, and running its transactions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use database::{Database, FromRow, Migrations, Rows, SqlError, Statement, Transaction, Value};
use domain::{UnixTime, UserId};
use presence::Audience;

use crate::error::FriendsError;

pub static MIGRATIONS: Migrations = database::migrations!("people_migrations" in "migrations": each "0001_people", postgres "0002_notifications");

/// Attempts of a transaction that is rolled back by conflicts.
const ATTEMPTS_MAX: u32 = 10;
/// Delay after the first conflict; it grows with each attempt.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(3);
pub(crate) const LIST_MAX: usize = 5_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FriendsSettings {
    /// For users without privacy settings of their own.
    pub default_audience: Audience,
    pub friends_max: u32,
}

impl FriendsSettings {
    /// The default friend limit.
    pub const FRIENDS_MAX: u32 = 10_000;
}

impl Default for FriendsSettings {
    fn default() -> Self {
        FriendsSettings { default_audience: Audience::default(), friends_max: Self::FRIENDS_MAX }
    }
}

#[derive(Debug, Default)]
pub struct Counters {
    /// Transactions repeated after a conflict.
    pub retries: AtomicU64,
    /// Changes refused at the friend limit.
    pub friends_refused: AtomicU64,
    /// Friend lists longer than the limit, which the site wrote.
    pub lists_truncated: AtomicU64,
}

/// Friendships, privacy and presence in one database. Clones share its connections.
#[derive(Clone, Debug)]
pub struct FriendStore {
    pub(crate) database: Database,
    pub(crate) settings: FriendsSettings,
    pub(crate) counters: Arc<Counters>,
}

impl FriendStore {
    /// Uses an open database; creates missing tables.
    pub async fn open(database: Database, settings: FriendsSettings) -> Result<FriendStore, FriendsError> {
        database::migrate(&database, MIGRATIONS).await?;
        Ok(FriendStore { database, settings, counters: Arc::default() })
    }

    pub fn database(&self) -> &Database {
        &self.database
    }

    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    pub(crate) fn explain(&self, error: SqlError) -> FriendsError {
        self.database.explain(error).into()
    }

    /// Reads outside of any transaction.
    pub(crate) async fn read<'s, T: FromRow>(
        &self,
        statement: impl Into<Statement<'s>>,
        values: &[Value],
    ) -> Result<Vec<T>, FriendsError> {
        self.database.query(statement, values).await.map_err(|error| self.explain(error))
    }

    pub(crate) async fn begin(&self) -> Result<Transaction, SqlError> {
        self.database.begin().await
    }

    /// The result of a transaction; none after a conflict, when the caller repeats it.
    pub(crate) async fn settle<T>(
        &self,
        outcome: Result<T, TransactionError>,
        attempts: &mut u32,
    ) -> Option<Result<T, FriendsError>> {
        *attempts += 1;
        match outcome {
            Ok(done) => Some(Ok(done)),
            Err(TransactionError::Refused(error)) => Some(Err(error)),
            Err(TransactionError::Sql(error)) if error.is_conflict() && *attempts < ATTEMPTS_MAX => {
                self.counters.retries.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(%error, attempts, "transaction conflict, repeating it");
                tokio::time::sleep(ATTEMPT_PAUSE * *attempts).await;
                None
            }
            Err(TransactionError::Sql(error)) => Some(Err(self.explain(error))),
        }
    }
}

/// Runs a transaction, from begin to commit, again after each conflict. A macro, since the compiler cannot prove that a
/// future made by a closure over a borrowed transaction is `Send`.
macro_rules! retry_on_conflict {
    ($store:expr, $once:expr) => {{
        let mut attempts = 0;
        loop {
            let outcome = $once.await;
            if let Some(settled) = $store.settle(outcome, &mut attempts).await {
                break settled;
            }
        }
    }};
}
pub(crate) use retry_on_conflict;

#[derive(Debug)]
pub(crate) enum TransactionError {
    Sql(SqlError),
    Refused(FriendsError),
}

impl From<SqlError> for TransactionError {
    fn from(error: SqlError) -> TransactionError {
        TransactionError::Sql(error)
    }
}

impl From<FriendsError> for TransactionError {
    fn from(error: FriendsError) -> TransactionError {
        TransactionError::Refused(error)
    }
}

pub(crate) fn sql_id(user: UserId) -> i64 {
    i64::try_from(user.get()).unwrap_or(i64::MAX)
}

pub(crate) fn sql_number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn sql_ids(users: &[UserId]) -> Vec<i64> {
    users.iter().copied().map(sql_id).collect()
}

/// For `{rows 1}`.
pub(crate) fn id_rows(ids: impl IntoIterator<Item = i64>) -> Value {
    Value::Rows(Rows::new(ids.into_iter().map(|id| [id.into()])))
}

/// For `{rows 2}`.
pub(crate) fn pair_rows(pairs: &[(i64, i64)]) -> Value {
    Value::Rows(Rows::new(pairs.iter().map(|(one, other)| [(*one).into(), (*other).into()])))
}

/// None for invalid ids that a site may have written.
pub(crate) fn user_of(number: i64) -> Option<UserId> {
    u64::try_from(number).ok().and_then(UserId::new)
}

/// Values outside of the range are clamped.
pub(crate) fn time_of(seconds: i64) -> UnixTime {
    UnixTime(u32::try_from(seconds.max(0)).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Callers run these futures on a multi-threaded runtime.
    #[test]
    fn futures_can_be_sent() {
        fn sent(store: &FriendStore, user: UserId) -> impl Send {
            async move {
                store.add_friends(&[(user, user)], UnixTime(0)).await?;
                store.remove_friends(&[]).await?;
                store.friend_lists(&[user]).await?;
                store.view_users(user, &[user]).await?;
                store.set_privacy(user, &store.privacy(user).await?).await?;
                store.save_presence(&store.stored_online(None, 1).await?).await?;
                store.record(&[]).await?;
                store.prune_history(0, 1).await?;
                store.set_cursor("", store.newest_event().await?).await?;
                store.change_feed(Duration::ZERO).next().await;
                Ok::<(), FriendsError>(())
            }
        }
        let _ = sent;
    }
}

//! The database of people: opening it, and how its calls are made.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use database::{Database, Migrations};
use domain::{UnixTime, UserId};
use presence::Visibility;
use sqlx::migrate::Migrator;

use crate::error::{PeopleError, is_conflict};
use crate::sql::{AnyRow, Cell, Lent, Page, Statement};

/// Which migrations ran. A name of our own, since other crates keep theirs in the same database.
const MIGRATIONS_TABLE: &str = "people_migrations";
static SQLITE: Migrator = sqlx::migrate!("migrations/sqlite");
static POSTGRES: Migrator = sqlx::migrate!("migrations/postgres");
static MYSQL: Migrator = sqlx::migrate!("migrations/mysql");
/// What makes the tables.
pub static MIGRATIONS: Migrations<'static> =
    Migrations { table: MIGRATIONS_TABLE, sqlite: &SQLITE, postgres: &POSTGRES, mysql: &MYSQL };

/// How often a call that lost against another begins again.
const ATTEMPTS_MAX: u32 = 10;
/// How long it waits before; each time longer.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(3);
/// Ids in one statement.
pub(crate) const LIST_MAX: usize = 5_000;

/// How people are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeopleSettings {
    /// Who sees the status, and when they were last here, of those who have not chosen.
    pub default_visibility: Visibility,
    /// How many friends one person may have.
    pub friends_max: u32,
}

impl PeopleSettings {
    /// More friends than this make a feed that nobody can read.
    pub const FRIENDS_MAX: u32 = 10_000;
}

impl Default for PeopleSettings {
    fn default() -> Self {
        PeopleSettings { default_visibility: Visibility::default(), friends_max: Self::FRIENDS_MAX }
    }
}

/// What is counted.
#[derive(Debug, Default)]
pub struct Counters {
    /// Calls that began again because another was quicker.
    pub repeats: AtomicU64,
    /// Changes refused because somebody would have had too many friends.
    pub friends_refused: AtomicU64,
    /// Circles cut off because somebody has more friends than one may have: a site wrote them.
    pub circles_cut: AtomicU64,
}

/// The database. Clones share its connections.
#[derive(Clone, Debug)]
pub struct People {
    pub(crate) database: Database,
    pub(crate) settings: PeopleSettings,
    pub(crate) counters: Arc<Counters>,
}

impl People {
    /// Uses a database that is open already; makes the tables where they are missing.
    pub async fn on(database: Database, settings: PeopleSettings) -> Result<People, PeopleError> {
        database::migrate(&database, MIGRATIONS).await?;
        Ok(People { database, settings, counters: Arc::default() })
    }

    /// The database itself.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// What is counted.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    pub(crate) fn explain(&self, error: sqlx::Error) -> PeopleError {
        self.database.explain(error).into()
    }

    /// Reads rows, outside of any transaction.
    pub(crate) async fn read<T: AnyRow>(
        &self,
        statement: &Statement,
        cells: &[Cell],
    ) -> Result<Vec<T>, PeopleError> {
        let explain = |error| self.explain(error);
        let mut lent = Lent::by(&self.database).await.map_err(explain)?;
        lent.on().read(statement, cells).await.map_err(explain)
    }

    /// Begins to write.
    pub(crate) async fn begin(&self) -> Result<Page, sqlx::Error> {
        Page::begin(&self.database).await
    }

    /// What became of a transaction; none if it is to be tried again, because another was quicker or two waited for
    /// each other.
    pub(crate) async fn settle<T>(
        &self,
        outcome: Result<T, Undone>,
        attempts: &mut u32,
    ) -> Option<Result<T, PeopleError>> {
        *attempts += 1;
        match outcome {
            Ok(done) => Some(Ok(done)),
            Err(Undone::Refused(error)) => Some(Err(error)),
            Err(Undone::Sql(error)) if is_conflict(&error) && *attempts < ATTEMPTS_MAX => {
                self.counters.repeats.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(%error, attempts, "another was quicker, beginning again");
                tokio::time::sleep(ATTEMPT_PAUSE * *attempts).await;
                None
            }
            Err(Undone::Sql(error)) => Some(Err(self.explain(error))),
        }
    }
}

/// Makes a transaction, from its beginning to its commit, as often as it takes. Not a function: a closure that lends a
/// transaction makes a future of which the compiler does not see that it can be sent.
macro_rules! as_often_as_it_takes {
    ($people:expr, $once:expr) => {{
        let mut attempts = 0;
        loop {
            let outcome = $once.await;
            if let Some(settled) = $people.settle(outcome, &mut attempts).await {
                break settled;
            }
        }
    }};
}
pub(crate) use as_often_as_it_takes;

/// Why a transaction was given up.
#[derive(Debug)]
pub(crate) enum Undone {
    Sql(sqlx::Error),
    Refused(PeopleError),
}

impl From<sqlx::Error> for Undone {
    fn from(error: sqlx::Error) -> Undone {
        Undone::Sql(error)
    }
}

impl From<PeopleError> for Undone {
    fn from(error: PeopleError) -> Undone {
        Undone::Refused(error)
    }
}

/// An id as SQL keeps it.
pub(crate) fn sql_id(user: UserId) -> i64 {
    i64::try_from(user.get()).unwrap_or(i64::MAX)
}

/// A number as SQL keeps it.
pub(crate) fn sql_number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Ids as SQL keeps them.
pub(crate) fn sql_ids(users: &[UserId]) -> Vec<i64> {
    users.iter().copied().map(sql_id).collect()
}

/// The id that SQL keeps as this number; none for what a site should not have written.
pub(crate) fn user_of(number: i64) -> Option<UserId> {
    u64::try_from(number).ok().and_then(UserId::new)
}

/// The moment that SQL keeps as this number; what is outside of what we can hold is moved to its edge.
pub(crate) fn moment_of(seconds: i64) -> UnixTime {
    UnixTime(u32::try_from(seconds.max(0)).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever asks does so in a task of a runtime with several threads.
    #[test]
    fn futures_can_be_sent() {
        fn sent(people: &People, user: UserId) -> impl Send {
            async move {
                people.add_friends(&[(user, user)], UnixTime(0)).await?;
                people.remove_friends(&[]).await?;
                people.circles(&[user]).await?;
                people.sights(user, &[user]).await?;
                people.set_privacy(user, &people.privacy(user).await?).await?;
                people.remember(&people.here(None, 1).await?).await?;
                people.record(&[]).await?;
                people.prune_history(0, 1).await?;
                people.set_cursor("", people.newest_occurrence().await?).await?;
                people.follow(Duration::ZERO).next().await;
                Ok::<(), PeopleError>(())
            }
        }
        let _ = sent;
    }
}

//! What can go wrong with the database of people, each with what to do about it.

use database::DatabaseError;
use domain::UserId;
use sqlx::mysql::MySqlDatabaseError;
use sqlx::postgres::PgDatabaseError;

/// Why the database did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum PeopleError {
    /// The database cannot be opened, reached or used.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// Somebody was to be their own friend.
    #[error("user {0} cannot be their own friend: name two people")]
    OwnFriend(UserId),
    /// Somebody would have more friends than one may have. Nothing was changed.
    #[error(
        "user {user} would have more than {max} friends, which is the most: remove some first; nothing was changed"
    )]
    TooManyFriends {
        /// Who.
        user: UserId,
        /// The most there may be.
        max: u32,
    },
    /// A list of those who never see anything is too long. Nothing was changed.
    #[error("at most {max} people can be kept from seeing somebody, not {count}; nothing was changed")]
    TooManyNever {
        /// How many there were.
        count: usize,
        /// The most there may be.
        max: usize,
    },
    /// A name of a cursor is too long, or has other characters than it may.
    #[error("the name of a cursor is 1 to 64 visible characters")]
    CursorName,
}

impl PeopleError {
    /// Whether the same call may well succeed a moment later, with nobody doing anything about it.
    pub fn is_retryable(&self) -> bool {
        matches!(self, PeopleError::Database(error) if error.is_retryable())
    }
}

/// Whether a transaction was undone because two waited for each other, or because another was quicker: the same again
/// may go through at once.
pub(crate) fn is_conflict(error: &sqlx::Error) -> bool {
    let Some(said) = error.as_database_error() else { return false };
    if let Some(said) = said.try_downcast_ref::<MySqlDatabaseError>() {
        // deadlock, a record changed since it was read
        return matches!(said.number(), 1213 | 1020);
    }
    // serialization failure, deadlock
    said.try_downcast_ref::<PgDatabaseError>().is_some_and(|said| matches!(said.code(), "40001" | "40P01"))
}

//! Errors of the friend store.

use database::DatabaseError;
use domain::UserId;

#[derive(Debug, thiserror::Error)]
pub enum FriendsError {
    /// The database cannot be opened, reached or used.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// A user was given as their own friend.
    #[error("user {0} cannot be their own friend: name two users")]
    OwnFriend(UserId),
    /// A user would exceed the friend limit. Nothing was changed.
    #[error("user {user} would have more than {max} friends: remove some first; nothing was changed")]
    TooManyFriends { user: UserId, max: u32 },
    /// The `never` list is too long. Nothing was changed.
    #[error("a never list has at most {max} users, not {count}; nothing was changed")]
    TooManyNever { count: usize, max: usize },
    /// A cursor name is too long or has characters other than visible ASCII.
    #[error("a cursor name is 1 to 64 visible ASCII characters")]
    CursorName,
}

impl FriendsError {
    /// Whether the same call may succeed later without any intervention.
    pub fn is_retryable(&self) -> bool {
        matches!(self, FriendsError::Database(error) if error.is_retryable())
    }
}

//! Each test has its own database.

use database::Database;
use domain::{UnixTime, UserId};
use friends::{FriendStore, FriendsSettings};
use presence::{Audience, Privacy};

pub const NOW: UnixTime = UnixTime(1_750_000_000);

pub use testkit::TestDatabase as Fixture;

pub trait OpenStore {
    /// Another handle on the same database, as another process would open it.
    async fn store(&self) -> FriendStore {
        self.store_with(FriendsSettings::default()).await
    }

    async fn store_with(&self, settings: FriendsSettings) -> FriendStore;
}

impl OpenStore for Fixture {
    async fn store_with(&self, settings: FriendsSettings) -> FriendStore {
        FriendStore::open(Database::open(&self.url()).await.unwrap(), settings).await.unwrap()
    }
}

pub fn user(number: u64) -> UserId {
    UserId::new(number).unwrap()
}

pub fn users(numbers: impl IntoIterator<Item = u64>) -> Vec<UserId> {
    numbers.into_iter().map(user).collect()
}

pub fn pair(one: u64, other: u64) -> (UserId, UserId) {
    (user(one), user(other))
}

pub fn chosen(status: Audience, last_seen: Audience, never: &[u64]) -> Privacy {
    Privacy { status, last_seen, never: users(never.iter().copied()) }
}

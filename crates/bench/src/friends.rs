//! Friendships, written directly to the server's database.

use std::path::Path;

use database::Database;
use domain::UserId;
use domain::clock::{Clock, SystemClock};
use friends::{FriendStore, FriendsSettings};

use crate::server::new_runtime;

/// Makes these pairs friends in the database of a server's data folder.
pub fn write(data: &Path, pairs: &[(u64, u64)]) -> anyhow::Result<()> {
    write_to(&format!("sqlite:{}", data.join("rollcall.db").display()), pairs)
}

/// As above, in the database at this URL.
pub fn write_to(url: &str, pairs: &[(u64, u64)]) -> anyhow::Result<()> {
    let pairs: Vec<(UserId, UserId)> =
        pairs.iter().filter_map(|(one, other)| Some((UserId::new(*one)?, UserId::new(*other)?))).collect();
    new_runtime()?.block_on(async {
        let database = Database::open(url).await?;
        let friends = FriendStore::open(database.clone(), FriendsSettings::default()).await?;
        friends.add_friends(&pairs, SystemClock.now()).await?;
        database.close().await;
        Ok(())
    })
}

/// Pairs in which each of `users` users, numbered from 1, has about `friends` friends: the neighbours in a ring.
pub fn ring(users: u32, friends: u32) -> Vec<(u64, u64)> {
    let reach = u64::from(friends / 2).min(u64::from(users.saturating_sub(1)) / 2);
    let users = u64::from(users);
    let neighbours = |user: u64| (1..=reach).map(move |step| (user + 1, (user + step) % users + 1));
    (0..users).flat_map(neighbours).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn in_a_ring_all_users_have_as_many_friends_and_each_pair_is_listed_once() {
        let pairs = ring(50, 10);
        let distinct: HashSet<(u64, u64)> = pairs.iter().map(|(a, b)| (*a.min(b), *a.max(b))).collect();
        assert_eq!((pairs.len(), distinct.len()), (250, 250));
        for user in 1..=50 {
            assert_eq!(pairs.iter().filter(|(a, b)| *a == user || *b == user).count(), 10);
        }
        assert!(pairs.iter().all(|(a, b)| a != b));
        assert_eq!(ring(1, 10), []);
    }
}

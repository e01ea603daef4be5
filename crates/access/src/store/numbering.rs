//! Automatic ids of users and torrents, where the database would take them from behind the sandbox.
//!
//! SQLite and MariaDB give out one more than the highest id in the table. Rows of the sandbox have high ids, so there
//! the ids are chosen here, from the highest id outside of the sandbox. PostgreSQL's sequences leave it out themselves.

use std::ops::RangeInclusive;

use super::rows::sql_integer;

/// The ids of users and torrents that `rollcall sandbox` makes. Automatic ids are never taken from among them.
pub const SANDBOX_IDS: RangeInclusive<u64> = 900_000_001..=900_000_999;

/// Whether the id belongs to the sandbox.
pub(super) fn is_of_sandbox(id: i64) -> bool {
    u64::try_from(id).is_ok_and(|id| SANDBOX_IDS.contains(&id))
}

/// Gives an id to each row that has none, in order; `highest` is the highest id so far. None: ids have run out.
pub(super) fn number(given: impl Iterator<Item = Option<i64>>, highest: i64) -> Option<Vec<i64>> {
    let mut highest = highest;
    let mut ids = Vec::with_capacity(given.size_hint().0);
    for id in given {
        let id = match id {
            Some(id) => id,
            None => behind(highest)?,
        };
        if !is_of_sandbox(id) {
            highest = highest.max(id);
        }
        ids.push(id);
    }
    Some(ids)
}

fn behind(highest: i64) -> Option<i64> {
    let next = highest.checked_add(1)?;
    if is_of_sandbox(next) { sql_integer(*SANDBOX_IDS.end()).checked_add(1) } else { Some(next) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn automatic_ids_leave_the_sandbox_out() {
        let ids = |given: &[Option<i64>], highest| number(given.iter().copied(), highest);
        assert_eq!(ids(&[None, Some(9), None], 3), Some(vec![4, 9, 10]));
        assert_eq!(ids(&[Some(900_000_007), None], 3), Some(vec![900_000_007, 4]));
        assert_eq!(ids(&[None, None], 899_999_999), Some(vec![900_000_000, 900_001_000]));
        assert_eq!(ids(&[None], 900_000_500), Some(vec![900_001_000]), "a sandbox of an older version");
        assert_eq!(ids(&[None], i64::MAX), None);
        assert_eq!(ids(&[Some(i64::MAX)], i64::MAX), Some(vec![i64::MAX]));
    }
}

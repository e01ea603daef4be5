//! Automatic ids of users and torrents in SQLite and MariaDB.
//!
//! These databases assign one more than the highest id in the table. Rows of the sandbox have high ids, so the ids are chosen
//! here, after the highest id outside of the sandbox. In PostgreSQL the triggers that move the sequences do that.

use std::ops::RangeInclusive;

use super::rows::sql_integer;

/// Ids of users and torrents that `rollcall sandbox` creates; never assigned automatically.
pub const SANDBOX_IDS: RangeInclusive<u64> = 900_000_001..=900_000_999;

pub(super) fn is_of_sandbox(id: i64) -> bool {
    u64::try_from(id).is_ok_and(|id| SANDBOX_IDS.contains(&id))
}

/// Assigns ids to rows without one, in order; `highest` is the highest id so far. None if ids are exhausted.
pub(super) fn number(given: impl Iterator<Item = Option<i64>>, highest: i64) -> Option<Vec<i64>> {
    let mut highest = highest;
    let mut ids = Vec::with_capacity(given.size_hint().0);
    for id in given {
        let id = match id {
            Some(id) => id,
            None => next_after(highest)?,
        };
        if !is_of_sandbox(id) {
            highest = highest.max(id);
        }
        ids.push(id);
    }
    Some(ids)
}

fn next_after(highest: i64) -> Option<i64> {
    let next = highest.checked_add(1)?;
    if is_of_sandbox(next) { sql_integer(*SANDBOX_IDS.end()).checked_add(1) } else { Some(next) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn automatic_ids_skip_the_sandbox() {
        let ids = |given: &[Option<i64>], highest| number(given.iter().copied(), highest);
        assert_eq!(ids(&[None, Some(9), None], 3), Some(vec![4, 9, 10]));
        assert_eq!(ids(&[Some(900_000_007), None], 3), Some(vec![900_000_007, 4]));
        assert_eq!(ids(&[None, None], 899_999_999), Some(vec![900_000_000, 900_001_000]));
        assert_eq!(ids(&[None], 900_000_500), Some(vec![900_001_000]), "a sandbox of an older version");
        assert_eq!(ids(&[None], i64::MAX), None);
        assert_eq!(ids(&[Some(i64::MAX)], i64::MAX), Some(vec![i64::MAX]));
    }
}

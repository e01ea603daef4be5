//! Recent completions, so that a user counts once in a torrent's completions, however many peer ids they use.
//!
//! Fixed in size: an evicted user, or any user after a restart, may count once more. The ledger is exact.

/// Entries per set.
const WAYS: usize = 4;
/// 1,024 completions per shard, 8 KiB.
const SETS: usize = 256;

/// Hashes of user and torrent; zero for none.
#[derive(Debug, Default)]
pub(crate) struct Completions {
    /// Empty until the first completion.
    sets: Vec<[u64; WAYS]>,
}

impl Completions {
    /// Records a completion. True if it is the first known one of this user on this torrent.
    pub(crate) fn is_first(&mut self, user_on_torrent: u64) -> bool {
        if self.sets.is_empty() {
            self.sets.resize(SETS, [0; WAYS]);
        }
        let tag = user_on_torrent.max(1);
        let set = &mut self.sets[user_on_torrent as usize % SETS];
        if set.contains(&tag) {
            return false;
        }
        set.rotate_right(1);
        set[0] = tag;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_counts_once_until_evicted() {
        let mut completions = Completions::default();
        assert!(completions.is_first(7) && !completions.is_first(7));
        let others = (1..=WAYS as u64).map(|n| 7 + n * SETS as u64);
        assert!(others.clone().all(|other| completions.is_first(other)));
        assert!(others.clone().all(|other| !completions.is_first(other)));
        assert!(completions.is_first(7), "evicted");
    }
}

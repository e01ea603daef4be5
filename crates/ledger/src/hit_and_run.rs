//! Hit and run: who downloaded a torrent and left before being active on it for long enough (M8).
//!
//! Nothing is stored: the hit_and_run_status follows from the account and the site's policy, so that a changed policy holds at once,
//! and coming back clears it. The Redis layout goes by the same rule (`t:u:<user>:hnr`).

use domain::{Seconds, UnixTime};

use crate::figures::Account;

/// What a site asks of those who download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HitAndRunPolicy {
    /// How long they have to be active, leeching or seeding, in all. Zero means that nothing is owed.
    pub active_min: Seconds,
}

impl Default for HitAndRunPolicy {
    fn default() -> Self {
        HitAndRunPolicy { active_min: Seconds(14 * 24 * 60 * 60) }
    }
}

/// Where a user stands with a torrent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HitAndRunStatus {
    /// Nothing is owed.
    Clear,
    /// Still there, and has to go on.
    Owing {
        /// How much longer.
        seeding_s_left: u64,
    },
    /// Gone without having been active for long enough.
    HitAndRun {
        /// Since when they are gone.
        since: UnixTime,
    },
}

/// Where a user stands with a torrent, by the account they have on it now.
pub fn hit_and_run_status(account: &Account, policy: &HitAndRunPolicy) -> HitAndRunStatus {
    let figures = &account.figures;
    // The flag is missing in accounts from before it was kept.
    let took_it = account.has_leeched || account.is_completed() || figures.downloaded > 0;
    let active_s = figures.seeding_s.saturating_add(figures.leeching_s);
    let seeding_s_left = u64::from(policy.active_min.0).saturating_sub(active_s);
    if !took_it || seeding_s_left == 0 {
        return HitAndRunStatus::Clear;
    }
    match account.is_seeding() || account.is_leeching() {
        true => HitAndRunStatus::Owing { seeding_s_left },
        false if account.was_removed => HitAndRunStatus::Clear,
        false => HitAndRunStatus::HitAndRun { since: figures.last_seen.unwrap_or_default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;

    const POLICY: HitAndRunPolicy = HitAndRunPolicy { active_min: Seconds(1000) };

    fn gone() -> Account {
        let figures = Figures { last_seen: Some(UnixTime(5000)), leeching_s: 400, ..Figures::default() };
        Account { figures, has_leeched: true, ..Account::default() }
    }

    fn judged(account: Account) -> HitAndRunStatus {
        hit_and_run_status(&account, &POLICY)
    }

    #[test]
    fn m8_who_leeched_and_left_too_early_has_hit_and_run() {
        assert_eq!(judged(gone()), HitAndRunStatus::HitAndRun { since: UnixTime(5000) });
        let there = Account { seeding_clients: 1, ..gone() };
        assert_eq!(judged(there), HitAndRunStatus::Owing { seeding_s_left: 600 });
        let long_enough = Figures { seeding_s: 600, ..gone().figures };
        assert_eq!(
            judged(Account { figures: long_enough, ..gone() }),
            HitAndRunStatus::Clear,
            "all time counts"
        );
        assert_eq!(judged(Account { has_leeched: false, ..gone() }), HitAndRunStatus::Clear, "never leeched");
        assert_eq!(
            judged(Account { was_removed: true, ..gone() }),
            HitAndRunStatus::Clear,
            "turned out by the site"
        );
        let off = HitAndRunPolicy { active_min: Seconds(0) };
        assert_eq!(hit_and_run_status(&gone(), &off), HitAndRunStatus::Clear);
    }

    #[test]
    fn a4_who_was_silent_for_too_long_is_gone_without_an_entry_that_says_so() {
        let silent = Account { seeding_clients: 1, present_until: Some(UnixTime(7000)), ..gone() };
        assert_eq!(judged(silent.clone().at(UnixTime(6999))), HitAndRunStatus::Owing { seeding_s_left: 600 });
        assert_eq!(judged(silent.at(UnixTime(7000))), HitAndRunStatus::HitAndRun { since: UnixTime(5000) });
    }
}

//! Hit and run: users who downloaded a torrent and left before being active on it for long enough (M8).
//!
//! Nothing is stored: the status follows from the account and the site's policy, so that a changed policy takes effect
//! at once, and returning clears it. The Redis mirror uses the same rule (`t:u:<user>:hnr`).

use domain::{Seconds, UnixTime};

use crate::figures::Account;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HitAndRunPolicy {
    /// Required active time, leeching or seeding. Zero disables the rule.
    pub active_min: Seconds,
}

impl Default for HitAndRunPolicy {
    fn default() -> Self {
        HitAndRunPolicy { active_min: Seconds(14 * 24 * 60 * 60) }
    }
}

/// Status of a user on a torrent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HitAndRunStatus {
    Clear,
    /// Present, but has to stay longer.
    Owing {
        /// Remaining active time.
        seeding_s_left: u64,
    },
    /// Left before the required time.
    HitAndRun {
        /// When the user left.
        since: UnixTime,
    },
}

/// The status by the current account.
pub fn hit_and_run_status(account: &Account, policy: &HitAndRunPolicy) -> HitAndRunStatus {
    let figures = &account.figures;
    // Accounts of older versions have no flag.
    let has_leeched = account.has_leeched || account.is_completed() || figures.downloaded > 0;
    let active_s = figures.seeding_s.saturating_add(figures.leeching_s);
    let seeding_s_left = u64::from(policy.active_min.0).saturating_sub(active_s);
    if !has_leeched || seeding_s_left == 0 {
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

    fn left_early() -> Account {
        let figures = Figures { last_seen: Some(UnixTime(5000)), leeching_s: 400, ..Figures::default() };
        Account { figures, has_leeched: true, ..Account::default() }
    }

    fn status_of(account: Account) -> HitAndRunStatus {
        hit_and_run_status(&account, &POLICY)
    }

    #[test]
    fn m8_leaving_before_the_required_time_is_a_hit_and_run() {
        assert_eq!(status_of(left_early()), HitAndRunStatus::HitAndRun { since: UnixTime(5000) });
        let there = Account { seeding_clients: 1, ..left_early() };
        assert_eq!(status_of(there), HitAndRunStatus::Owing { seeding_s_left: 600 });
        let long_enough = Figures { seeding_s: 600, ..left_early().figures };
        assert_eq!(
            status_of(Account { figures: long_enough, ..left_early() }),
            HitAndRunStatus::Clear,
            "all time counts"
        );
        assert_eq!(
            status_of(Account { has_leeched: false, ..left_early() }),
            HitAndRunStatus::Clear,
            "never leeched"
        );
        assert_eq!(
            status_of(Account { was_removed: true, ..left_early() }),
            HitAndRunStatus::Clear,
            "removed by the site"
        );
        let off = HitAndRunPolicy { active_min: Seconds(0) };
        assert_eq!(hit_and_run_status(&left_early(), &off), HitAndRunStatus::Clear);
    }

    #[test]
    fn a4_an_expired_client_counts_as_left_without_an_entry() {
        let silent = Account { seeding_clients: 1, present_until: Some(UnixTime(7000)), ..left_early() };
        assert_eq!(
            status_of(silent.clone().at(UnixTime(6999))),
            HitAndRunStatus::Owing { seeding_s_left: 600 }
        );
        assert_eq!(
            status_of(silent.at(UnixTime(7000))),
            HitAndRunStatus::HitAndRun { since: UnixTime(5000) }
        );
    }
}

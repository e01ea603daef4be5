//! Hit and run: who took a torrent and did not seed it long enough.
//!
//! Nothing is stored: the standing follows from the account, the site's policy and the time, so that a changed policy
//! holds at once, and seeding on clears it.

use domain::{Seconds, UnixTime};

use crate::figures::Account;

/// What a site asks of those who download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HitAndRunPolicy {
    /// How long they have to seed, in all.
    pub seeding_min: Seconds,
    /// Who has downloaded less, and completed nothing, owes nothing.
    pub downloaded_min: u64,
    /// Who has uploaded this much of what they downloaded owes nothing; zero means that it does not help.
    pub exempt_ratio_percent: u32,
    /// Who was heard of within this time is not gone. Not less than the announce interval and its grace.
    pub absence_grace: Seconds,
}

impl Default for HitAndRunPolicy {
    fn default() -> Self {
        HitAndRunPolicy {
            seeding_min: Seconds(14 * 24 * 60 * 60),
            downloaded_min: 100 * 1024 * 1024,
            exempt_ratio_percent: 0,
            absence_grace: Seconds(24 * 60 * 60),
        }
    }
}

/// Where a user stands with a torrent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing is owed.
    Clear,
    /// Still there, or not away for long, and has to go on.
    Owing {
        /// How much longer.
        seeding_s_left: u64,
    },
    /// Gone without having seeded enough.
    HitAndRun {
        /// Since when they are gone.
        since: UnixTime,
    },
}

/// Where a user stands with a torrent, by the account they have on it.
pub fn standing(account: &Account, policy: &HitAndRunPolicy, now: UnixTime) -> Standing {
    let figures = &account.figures;
    let took_it = account.is_completed() || figures.downloaded >= u128::from(policy.downloaded_min.max(1));
    let seeding_s_left = u64::from(policy.seeding_min.0).saturating_sub(figures.seeding_s);
    if !took_it || seeding_s_left == 0 || is_exempt(account, policy) {
        return Standing::Clear;
    }
    let last_seen = figures.last_seen.unwrap_or_default();
    // A client that vanished under a producer that reports no timeouts still counts as seeding: only having been heard
    // of shows that somebody is there.
    if now.since(last_seen) <= policy.absence_grace {
        return Standing::Owing { seeding_s_left };
    }
    Standing::HitAndRun { since: last_seen }
}

/// By the raw figures: a torrent that costs nothing to download still wants seeders.
fn is_exempt(account: &Account, policy: &HitAndRunPolicy) -> bool {
    let figures = &account.figures;
    let asked = figures.downloaded.saturating_mul(u128::from(policy.exempt_ratio_percent));
    policy.exempt_ratio_percent > 0 && figures.uploaded.saturating_mul(100) >= asked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;

    const POLICY: HitAndRunPolicy = HitAndRunPolicy {
        seeding_min: Seconds(1000),
        downloaded_min: 500,
        exempt_ratio_percent: 150,
        absence_grace: Seconds(100),
    };
    const NOW: UnixTime = UnixTime(10_000);

    struct Case {
        what: &'static str,
        uploaded: u128,
        downloaded: u128,
        seeding_s: u64,
        completed: bool,
        seeding_clients: u64,
        last_seen: u32,
        expected: Standing,
    }

    const TAKEN_AND_GONE: Case = Case {
        what: "completed, never seeded, long gone",
        uploaded: 0,
        downloaded: 500,
        seeding_s: 0,
        completed: true,
        seeding_clients: 0,
        last_seen: 5000,
        expected: Standing::HitAndRun { since: UnixTime(5000) },
    };

    #[test]
    fn the_standing_follows_from_account_policy_and_time() {
        let cases = [
            TAKEN_AND_GONE,
            Case {
                what: "took a little and left",
                completed: false,
                downloaded: 499,
                expected: Standing::Clear,
                ..TAKEN_AND_GONE
            },
            Case { what: "took enough without completing", completed: false, ..TAKEN_AND_GONE },
            Case { what: "completed by very little", downloaded: 1, ..TAKEN_AND_GONE },
            Case {
                what: "seeded exactly enough",
                seeding_s: 1000,
                expected: Standing::Clear,
                ..TAKEN_AND_GONE
            },
            Case { what: "seeded one second too little", seeding_s: 999, ..TAKEN_AND_GONE },
            Case { what: "uploaded enough", uploaded: 750, expected: Standing::Clear, ..TAKEN_AND_GONE },
            Case { what: "uploaded nearly enough", uploaded: 749, ..TAKEN_AND_GONE },
            Case {
                what: "seeding",
                seeding_s: 400,
                last_seen: 9990,
                expected: Standing::Owing { seeding_s_left: 600 },
                ..TAKEN_AND_GONE
            },
            Case { what: "vanished without a word while seeding", seeding_clients: 1, ..TAKEN_AND_GONE },
            Case {
                what: "away for as long as is granted",
                last_seen: 9900,
                expected: Standing::Owing { seeding_s_left: 1000 },
                ..TAKEN_AND_GONE
            },
            Case {
                what: "away for a second longer",
                last_seen: 9899,
                expected: Standing::HitAndRun { since: UnixTime(9899) },
                ..TAKEN_AND_GONE
            },
        ];
        for case in cases {
            let figures = Figures {
                uploaded: case.uploaded,
                downloaded: case.downloaded,
                seeding_s: case.seeding_s,
                last_seen: Some(UnixTime(case.last_seen)),
                ..Figures::default()
            };
            let completed_at = case.completed.then_some(UnixTime(1));
            let account = Account {
                figures,
                completed_at,
                seeding_clients: case.seeding_clients,
                ..Account::default()
            };
            assert_eq!(standing(&account, &POLICY, NOW), case.expected, "{}", case.what);
        }
    }

    #[test]
    fn a_ratio_of_zero_exempts_nobody() {
        let policy = HitAndRunPolicy { exempt_ratio_percent: 0, ..POLICY };
        let figures = Figures {
            uploaded: u128::MAX,
            downloaded: 500,
            last_seen: Some(UnixTime(1)),
            ..Figures::default()
        };
        let account = Account { figures, ..Account::default() };
        assert_eq!(standing(&account, &policy, NOW), Standing::HitAndRun { since: UnixTime(1) });
    }
}

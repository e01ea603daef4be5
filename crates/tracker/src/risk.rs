//! Not every implausible announce is worth a report: a broken client sends one every few minutes, for ever.

use std::collections::HashMap;

use domain::{Seconds, UnixTime, UserId};
use parking_lot::Mutex;

/// A user is reported at most this often.
const REPORT_EVERY: Seconds = Seconds(60);

/// Users remembered at once; with more, those reported longest ago are forgotten first.
const USERS_MAX: usize = 10_000;

/// Remembers who was reported, and how often not.
#[derive(Debug, Default)]
pub(crate) struct RiskThrottle(Mutex<HashMap<UserId, Reported>>);

#[derive(Clone, Copy, Debug)]
struct Reported {
    at: UnixTime,
    unreported: u32,
}

impl RiskThrottle {
    /// Whether this one is to be reported: then how many went unreported before it.
    pub(crate) fn admit(&self, user: UserId, now: UnixTime) -> Option<u32> {
        let mut reported = self.0.lock();
        if let Some(known) = reported.get_mut(&user) {
            if now.since(known.at) < REPORT_EVERY {
                known.unreported = known.unreported.saturating_add(1);
                return None;
            }
            let unreported = known.unreported;
            *known = Reported { at: now, unreported: 0 };
            return Some(unreported);
        }
        if reported.len() >= USERS_MAX {
            reported.retain(|_, known| now.since(known.at) < REPORT_EVERY);
        }
        if reported.len() < USERS_MAX {
            reported.insert(user, Reported { at: now, unreported: 0 });
        }
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j8_a_user_is_reported_once_a_minute_with_what_went_unreported() {
        let throttle = RiskThrottle::default();
        let user = UserId::new(7).unwrap();
        assert_eq!(throttle.admit(user, UnixTime(1000)), Some(0));
        assert_eq!(throttle.admit(user, UnixTime(1010)), None);
        assert_eq!(throttle.admit(user, UnixTime(1059)), None);
        assert_eq!(throttle.admit(UserId::new(8).unwrap(), UnixTime(1059)), Some(0));
        assert_eq!(throttle.admit(user, UnixTime(1060)), Some(2));
        assert_eq!(throttle.admit(user, UnixTime(1120)), Some(0));
    }

    #[test]
    fn the_memory_of_users_is_bounded() {
        let throttle = RiskThrottle::default();
        for number in 1..=2 * USERS_MAX as u64 {
            throttle.admit(UserId::new(number).unwrap(), UnixTime(1000));
        }
        assert!(throttle.0.lock().len() <= USERS_MAX);
        throttle.admit(UserId::new(u64::MAX >> 1).unwrap(), UnixTime(2000));
        assert_eq!(throttle.0.lock().len(), 1);
    }
}

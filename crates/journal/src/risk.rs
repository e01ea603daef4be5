//! Risk events: which are reported, and their fields.
//!
//! Not every implausible announce is reported: a broken client sends one every few minutes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::{RiskEvent, RiskKind, Seconds, UnixTime, UserId};
use parking_lot::Mutex;

use crate::fields::Fields;

pub fn fields_of(risk: &RiskEvent) -> Fields {
    let mut fields = Fields::with_entry_capacity();
    fields.push("kind", risk.kind.name());
    fields.push_text("ts", risk.at);
    fields.push_text("user", risk.user);
    if let Some(torrent) = risk.torrent {
        fields.push_text("torrent", torrent);
    }
    fields.push_text("infohash", risk.info_hash);
    fields.push_text("peer_id", risk.peer_id);
    fields.push_text("ip", risk.ip);
    fields.push_text("dt", risk.elapsed.0);
    fields.push_text("du_claimed", risk.uploaded_claimed);
    fields.push_text("dd_claimed", risk.downloaded_claimed);
    fields.push_text("du_credited", risk.uploaded_credited);
    fields.push_text("dd_credited", risk.downloaded_credited);
    fields.push_text("ceiling_bytes_per_s", risk.ceiling.bytes_per_s);
    fields.push_text("count", risk.count);
    fields.push_text("unreported", risk.unreported);
    fields
}

/// The kind of a stored risk event. Older versions had one kind only and did not write it.
pub fn kind_of(fields: &Fields) -> &[u8] {
    fields.get("kind").unwrap_or(RiskKind::ClientRate.name().as_bytes())
}

/// Minimum interval between reports of one user and kind.
const REPORT_EVERY: Seconds = Seconds(60);

/// Users, each with a kind of risk, tracked at once; beyond that, those reported longest ago are dropped first.
pub const USERS_MAX: usize = 10_000;

/// Limits the reports per user and kind.
#[derive(Debug, Default)]
pub struct RiskThrottle {
    reported: Mutex<HashMap<(UserId, RiskKind), Reported>>,
    unreported: AtomicU64,
    untracked: AtomicU64,
}

#[derive(Clone, Copy, Debug)]
struct Reported {
    at: UnixTime,
    unreported: u32,
}

impl RiskThrottle {
    /// Whether to report this event: then the number of unreported ones before it.
    pub fn admit(&self, user: UserId, kind: RiskKind, now: UnixTime) -> Option<u32> {
        let mut reported = self.reported.lock();
        if let Some(known) = reported.get_mut(&(user, kind)) {
            if now.since(known.at) < REPORT_EVERY {
                known.unreported = known.unreported.saturating_add(1);
                self.unreported.fetch_add(1, Ordering::Relaxed);
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
            reported.insert((user, kind), Reported { at: now, unreported: 0 });
        } else {
            self.untracked.fetch_add(1, Ordering::Relaxed);
        }
        Some(0)
    }

    /// At most [`USERS_MAX`].
    pub fn tracked(&self) -> usize {
        self.reported.lock().len()
    }

    /// Events not reported because of `REPORT_EVERY`.
    pub fn unreported(&self) -> u64 {
        self.unreported.load(Ordering::Relaxed)
    }

    /// Events reported for users that did not fit into the table, and may be reported again at once.
    pub fn untracked(&self) -> u64 {
        self.untracked.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j8_a_user_is_reported_once_a_minute_with_what_went_unreported() {
        let throttle = RiskThrottle::default();
        let user = UserId::new(7).unwrap();
        assert_eq!(throttle.admit(user, RiskKind::ClientRate, UnixTime(1000)), Some(0));
        assert_eq!(throttle.admit(user, RiskKind::ClientRate, UnixTime(1010)), None);
        assert_eq!(throttle.admit(user, RiskKind::ClientRate, UnixTime(1059)), None);
        assert_eq!(throttle.admit(user, RiskKind::UserRate, UnixTime(1059)), Some(0));
        assert_eq!(throttle.admit(user, RiskKind::ClientRate, UnixTime(1060)), Some(2));
        assert_eq!(throttle.admit(user, RiskKind::ClientRate, UnixTime(1120)), Some(0));
        assert_eq!(throttle.unreported(), 2);
    }

    #[test]
    fn the_number_of_tracked_users_is_bounded() {
        let throttle = RiskThrottle::default();
        for number in 1..=2 * USERS_MAX as u64 {
            throttle.admit(UserId::new(number).unwrap(), RiskKind::ClientRate, UnixTime(1000));
        }
        assert!(throttle.tracked() <= USERS_MAX);
        assert_eq!(throttle.untracked(), USERS_MAX as u64);
        throttle.admit(UserId::new(u64::MAX >> 1).unwrap(), RiskKind::ClientRate, UnixTime(2000));
        assert_eq!(throttle.tracked(), 1);
    }
}

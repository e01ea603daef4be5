//! Token buckets: how many bytes can have been moved until a given time (J8).
//!
//! A bucket refills with time at its rate, up to its capacity. A claim for a span of time is granted from the tokens
//! available before the span plus those that accumulate during it. So announcing often grants no more than announcing
//! once. A span that is granted at once, such as a whole session, may use all tokens of the span; only what is left
//! afterwards is capped.

use domain::{RateCeiling, Seconds, UnixTime};

use crate::run::Counters;

/// Announces have a resolution of one second, and clients report counters late. Granted once, not with each announce.
const CLIENT_CAPACITY: Seconds = Seconds(10);
/// The clients of a user report at different times, each for a whole interval, and after an outage of the tracker each
/// for all of it: the capacity must cover that.
const USER_CAPACITY: Seconds = Seconds(24 * 60 * 60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketLimit {
    rate: RateCeiling,
    capacity: Seconds,
}

impl BucketLimit {
    /// For one client on one torrent.
    pub fn of_client(rate: RateCeiling) -> BucketLimit {
        BucketLimit { rate, capacity: CLIENT_CAPACITY }
    }

    /// For all clients of one user.
    pub fn of_user(rate: RateCeiling) -> BucketLimit {
        BucketLimit { rate, capacity: USER_CAPACITY }
    }

    fn bytes(&self, span: Seconds) -> u128 {
        u128::from(self.rate.bytes_per_s) * u128::from(span.0)
    }
}

/// The bucket of all clients of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserBucket {
    pub tokens: Bucket,
    /// The earliest time for which it was refilled.
    pub since: UnixTime,
}

/// Full while nothing is spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// Time of the last refill; zero if never used.
    pub at: UnixTime,
    /// Bytes granted that are not refilled yet.
    pub spent_up: u128,
    pub spent_down: u128,
}

impl Bucket {
    pub fn full_at(at: UnixTime) -> Bucket {
        Bucket { at, ..Bucket::default() }
    }

    /// The first bucket of a user, with no more tokens than a client's, so that a new user cannot claim a day at once.
    pub fn of_new_user(at: UnixTime, limit: &BucketLimit) -> Bucket {
        let spent = limit.bytes(Seconds(limit.capacity.0.saturating_sub(CLIENT_CAPACITY.0)));
        Bucket { at, spent_up: spent, spent_down: spent }
    }

    pub fn is_unused(&self) -> bool {
        self.at == UnixTime(0)
    }

    /// Grants as much as possible of bytes that were moved until a given time.
    pub fn grant(&mut self, until: UnixTime, wanted: Counters, limit: &BucketLimit) -> Counters {
        let refill = limit.bytes(until.since(self.at));
        let capacity = limit.bytes(limit.capacity);
        self.at = self.at.max(until);
        Counters {
            uploaded: grant_one(&mut self.spent_up, wanted.uploaded, refill, capacity),
            downloaded: grant_one(&mut self.spent_down, wanted.downloaded, refill, capacity),
        }
    }

    /// Grants as much as possible of bytes moved in a span before the last refill: for late entries.
    pub fn grant_late(&mut self, span: Seconds, wanted: Counters, limit: &BucketLimit) -> Counters {
        let until = self.at;
        self.at = until - span;
        let granted = self.grant(until, wanted, limit);
        self.at = until;
        granted
    }
}

fn grant_one(spent: &mut u128, wanted: u64, refill: u128, capacity: u128) -> u64 {
    // More may have been spent under a higher limit.
    *spent = (*spent).min(capacity);
    let room = (capacity + refill).saturating_sub(*spent);
    let granted = u128::from(wanted).min(room);
    *spent = (*spent + granted).saturating_sub(refill);
    u64::try_from(granted).unwrap_or(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: RateCeiling = RateCeiling { bytes_per_s: 100 };

    fn up(uploaded: u64) -> Counters {
        Counters { uploaded, downloaded: 0 }
    }

    #[test]
    fn j8_slack_is_granted_once() {
        let limit = BucketLimit::of_client(RATE);
        let mut bucket = Bucket::full_at(UnixTime(1000));
        let granted: u64 = (0..500).map(|_| bucket.grant(UnixTime(1000), up(999), &limit).uploaded).sum();
        assert_eq!(granted, 1000);
        assert_eq!(bucket.grant(UnixTime(1003), up(999), &limit).uploaded, 300);
        assert_eq!(
            bucket.grant(UnixTime(1002), up(999), &limit).uploaded,
            0,
            "no refill for an earlier time"
        );
    }

    #[test]
    fn j8_tokens_accumulate_up_to_the_capacity() {
        let limit = BucketLimit::of_client(RATE);
        let mut bucket = Bucket::full_at(UnixTime(1000));
        bucket.grant(UnixTime(9000), up(0), &limit);
        assert_eq!(bucket.grant(UnixTime(9000), up(5000), &limit).uploaded, 1000);
        // A claim is measured against its own span, however long it is.
        assert_eq!(bucket.grant(UnixTime(9100), up(20_000), &limit).uploaded, 10_000);
    }

    #[test]
    fn j8_a_new_user_starts_with_the_slack_and_earns_the_rest() {
        let limit = BucketLimit::of_user(RATE);
        let mut bucket = Bucket::of_new_user(UnixTime(1000), &limit);
        assert_eq!(bucket.grant(UnixTime(1000), up(5000), &limit).uploaded, 1000);
        assert_eq!(bucket.grant(UnixTime(101_000), up(0), &limit).uploaded, 0);
        assert_eq!(bucket.grant(UnixTime(101_000), up(u64::MAX), &limit).uploaded, 8_640_000, "a day");
        assert_eq!(bucket.grant_late(Seconds(60), up(u64::MAX), &limit).uploaded, 6000);
        let lower = BucketLimit::of_user(RateCeiling { bytes_per_s: 10 });
        assert_eq!(
            bucket.grant(UnixTime(101_060), up(u64::MAX), &lower).uploaded,
            600,
            "under a lower limit"
        );
    }

    #[test]
    fn no_rate_and_no_claim_overflows() {
        let limit = BucketLimit::of_user(RateCeiling { bytes_per_s: u64::MAX });
        let mut bucket = Bucket::full_at(UnixTime(1));
        let all = Counters { uploaded: u64::MAX, downloaded: u64::MAX };
        assert!((0..1000).all(|_| bucket.grant(UnixTime(u32::MAX), all, &limit) == all));
    }
}

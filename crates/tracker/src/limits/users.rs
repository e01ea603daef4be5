//! Rate limit of announces per user.

use std::time::Duration;

use domain::{RateLimit, RateLimiter, UnixTime, UserId};

use super::BUSY_KEYS;

#[derive(Debug)]
pub struct UserLimiter {
    limiter: RateLimiter,
    secret: [u64; 2],
}

impl UserLimiter {
    /// The secret keeps users from targeting another's cell.
    pub fn new(secret: [u64; 2]) -> Self {
        UserLimiter { limiter: RateLimiter::new(BUSY_KEYS), secret: [secret[0], secret[1] | 1] }
    }

    /// In users.
    pub fn capacity(&self) -> usize {
        self.limiter.capacity()
    }

    /// Busy users displaced by others; they get their burst once more.
    pub fn displaced(&self) -> u64 {
        self.limiter.displaced()
    }

    /// False if the user has used up the `burst` and more than `per_s` a second since. Zero for either means no
    /// limit.
    pub fn allows(&self, user: UserId, now: UnixTime, per_s: u32, burst: u32) -> bool {
        let now = Duration::from_secs(now.0.into());
        self.limiter.take(self.hash_of(user), RateLimit::per_s(per_s, burst), now).is_ok()
    }

    /// Users do not choose their ids, so multiplication with a secret mixes well enough.
    fn hash_of(&self, user: UserId) -> u64 {
        let product = u128::from(user.get() ^ self.secret[0]) * u128::from(self.secret[1]);
        (product >> 64) as u64 ^ product as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixTime = UnixTime(1_700_000_000);

    #[test]
    fn each_user_has_a_burst_and_a_rate() {
        let limiter = UserLimiter::new([1, 0x9e37_79b9_7f4a_7c15]);
        let [one, other] = [1, 2].map(|number| UserId::new(number).unwrap());
        let allowed = |user, at| (0..1000).filter(|_| limiter.allows(user, at, 5, 100)).count();
        assert_eq!((allowed(one, NOW), allowed(one, NOW), allowed(other, NOW)), (100, 0, 100));
        assert_eq!(allowed(one, UnixTime(NOW.0 + 3)), 15);
        assert!((0..1000).all(|_| limiter.allows(one, NOW, 0, 100) && limiter.allows(one, NOW, 5, 0)));
    }

    #[test]
    fn users_are_spread_over_the_table() {
        let limiter = UserLimiter::new([0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]);
        let users = limiter.capacity() as u64 / 4;
        assert!((1..=users).all(|number| limiter.allows(UserId::new(number).unwrap(), NOW, 1, 10)));
        assert!(limiter.displaced() < users / 20, "{} of {users}", limiter.displaced());
    }
}

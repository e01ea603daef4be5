//! Rate limit of requests per address.

use std::net::IpAddr;
use std::time::Duration;

use domain::{RateLimit, RateLimiter, UnixTime};

use super::{AddressHasher, BUSY_KEYS};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The address is verified: TCP, or a valid connection id.
    Verified,
    /// The address may be forged, so it is counted apart from the owner's requests.
    Unverified,
}

#[derive(Debug)]
pub struct FloodLimiter {
    limiter: RateLimiter,
    hasher: AddressHasher,
}

impl FloodLimiter {
    /// The secret keeps clients from targeting another's cell.
    pub fn new(secret: [u64; 2]) -> Self {
        FloodLimiter { limiter: RateLimiter::new(BUSY_KEYS), hasher: AddressHasher::new(secret) }
    }

    /// In addresses.
    pub fn capacity(&self) -> usize {
        self.limiter.capacity()
    }

    /// Busy addresses displaced by others; they get their burst once more.
    pub fn displaced(&self) -> u64 {
        self.limiter.displaced()
    }

    /// False if the address has used up its `burst` and more than `per_s` a second since. Zero for either means no
    /// limit.
    pub fn allows(&self, ip: IpAddr, sender: Sender, now: UnixTime, per_s: u32, burst: u32) -> bool {
        let hash = self.hasher.hash(ip, sender as u8);
        let now = Duration::from_secs(now.0.into());
        self.limiter.take(hash, RateLimit::per_s(per_s, burst), now).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const NOW: UnixTime = UnixTime(1_700_000_000);

    fn allowed(limiter: &FloodLimiter, ip: IpAddr, now: UnixTime, requests: u32) -> u32 {
        (0..requests).filter(|_| limiter.allows(ip, Sender::Verified, now, 10, 20)).count() as u32
    }

    #[test]
    fn a_flood_is_cut_off_and_recovers_at_the_rate() {
        let limiter = FloodLimiter::new([1, 2]);
        let ip = IpAddr::from([127, 0, 0, 1]);
        assert_eq!(allowed(&limiter, ip, NOW, 1000), 20);
        assert_eq!(allowed(&limiter, ip, UnixTime(NOW.0 + 1), 1000), 10);
        assert_eq!(allowed(&limiter, ip, UnixTime(NOW.0 + 60), 1000), 20);
    }

    #[test]
    fn a_flood_from_one_address_does_not_hurt_others() {
        let limiter = FloodLimiter::new([1, 2]);
        assert_eq!(allowed(&limiter, IpAddr::from([10, 9, 9, 9]), NOW, 100_000), 20);
        let hurt = (0..20_000_u32)
            .filter(|n| {
                !limiter.allows(Ipv4Addr::from(0x0b00_0000 + n).into(), Sender::Verified, NOW, 10, 20)
            })
            .count();
        assert_eq!(hurt, 0);
        assert_eq!(allowed(&limiter, IpAddr::from([10, 9, 9, 9]), NOW, 100), 0, "the flood is remembered");
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let limiter = FloodLimiter::new([1, 2]);
        let ip = |last: u16| IpAddr::from([0x2001, 0xdb8, 0, 7, 0, 0, 0, last]);
        assert_eq!((0..100).filter(|n| limiter.allows(ip(*n), Sender::Verified, NOW, 10, 20)).count(), 20);
    }

    #[test]
    fn forged_packets_do_not_lock_out_the_owner_of_the_address() {
        let limiter = FloodLimiter::new([1, 2]);
        let victim = IpAddr::from([10, 9, 9, 9]);
        let forged = (0..1000).filter(|_| limiter.allows(victim, Sender::Unverified, NOW, 10, 20)).count();
        assert_eq!((forged, allowed(&limiter, victim, NOW, 20)), (20, 20));
    }

    #[test]
    fn a_clock_that_steps_back_empties_no_bucket() {
        let limiter = FloodLimiter::new([1, 2]);
        let ip = IpAddr::from([10, 9, 9, 9]);
        assert_eq!(allowed(&limiter, ip, NOW, 1000), 20);
        assert_eq!(allowed(&limiter, ip, UnixTime(NOW.0 - 1), 1000), 0);
        assert_eq!(allowed(&limiter, ip, NOW, 1000), 0, "and nothing leaks twice afterwards");
    }

    #[test]
    fn zero_means_no_limit() {
        let limiter = FloodLimiter::new([1, 2]);
        assert!((0..10_000).all(|_| limiter.allows(IpAddr::from([1, 1, 1, 1]), Sender::Verified, NOW, 0, 5)));
        assert!((0..10_000).all(|_| limiter.allows(IpAddr::from([1, 1, 1, 1]), Sender::Verified, NOW, 5, 0)));
    }

    #[test]
    fn displaced_busy_addresses_are_counted() {
        let limiter = FloodLimiter::new([1, 2]);
        let ask =
            |number: u32, at| limiter.allows(Ipv4Addr::from(number).into(), Sender::Verified, at, 10, 20);
        let room = limiter.capacity() as u32;
        assert!((0..2 * room).all(|number| ask(number, NOW)));
        let displaced = limiter.displaced();
        assert!(displaced >= u64::from(room) / 2, "twice as many as there is room for: {displaced}");
        assert!((0..10).all(|number| ask(0x0b00_0000 + number, UnixTime(NOW.0 + 60))));
        assert_eq!(limiter.displaced(), displaced, "an empty bucket is not counted as displaced");
    }
}

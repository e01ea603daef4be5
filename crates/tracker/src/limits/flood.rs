//! Requests from one address: a leaky bucket for each, in a table of fixed size, without locks.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::UnixTime;

use super::{AddressHasher, WAYS};
use crate::counters::Counter;

/// Groups of cells: room for 65,536 busy addresses in half a mebibyte.
const GROUPS: usize = 16_384;

/// One address's bucket: who (16 bits of the hash), when (16 bits of the second), how full (32 bits).
#[derive(Clone, Copy)]
struct Bucket {
    who: u16,
    second: u16,
    level: u32,
}

impl Bucket {
    fn from_cell(cell: u64) -> Self {
        Bucket { who: (cell >> 48) as u16, second: (cell >> 32) as u16, level: cell as u32 }
    }

    fn to_cell(self) -> u64 {
        u64::from(self.who) << 48 | u64::from(self.second) << 32 | u64::from(self.level)
    }

    /// How long ago it was written. Zero if that lies ahead: another thread was quicker, or the clock stepped back.
    fn age_at(self, second: u16) -> u16 {
        let elapsed = second.wrapping_sub(self.second);
        if elapsed > u16::MAX - STEP_BACK_MAX_S { 0 } else { elapsed }
    }

    /// The level once what leaked since has been taken off.
    fn level_at(self, second: u16, leak_per_s: u32) -> u32 {
        self.level.saturating_sub(u32::from(self.age_at(second)).saturating_mul(leak_per_s))
    }
}

/// Clocks may step back by this much without emptying anybody's bucket.
const STEP_BACK_MAX_S: u16 = 600;

/// Whether the sender is known to be where it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// It answered from there: over TCP, or with a genuine connection id.
    Proven,
    /// Anybody may have written that address on the packet, so the address's owner must not pay for it.
    Claimed,
}

/// Decides whether one more request of an address is too many.
#[derive(Debug)]
pub struct FloodLimiter {
    cells: Box<[[AtomicU64; WAYS]]>,
    hasher: AddressHasher,
    displaced: Counter,
}

impl FloodLimiter {
    /// An empty table; the secret keeps strangers from aiming at another's cell.
    pub fn new(secret: [u64; 2]) -> Self {
        let cells = (0..GROUPS).map(|_| Default::default()).collect();
        FloodLimiter { cells, hasher: AddressHasher::new(secret), displaced: Counter::default() }
    }

    /// How many addresses it has room for.
    pub fn capacity(&self) -> usize {
        GROUPS * WAYS
    }

    /// How often a busy address was forgotten to make room for another: it may then send its burst once more.
    pub fn displaced(&self) -> u64 {
        self.displaced.get()
    }

    /// Counts one request; false if the address has used up its `burst` and more than `per_s` a second since. Zero
    /// for either means no limit.
    pub fn allows(&self, ip: IpAddr, sender: Sender, now: UnixTime, per_s: u32, burst: u32) -> bool {
        if per_s == 0 || burst == 0 {
            return true;
        }
        let hash = self.hasher.hash(ip, sender as u8);
        let group = &self.cells[hash as usize % GROUPS];
        // Zero marks a cell that was never used.
        let who = ((hash >> 48) as u16).max(1);
        let second = now.0 as u16;
        loop {
            let (cell, old) = find_cell(group, who, second, per_s);
            let bucket = Bucket::from_cell(old);
            let level = if bucket.who == who { bucket.level_at(second, per_s) } else { 0 };
            if level >= burst {
                return false;
            }
            let written_at =
                if bucket.who == who && bucket.age_at(second) == 0 { bucket.second } else { second };
            let new = Bucket { who, second: written_at, level: level + 1 }.to_cell();
            if cell.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                let is_others = bucket.who != 0 && bucket.who != who;
                if is_others && bucket.level_at(second, per_s) > 0 {
                    self.displaced.increment();
                }
                return true;
            }
        }
    }
}

/// The address's own cell, else the emptiest one: whoever is pushed out had asked for the least.
fn find_cell(group: &[AtomicU64; WAYS], who: u16, second: u16, leak_per_s: u32) -> (&AtomicU64, u64) {
    let mut emptiest = (&group[0], group[0].load(Ordering::Relaxed));
    let mut emptiest_level = u32::MAX;
    for cell in group {
        let value = cell.load(Ordering::Relaxed);
        let bucket = Bucket::from_cell(value);
        if bucket.who == who {
            return (cell, value);
        }
        let level = if bucket.who == 0 { 0 } else { bucket.level_at(second, leak_per_s) };
        if level < emptiest_level {
            emptiest_level = level;
            emptiest = (cell, value);
        }
    }
    emptiest
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const NOW: UnixTime = UnixTime(1_700_000_000);

    fn allowed(limiter: &FloodLimiter, ip: IpAddr, now: UnixTime, requests: u32) -> u32 {
        (0..requests).filter(|_| limiter.allows(ip, Sender::Proven, now, 10, 20)).count() as u32
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
            .filter(|n| !limiter.allows(Ipv4Addr::from(0x0b00_0000 + n).into(), Sender::Proven, NOW, 10, 20))
            .count();
        assert_eq!(hurt, 0);
        assert_eq!(allowed(&limiter, IpAddr::from([10, 9, 9, 9]), NOW, 100), 0, "the flood is remembered");
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let limiter = FloodLimiter::new([1, 2]);
        let ip = |last: u16| IpAddr::from([0x2001, 0xdb8, 0, 7, 0, 0, 0, last]);
        assert_eq!((0..100).filter(|n| limiter.allows(ip(*n), Sender::Proven, NOW, 10, 20)).count(), 20);
    }

    #[test]
    fn forged_packets_do_not_lock_out_whose_address_they_carry() {
        let limiter = FloodLimiter::new([1, 2]);
        let victim = IpAddr::from([10, 9, 9, 9]);
        let forged = (0..1000).filter(|_| limiter.allows(victim, Sender::Claimed, NOW, 10, 20)).count();
        assert_eq!((forged, allowed(&limiter, victim, NOW, 20)), (20, 20));
    }

    #[test]
    fn a_clock_that_steps_back_empties_no_bucket() {
        let limiter = FloodLimiter::new([1, 2]);
        let ip = IpAddr::from([10, 9, 9, 9]);
        assert_eq!(allowed(&limiter, ip, NOW, 1000), 20);
        assert_eq!(allowed(&limiter, ip, UnixTime(NOW.0 - 1), 1000), 0);
        assert_eq!(allowed(&limiter, ip, NOW, 1000), 0, "and nothing leaks twice when it goes on");
    }

    #[test]
    fn zero_means_no_limit() {
        let limiter = FloodLimiter::new([1, 2]);
        assert!((0..10_000).all(|_| limiter.allows(IpAddr::from([1, 1, 1, 1]), Sender::Proven, NOW, 0, 5)));
        assert!((0..10_000).all(|_| limiter.allows(IpAddr::from([1, 1, 1, 1]), Sender::Proven, NOW, 5, 0)));
    }

    #[test]
    fn busy_addresses_are_counted_when_they_have_to_go() {
        let limiter = FloodLimiter::new([1, 2]);
        let ask = |number: u32, at| limiter.allows(Ipv4Addr::from(number).into(), Sender::Proven, at, 10, 20);
        let room = limiter.capacity() as u32;
        assert!((0..2 * room).all(|number| ask(number, NOW)));
        let displaced = limiter.displaced();
        assert!(displaced >= u64::from(room) / 2, "twice as many as there is room for: {displaced}");
        assert!((0..10).all(|number| ask(0x0b00_0000 + number, UnixTime(NOW.0 + 60))));
        assert_eq!(limiter.displaced(), displaced, "whose bucket has run empty loses nothing");
    }
}

//! Decides which endpoint calls are made, and when. Times are durations since the verifier's start.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::time::Duration;

use domain::{CircuitBreaker, LeakyBucket, Passkey, RateLimit, RateLimiter};

use super::VerificationSettings;
use super::counters::VerificationCounters;

/// One address gets one of this many calls, so that a flood of invented passkeys from one address leaves most calls to
/// other clients.
const ADDRESS_SHARE: u32 = 10;
/// Addresses with calls in the last second. Further ones displace others, which are limited by the common rate.
const BUSY_ADDRESSES: usize = 16_384;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permit {
    /// Make the call now.
    Call,
    /// [`CallScheduler::next`] or [`CallScheduler::take_overdue`] returns it later.
    Queued,
    /// Not made, and counted by reason.
    Refused,
}

#[derive(Debug)]
pub(super) struct CallScheduler {
    breaker: CircuitBreaker,
    /// How long the breaker is open before a probe.
    pause: Duration,
    /// Passkey of the next probe: that of the last failure. None while a probe is under way.
    probe: Option<Passkey>,
    rate_limit: RateLimit,
    calls: LeakyBucket,
    address_limit: RateLimit,
    calls_by_address: RateLimiter,
    hasher: RandomState,
    running: usize,
    running_max: usize,
    queue: VecDeque<(Passkey, Duration)>,
    queued_for_max: Duration,
}

impl CallScheduler {
    pub(super) fn new(settings: &VerificationSettings) -> Self {
        let per_s = settings.calls_per_s.max(1);
        let per_address_per_s = (per_s / ADDRESS_SHARE).max(1);
        CallScheduler {
            breaker: CircuitBreaker::new(settings.failures_max),
            pause: settings.pause,
            probe: None,
            rate_limit: RateLimit::per_s(per_s, per_s),
            calls: LeakyBucket::default(),
            address_limit: RateLimit::per_s(per_address_per_s, per_address_per_s),
            calls_by_address: RateLimiter::new(BUSY_ADDRESSES),
            hasher: RandomState::new(),
            running: 0,
            running_max: settings.calls_at_once_max.max(1),
            queue: VecDeque::new(),
            queued_for_max: settings.call_timeout,
        }
    }

    /// Requests a call, charged to the budget of `from`.
    pub(super) fn request(
        &mut self,
        passkey: Passkey,
        from: IpAddr,
        now: Duration,
        counters: &VerificationCounters,
    ) -> Permit {
        if self.breaker.is_open() {
            counters.calls_breaker_open.increment();
            return Permit::Refused;
        }
        let of_address = self.calls_by_address.take(self.hasher.hash_one(from), self.address_limit, now);
        counters.addresses_displaced.set(self.calls_by_address.displaced() as usize);
        if of_address.is_err() {
            counters.calls_over_address_budget.increment();
            return Permit::Refused;
        }
        if self.calls.take(self.rate_limit, now).is_err() {
            counters.calls_over_rate.increment();
            return Permit::Refused;
        }
        if self.running >= self.running_max {
            self.queue.push_back((passkey, now));
            return Permit::Queued;
        }
        self.running += 1;
        Permit::Call
    }

    /// The passkey for the breaker's probe, if one is due.
    pub(super) fn begin_probe(&mut self, now: Duration) -> Option<Passkey> {
        if self.breaker.probe_at().is_none_or(|at| now < at) {
            return None;
        }
        let passkey = self.probe.take()?;
        self.running += 1;
        Some(passkey)
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.breaker.is_open()
    }

    /// An answer to any call closes the breaker. Returns whether it was open.
    pub(super) fn on_answer(&mut self) -> bool {
        self.breaker.on_success()
    }

    /// Returns whether this failure opened the breaker.
    pub(super) fn on_failure(&mut self, now: Duration, passkey: Passkey, is_probe: bool) -> bool {
        let has_opened = self.breaker.on_failure(now, || self.pause);
        if has_opened || is_probe {
            self.probe = Some(passkey);
        }
        has_opened
    }

    /// Must be called once for each call and probe that was begun.
    pub(super) fn end(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    /// The next queued call that may be made now.
    pub(super) fn next(&mut self) -> Option<Passkey> {
        if self.running >= self.running_max || self.breaker.is_open() {
            return None;
        }
        let (passkey, _) = self.queue.pop_front()?;
        self.running += 1;
        Some(passkey)
    }

    /// Removes a queued call that waited too long, or that the open breaker forbids.
    pub(super) fn take_overdue(&mut self, now: Duration) -> Option<Passkey> {
        let (_, since) = self.queue.front()?;
        let is_overdue = now.saturating_sub(*since) >= self.queued_for_max || self.breaker.is_open();
        if is_overdue { self.queue.pop_front().map(|(passkey, _)| passkey) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use domain::{Seconds, UserId};

    use super::super::OnVerifyFailure;
    use super::*;

    fn passkey() -> Passkey {
        "0123456789abcdef".parse().expect("16 digits")
    }

    fn scheduler() -> CallScheduler {
        CallScheduler::new(&VerificationSettings {
            calls_per_s: 100,
            calls_at_once_max: 1000,
            failures_max: 2,
            pause: Duration::from_secs(10),
            valid_for: Seconds(300),
            invalid_for: Seconds(10),
            entries_max: 100,
            call_timeout: Duration::from_secs(2),
            on_failure: OnVerifyFailure::Refuse,
            feed_every: Duration::from_secs(1),
            external_id_min: UserId::new(1).expect("not zero"),
        })
    }

    #[test]
    fn w4_calls_per_second_are_limited_and_one_address_gets_a_tenth_of_them() {
        let (mut calls, counters) = (scheduler(), VerificationCounters::default());
        let mut made = |from: u8, ms| {
            let (from, now) = (Ipv4Addr::new(10, 0, 0, from).into(), Duration::from_millis(ms));
            (0..50).filter(|_| calls.request(passkey(), from, now, &counters) == Permit::Call).count()
        };
        assert_eq!((made(1, 0), made(1, 0), made(2, 0)), (10, 0, 10));
        assert_eq!((made(1, 100), made(1, 5000)), (1, 10));
        let others: usize = (3..=20).map(|from| made(from, 5000)).sum();
        assert_eq!(others, 90);
        assert!(counters.calls_over_rate.get() > 0 && counters.calls_over_address_budget.get() > 0);
    }

    #[test]
    fn w5_one_probe_at_a_time_with_the_passkey_of_the_last_failure() {
        let mut calls = scheduler();
        let at = Duration::from_secs;
        assert!(!calls.on_failure(at(1), passkey(), false) && calls.on_failure(at(2), passkey(), false));
        assert_eq!(calls.begin_probe(at(11)), None);
        assert_eq!(calls.begin_probe(at(12)), Some(passkey()));
        assert_eq!(calls.begin_probe(at(12)), None);
        assert!(!calls.on_failure(at(13), passkey(), true), "it was open before");
        assert_eq!((calls.begin_probe(at(22)), calls.begin_probe(at(23))), (None, Some(passkey())));
        assert!(calls.on_answer() && !calls.is_suspended());
    }
}

//! Decides which endpoint calls are made, and when. Times are durations since the verifier's start.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use domain::Passkey;

use super::VerificationSettings;
use super::breaker::Breaker;
use super::counters::VerificationCounters;
use super::rate_limit::{AddressBudgets, Budget, CallRateLimit};

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
    pub(super) breaker: Breaker,
    rate_limit: CallRateLimit,
    address_budgets: AddressBudgets,
    running: usize,
    running_max: usize,
    queue: VecDeque<(Passkey, Duration)>,
    queued_for_max: Duration,
}

impl CallScheduler {
    pub(super) fn new(settings: &VerificationSettings) -> Self {
        CallScheduler {
            breaker: Breaker::new(settings.failures_max, settings.pause),
            rate_limit: CallRateLimit::new(settings.calls_per_s, Duration::ZERO),
            address_budgets: AddressBudgets::new(settings.calls_per_s),
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
        if !self.breaker.is_closed() {
            counters.calls_breaker_open.increment();
            return Permit::Refused;
        }
        match self.address_budgets.take(from, now) {
            Budget::Taken => {}
            Budget::Exhausted => {
                counters.calls_over_address_budget.increment();
                return Permit::Refused;
            }
            Budget::Untracked => counters.calls_untracked.increment(),
        }
        if !self.rate_limit.take(now) {
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
        let passkey = self.breaker.begin_probe(now)?;
        self.running += 1;
        Some(passkey)
    }

    /// Must be called once for each call and probe that was begun.
    pub(super) fn end(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    /// The next queued call that may be made now.
    pub(super) fn next(&mut self) -> Option<Passkey> {
        if self.running >= self.running_max || !self.breaker.is_closed() {
            return None;
        }
        let (passkey, _) = self.queue.pop_front()?;
        self.running += 1;
        Some(passkey)
    }

    /// Removes a queued call that waited too long, or that the open breaker forbids.
    pub(super) fn take_overdue(&mut self, now: Duration) -> Option<Passkey> {
        let (_, since) = self.queue.front()?;
        let is_overdue = now.saturating_sub(*since) >= self.queued_for_max || !self.breaker.is_closed();
        if is_overdue { self.queue.pop_front().map(|(passkey, _)| passkey) } else { None }
    }
}

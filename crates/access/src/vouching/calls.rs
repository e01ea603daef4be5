//! Which calls are made to the endpoint, and when: so many a second, so many at once, and none while it fails.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use domain::Passkey;

use super::VouchingSettings;
use super::breaker::Breaker;
use super::pace::Pace;
use super::shares::{AddressShares, Share};

/// What is to be done about a call that somebody wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permit {
    /// Make it.
    Call,
    /// Its turn comes; see [`Calls::next`].
    Wait,
    /// The endpoint is left alone.
    HeldBack,
    /// There were too many in this second.
    OverPace,
    /// The address caused too many in this second.
    OverShare,
}

/// The calls. Time is what has passed since some start.
#[derive(Debug)]
pub(super) struct Calls {
    pub(super) breaker: Breaker,
    pace: Pace,
    shares: AddressShares,
    /// Calls of addresses that were not tracked.
    pub(super) untracked: u64,
    running: usize,
    running_max: usize,
    waiting: VecDeque<(Passkey, Duration)>,
    wait_max: Duration,
}

impl Calls {
    pub(super) fn new(settings: &VouchingSettings) -> Self {
        Calls {
            breaker: Breaker::new(settings.failures_max, settings.pause),
            pace: Pace::new(settings.calls_per_s),
            shares: AddressShares::new(settings.calls_per_s),
            untracked: 0,
            running: 0,
            running_max: settings.calls_at_once_max.max(1),
            waiting: VecDeque::new(),
            wait_max: settings.call_timeout,
        }
    }

    /// Asks for a call, which counts as caused by this address.
    pub(super) fn request(&mut self, passkey: Passkey, from: IpAddr, now: Duration) -> Permit {
        if !self.breaker.lets_call() {
            return Permit::HeldBack;
        }
        match self.shares.take(from, now) {
            Share::Taken => {}
            Share::UsedUp => return Permit::OverShare,
            Share::Untracked => self.untracked += 1,
        }
        if !self.pace.take(now) {
            return Permit::OverPace;
        }
        if self.running >= self.running_max {
            self.waiting.push_back((passkey, now));
            return Permit::Wait;
        }
        self.running += 1;
        Permit::Call
    }

    /// Begins the probe if it is due: whom to ask about.
    pub(super) fn begin_probe(&mut self, now: Duration) -> Option<Passkey> {
        let about = self.breaker.begin_probe(now)?;
        self.running += 1;
        Some(about)
    }

    /// A call has ended.
    pub(super) fn end(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    /// The next call whose turn has come.
    pub(super) fn next(&mut self) -> Option<Passkey> {
        if self.running >= self.running_max || !self.breaker.lets_call() {
            return None;
        }
        let (passkey, _) = self.waiting.pop_front()?;
        self.running += 1;
        Some(passkey)
    }

    /// Takes out a call that waited for too long, or can no longer be made.
    pub(super) fn give_up(&mut self, now: Duration) -> Option<Passkey> {
        let (_, since) = self.waiting.front()?;
        let is_over = now.saturating_sub(*since) >= self.wait_max || !self.breaker.lets_call();
        if is_over { self.waiting.pop_front().map(|(passkey, _)| passkey) } else { None }
    }
}

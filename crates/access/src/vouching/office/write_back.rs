//! The whitelist learns whom the endpoint vouched for, and unlearns what it was told too late.

use std::sync::Arc;
use std::time::Duration;

use domain::Passkey;

use super::{Done, Vouching, within};
use crate::error::AccessError;
use crate::vouching::write_backs::Errand;

/// How long one errand may take.
const ERRAND_TIMEOUT: Duration = Duration::from_secs(10);

impl Vouching {
    /// Sees to it that the whitelist knows next time.
    pub(super) fn write_back(&mut self, passkey: Passkey) {
        if !self.write_backs.add(passkey) {
            self.counters().write_backs_dropped.increment();
        }
        self.run_errand();
    }

    /// Sees to it that the whitelist does not vouch for a passkey that we may have put in.
    pub(super) fn take_back(&mut self, passkey: Passkey) {
        if !self.write_backs.remove(passkey) {
            self.counters().take_backs_failed.increment();
        }
        self.run_errand();
    }

    /// Somebody took a passkey out: it must not be put in again by a writing that was on its way.
    pub(super) fn hear_removal_of_written(&mut self, passkey: &Passkey) {
        if !self.write_backs.hear_removal(passkey) {
            self.counters().take_backs_failed.increment();
        }
        self.run_errand();
    }

    /// The whitelist was replaced: those who were written lately are asked about again.
    pub(super) fn hear_replacement_of_written(&mut self) {
        let now = self.now();
        for passkey in self.write_backs.hear_replacement() {
            self.book.expire(&passkey, now);
            self.take_back(passkey);
        }
    }

    /// Goes to the whitelist with the next errand, unless somebody is on the way.
    pub(super) fn run_errand(&mut self) {
        let Some(errand) = self.write_backs.next() else { return };
        let whitelist = Arc::clone(&self.whitelist);
        self.work.spawn(async move {
            let outcome = match errand {
                Errand::Add(passkeys) => within(ERRAND_TIMEOUT, whitelist.add(&passkeys)).await,
                Errand::Remove(passkeys) => within(ERRAND_TIMEOUT, whitelist.remove(&passkeys)).await,
            };
            Done::RanErrand(outcome.map(|_| ()))
        });
    }

    /// What could not be written is not tried again: the endpoint is asked again before long, and then it is.
    pub(super) fn take_errand(&mut self, outcome: Result<(), AccessError>) {
        let ended = self.write_backs.end(self.elapsed());
        let counters = self.counters();
        match (&ended, &outcome) {
            (Some(Errand::Add(passkeys)), Ok(())) => counters.write_backs.add(passkeys.len() as u64),
            (Some(Errand::Add(passkeys)), Err(_)) => counters.write_backs_failed.add(passkeys.len() as u64),
            (Some(Errand::Remove(passkeys)), Ok(())) => {
                counters.take_backs.add(passkeys.len() as u64);
                // Redis has no empty sets: the removal of the last passkey leaves none.
                self.whitelist.believe_missing();
            }
            (Some(Errand::Remove(passkeys)), Err(_)) => counters.take_backs_failed.add(passkeys.len() as u64),
            (None, _) => {}
        }
        if let Some(Errand::Remove(passkeys)) = &ended {
            // Whoever asked the whitelist meanwhile may have found them still there.
            passkeys.iter().for_each(|passkey| self.inquiries.outdate(passkey));
        }
        if let Err(error) = outcome {
            self.complain_of_whitelist(&error);
        }
        self.run_errand();
    }
}

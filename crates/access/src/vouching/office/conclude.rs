//! What follows from answers: verdicts and accounts.

use std::time::Duration;

use domain::{Passkey, Seconds, UserId};

use super::{Done, Vouching, is_due, within};
use crate::error::AccessError;
use crate::store::adopted::Adopted;
use crate::store::{Adoption, AdoptionTerms};
use crate::vouching::OnVerifyFailure;
use crate::vouching::verdicts::Voucher;

/// Accounts made in one transaction.
const ADOPTIONS_AT_ONCE: usize = 100;
/// How long that may take. Whoever waits no longer finds the account when they come back.
const ADOPTION_TIMEOUT: Duration = Duration::from_secs(10);

/// Somebody who is vouched for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vouched {
    passkey: Passkey,
    by: Voucher,
    wanted: Option<UserId>,
}

impl Vouched {
    pub(super) fn by_whitelist(passkey: Passkey) -> Self {
        Vouched { passkey, by: Voucher::Whitelist, wanted: None }
    }

    pub(super) fn by_site_key(passkey: Passkey, user: UserId) -> Self {
        Vouched { passkey, by: Voucher::SiteKey, wanted: Some(user) }
    }

    pub(super) fn by_endpoint(passkey: Passkey, wanted: Option<UserId>) -> Self {
        Vouched { passkey, by: Voucher::Endpoint, wanted }
    }
}

impl Vouching {
    /// Somebody vouches for a passkey.
    pub(super) fn vouched(&mut self, vouched: Vouched) {
        let passkey = vouched.passkey;
        if self.ask_again(&passkey) {
            return;
        }
        if vouched.by == Voucher::Endpoint {
            self.write_back(passkey);
        }
        match self.gate.holder(&passkey) {
            // The gate judges these without us.
            Some(holder) if !holder.vouched || !holder.enabled => self.finish(&passkey),
            Some(holder) => {
                self.remember(passkey, Some((holder.id, vouched.by)));
                self.finish(&passkey);
            }
            None => {
                self.adoptions.push_back(vouched);
                self.adopt();
            }
        }
    }

    /// Nobody vouches for a passkey.
    pub(super) fn unknown(&mut self, passkey: Passkey) {
        if self.ask_again(&passkey) {
            return;
        }
        let before = self.book.get(&passkey).and_then(|verdict| verdict.vouched);
        self.remember(passkey, None);
        if let Some((user, _)) = before {
            self.shut_out(user);
        }
        self.finish(&passkey);
    }

    /// The endpoint does not vouch for a passkey. That is a no only if the whitelist could be asked as well.
    pub(super) fn denied_by_endpoint(&mut self, passkey: Passkey) {
        if self.whitelist_failed(&passkey) {
            self.keep_if_vouched_by(&[Voucher::Whitelist], passkey);
            self.finish(&passkey);
        } else if self.gate.is_site_unread() {
            self.finish(&passkey);
        } else {
            self.unknown(passkey);
        }
    }

    /// Nobody can say: the endpoint, or the whitelist where there is no endpoint, could not be asked.
    pub(super) fn not_checkable(&mut self, passkey: Passkey) {
        if self.whitelist_failed(&passkey) {
            self.keep_if_vouched_by(&[Voucher::Whitelist, Voucher::Endpoint], passkey);
        } else {
            self.keep_if_vouched_by(&[Voucher::Endpoint], passkey);
        }
        self.finish(&passkey);
    }

    fn whitelist_failed(&mut self, passkey: &Passkey) -> bool {
        self.inquiries.get_mut(passkey).is_some_and(|inquiry| inquiry.whitelist_failed)
    }

    /// Lets a verdict outlive its time if it came from one of those who cannot be asked now. Anybody else who vouched
    /// before has taken it back.
    fn keep_if_vouched_by(&mut self, unasked: &[Voucher], passkey: Passkey) {
        let before = self.book.get(&passkey).and_then(|verdict| verdict.vouched);
        let kept = before.filter(|(_, by)| unasked.contains(by));
        if let Some(vouched) = kept.filter(|_| self.settings.on_failure == OnVerifyFailure::KnownOnly) {
            let pause = u32::try_from(self.settings.pause.as_secs()).unwrap_or(u32::MAX).max(1);
            let until = self.now() + Seconds(pause).min(self.settings.valid_for);
            self.book.write(passkey, Some(vouched), until);
            self.counters().stale_kept.increment();
        }
    }

    /// Lets everybody go on who waited for this passkey.
    pub(super) fn finish(&mut self, passkey: &Passkey) {
        for on_answer in self.inquiries.finish(passkey) {
            on_answer();
        }
    }

    /// An answer from before a change of the whitelist is not believed.
    fn ask_again(&mut self, passkey: &Passkey) -> bool {
        let outdated = self.inquiries.take_outdated(passkey);
        if outdated {
            self.counters().asked_again.increment();
            self.lookups.push_back(*passkey);
            self.look_up();
        }
        outdated
    }

    fn remember(&mut self, passkey: Passkey, vouched: Option<(UserId, Voucher)>) {
        let length = if vouched.is_some() { self.settings.valid_for } else { self.settings.invalid_for };
        let until = self.now() + length;
        self.book.write(passkey, vouched, until);
    }

    pub(super) fn shut_out(&mut self, user: UserId) {
        self.counters().shut_out.increment();
        self.shut_out.push(user);
    }

    /// Makes accounts for those who wait for one, many at a time.
    fn adopt(&mut self) {
        if self.adopting || self.adoptions.is_empty() {
            return;
        }
        self.adopting = true;
        let count = self.adoptions.len().min(ADOPTIONS_AT_ONCE);
        let mut vouched: Vec<Vouched> = self.adoptions.drain(..count).collect();
        // In one order everywhere, so that two trackers do not wait for each other.
        vouched.sort_by_key(|vouched| vouched.passkey);
        let adoptions: Vec<Adoption> =
            vouched.iter().map(|one| Adoption { passkey: one.passkey, wanted: one.wanted }).collect();
        let terms = AdoptionTerms { id_min: self.settings.adopted_id_min, now: self.clock.now() };
        let store = self.store.clone();
        self.work.spawn(async move {
            let outcome = within(ADOPTION_TIMEOUT, store.adopt(&adoptions, terms)).await;
            Done::Adopted(vouched, outcome)
        });
    }

    pub(super) fn take_adoption(
        &mut self,
        vouched: Vec<Vouched>,
        outcome: Result<Vec<Result<Adopted, AccessError>>, AccessError>,
    ) {
        self.adopting = false;
        let mut adopted = match outcome {
            Ok(adopted) => adopted.into_iter(),
            Err(error) => {
                self.complain_of_adoption(&error);
                Vec::new().into_iter()
            }
        };
        for one in vouched {
            match adopted.next() {
                Some(Ok(adopted)) => self.take_account(one, &adopted),
                Some(Err(error)) => {
                    self.complain_of_adoption(&error);
                    self.counters().adoptions_failed.increment();
                    self.finish(&one.passkey);
                }
                None => {
                    self.counters().adoptions_failed.increment();
                    self.finish(&one.passkey);
                }
            }
        }
        self.adopt();
    }

    fn take_account(&mut self, one: Vouched, adopted: &Adopted) {
        if adopted.is_new {
            self.counters().adoptions.increment();
        }
        if let Some(old) = adopted.old_passkey {
            // On the whitelist it would be taken for somebody new, whom no ban concerns.
            self.book.forget(&old);
            self.inquiries.outdate(&old);
            self.take_back(old);
        }
        // What was heard of the whitelist meanwhile counts, too.
        if self.ask_again(&one.passkey) {
            return;
        }
        // A row that is disabled shuts its owner out, also while the gate has yet to hear of it.
        let verdict = adopted.user.enabled.then_some((adopted.user.id, one.by));
        self.remember(one.passkey, verdict);
        self.finish(&one.passkey);
    }

    fn complain_of_adoption(&mut self, error: &AccessError) {
        let now = self.elapsed();
        if is_due(&mut self.complaints.adoption, now) {
            tracing::warn!(%error, "strangers who are vouched for cannot get an account");
        }
    }
}

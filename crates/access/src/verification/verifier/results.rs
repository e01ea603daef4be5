//! Caches answers and creates accounts of external users.

use std::time::Duration;

use domain::{Passkey, Seconds, UnixTime, UserId};

use super::{TaskResult, Verifier, within};
use crate::error::AccessError;
use crate::store::{ExternalUser, ExternalUserOptions, NewExternalUser};
use crate::verification::OnVerifyFailure;
use crate::verification::answers::Source;

/// Accounts created in one transaction.
const ACCOUNTS_AT_ONCE: usize = 100;
/// Longer than clients wait: a client that gave up finds the account at its next announce.
const ACCOUNTS_TIMEOUT: Duration = Duration::from_secs(10);

/// A passkey with a positive answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct VerifiedPasskey {
    pub(super) passkey: Passkey,
    pub(super) source: Source,
    /// The site's id of the user, if known.
    pub(super) site_id: Option<UserId>,
}

impl Verifier {
    pub(super) fn on_verified(&mut self, verified: VerifiedPasskey) {
        let passkey = verified.passkey;
        if self.repeat_if_outdated(&passkey) {
            return;
        }
        if verified.source == Source::Endpoint {
            self.add_to_whitelist(passkey);
        }
        match self.gate.holder(&passkey) {
            // The gate decides about these without an answer.
            Some(holder) if !holder.is_external || !holder.enabled => self.finish(&passkey),
            Some(holder) => {
                self.cache(passkey, Some((holder.id, verified.source)));
                self.finish(&passkey);
            }
            None => {
                self.account_queue.push_back(verified);
                self.create_accounts();
            }
        }
    }

    /// Every source answered, and none has the passkey.
    pub(super) fn on_invalid(&mut self, passkey: Passkey) {
        if self.repeat_if_outdated(&passkey) {
            return;
        }
        let account = self.answers().get(&passkey).and_then(|answer| answer.account());
        self.cache(passkey, None);
        if let Some(user) = account {
            self.revoke(user);
        }
        self.finish(&passkey);
    }

    /// The endpoint's negative answer counts only if the other sources answered, too.
    pub(super) fn on_denied_by_endpoint(&mut self, passkey: Passkey) {
        if self.whitelist_failed(&passkey) {
            self.extend_if_from(&[Source::Whitelist], passkey);
            self.finish(&passkey);
        } else if self.gate.is_redis_source_unread() {
            self.finish(&passkey);
        } else {
            self.on_invalid(passkey);
        }
    }

    /// The last source to ask is unavailable.
    pub(super) fn on_unavailable(&mut self, passkey: Passkey) {
        if self.whitelist_failed(&passkey) {
            self.extend_if_from(&[Source::Whitelist, Source::Endpoint], passkey);
        } else {
            self.extend_if_from(&[Source::Endpoint], passkey);
        }
        self.finish(&passkey);
    }

    fn whitelist_failed(&mut self, passkey: &Passkey) -> bool {
        self.pending.get_mut(passkey).is_some_and(|pending| pending.whitelist_failed)
    }

    /// Extends an expired positive answer if its source is unavailable now. Any other source has answered, and did not
    /// confirm it.
    fn extend_if_from(&mut self, unavailable: &[Source], passkey: Passkey) {
        if self.settings.on_failure != OnVerifyFailure::KnownOnly {
            return;
        }
        let verified = self.answers().get(&passkey).and_then(|answer| answer.verified);
        if let Some(verified) = verified.filter(|(_, source)| unavailable.contains(source)) {
            let pause = u32::try_from(self.settings.pause.as_secs()).unwrap_or(u32::MAX).max(1);
            let expires_at = self.now() + Seconds(pause).min(self.settings.valid_for);
            self.insert(passkey, Some(verified), expires_at);
            self.counters().stale_kept.increment();
        }
    }

    /// Calls back all requests that wait for this passkey.
    pub(super) fn finish(&mut self, passkey: &Passkey) {
        for on_answer in self.pending.finish(passkey) {
            on_answer();
        }
    }

    /// Begins another lookup if the whitelist changed since the last one began.
    fn repeat_if_outdated(&mut self, passkey: &Passkey) -> bool {
        let is_outdated = self.pending.take_outdated(passkey);
        if is_outdated {
            self.counters().lookups_repeated.increment();
            self.lookup_queue.push_back(*passkey);
            self.begin_lookups();
        }
        is_outdated
    }

    fn cache(&self, passkey: Passkey, verified: Option<(UserId, Source)>) {
        let lifetime = if verified.is_some() { self.settings.valid_for } else { self.settings.invalid_for };
        let expires_at = self.now() + lifetime;
        self.insert(passkey, verified, expires_at);
    }

    fn insert(&self, passkey: Passkey, verified: Option<(UserId, Source)>, expires_at: UnixTime) {
        let evicted = self.answers().insert(passkey, verified, expires_at, self.settings.entries_max);
        self.counters().cache_evictions.add(evicted as u64);
    }

    pub(super) fn revoke(&mut self, user: UserId) {
        self.counters().users_revoked.increment();
        self.revoked.push(user);
    }

    fn create_accounts(&mut self) {
        if self.is_creating_accounts || self.account_queue.is_empty() {
            return;
        }
        self.is_creating_accounts = true;
        let count = self.account_queue.len().min(ACCOUNTS_AT_ONCE);
        let mut verified: Vec<VerifiedPasskey> = self.account_queue.drain(..count).collect();
        // One order in all processes prevents deadlocks between their transactions.
        verified.sort_by_key(|verified| verified.passkey);
        let users: Vec<NewExternalUser> = verified
            .iter()
            .map(|verified| NewExternalUser { passkey: verified.passkey, site_id: verified.site_id })
            .collect();
        let options = ExternalUserOptions { id_min: self.settings.external_id_min, now: self.clock.now() };
        let store = self.store.clone();
        self.tasks.spawn(async move {
            let outcome = within(ACCOUNTS_TIMEOUT, store.ensure_external_users(&users, options)).await;
            TaskResult::Accounts(verified, outcome)
        });
    }

    pub(super) fn on_accounts(
        &mut self,
        verified: Vec<VerifiedPasskey>,
        outcome: Result<Vec<Result<ExternalUser, AccessError>>, AccessError>,
    ) {
        self.is_creating_accounts = false;
        let mut users = outcome
            .unwrap_or_else(|error| {
                self.warn_of_accounts(&error);
                Vec::new()
            })
            .into_iter();
        for verified in verified {
            match users.next() {
                Some(Ok(user)) => self.on_account(verified, &user),
                failure => {
                    if let Some(Err(error)) = failure {
                        self.warn_of_accounts(&error);
                    }
                    self.counters().external_users_failed.increment();
                    self.finish(&verified.passkey);
                }
            }
        }
        self.create_accounts();
    }

    fn on_account(&mut self, verified: VerifiedPasskey, external: &ExternalUser) {
        if external.is_new {
            self.counters().external_users_created.increment();
        }
        if let Some(old) = external.old_passkey {
            // On the whitelist it would admit a new user, without the ban of this one.
            self.answers().remove(&old);
            self.pending.mark_outdated(&old);
            self.remove_from_whitelist(old);
        }
        // The whitelist may have changed while the account was created.
        if self.repeat_if_outdated(&verified.passkey) {
            return;
        }
        // The gate may not have read a disabled row yet.
        let answer = external.user.enabled.then_some((external.user.id, verified.source));
        self.cache(verified.passkey, answer);
        self.finish(&verified.passkey);
    }

    fn warn_of_accounts(&self, error: &AccessError) {
        if self.log_throttles.accounts.admit(self.now()).is_some() {
            tracing::warn!(%error, "accounts of external users cannot be created");
        }
    }
}

//! Verification requests in progress: requests for the same passkey share one lookup.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use domain::Passkey;

use super::unknown_passkeys::{OnAnswer, Request};

/// Passkeys in verification.
const PASSKEYS_MAX: usize = 20_000;
/// Waiting clients.
const WAITING_MAX: usize = 50_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joined {
    /// The first request for its passkey: begin a lookup.
    First,
    /// A lookup is in progress.
    Existing,
    /// A bound is reached; the request is dropped.
    Full,
}

pub(super) struct PendingPasskey {
    waiting: Vec<OnAnswer>,
    /// Address of the first request.
    pub(super) from: IpAddr,
    since: Duration,
    /// The whitelist changed after the lookup began: the answer is discarded.
    is_outdated: bool,
    pub(super) whitelist_failed: bool,
}

/// Times are durations since the verifier's start.
#[derive(Default)]
pub(super) struct PendingRequests {
    passkeys: HashMap<Passkey, PendingPasskey, foldhash::fast::RandomState>,
    waiting: usize,
}

impl fmt::Debug for PendingRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingRequests")
            .field("passkeys", &self.passkeys.len())
            .field("waiting", &self.waiting)
            .finish()
    }
}

impl PendingRequests {
    pub(super) fn join(&mut self, request: Request, now: Duration) -> Joined {
        let Request { passkey, from, on_answer } = request;
        if self.waiting >= WAITING_MAX {
            return Joined::Full;
        }
        if let Some(pending) = self.passkeys.get_mut(&passkey) {
            pending.waiting.push(on_answer);
            self.waiting += 1;
            return Joined::Existing;
        }
        if self.passkeys.len() >= PASSKEYS_MAX {
            return Joined::Full;
        }
        let waiting = vec![on_answer];
        let pending =
            PendingPasskey { waiting, from, since: now, is_outdated: false, whitelist_failed: false };
        self.passkeys.insert(passkey, pending);
        self.waiting += 1;
        Joined::First
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn get_mut(&mut self, passkey: &Passkey) -> Option<&mut PendingPasskey> {
        self.passkeys.get_mut(passkey)
    }

    pub(super) fn mark_outdated(&mut self, passkey: &Passkey) {
        if let Some(pending) = self.passkeys.get_mut(passkey) {
            pending.is_outdated = true;
        }
    }

    pub(super) fn mark_all_outdated(&mut self) {
        self.passkeys.values_mut().for_each(|pending| pending.is_outdated = true);
    }

    /// Whether the lookup must be repeated. Clears the mark.
    pub(super) fn take_outdated(&mut self, passkey: &Passkey) -> bool {
        self.passkeys.get_mut(passkey).is_some_and(|pending| std::mem::take(&mut pending.is_outdated))
    }

    /// Removes a passkey and returns the callbacks of its requests.
    pub(super) fn finish(&mut self, passkey: &Passkey) -> Vec<OnAnswer> {
        let waiting = self.passkeys.remove(passkey).map(|pending| pending.waiting).unwrap_or_default();
        self.waiting -= waiting.len();
        waiting
    }

    pub(super) fn begun_before(&self, limit: Duration) -> Vec<Passkey> {
        let old = self.passkeys.iter().filter(|(_, pending)| pending.since < limit);
        old.map(|(passkey, _)| *passkey).collect()
    }
}

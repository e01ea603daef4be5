//! Who waits for which answer: one inquiry for all who ask about the same passkey.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use domain::Passkey;

use super::strangers::{OnAnswer, Question};

/// Passkeys that may be asked about at the same time.
const OPEN_MAX: usize = 20_000;
/// Clients that may wait at the same time.
const WAITING_MAX: usize = 50_000;

/// What became of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joined {
    /// Nobody asks about this passkey yet.
    First,
    /// Somebody does.
    Another,
    /// Too many wait.
    Full,
}

/// One passkey that is being asked about.
pub(super) struct Inquiry {
    waiting: Vec<OnAnswer>,
    /// The first address that asked.
    pub(super) from: IpAddr,
    since: Duration,
    /// The whitelist changed since it was asked: the answer will not be believed.
    outdated: bool,
    /// The whitelist could not be asked.
    pub(super) whitelist_failed: bool,
}

/// Everything that is being asked. Time is what has passed since some start.
#[derive(Default)]
pub(super) struct Inquiries {
    open: HashMap<Passkey, Inquiry, foldhash::fast::RandomState>,
    waiting: usize,
}

impl fmt::Debug for Inquiries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inquiries").field("open", &self.open.len()).field("waiting", &self.waiting).finish()
    }
}

impl Inquiries {
    /// Lets somebody wait for the answer about a passkey.
    pub(super) fn join(&mut self, question: Question, now: Duration) -> Joined {
        let Question { passkey, from, on_answer } = question;
        if self.waiting >= WAITING_MAX {
            return Joined::Full;
        }
        if let Some(inquiry) = self.open.get_mut(&passkey) {
            inquiry.waiting.push(on_answer);
            self.waiting += 1;
            return Joined::Another;
        }
        if self.open.len() >= OPEN_MAX {
            return Joined::Full;
        }
        let inquiry =
            Inquiry { waiting: vec![on_answer], from, since: now, outdated: false, whitelist_failed: false };
        self.open.insert(passkey, inquiry);
        self.waiting += 1;
        Joined::First
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// The inquiry about a passkey.
    pub(super) fn get_mut(&mut self, passkey: &Passkey) -> Option<&mut Inquiry> {
        self.open.get_mut(passkey)
    }

    /// Takes note that the whitelist changed for a passkey.
    pub(super) fn outdate(&mut self, passkey: &Passkey) {
        if let Some(inquiry) = self.open.get_mut(passkey) {
            inquiry.outdated = true;
        }
    }

    /// Takes note that the whitelist changed for everybody.
    pub(super) fn outdate_all(&mut self) {
        self.open.values_mut().for_each(|inquiry| inquiry.outdated = true);
    }

    /// Whether the answer about a passkey must be asked for again. The next one counts.
    pub(super) fn take_outdated(&mut self, passkey: &Passkey) -> bool {
        self.open.get_mut(passkey).is_some_and(|inquiry| std::mem::take(&mut inquiry.outdated))
    }

    /// Ends an inquiry: who waited for it.
    pub(super) fn finish(&mut self, passkey: &Passkey) -> Vec<OnAnswer> {
        let waiting = self.open.remove(passkey).map(|inquiry| inquiry.waiting).unwrap_or_default();
        self.waiting -= waiting.len();
        waiting
    }

    /// Inquiries that began before `moment`.
    pub(super) fn begun_before(&self, moment: Duration) -> Vec<Passkey> {
        self.open.iter().filter(|(_, inquiry)| inquiry.since < moment).map(|(passkey, _)| *passkey).collect()
    }
}

//! What the gate and the listeners ask about strangers. Nothing here waits.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::{Passkey, UnixTime, UserId};
use tokio::sync::mpsc;

use super::counters::VouchingCounters;
use super::verdicts::Verdicts;

/// Questions that may wait until the office looks at them.
const QUESTIONS_MAX: usize = 4096;

/// Called once the office is done with a passkey, whatever came of it: the gate is asked again. May be called on any
/// thread; must not wait. Dropped uncalled if the office cannot take the question or closes.
pub type OnAnswer = Box<dyn FnOnce() + Send>;

/// A question about a passkey.
pub(super) struct Question {
    pub(super) passkey: Passkey,
    pub(super) from: IpAddr,
    pub(super) on_answer: OnAnswer,
}

/// Whether a question was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It was; the answer comes later.
    Taken,
    /// Too many ask, or nobody answers any more.
    Dropped,
}

/// How somebody stands whom nobody here knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Somebody vouches for them; this is their account.
    Vouched(UserId),
    /// Nobody does.
    Unknown,
    /// It has to be asked.
    NotAsked,
    /// Nobody is asked, because the site said so for the time in which its endpoint fails.
    NotAsking,
}

/// Remembered verdicts, and the way to ask for others.
pub struct Strangers {
    verdicts: Verdicts,
    /// While this is set, nobody is let in who is not ours.
    shut: AtomicBool,
    questions: mpsc::Sender<Question>,
    patience: Duration,
    counters: VouchingCounters,
}

impl fmt::Debug for Strangers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Strangers").field("verdicts", &self.verdicts.len()).finish_non_exhaustive()
    }
}

/// The office's end of the line.
#[derive(Debug)]
pub struct Questions(pub(super) mpsc::Receiver<Question>);

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Question").field(&self.passkey.redacted().to_string()).finish()
    }
}

impl Strangers {
    /// Nobody is known yet. Clients wait for an answer for `patience` at the most.
    pub fn new(patience: Duration) -> (Arc<Self>, Questions) {
        let (questions, receiver) = mpsc::channel(QUESTIONS_MAX);
        let strangers = Strangers {
            verdicts: Verdicts::default(),
            shut: AtomicBool::new(false),
            questions,
            patience,
            counters: VouchingCounters::default(),
        };
        (Arc::new(strangers), Questions(receiver))
    }

    /// Asks about a passkey on behalf of an address, whose share of the endpoint's calls it may use. An IPv6 network is
    /// given as one address.
    pub fn ask(&self, passkey: Passkey, from: IpAddr, on_answer: OnAnswer) -> Asked {
        match self.questions.try_send(Question { passkey, from, on_answer }) {
            Ok(()) => Asked::Taken,
            Err(_) => {
                self.counters.asks_dropped.increment();
                Asked::Dropped
            }
        }
    }

    /// How long a client waits for an answer.
    pub fn patience(&self) -> Duration {
        self.patience
    }

    /// What is counted.
    pub fn counters(&self) -> &VouchingCounters {
        &self.counters
    }

    /// How a stranger stands. Counted, since this is what the announce path asks.
    pub(crate) fn standing(&self, passkey: &Passkey, now: UnixTime) -> Standing {
        let standing = self.look(passkey, now);
        let counter = match standing {
            Standing::Vouched(_) => &self.counters.cache_hits_valid,
            Standing::Unknown => &self.counters.cache_hits_invalid,
            Standing::NotAsked => &self.counters.cache_misses,
            Standing::NotAsking => &self.counters.refused_unseen,
        };
        counter.increment();
        standing
    }

    /// How a stranger stands, for others than the announce path.
    pub(crate) fn look(&self, passkey: &Passkey, now: UnixTime) -> Standing {
        if self.shut.load(Ordering::Relaxed) {
            return Standing::NotAsking;
        }
        match self.verdicts.get(passkey).filter(|verdict| verdict.is_fresh(now)) {
            None => Standing::NotAsked,
            Some(verdict) => verdict.vouched.map_or(Standing::Unknown, |(user, _)| Standing::Vouched(user)),
        }
    }

    /// The account of a passkey that was verified, however long ago.
    pub(crate) fn account_of(&self, passkey: &Passkey) -> Option<UserId> {
        self.verdicts.get(passkey)?.vouched.map(|(user, _)| user)
    }

    /// Lets what is known about a passkey be asked again, without forgetting whose it was.
    pub(crate) fn expire(&self, passkey: &Passkey, now: UnixTime) {
        self.verdicts.expire(passkey, now);
    }

    /// Forgets what is known about a passkey whose row is gone or has another passkey.
    pub(crate) fn forget(&self, passkey: &Passkey) {
        self.verdicts.forget(passkey);
    }

    pub(super) fn verdicts(&self) -> &Verdicts {
        &self.verdicts
    }

    pub(super) fn set_shut(&self, shut: bool) {
        self.shut.store(shut, Ordering::Relaxed);
    }
}

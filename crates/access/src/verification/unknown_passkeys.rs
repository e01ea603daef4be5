//! The interface of verification for the gate and the listeners. Nothing here blocks.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::{Passkey, UnixTime, UserId};
use tokio::sync::mpsc;

use super::answers::AnswerCache;
use super::counters::VerificationCounters;

/// Length of the queue to the verifier.
const REQUESTS_MAX: usize = 4096;

/// Called on any thread once the verifier is done with a passkey, whatever the result: the caller reads the gate again.
/// Must not block. Dropped without a call if the request is dropped or the verifier stops.
pub type OnAnswer = Box<dyn FnOnce() + Send>;

pub(super) struct Request {
    pub(super) passkey: Passkey,
    pub(super) from: IpAddr,
    pub(super) on_answer: OnAnswer,
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Request").field(&self.passkey.redacted().to_string()).finish()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    Queued,
    /// The queue is full, or the verifier has stopped.
    Dropped,
}

/// What is cached about an unknown passkey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PasskeyStatus {
    /// Positive answer; the account of the passkey.
    Verified(UserId),
    /// Negative answer.
    Invalid,
    /// No fresh answer: request a verification.
    NotCached,
    /// The circuit breaker is open, and [`super::OnVerifyFailure::Refuse`] is set.
    CannotCheck,
}

/// Cached answers, and the queue of verification requests.
pub struct UnknownPasskeys {
    answers: AnswerCache,
    /// See [`PasskeyStatus::CannotCheck`].
    refuses_all: AtomicBool,
    requests: mpsc::Sender<Request>,
    answer_timeout: Duration,
    counters: VerificationCounters,
}

impl fmt::Debug for UnknownPasskeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnknownPasskeys").field("answers", &self.answers.len()).finish_non_exhaustive()
    }
}

/// The verifier's end of the queue.
#[derive(Debug)]
pub struct Requests(pub(super) mpsc::Receiver<Request>);

impl UnknownPasskeys {
    pub fn new(answer_timeout: Duration) -> (Arc<Self>, Requests) {
        let (requests, receiver) = mpsc::channel(REQUESTS_MAX);
        let unknown_passkeys = UnknownPasskeys {
            answers: AnswerCache::default(),
            refuses_all: AtomicBool::new(false),
            requests,
            answer_timeout,
            counters: VerificationCounters::default(),
        };
        (Arc::new(unknown_passkeys), Requests(receiver))
    }

    /// Queues a verification. A call of the endpoint counts towards the budget of `from`; callers give an IPv6 network as
    /// one address.
    pub fn request(&self, passkey: Passkey, from: IpAddr, on_answer: OnAnswer) -> RequestOutcome {
        match self.requests.try_send(Request { passkey, from, on_answer }) {
            Ok(()) => RequestOutcome::Queued,
            Err(_) => {
                self.counters.requests_dropped.increment();
                RequestOutcome::Dropped
            }
        }
    }

    /// The longest that a client waits for an answer.
    pub fn answer_timeout(&self) -> Duration {
        self.answer_timeout
    }

    pub fn counters(&self) -> &VerificationCounters {
        &self.counters
    }

    /// The status for an announce or scrape, which is counted.
    pub(crate) fn status(&self, passkey: &Passkey, now: UnixTime) -> PasskeyStatus {
        let status = self.peek(passkey, now);
        let counter = match status {
            PasskeyStatus::Verified(_) => &self.counters.cache_hits_valid,
            PasskeyStatus::Invalid => &self.counters.cache_hits_invalid,
            PasskeyStatus::NotCached => &self.counters.cache_misses,
            PasskeyStatus::CannotCheck => &self.counters.refused_on_verify_failure,
        };
        counter.increment();
        status
    }

    /// The same without counting.
    pub(crate) fn peek(&self, passkey: &Passkey, now: UnixTime) -> PasskeyStatus {
        if self.refuses_all.load(Ordering::Relaxed) {
            return PasskeyStatus::CannotCheck;
        }
        match self.answers.get(passkey).filter(|answer| answer.is_fresh(now)) {
            None => PasskeyStatus::NotCached,
            Some(answer) => answer.account().map_or(PasskeyStatus::Invalid, PasskeyStatus::Verified),
        }
    }

    /// The account in a cached answer, fresh or not.
    pub(crate) fn account_of(&self, passkey: &Passkey) -> Option<UserId> {
        self.answers.get(passkey)?.account()
    }

    pub(crate) fn expire(&self, passkey: &Passkey, now: UnixTime) {
        self.answers.expire(passkey, now);
    }

    pub(crate) fn forget(&self, passkey: &Passkey) {
        self.answers.remove(passkey);
    }

    pub(super) fn answers(&self) -> &AnswerCache {
        &self.answers
    }

    pub(super) fn set_refuses_all(&self, refuses_all: bool) {
        self.refuses_all.store(refuses_all, Ordering::Relaxed);
    }
}

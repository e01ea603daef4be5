//! Passkey verification: whether a passkey without a user in the database may announce (W4, W5).
//!
//! # Layout
//!
//! - [`unknown_passkeys`]: the non-blocking interface for the gate and the listeners: cached answers, and a queue of
//!   verification requests
//! - `verifier`: the task that serves the queue and owns everything below
//!   - `verifier/results`: caches answers, creates accounts of external users
//!   - `verifier/whitelist`: applies changes of the whitelist, writes to it
//! - `pending`: requests in progress; requests for the same passkey share one lookup
//! - `answers`: the cache of positive and negative answers
//! - [`endpoint`]: the HTTP call to the site
//! - `calls`: limits of these calls: rate, rate per client address, concurrency, circuit breaker
//! - `whitelist_writes`: additions to and removals from the whitelist that follow from answers
//! - [`counters`]: figures for the metrics page
//!
//! # Guarantees
//!
//! - A fresh cached answer is read without a lock and without an allocation.
//! - A failure of the endpoint is never treated as a negative answer.
//! - A positive answer is used past its expiry only with [`OnVerifyFailure::KnownOnly`], and only while its source is
//!   unavailable.
//! - An answer that was in flight while the whitelist changed is discarded and requested again. A write to the whitelist
//!   that raced with a removal is undone.
//! - Every queue and map is bounded, and each bound has a counter.
//!
//! Users of the database are never verified: the gate decides about them alone.
//!
//! # Why not a cache crate
//!
//! `moka`, measured: a passkey that is removed during its lookup (`try_get_with`, then `invalidate`) is cached as valid (W4);
//! 500,000 invented passkeys evict all of 50,000 positive answers from a cache of 100,000; a cached read takes 976 instructions
//! and allocates, where this one takes 196 and does not.

use std::time::Duration;

use domain::{Seconds, UserId};

mod answers;
mod calls;
pub mod counters;
pub mod endpoint;
mod pending;
pub mod unknown_passkeys;
mod verifier;
mod whitelist_writes;

pub use counters::VerificationCounters;
pub use endpoint::{EndpointSettings, VerifyEndpoint};
pub use unknown_passkeys::{OnAnswer, RequestOutcome, Requests, UnknownPasskeys};
pub use verifier::{Verifier, VerifierParts};

/// Which unknown passkeys are admitted while the verify endpoint fails (W5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnVerifyFailure {
    /// Those on the whitelist, and those with an expired positive answer.
    #[default]
    KnownOnly,
    /// None, not even those on the whitelist.
    Refuse,
}

#[derive(Clone, Copy, Debug)]
pub struct VerificationSettings {
    /// Lifetime of a cached positive answer.
    pub valid_for: Seconds,
    /// Lifetime of a cached negative answer.
    pub invalid_for: Seconds,
    /// Cached answers.
    pub entries_max: usize,
    pub call_timeout: Duration,
    /// Calls of the endpoint per second; one client address may cause a tenth of them.
    pub calls_per_s: u32,
    /// Concurrent calls of the endpoint.
    pub calls_at_once_max: usize,
    /// Consecutive failures that open the circuit breaker.
    pub failures_max: u32,
    /// How long the circuit breaker stays open before a probe.
    pub pause: Duration,
    pub on_failure: OnVerifyFailure,
    /// Interval at which the whitelist's change feed is read.
    pub feed_every: Duration,
    /// First id for external users without an id of the site.
    pub external_id_min: UserId,
}

/// Time limit of a whitelist lookup, and of waiting for a new account.
pub(crate) const STEP_TIMEOUT: Duration = Duration::from_secs(1);

impl VerificationSettings {
    /// The longest that a client waits for an answer.
    pub fn answer_timeout(&self) -> Duration {
        self.call_timeout + 2 * STEP_TIMEOUT
    }
}

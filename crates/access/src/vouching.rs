//! Strangers: passkeys that no user of ours has, for whom the whitelist or the site's verify endpoint may vouch
//! (W4, W5).
//!
//! # Layout
//!
//! - [`strangers`]: what the gate and the listeners ask, without waiting: remembered verdicts, and the way to ask
//! - `office`: the one task that finds out, and looks after all below
//! - `inquiries`: who waits for which answer: one inquiry for all who ask about the same passkey
//! - `verdicts`: answers that are remembered, good and bad, each for its time
//! - [`endpoint`]: the call to the site
//! - `calls`: how fast, for all and for one address (`pace`, `shares`), how many at once, and when the endpoint is left
//!   alone (`breaker`)
//! - `recheck`: remembered answers compared with a whitelist that was replaced
//! - `write_backs`: what the whitelist is told of answers, and what of that is taken back
//! - [`counters`]: what is counted
//!
//! # Guarantees
//!
//! - Who has a fresh verdict is judged in memory, without a lock and without an allocation.
//! - Any failure of the endpoint is a failure and never a "no": nobody is shut out by a broken site.
//! - A verdict outlives its time only with [`OnVerifyFailure::KnownOnly`], and only while whoever gave it cannot be
//!   asked.
//! - An answer that was on its way while the whitelist changed is not believed: it is asked for again. Nor does what
//!   was being written to the whitelist survive a removal that it raced with.
//! - Everything is bounded, and every bound has a counter.
//!
//! # Deliberately absent
//!
//! Users of our own: the gate knows them, and nobody is asked about them.

use std::time::Duration;

use domain::{Seconds, UserId};

mod breaker;
mod calls;
pub mod counters;
pub mod endpoint;
mod inquiries;
mod office;
mod pace;
mod recheck;
mod shares;
pub mod strangers;
mod verdicts;
mod write_backs;

pub use counters::{BreakerState, VouchingCounters};
pub use endpoint::{EndpointSettings, VerifyEndpoint};
pub use office::{Parts, Vouching};
pub use strangers::{Asked, OnAnswer, Questions, Strangers};

/// What becomes of strangers while the verify endpoint fails (W5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnVerifyFailure {
    /// Those who are on the whitelist, or were vouched for before, may announce.
    #[default]
    KnownOnly,
    /// Nobody may announce but users of our own.
    Refuse,
}

/// How strangers are judged.
#[derive(Clone, Copy, Debug)]
pub struct VouchingSettings {
    /// How long a good answer is remembered.
    pub valid_for: Seconds,
    /// How long a bad answer is remembered.
    pub invalid_for: Seconds,
    /// Answers that are remembered, at the most.
    pub entries_max: usize,
    /// How long the endpoint may take to answer.
    pub call_timeout: Duration,
    /// Calls a second, at the most; a tenth of them for one address.
    pub calls_per_s: u32,
    /// Calls at the same time, at the most.
    pub calls_at_once_max: usize,
    /// Failures in a row after which the endpoint is left alone.
    pub failures_max: u32,
    /// How long it is left alone before it is tried again.
    pub pause: Duration,
    /// What becomes of strangers meanwhile.
    pub on_failure: OnVerifyFailure,
    /// How often changes of the whitelist are looked for.
    pub feed_every: Duration,
    /// Where the numbers begin of those whom the site does not number.
    pub adopted_id_min: UserId,
}

/// How long the whitelist may take to answer, and how long making accounts may take, before a client is told to come
/// back.
pub(crate) const STEP_TIMEOUT: Duration = Duration::from_secs(1);

impl VouchingSettings {
    /// How long a client waits for an answer at the most.
    pub fn patience(&self) -> Duration {
        self.call_timeout + 2 * STEP_TIMEOUT
    }
}

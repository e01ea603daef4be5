//! What is counted about strangers: plain numbers, ready for a metrics page.

use std::sync::atomic::{AtomicU8, Ordering};

use domain::{Counter, Level};

/// Whether the endpoint is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// It is.
    Closed,
    /// It is left alone for a while.
    Open,
    /// One call finds out whether it answers again.
    Probing,
}

impl BreakerState {
    /// Its name on a metrics page.
    pub const fn label(self) -> &'static str {
        match self {
            BreakerState::Closed => "closed",
            BreakerState::Open => "open",
            BreakerState::Probing => "probing",
        }
    }
}

/// How calls to the endpoint ended.
#[derive(Debug, Default)]
pub struct CallCounters {
    /// It vouched.
    pub valid: Counter,
    /// It did not.
    pub invalid: Counter,
    /// No answer in time.
    pub timed_out: Counter,
    /// No connection, a connection that broke, or a certificate that is not trusted.
    pub unreachable: Counter,
    /// Another status than 200, redirects included.
    pub wrong_status: Counter,
    /// A body that is too long or says nothing.
    pub unreadable: Counter,
}

/// Everything that is counted about strangers.
#[derive(Debug, Default)]
pub struct VouchingCounters {
    /// Strangers let in by a remembered verdict. A request that waited for its verdict counts here too, after it.
    pub cache_hits_valid: Counter,
    /// Strangers refused by a remembered verdict.
    pub cache_hits_invalid: Counter,
    /// Strangers about whom nothing fresh is remembered.
    pub cache_misses: Counter,
    /// Strangers refused unseen, because the endpoint fails and nobody but our own is let in.
    pub refused_unseen: Counter,
    /// Answers that are remembered.
    pub cache_entries: Level,
    /// Answers forgotten to make room for others.
    pub cache_evictions: Counter,
    /// Who asked about a passkey that somebody else was asking about already.
    pub joined: Counter,
    /// Who could not ask, because too many do.
    pub asks_dropped: Counter,
    /// Who waits for an answer right now.
    pub waiting: Level,
    /// Passkeys that the whitelist has.
    pub whitelist_hits: Counter,
    /// Passkeys that it does not have.
    pub whitelist_misses: Counter,
    /// Passkeys about which it could not be asked.
    pub whitelist_failures: Counter,
    /// Calls to the endpoint, by how they ended.
    pub calls: CallCounters,
    /// Calls that were not made because one address caused too many in this second.
    pub calls_over_share: Counter,
    /// Calls of addresses that were not tracked, because too many were.
    pub calls_untracked: Counter,
    /// Calls that were not made because there were too many in this second.
    pub calls_over_pace: Counter,
    /// Calls that were not made because the endpoint is left alone.
    pub calls_held_back: Counter,
    /// Calls that waited for others until it was too late.
    pub calls_overdue: Counter,
    /// How often the endpoint was left alone.
    pub breaker_openings: Counter,
    breaker: AtomicU8,
    /// Verdicts that outlived their time because nobody could be asked.
    pub stale_kept: Counter,
    /// Answers that were asked for again because the whitelist had changed meanwhile.
    pub asked_again: Counter,
    /// Passkeys written to the whitelist after the endpoint vouched for them.
    pub write_backs: Counter,
    /// Passkeys that were not, because too many waited or were watched.
    pub write_backs_dropped: Counter,
    /// Passkeys that were not, because the whitelist failed.
    pub write_backs_failed: Counter,
    /// Passkeys taken out of the whitelist again, because it had changed while they were written, or because the site
    /// gave their owner another.
    pub take_backs: Counter,
    /// Passkeys that were not, because the whitelist failed or too many waited.
    pub take_backs_failed: Counter,
    /// Strangers who got an account.
    pub adoptions: Counter,
    /// Strangers who got none, because the database failed.
    pub adoptions_failed: Counter,
    /// Strangers whose peers had to go.
    pub shut_out: Counter,
}

impl VouchingCounters {
    /// Whether the endpoint is asked right now.
    pub fn breaker_state(&self) -> BreakerState {
        match self.breaker.load(Ordering::Relaxed) {
            0 => BreakerState::Closed,
            1 => BreakerState::Open,
            _ => BreakerState::Probing,
        }
    }

    pub(super) fn set_breaker_state(&self, state: BreakerState) {
        let number = match state {
            BreakerState::Closed => 0,
            BreakerState::Open => 1,
            BreakerState::Probing => 2,
        };
        self.breaker.store(number, Ordering::Relaxed);
    }
}

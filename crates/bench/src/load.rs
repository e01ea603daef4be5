//! Announce clients: closed loops that keep a fixed number of announces in flight.
//!
//! A client must be cheap, or it would be what is measured: requests are rendered beforehand, and replies are parsed
//! only to find their end and to detect failures.

pub mod http;
pub mod http_requests;
pub mod udp;
pub mod udp_packets;

use std::time::Duration;

use domain::clock::Stopwatch;

/// Silence of a server after which the run fails.
pub const SILENCE_S_MAX: u64 = 10;

/// How a client waits for replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Busy polling. A client that never sleeps need not be woken, so a slower server does not pay for waking it, as
    /// with clients on other machines. Needs its own core.
    Spin,
    /// Blocks in the kernel.
    Sleep,
}

#[derive(Clone, Copy, Debug)]
pub enum Until {
    Announces(u64),
    Elapsed(Duration),
}

impl Until {
    /// Whether enough has been sent.
    fn reached(self, sent: u64, since: &Stopwatch) -> bool {
        match self {
            Until::Announces(announces) => sent >= announces,
            Until::Elapsed(length) => since.elapsed() >= length,
        }
    }
}

/// The outcome of a run.
#[derive(Clone, Debug, Default)]
pub struct LoadResult {
    pub replies: u64,
    /// Bytes of all replies, HTTP headers included.
    pub reply_bytes: u64,
    /// Announces refused.
    pub failures: u64,
    /// The first failure reason.
    pub first_failure: Option<String>,
    /// Replies with a warning among those examined (HTTP only; one in [`WARNING_SAMPLE`]).
    pub warnings_sampled: u64,
    /// Datagrams without a reply (UDP only).
    pub lost: u64,
    /// From the first request to the last reply.
    pub elapsed: Duration,
}

/// One reply in this many is searched for a warning.
pub const WARNING_SAMPLE: u64 = 1024;

impl LoadResult {
    pub fn rate(&self) -> f64 {
        self.replies as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// The mean size of a reply.
    pub fn reply_bytes_mean(&self) -> f64 {
        self.reply_bytes as f64 / self.replies.max(1) as f64
    }
}

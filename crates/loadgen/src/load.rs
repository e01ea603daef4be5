//! The clients: closed loops that keep a fixed number of announces in flight.
//!
//! A client here must be cheap, or it would be what is measured: requests are rendered beforehand, replies are only
//! looked at as far as needed to tell where they end and whether they are refusals.

pub mod http;
pub mod http_requests;
pub mod udp;
pub mod udp_packets;

use std::time::Duration;

use domain::clock::Stopwatch;

/// How long a server may be silent before the run is given up.
pub const SILENCE_S_MAX: u64 = 10;

/// What a client does while no reply is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Asks again and again. A client that never sleeps need not be woken, so a server that is slower than the client
    /// does not pay for waking it: as with clients on other machines. Needs a core of its own.
    Spin,
    /// Sleeps until the kernel has something.
    Sleep,
}

/// When a run ends.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After so many announces.
    Announces(u64),
    /// After this time.
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

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Announces answered.
    pub replies: u64,
    /// Bytes of all replies, HTTP headers included.
    pub reply_bytes: u64,
    /// Announces answered with a refusal.
    pub failures: u64,
    /// The text of the first refusal.
    pub first_failure: Option<String>,
    /// Replies that carried a warning, as far as looked at (HTTP only; one in [`WARNING_SAMPLE`]).
    pub warnings_sampled: u64,
    /// Datagrams that were never answered (UDP only).
    pub lost: u64,
    /// From the first request to the last reply.
    pub elapsed: Duration,
}

/// Of how many replies one is searched for a warning.
pub const WARNING_SAMPLE: u64 = 1024;

impl Tally {
    /// Announces answered per second.
    pub fn rate(&self) -> f64 {
        self.replies as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// The mean size of a reply.
    pub fn reply_bytes_mean(&self) -> f64 {
        self.reply_bytes as f64 / self.replies.max(1) as f64
    }
}

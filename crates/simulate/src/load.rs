//! Load: announces of many peers, as fast as the server replies.
//!
//! Closed loops that keep a fixed number of announces in flight. A client must be cheap, or it would be what is
//! measured: requests are rendered beforehand, and replies are parsed only to find their end and to detect failures.

mod http;
mod http_requests;
mod paced;
mod peers;
mod schedule;
mod udp;

pub use http::{HttpClient, HttpShape, keeps_alive};
pub use http_requests::HttpRequests;
pub use paced::PacedResult;
pub use peers::{Peer, Peers, Shape, user_of};
pub use schedule::{FIRST_UPLOADED, Schedule, ScheduledAnnounce, UPLOADED_PER_ANNOUNCE};
pub use udp::{UdpClient, UdpPackets, UdpShape, udp_answers};

use std::time::Duration;

use domain::clock::Stopwatch;

use crate::error::SimulationError;

/// Silence of a server after which the run fails.
const SILENCE_S_MAX: u64 = 10;

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

    /// Without reading the clock.
    fn may_send(self, sent: u64) -> bool {
        !matches!(self, Until::Announces(announces) if sent >= announces)
    }
}

pub trait LoadClient {
    /// Announces until it is enough, then waits for what is in flight.
    fn run(&mut self, schedule: &mut Schedule, until: Until) -> Result<LoadResult, SimulationError>;
}

/// The outcome of a run.
#[derive(Clone, Debug, Default)]
pub struct LoadResult {
    pub replies: u64,
    /// Bytes of all replies, HTTP headers included.
    pub reply_bytes: u64,
    /// Announces refused.
    pub failures: u64,
    /// Those with `retry in` (HTTP only).
    pub told_to_retry: u64,
    /// The first failure reason.
    pub first_failure: Option<String>,
    /// Datagrams without a reply (UDP only).
    pub lost: u64,
    /// From the first request to the last reply.
    pub elapsed: Duration,
}

impl LoadResult {
    /// The mean size of a reply.
    pub fn reply_bytes_mean(&self) -> f64 {
        self.reply_bytes as f64 / self.replies.max(1) as f64
    }

    /// Replies that were no refusal.
    pub fn accepted(&self) -> u64 {
        self.replies - self.failures
    }

    fn add_failure(&mut self, reason: &[u8]) {
        self.failures += 1;
        self.first_failure.get_or_insert_with(|| String::from_utf8_lossy(reason).into_owned());
    }
}

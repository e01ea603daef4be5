//! Shared types: ids, traffic events, time and the timing wheel.
//!
//! # Layout
//!
//! - [`ids`]: `InfoHash`, `PeerId`, `Passkey`, `UserId`…, with strict parsing
//! - [`mod@announce`]: `Announce`, as a client sent it
//! - [`event`]: `TrafficEvent`, what a tracker records of an announce
//! - [`hex`], [`percent`]: text encodings of bytes
//! - [`rate`], [`risk`]: rate ceiling, and risk events
//! - [`time`]: seconds as a type
//! - [`clock`]: the one module that reads the clock
//! - [`wheel`]: timing wheel for deadlines that heartbeats extend
//! - [`counter`], [`histogram`]: counters and latency histograms
//! - [`backoff`], [`circuit_breaker`], [`rate_limit`]: delays between retries, pauses of calls that fail, limits of requests
//! - `counted`: a number with its noun
//! - [`named!`], [`Named`]: enumerations whose variants have names
//! - [`log_throttle`]: limits log lines that clients can cause
//!
//! Nothing here does I/O. Only [`clock`] reads the time.

pub mod announce;
pub mod backoff;
pub mod circuit_breaker;
pub mod clock;
mod counted;
pub mod counter;
pub mod event;
pub mod hex;
pub mod histogram;
pub mod ids;
pub mod log_throttle;
mod named;
pub mod percent;
pub mod rate;
pub mod rate_limit;
pub mod risk;
pub mod time;
pub mod wheel;

pub use announce::{Announce, Families};
pub use backoff::Backoff;
pub use circuit_breaker::CircuitBreaker;
pub use counted::counted;
pub use counter::{Counter, Level};
pub use event::{AnnounceEvent, Cause, TrafficEvent};
pub use histogram::Histogram;
pub use ids::{
    ClientId, ClientKey, IdError, InfoHash, NodeId, Passkey, PeerId, RunId, SessionId, TorrentId, UserId,
};
pub use log_throttle::LogThrottle;
pub use named::Named;
pub use rate::RateCeiling;
pub use rate_limit::{LeakyBucket, RateLimit, RateLimiter};
pub use risk::{RiskEvent, RiskKind};
pub use time::{AHEAD_MAX, Seconds, SilenceLimit, UnixTime};

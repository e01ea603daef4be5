//! What every other crate speaks of: ids, traffic events, time and the timing wheel.
//!
//! # Layout
//!
//! - [`ids`]: `InfoHash`, `PeerId`, `Passkey`, `UserId`…, strict to parse, plain to print
//! - [`event`]: `TrafficEvent`, the one thing a tracker says about an announce
//! - [`rate`], [`risk`]: how much a client can have moved, and who claims more
//! - [`time`]: seconds as a type
//! - [`clock`]: the one module that reads the clock
//! - [`wheel`]: deadlines that heartbeats push back
//! - [`counter`], [`histogram`]: how many there were, and how long they took
//! - [`log_throttle`]: log lines that others can cause as often as they like
//!
//! Nothing here does I/O. Nothing but [`clock`] knows what time it is.

pub mod clock;
pub mod counter;
pub mod event;
mod hex;
pub mod histogram;
pub mod ids;
pub mod log_throttle;
pub mod rate;
pub mod risk;
pub mod time;
pub mod wheel;

pub use counter::{Counter, Level};
pub use event::{AnnounceEvent, Cause, TrafficEvent};
pub use histogram::Histogram;
pub use ids::{
    ClientId, ClientKey, IdError, InfoHash, NodeId, Passkey, PeerId, RunId, SessionId, TorrentId, UserId,
};
pub use log_throttle::LogThrottle;
pub use rate::RateCeiling;
pub use risk::{RiskEvent, RiskKind};
pub use time::{Seconds, UnixTime};

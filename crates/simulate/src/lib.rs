//! Simulates BitTorrent clients and users against a running server, over real sockets.
//!
//! `rollcall demo` uses it, and so do tests that need a server with activity.
//!
//! # Layout
//!
//! - [`plan`]: size, pace, seed, and the server's addresses
//! - [`catalogue`]: users, torrents, client rules and friendships, inserted into the database
//! - [`names`], [`clients`]: names of torrents, and BitTorrent client programs
//! - [`population`]: all peers and users, and when each acts next; `peer`, `swarm` and `user` decide what they do
//! - [`announce`], `transport`: announces, and how they are sent
//! - [`frames`], `device`: a user's device on its WebSocket
//! - [`simulation`]: the task that runs the population
//! - [`expected`]: the accounts that the server must have in the end
//!
//! # Guarantees
//!
//! - All actions follow from the seed and the server's replies; time and replies are arguments, so a population can run
//!   without a server.
//! - Bytes add up: peers upload only what others downloaded, within their bandwidth.
//! - Clients announce at the interval that the server sets, and repeat announces without a reply, with totals that only
//!   grow.
//! - [`Simulation::expected_accounts`] equals the ledger to the byte, once the simulation has stopped and no reply was
//!   lost.
//!
//! # Deliberately absent
//!
//! Content: no piece is transferred. Load tests with tens of thousands of users: see the crate `bench`.

pub mod announce;
pub mod catalogue;
pub mod clients;
mod device;
mod error;
pub mod expected;
pub mod frames;
pub mod names;
mod peer;
pub mod plan;
pub mod population;
pub mod simulation;
mod swarm;
mod transport;
mod user;

pub use error::SimulationError;
pub use expected::{ExpectedAccounts, Transferred};
pub use plan::{Plan, ServerAddresses, Target, TokenIssuer};
pub use simulation::{Simulation, SimulationCounters};

//! Simulates BitTorrent clients and users against a running server, over real sockets.
//!
//! `rollcall demo` uses it, and so do tests and benchmarks. Behaviour is pure and follows from a seed; sockets are at
//! the edge.
//!
//! # Layout
//!
//! - [`announce`], [`reply`]: announces and their outcomes, as values and as bytes
//! - [`transport`]: announces over blocking sockets
//! - [`websocket`]: tens of thousands of WebSocket clients on one thread
//! - [`truth`]: what the server must have in the end
//!
//! Three populations:
//!
//! - [`simulation`] runs [`population`]: peers and users that live in real time, as on a site; `peer`, `swarm` and
//!   `user` decide what they do. [`plan`] has size, pace and seed, [`catalogue`] the users, torrents and friendships,
//!   [`names`] and [`clients`] their names and programs
//! - [`stepped`]: clients that announce as fast as the server replies, through its failures, with exact totals
//! - [`load`]: announces of up to ten million peers, rendered beforehand
//!
//! # Guarantees
//!
//! - All actions follow from the seed and the server's replies; time and replies are arguments, so a population can run
//!   without a server.
//! - Bytes of a simulation add up: peers upload only what others downloaded, within their bandwidth.
//! - Its clients announce at the interval that the server sets, and repeat announces without a reply, with totals that
//!   only grow.
//! - [`Simulation::truth`] equals the ledger to the byte, once the simulation has stopped and no reply was lost; that of
//!   [`stepped::SteppedClients`] does in any case.
//!
//! # Deliberately absent
//!
//! Content: no piece is transferred.

pub mod announce;
pub mod catalogue;
pub mod clients;
mod error;
pub mod load;
pub mod names;
mod peer;
pub mod plan;
pub mod population;
pub mod reply;
pub mod simulation;
pub mod stepped;
mod swarm;
pub mod transport;
pub mod truth;
mod user;
pub mod websocket;

pub use error::SimulationError;
pub use plan::{Plan, ServerAddresses, Target, TokenIssuer};
pub use simulation::{Simulation, SimulationCounters};
pub use truth::{ActivityLists, Moved, Truth};

//! Load over HTTP and UDP, reported as ratios to a server that does nothing.
//!
//! Machines differ and are noisy, so a figure alone says little. Every figure here stands beside a limit that was
//! measured in the same run, by the same client with the same bytes: a do-nothing server that answers with replies
//! of the same size. What is kept in budgets is the ratio.
//!
//! # Layout
//!
//! - [`population`]: peers, users and torrents, derived from numbers, so that ten million cost nothing to hold
//! - [`schedule`]: who announces next, with which event and which counters
//! - [`load`]: the clients: [`load::http`] and [`load::udp`]
//! - [`floor`]: the do-nothing servers: [`floor::http`] and [`floor::udp`]
//! - [`process`]: servers as child processes on a core of their own, and the processor time they took
//! - [`server`]: the tracker under test: its database, its settings, its start
//! - [`rounds`]: alternating rounds against two servers, and medians
//! - [`over_socket`]: the two socket benchmarks, put together from the above
//! - [`swarm_cost`]: bytes per peer and time per announce, in process
//! - [`instructions`]: instruction counts left behind by the callgrind benchmark
//! - [`report`]: the table and the JSON
//! - [`progress`]: what is under way, on the terminal
//! - [`bench`]: all of it in order
//!
//! All load goes to 127.0.0.1, is bounded in count or time, and ends by itself.

pub mod bench;
pub mod error;
pub mod floor;
pub mod instructions;
pub mod load;
pub mod over_socket;
pub mod population;
pub mod process;
pub mod progress;
pub mod report;
pub mod rounds;
pub mod schedule;
pub mod server;
pub mod swarm_cost;

pub use error::LoadError;

//! Benchmarks over HTTP, UDP and WebSocket, and of the journal and its views, reported as ratios to a limit.
//!
//! Machines differ and are noisy, so absolute figures are of little use. Every figure is reported beside a limit
//! measured in the same run with the same bytes: a fixed-response server with replies of the same size, or a Redis or
//! database that receives the same entries or rows directly. Budgets are ratios.
//!
//! # Layout
//!
//! - [`table`]: every benchmark with its rows: what is measured, against which limit, within which budget
//! - `all_in`, `overload`, `swarms`, `journal`, `ledger`, `views`, `nodes`, `gateway`, `presence`, `idle`: the benchmarks
//! - [`run`]: runs them; [`sizes`]: how much of everything; [`report`]: the table and the JSON
//! - `measure`: rounds of both sides, medians, percentiles; [`process`]: servers on their own core, processor time
//! - `server`, `store`: the server under test and what it uses; [`against`]: other trackers; `sockets`: announces to them
//! - [`baseline`]: fixed-response servers; `raw_redis`: one connection to Redis; `testbed`: gateways with clients, [`friends`]:
//!   their friendships; `progress`: progress on the terminal
//! - [`load`]: peers as the swarms receive them, and journal entries as a tracker would write them
//!
//! All load goes to 127.0.0.1, is bounded in count or time, and ends by itself.

pub mod against;
mod all_in;
pub mod baseline;
pub mod friends;
mod gateway;
mod idle;
mod journal;
mod ledger;
pub mod load;
mod measure;
mod nodes;
mod overload;
mod presence;
pub mod process;
mod progress;
mod raw_redis;
pub mod report;
pub mod run;
mod server;
pub mod sizes;
pub mod sockets;
mod store;
mod swarms;
pub mod table;
mod testbed;
mod views;

pub use run::{Options, run};
pub use sizes::Sizes;

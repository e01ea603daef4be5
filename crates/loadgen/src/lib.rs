//! Load over HTTP, UDP and WebSocket, and on the journal and its views, reported as ratios to a limit.
//!
//! Machines differ and are noisy, so a figure alone says little. Every figure here stands beside a limit that was
//! measured in the same run, with the same bytes: a do-nothing server that answers with replies of the same size, or
//! a Redis or database that is sent the same entries or rows with nothing in between. What is kept in budgets is the
//! ratio.
//!
//! # Layout
//!
//! - [`population`]: peers, users and torrents, derived from numbers, so that ten million cost nothing to hold
//! - [`schedule`]: who announces next, with which event and which counters
//! - [`load`]: the clients: [`load::http`] and [`load::udp`]
//! - [`crowd`]: people on WebSockets, by the ten thousand
//! - [`floor`]: the do-nothing servers: [`floor::http`], [`floor::udp`] and [`floor::websocket`]
//! - [`process`]: servers as child processes on a core of their own, and the processor time they took
//! - [`server`]: the tracker under test: its database, its settings, its start
//! - [`rounds`]: alternating rounds against two servers, and medians
//! - [`over_socket`]: the two socket benchmarks, put together from the above
//! - [`swarm_cost`]: bytes per peer and time per announce, in process
//! - [`traffic`]: what a tracker would write to the journal
//! - [`journal_append`], [`ledger_rate`], [`activity_rate`], [`mirror_rate`]: entries per second into the journal and its views
//! - [`queue_memory`]: bytes per entry that waits to be stored
//! - [`raw_redis`]: the limit of what one connection gets into Redis
//! - [`contest`]: rates of the product beside rates of the raw limit
//! - [`installed`]: whether the servers to be measured are there
//! - [`one_log`]: the journal and its views in order
//! - [`nodes`]: how soon trackers know what others heard, and how fast swarms come back
//! - [`gateway_cost`]: what sessions of people cost, and how soon their friends are told
//! - [`presence_redis`]: what presence over several gateways costs in Redis, and how soon it is told
//! - [`latencies`]: how long many of the same kind took
//! - [`allocator`]: what the allocator has handed out
//! - [`instructions`]: instruction counts left behind by the callgrind benchmark
//! - [`report`]: the table and the JSON
//! - [`progress`]: what is under way, on the terminal
//! - [`bench`]: all of it in order
//!
//! All load goes to 127.0.0.1, is bounded in count or time, and ends by itself.

pub mod activity_rate;
pub mod allocator;
pub mod bench;
pub mod contest;
pub mod crowd;
pub mod error;
pub mod floor;
pub mod gateway_cost;
pub mod installed;
pub mod instructions;
pub mod journal_append;
pub mod latencies;
pub mod ledger_rate;
pub mod load;
pub mod mirror_rate;
pub mod nodes;
pub mod one_log;
pub mod over_socket;
pub mod population;
pub mod presence_redis;
pub mod process;
pub mod progress;
pub mod queue_memory;
pub mod raw_redis;
pub mod report;
pub mod rounds;
pub mod schedule;
pub mod server;
pub mod swarm_cost;
pub mod traffic;

pub use error::LoadError;

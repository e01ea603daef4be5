//! Benchmarks over HTTP, UDP and WebSocket, and of the journal and its views, reported as ratios to a limit.
//!
//! Machines differ and are noisy, so absolute figures are of little use. Every figure is reported beside a limit
//! measured in the same run with the same bytes: a fixed-response server with replies of the same size, or a Redis or
//! database that receives the same entries or rows directly. Budgets are ratios.
//!
//! # Layout
//!
//! - [`population`]: peers, users and torrents, derived from numbers, so that ten million need no memory
//! - [`schedule`]: the sequence of announces
//! - [`load`]: announce clients: [`load::http`] and [`load::udp`]
//! - [`websocket_clients`]: tens of thousands of WebSocket clients
//! - [`baseline`]: fixed-response servers: [`baseline::http`], [`baseline::udp`] and [`baseline::websocket`]
//! - [`process`]: servers as child processes on their own core, and their processor time
//! - [`server`]: the tracker under test: database, settings, start
//! - [`rounds`]: alternating rounds against two servers, and medians
//! - [`socket_rate`]: announces per second over HTTP and UDP
//! - [`swarm_cost`]: bytes per peer and time per announce, in process
//! - [`traffic`]: journal entries as a tracker would write them
//! - [`journal_append`], [`ledger_rate`], [`activity_rate`], [`mirror_rate`]: entries per second into the journal and
//!   its views
//! - [`queue_memory`]: bytes per queued entry
//! - [`raw_redis`]: the limit of one connection to Redis
//! - [`rate_comparison`]: rates of the product against rates of the raw limit
//! - [`installed`]: checks that required servers are installed
//! - [`journal_and_views`]: the journal measurements in order
//! - [`nodes`]: replication delay between trackers, and warm start
//! - [`gateway_cost`]: memory and processor time of sessions, notification latency
//! - [`presence_redis`]: cost of presence across gateways in Redis
//! - [`latencies`]: latency percentiles
//! - [`allocator`]: allocated bytes
//! - [`instructions`]: instruction counts of the callgrind benchmark
//! - [`report`]: the table and the JSON
//! - [`page`]: the table in `docs/benchmarks.md`
//! - [`progress`]: progress bars
//! - [`suite`]: all measurements in order
//!
//! All load goes to 127.0.0.1, is bounded in count or time, and ends by itself.

pub mod activity_rate;
pub mod allocator;
pub mod baseline;
pub mod error;
pub mod gateway_cost;
pub mod installed;
pub mod instructions;
pub mod journal_and_views;
pub mod journal_append;
pub mod latencies;
pub mod ledger_rate;
pub mod load;
pub mod mirror_rate;
pub mod nodes;
pub mod page;
pub mod population;
pub mod presence_redis;
pub mod process;
pub mod progress;
pub mod queue_memory;
pub mod rate_comparison;
pub mod raw_redis;
pub mod report;
pub mod rounds;
pub mod schedule;
pub mod server;
pub mod socket_rate;
pub mod suite;
pub mod swarm_cost;
pub mod traffic;
pub mod websocket_clients;

pub use error::BenchError;

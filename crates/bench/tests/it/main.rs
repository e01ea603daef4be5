//! - `benchmarks`: every benchmark runs to its end, at sizes that are too small to measure speed
//! - `load_clients`, `websocket_clients`: the simulated clients against the fixed-response servers
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod benchmarks;
mod load_clients;
mod websocket_clients;

// As in the program, or the allocator's counters would count nothing.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

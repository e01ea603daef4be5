//! Integration tests of `bench`: one program, a module for each subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod clients_and_baselines;
mod gateway_cost;
mod journal_and_views;
mod nodes;
mod websocket_clients;

// As in the program, or the allocator's counters would count nothing.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

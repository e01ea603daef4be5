//! Integration tests of `presence`: one program, a module for each subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod aggregation;
mod hiding;
mod histories;
mod memory;
mod model;
mod remote;
mod returning;
mod state_machine;
mod support;
mod timeouts;

// As in the program. Tests of memory and allocations read the counters of their own thread, whatever others do.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

//! Integration tests of `swarm`: one program, a module for each subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod accounts;
mod copying;
mod membership;
mod memory;
mod replication;
mod slots;
mod support;

// As in the program. Tests of memory and allocations read the counters of their own thread, whatever others do.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

//! Integration tests of `access`: one program, a module for each subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod catalogue;
mod clients;
mod external_users;
mod fixture;
mod follow;
mod gate;
mod moderation;
mod redis_source;
mod sqlite_file;
mod store;
mod verification;
mod verification_cost;
mod verification_races;
mod whitelist;
mod whitelist_feed;
mod whitelist_redis;

// As in the program. Tests of memory and allocations read the counters of their own thread, whatever others do.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

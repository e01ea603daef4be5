//! More than one process: one that takes another's place, and a Redis Cluster whose masters die.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../site/mod.rs"]
mod site;

mod failover;
mod restless;
mod take_over;

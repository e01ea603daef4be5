//! More than one process: one that takes another's place, several that serve the same swarms, and a Redis Cluster whose
//! masters die.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../site/mod.rs"]
mod site;

mod busy_clients;
mod failover;
mod gateways;
mod nodes;
mod starts;
mod take_over;
mod three_nodes;
mod warm_start;

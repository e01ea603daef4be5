//! `ClusterStore` on a real Redis, single and cluster: entries of several gateways, dead gateways, random histories.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[macro_use]
mod fixture;
mod model;
mod nodes;
mod users;

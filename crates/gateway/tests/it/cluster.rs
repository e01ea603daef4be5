//! `ClusterStore` on a real Redis, single and cluster: entries of several gateways, dead gateways, random histories.

#[macro_use]
mod fixture;
mod model;
mod nodes;
mod users;

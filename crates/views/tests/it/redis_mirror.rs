//! The Redis mirror, on a single server and on a cluster.

mod fixture;
mod histories;
mod model;
mod names;
mod rules;
mod sweeps;

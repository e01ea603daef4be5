//! The mirror, on a single server and on a cluster.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "mirror/fixture.rs"]
mod fixture;
#[path = "mirror/histories.rs"]
mod histories;
#[path = "mirror/model.rs"]
mod model;
#[path = "mirror/names.rs"]
mod names;
#[path = "mirror/rules.rs"]
mod rules;
#[path = "mirror/sweeps.rs"]
mod sweeps;

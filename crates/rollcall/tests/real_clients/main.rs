//! Real clients move real files with nothing but this tracker to find each other by.
//!
//! Every test has a server, users and clients of its own. The seeder, the leecher and the watcher who scrapes are
//! three users, since nobody is given their own peers.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod refusals;
mod scenario;
mod transfers;

//! The metrics page, of real parts: what it says, and that Prometheus and its tools agree.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod failures;
mod files;
mod page;
mod promtool;
mod server;

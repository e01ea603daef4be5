//! The metrics page of a server, and the files for Prometheus and Grafana.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod failures;
mod files;
mod page;
mod promtool;
mod server;

//! The metrics page of a server, and the files for Prometheus and Grafana.

mod failures;
mod files;
mod page;
mod promtool;
mod server;

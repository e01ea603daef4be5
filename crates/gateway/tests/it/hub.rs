//! The hub on a real database, read through real outboxes.

mod churn;
mod cluster;
mod conformance;
mod feeds;
mod fixture;
mod hiding;
mod rooms;
mod running;
mod typing;

//! The hub on a real database, read through real outboxes.

mod churn;
mod conformance;
mod feeds;
mod hiding;
mod rig;
mod rooms;
mod running;
mod together;
mod typing;

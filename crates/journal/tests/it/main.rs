//! Integration tests of `journal`: one program, a module for each subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[macro_use]
mod conformance;

mod consumer;
mod cutting_proxy;
mod entry;
mod events;
mod ordered;
mod packed;
mod queue;
mod redis;
mod redis_cluster;
mod redis_faults;
mod redis_replicas;
mod sqlite;
mod sqlite_file;
mod sqlite_upgrade;

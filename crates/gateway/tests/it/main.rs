//! Integration tests of `gateway`: one program, a module for each subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cluster;
mod connections;
mod hub;
mod outbox;
mod webhooks;

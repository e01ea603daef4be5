//! Integration tests of `tracker`: one program, a module for each subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod acknowledged;
mod drain;
mod expiry;
mod fuzz_connections;
mod limits;
mod moderation;
mod proxies;
mod quirks;
mod support;
mod take_over;
mod tls;
mod udp;

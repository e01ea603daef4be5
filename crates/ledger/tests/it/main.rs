//! Integration tests of `ledger`: one program, a module for each subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[macro_use]
mod support;

mod crash;
mod exactly_once;
mod explaining;
mod lives;
mod looking;
mod packed_clients;
mod rules;
mod two_writers;

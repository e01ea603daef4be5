//! Integration tests of `admin`: one program, a module for each subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod audit;
mod fixture;
mod keys;
mod sessions;

//! Integration tests of `domain`: one program, a module for each subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod ids;
mod wheel;

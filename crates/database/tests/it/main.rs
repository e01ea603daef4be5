//! Integration tests of `database`: one program, a module for each subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod databases;
mod kept;

//! Integration tests of `sites`: one program, a module for each subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod checking;
mod reading;
mod staging;
mod support;
mod writing;

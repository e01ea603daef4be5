//! Integration tests of `views`: one program, a module for each subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod activity;
mod activity_redis;
mod redis_mirror;

//! Thousands of people at once, over real connections to the real program: all of them reconnect at once, come and go,
//! and are still there after the program was killed (P4, P5, P11).
//!
//! `LOAD_SESSIONS` says how many people there are; `make load` runs this with 15,000 of them on a program that is built
//! for speed. What a process may open bounds the number.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod churn;
mod restart;
mod site;
mod storm;
mod watcher;

//! Presence as real clients see it: the published SDKs, unchanged; our own libraries; pages in a real Chromium; processes
//! that stop, die or lose their network without a word.
//!
//! Each client is a program in `agents/` that takes commands and tells what happens; see `agent`. Every test has a server
//! and people of its own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agent;
mod browser;
mod fixture;
mod libraries;
mod operators;
mod published_sdks;
mod silence;

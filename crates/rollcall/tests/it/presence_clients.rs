//! Presence with real clients: the published SDKs, unchanged; our own libraries; pages in a real Chromium; processes
//! that stop, die or lose their network silently.
//!
//! Each client is a program in `agents/` that takes commands and reports events; see `agent`. Every test has its own
//! server and users.

pub mod agent;
mod browser;
mod fixture;
mod libraries;
mod published_sdks;
mod silence;

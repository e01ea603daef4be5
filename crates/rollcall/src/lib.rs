//! The binary's inside: command line, configuration and logging.
//!
//! # Layout
//!
//! - [`config`]: what an operator can set

pub mod config;

//! What the allocator has handed out.
//!
//! Counts only what goes through jemalloc, so only a program that has it as its allocator learns anything.

use tikv_jemalloc_ctl::{epoch, stats};

use crate::error::LoadError;

/// Bytes handed out and not given back, as the allocator counts them: rounded up to its size classes.
pub fn allocated_bytes() -> Result<usize, LoadError> {
    let unreadable = |error: tikv_jemalloc_ctl::Error| LoadError::Unreadable {
        what: "the allocator's statistics".to_owned(),
        why: error.to_string(),
    };
    epoch::advance().map_err(unreadable)?;
    stats::allocated::read().map_err(unreadable)
}

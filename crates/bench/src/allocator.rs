//! Bytes allocated by jemalloc.
//!
//! Only programs with jemalloc as their global allocator get a meaningful number.

use tikv_jemalloc_ctl::{epoch, stats};

use crate::error::BenchError;

/// Allocated and not freed, rounded up to size classes.
pub fn allocated_bytes() -> Result<usize, BenchError> {
    let unreadable = |error: tikv_jemalloc_ctl::Error| BenchError::Unreadable {
        what: "the allocator's statistics".to_owned(),
        why: error.to_string(),
    };
    epoch::advance().map_err(unreadable)?;
    stats::allocated::read().map_err(unreadable)
}

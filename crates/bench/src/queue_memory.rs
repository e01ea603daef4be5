//! Memory of a queued event.

use journal::Queue;
use serde::Serialize;

use crate::allocator::allocated_bytes;
use crate::error::BenchError;
use crate::traffic::{Traffic, TrafficKind};

/// The memory of a full queue.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct QueueMemory {
    pub events: u32,
    /// Size of the struct.
    pub bytes_per_event: usize,
    /// Allocated per event, unused capacity included.
    pub allocated_per_event: f64,
}

/// Fills a queue and reads the allocator's counters.
pub fn measure(events: u32) -> Result<QueueMemory, BenchError> {
    let traffic = Traffic::new(events, TrafficKind::Steady);
    let before = allocated_bytes()?;
    let queue = Queue::new(events as usize);
    for position in 0..u64::from(events) {
        queue.put_blocking(&traffic.event(position));
    }
    let allocated = allocated_bytes()?.saturating_sub(before);
    assert_eq!(queue.occupied(), events as usize, "every event has a place");
    Ok(QueueMemory {
        events,
        bytes_per_event: journal::queue::BYTES_PER_EVENT,
        allocated_per_event: allocated as f64 / f64::from(events),
    })
}

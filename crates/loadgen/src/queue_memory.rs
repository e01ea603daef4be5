//! What an event takes while it waits to be stored.

use journal::Queue;
use serde::Serialize;

use crate::allocator::allocated_bytes;
use crate::error::LoadError;
use crate::traffic::{Mood, Traffic};

/// The memory of a full queue.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct QueueMemory {
    /// Events in it.
    pub events: u32,
    /// What one is made of.
    pub bytes_per_event: usize,
    /// What one takes, by the allocator's counters, room for further ones included.
    pub allocated_per_event: f64,
}

/// Fills a queue and looks what the allocator has handed out since.
pub fn measure(events: u32) -> Result<QueueMemory, LoadError> {
    let traffic = Traffic::new(events, Mood::Steady);
    let before = allocated_bytes()?;
    let queue = Queue::new(events as usize);
    for position in 0..u64::from(events) {
        queue.put_patiently(&traffic.event(position));
    }
    let allocated = allocated_bytes()?.saturating_sub(before);
    assert_eq!(queue.occupied(), events as usize, "every event has a place");
    Ok(QueueMemory {
        events,
        bytes_per_event: journal::queue::BYTES_PER_EVENT,
        allocated_per_event: allocated as f64 / f64::from(events),
    })
}

//! Latency histogram with fixed bounds that any thread may record into.
//!
//! # Guarantees
//!
//! - Recording allocates nothing and takes no lock: two additions to counters that other threads rarely touch. Threads
//!   are spread over a few sets of counters, which a reader sums.
//! - A reader sees every measurement once; one that is being recorded may be in the count and not yet in the sum.
//!
//! # Deliberately absent
//!
//! Configurable bounds: one set covers everything from a lookup in memory to a call that times out, and equal bounds
//! can be compared.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The upper bounds of the buckets, in microseconds; the last bucket has none.
pub const BOUNDS_US: [u64; 19] = [
    10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000,
];

/// Including the one without an upper bound.
pub const BUCKETS: usize = BOUNDS_US.len() + 1;

/// Sets of counters: about one per core.
const SHARDS: usize = 8;

#[derive(Debug, Default)]
pub struct Histogram {
    shards: [Shard; SHARDS],
}

/// The counters of some threads, on their own cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard {
    buckets: [AtomicU64; BUCKETS],
    sum_ns: AtomicU64,
}

/// The contents at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Measurements in each bucket, not cumulative.
    pub buckets: [u64; BUCKETS],
    pub sum: Duration,
}

impl Snapshot {
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

thread_local! {
    static SHARD: usize = next_shard();
}

/// Threads are assigned round-robin.
fn next_shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS
}

impl Histogram {
    pub fn record(&self, length: Duration) {
        // A terminating thread has lost its number, and uses the first shard.
        let shard = &self.shards[SHARD.try_with(|shard| *shard).unwrap_or(0)];
        let nanoseconds = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        // A bound belongs to its own bucket.
        let bucket = BOUNDS_US.partition_point(|bound| bound * 1_000 < nanoseconds);
        shard.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        shard.sum_ns.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for shard in &self.shards {
            for (sum, bucket) in snapshot.buckets.iter_mut().zip(&shard.buckets) {
                *sum += bucket.load(Ordering::Relaxed);
            }
            snapshot.sum += Duration::from_nanos(shard.sum_ns.load(Ordering::Relaxed));
        }
        snapshot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_is_in_the_bucket_whose_bound_it_does_not_exceed() {
        let histogram = Histogram::default();
        histogram.record(Duration::ZERO);
        histogram.record(Duration::from_micros(10));
        histogram.record(Duration::from_nanos(10_001));
        histogram.record(Duration::from_secs(10));
        histogram.record(Duration::from_secs(11));
        let snapshot = histogram.snapshot();
        assert_eq!(snapshot.buckets[0], 2);
        assert_eq!(snapshot.buckets[1], 1);
        assert_eq!(snapshot.buckets[BUCKETS - 2], 1);
        assert_eq!(snapshot.buckets[BUCKETS - 1], 1);
        assert_eq!(snapshot.sum, Duration::from_nanos(21_000_020_001));
    }

    #[test]
    fn what_many_threads_record_is_all_there() {
        let histogram = Histogram::default();
        std::thread::scope(|scope| {
            for thread in 0..20 {
                let histogram = &histogram;
                scope.spawn(move || {
                    (0..1_000).for_each(|step| histogram.record(Duration::from_micros(thread * step)))
                });
            }
        });
        let snapshot = histogram.snapshot();
        assert_eq!(snapshot.count(), 20_000);
        assert_eq!(snapshot.sum, Duration::from_micros(190 * 499_500));
    }
}

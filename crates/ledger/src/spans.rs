//! Time spent on a torrent as a set of spans: wall-clock time, however many clients and nodes report it.
//!
//! # Guarantees
//!
//! - Each second counts once: the length is that of the union of all spans.
//! - Neither order nor repetition matters, as long as there are no more than [`SPANS_MAX`] gaps. Beyond that the oldest
//!   span is closed: nothing is counted before its end.

use domain::UnixTime;

use crate::varint::{push_number, take_number};

/// A client that announces regularly has one span; each absence starts another.
pub const SPANS_MAX: usize = 32;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// Nothing before this time is counted.
    floor: u32,
    /// Disjoint, not touching, in order.
    spans: Vec<Span>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    from: u32,
    to: u32,
}

impl Span {
    fn length(self) -> u32 {
        self.to - self.from
    }
}

impl Spans {
    /// Adds a span and returns how many seconds of it were not covered yet.
    pub fn insert(&mut self, from: UnixTime, to: UnixTime) -> u32 {
        let mut span = Span { from: from.0.max(self.floor), to: to.0 };
        if span.from >= span.to {
            return 0;
        }
        let first = self.spans.partition_point(|known| known.to < span.from);
        let behind = self.spans.partition_point(|known| known.from <= span.to);
        let mut covered = 0;
        for known in self.spans.drain(first..behind) {
            covered += known.length();
            span = Span { from: span.from.min(known.from), to: span.to.max(known.to) };
        }
        self.spans.insert(first, span);
        if self.spans.len() > SPANS_MAX {
            self.floor = self.spans.remove(0).to;
        }
        span.length() - covered
    }

    fn push_to(&self, bytes: &mut Vec<u8>) {
        push_number(bytes, self.spans.len() as u64);
        push_number(bytes, self.floor.into());
        let mut end = self.floor;
        for span in &self.spans {
            push_number(bytes, u64::from(span.from - end));
            push_number(bytes, u64::from(span.length()));
            end = span.to;
        }
    }

    fn take_from(bytes: &mut &[u8]) -> Option<Spans> {
        let count = usize::try_from(take_number(bytes)?).ok().filter(|count| *count <= SPANS_MAX)?;
        let mut take = || u32::try_from(take_number(bytes)?).ok();
        let floor = take()?;
        let mut end = floor;
        let mut spans = Vec::with_capacity(count);
        for _ in 0..count {
            let from = end.checked_add(take()?)?;
            end = from.checked_add(take()?)?;
            spans.push(Span { from, to: end });
        }
        Some(Spans { floor, spans })
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeSpent {
    pub seeding: Spans,
    pub leeching: Spans,
}

/// Empty if no time was spent.
pub(crate) fn pack(time: &TimeSpent) -> Vec<u8> {
    let mut bytes = Vec::new();
    if *time != TimeSpent::default() {
        time.seeding.push_to(&mut bytes);
        time.leeching.push_to(&mut bytes);
    }
    bytes
}

/// None if the bytes are malformed.
pub(crate) fn unpack(mut bytes: &[u8]) -> Option<TimeSpent> {
    if bytes.is_empty() {
        return Some(TimeSpent::default());
    }
    let seeding = Spans::take_from(&mut bytes)?;
    let leeching = Spans::take_from(&mut bytes)?;
    bytes.is_empty().then_some(TimeSpent { seeding, leeching })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn insert_all(spans: &[(u32, u32)]) -> (Spans, u32) {
        let mut all = Spans::default();
        let gained =
            spans.iter().map(|(from, length)| all.insert(UnixTime(*from), UnixTime(from + length))).sum();
        (all, gained)
    }

    #[test]
    fn l4_five_clients_that_seed_for_thirty_seconds_seed_for_thirty_seconds() {
        let (_, gained) = insert_all(&[(1000, 30); 5]);
        assert_eq!(gained, 30);
    }

    #[test]
    fn spans_that_touch_become_one() {
        let (all, gained) = insert_all(&[(100, 50), (200, 50), (150, 50)]);
        assert_eq!((all.spans.len(), gained), (1, 150));
    }

    #[test]
    fn the_number_of_spans_is_bounded_and_closed_ones_count_once() {
        let apart: Vec<(u32, u32)> = (1..=100).map(|n| (n * 1000, 10)).collect();
        let (mut all, gained) = insert_all(&apart);
        assert_eq!((all.spans.len(), gained), (SPANS_MAX, 1000));
        assert_eq!(all.insert(UnixTime(1000), UnixTime(1010)), 0, "counted before");
        let packed = pack(&TimeSpent { seeding: all.clone(), leeching: all });
        assert!(packed.len() <= 1024, "{} bytes do not fit the column", packed.len());
    }

    #[test]
    fn the_longest_spans_fit_the_column() {
        let wide: Vec<(u32, u32)> = (0..=31).map(|n| (n << 27, (1 << 27) - 1)).collect();
        let (all, _) = insert_all(&wide);
        assert!(pack(&TimeSpent { seeding: all.clone(), leeching: all }).len() <= 1024);
    }

    proptest! {
        #[test]
        fn any_order_covers_the_same_time(
            mut spans in prop::collection::vec((0..500_u32, 0..60_u32), 0..SPANS_MAX), seed: u64,
        ) {
            let moments: std::collections::BTreeSet<u32> =
                spans.iter().flat_map(|(from, length)| *from..from + length).collect();
            let (in_order, gained) = insert_all(&spans);
            prop_assert_eq!(gained as usize, moments.len());
            fastrand::Rng::with_seed(seed).shuffle(&mut spans);
            prop_assert_eq!(insert_all(&spans).0, in_order);
        }

        #[test]
        fn packed_spans_round_trip(spans in prop::collection::vec((any::<u32>(), 0..60_u32), 0..100)) {
            let spans: Vec<_> = spans.into_iter().map(|(from, length)| (from.min(u32::MAX - 60), length)).collect();
            let time = TimeSpent { seeding: insert_all(&spans).0, leeching: Spans::default() };
            prop_assert_eq!(unpack(&pack(&time)), Some(time));
        }

        #[test]
        fn unpacking_never_panics(bytes: Vec<u8>) {
            let _ = unpack(&bytes);
        }
    }
}

//! Rates and quantiles over a sliding window.

use std::collections::VecDeque;

use domain::histogram::{BOUNDS_US, Snapshot};

/// Samples of the last `length_s` seconds.
pub(super) struct Window<T> {
    length_s: f64,
    samples: VecDeque<(f64, T)>,
}

impl<T> Window<T> {
    pub(super) fn new(length_s: f64) -> Window<T> {
        Window { length_s, samples: VecDeque::new() }
    }

    /// Adds a sample. Of samples older than the window, the youngest stays as its start.
    pub(super) fn push(&mut self, at_s: f64, sample: T) {
        self.samples.push_back((at_s, sample));
        while self.samples.get(1).is_some_and(|(second_s, _)| *second_s <= at_s - self.length_s) {
            self.samples.pop_front();
        }
    }

    /// First and last sample; none before there are two.
    pub(super) fn ends(&self) -> Option<(&T, &T)> {
        match (self.samples.front(), self.samples.back()) {
            (Some((_, first)), Some((_, last))) if self.samples.len() > 1 => Some((first, last)),
            _ => None,
        }
    }

    /// Growth of a counter per second; zero before there are two samples.
    pub(super) fn rate(&self, counter: impl Fn(&T) -> u64) -> f64 {
        let (Some((from_s, first)), Some((to_s, last))) = (self.samples.front(), self.samples.back()) else {
            return 0.0;
        };
        per_second(counter(last).saturating_sub(counter(first)), to_s - from_s)
    }
}

/// Rounded to two decimals.
pub(super) fn per_second(amount: u64, length_s: f64) -> f64 {
    if length_s <= 0.0 { 0.0 } else { rounded(amount as f64 / length_s) }
}

fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

/// A quantile of a histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Quantile {
    /// Interpolated within a bucket.
    pub(super) ms: f64,
    /// The quantile is above the last bound of the histogram, which is `ms`.
    pub(super) exceeds: bool,
}

/// Quantile of the measurements between two snapshots; none without measurements.
pub(super) fn quantile(before: &Snapshot, after: &Snapshot, share: f64) -> Option<Quantile> {
    let grown =
        after.buckets.iter().zip(&before.buckets).map(|(after, before)| after.saturating_sub(*before));
    let grown: Vec<u64> = grown.collect();
    let all: u64 = grown.iter().sum();
    if all == 0 {
        return None;
    }
    let wanted = share * all as f64;
    let mut below = 0_u64;
    for (bucket, count) in grown.iter().enumerate() {
        if *count > 0 && (below + count) as f64 >= wanted {
            let from_us =
                bucket.checked_sub(1).and_then(|bucket| BOUNDS_US.get(bucket)).copied().unwrap_or(0);
            let Some(to_us) = BOUNDS_US.get(bucket).copied() else {
                return Some(Quantile { ms: from_us as f64 / 1_000.0, exceeds: true });
            };
            let part = (wanted - below as f64) / *count as f64;
            let ms = rounded((from_us as f64 + (to_us - from_us) as f64 * part) / 1_000.0);
            return Some(Quantile { ms, exceeds: false });
        }
        below += count;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::Histogram;

    use super::*;

    #[test]
    fn a_rate_is_over_the_last_seconds_only() {
        let mut window = Window::new(5.0);
        assert_eq!(window.rate(|count| *count), 0.0);
        window.push(0.0, 1_000);
        assert_eq!(window.rate(|count| *count), 0.0, "one sample has no rate");
        for second in 1..=20_u64 {
            window.push(second as f64, 1_000 + if second <= 10 { 100 * second } else { 1_000 });
        }
        assert_eq!(window.rate(|count| *count), 0.0, "no growth for ten seconds");
        assert_eq!(window.samples.len(), 6);
        window.push(21.0, 2_050);
        assert_eq!(window.rate(|count| *count), 10.0);
        window.push(22.0, 0);
        assert_eq!(window.rate(|count| *count), 0.0, "a counter that restarts has no negative rate");
    }

    #[test]
    fn a_quantile_covers_the_time_between_two_snapshots() {
        let histogram = Histogram::default();
        histogram.record(Duration::from_secs(9));
        let before = histogram.snapshot();
        assert_eq!(quantile(&before, &before, 0.5), None);
        for _ in 0..98 {
            histogram.record(Duration::from_millis(2));
        }
        histogram.record(Duration::from_millis(80));
        histogram.record(Duration::from_secs(60));
        let after = histogram.snapshot();
        let (p50, p99) = (quantile(&before, &after, 0.5), quantile(&before, &after, 0.99));
        assert!(p50.is_some_and(|p50| (1.0..=2.5).contains(&p50.ms) && !p50.exceeds), "{p50:?}");
        assert!(p99.is_some_and(|p99| (50.0..=100.0).contains(&p99.ms) && !p99.exceeds), "{p99:?}");
        assert_eq!(quantile(&before, &after, 1.0), Some(Quantile { ms: 10_000.0, exceeds: true }));
    }

    #[test]
    fn a_share_of_98_within_10_s_does_not_make_99_within_10_s() {
        let (histogram, before) = (Histogram::default(), Histogram::default().snapshot());
        (0..9_805).for_each(|_| histogram.record(Duration::from_millis(400)));
        (0..195).for_each(|_| histogram.record(Duration::from_secs(14)));
        let after = histogram.snapshot();
        assert_eq!(quantile(&before, &after, 0.99), Some(Quantile { ms: 10_000.0, exceeds: true }));
        assert!(quantile(&before, &after, 0.98).is_some_and(|p98| !p98.exceeds && p98.ms <= 500.0));
        let exactly = Histogram::default();
        (0..100).for_each(|_| exactly.record(Duration::from_secs(10)));
        assert_eq!(
            quantile(&before, &exactly.snapshot(), 0.99).map(|p99| p99.exceeds),
            Some(false),
            "10 s is within 10 s"
        );
    }
}

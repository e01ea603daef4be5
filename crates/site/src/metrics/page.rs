//! Metric families in the Prometheus text format 0.0.4.
//!
//! # Guarantees
//!
//! - Labels are escaped: the text can always be parsed.
//! - A family and a combination of labels appear once, even if several sources write them: the last one wins. Both are
//!   sorted by name, so that pages can be compared.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::histogram::{BOUNDS_US, Snapshot};
use domain::{Counter, Level};

/// Adds metrics to a page, one row each:
///
/// - `counter "name" = number, "help";`
/// - `counter "name" by "label" { "value" => number, … }, "help";`
/// - `counter "name" by "label" of(pairs), "help";`: pairs of the label's value and a number
/// - `histogram "name" measures(&snapshot), "help";`
///
/// `with(&labels)` before `=` or `measures` gives labels.
macro_rules! metrics {
    ($page:ident => $(
        $kind:ident $name:literal
            $(by $label:literal $({ $($value:literal => $part:expr),* $(,)? })? $(of($pairs:expr))?)?
            $(with($labels:expr))?
            $(measures($snapshot:expr))?
            $(= $number:expr)?,
            $help:literal;
    )*) => { $(
        let family = $page.$kind($name, $help);
        $(
            $($(family.with(&[($label, $value)], $part);)*)?
            $(for (value, number) in $pairs { family.with(&[($label, value.as_ref())], number); })?
        )?
        let _labels: &[$crate::metrics::page::Label<'_>] = &[];
        $(let _labels: &[$crate::metrics::page::Label<'_>] = $labels;)?
        $(family.with(_labels, $number);)?
        $(family.measured(_labels, $snapshot);)?
    )* };
}
pub(crate) use metrics;

#[derive(Debug, Default)]
pub struct Page {
    families: BTreeMap<&'static str, Family>,
}

/// Samples of one name.
#[derive(Debug)]
pub struct Family {
    name: &'static str,
    help: &'static str,
    kind: Kind,
    /// Lines by encoded labels.
    samples: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Whole(u64),
    /// Shortest text that parses to the same number.
    Real(f64),
}

impl From<u64> for Number {
    fn from(number: u64) -> Number {
        Number::Whole(number)
    }
}

impl From<u32> for Number {
    fn from(number: u32) -> Number {
        Number::Whole(number.into())
    }
}

impl From<usize> for Number {
    fn from(number: usize) -> Number {
        Number::Whole(number as u64)
    }
}

impl From<bool> for Number {
    fn from(yes: bool) -> Number {
        Number::Whole(yes.into())
    }
}

impl From<&Counter> for Number {
    fn from(counter: &Counter) -> Number {
        Number::Whole(counter.get())
    }
}

impl From<&Level> for Number {
    fn from(level: &Level) -> Number {
        Number::Whole(level.get())
    }
}

impl From<&AtomicU64> for Number {
    fn from(counter: &AtomicU64) -> Number {
        Number::Whole(counter.load(Ordering::Relaxed))
    }
}

impl From<f64> for Number {
    fn from(number: f64) -> Number {
        Number::Real(number)
    }
}

pub type Label<'a> = (&'a str, &'a str);

impl Page {
    /// The name ends in `_total`.
    pub fn counter(&mut self, name: &'static str, help: &'static str) -> &mut Family {
        self.family(name, help, Kind::Counter)
    }

    pub fn gauge(&mut self, name: &'static str, help: &'static str) -> &mut Family {
        self.family(name, help, Kind::Gauge)
    }

    /// The name ends in `_seconds`.
    pub fn histogram(&mut self, name: &'static str, help: &'static str) -> &mut Family {
        self.family(name, help, Kind::Histogram)
    }

    fn family(&mut self, name: &'static str, help: &'static str, kind: Kind) -> &mut Family {
        let family =
            self.families.entry(name).or_insert(Family { name, help, kind, samples: BTreeMap::new() });
        debug_assert_eq!(family.kind, kind, "{name} is of one kind");
        family
    }

    pub fn finish(self) -> String {
        let mut text = String::with_capacity(64 << 10);
        for Family { name, help, kind, samples } in self.families.values() {
            text.push_str("# HELP ");
            text.push_str(name);
            text.push(' ');
            push_escaped(&mut text, help, false);
            // Writing to a String cannot fail.
            let _ = writeln!(text, "\n# TYPE {name} {}", kind.name());
            samples.values().for_each(|lines| text.push_str(lines));
        }
        text
    }
}

impl Family {
    /// Adds a sample without labels.
    pub fn is(&mut self, number: impl Into<Number>) {
        self.with(&[], number);
    }

    /// Adds a sample.
    pub fn with(&mut self, labels: &[Label<'_>], number: impl Into<Number>) -> &mut Family {
        let labels = encode_labels(labels);
        let mut line = String::new();
        push_line(&mut line, (self.name, ""), &labels, number.into());
        self.samples.insert(labels, line);
        self
    }

    /// Adds a histogram.
    pub fn measured(&mut self, labels: &[Label<'_>], snapshot: &Snapshot) -> &mut Family {
        let plain = encode_labels(labels);
        let mut lines = String::new();
        let mut so_far = 0;
        let bounds = BOUNDS_US.iter().map(|bound| (*bound as f64 / 1e6).to_string());
        for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(snapshot.buckets) {
            so_far += count;
            let bounded = encode_labels(&[labels, &[("le", bound.as_str())]].concat());
            push_line(&mut lines, (self.name, "_bucket"), &bounded, so_far.into());
        }
        push_line(&mut lines, (self.name, "_sum"), &plain, snapshot.sum.as_secs_f64().into());
        push_line(&mut lines, (self.name, "_count"), &plain, so_far.into());
        self.samples.insert(plain, lines);
        self
    }
}

fn push_line(text: &mut String, (name, suffix): (&str, &str), labels: &str, number: Number) {
    // Writing to a String cannot fail.
    let _ = match number {
        Number::Whole(number) => writeln!(text, "{name}{suffix}{labels} {number}"),
        Number::Real(number) if number == f64::INFINITY => writeln!(text, "{name}{suffix}{labels} +Inf"),
        Number::Real(number) => writeln!(text, "{name}{suffix}{labels} {number}"),
    };
}

/// Encoded labels; empty if there are none.
fn encode_labels(labels: &[Label<'_>]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let mut text = String::from("{");
    for (position, (name, value)) in labels.iter().enumerate() {
        if position > 0 {
            text.push(',');
        }
        text.push_str(name);
        text.push_str("=\"");
        push_escaped(&mut text, value, true);
        text.push('"');
    }
    text.push('}');
    text
}

fn push_escaped(text: &mut String, value: &str, quoted: bool) {
    for character in value.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '"' if quoted => text.push_str("\\\""),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::Histogram;

    use super::*;

    #[test]
    fn a_family_appears_once_with_its_labels_sorted() {
        let mut page = Page::default();
        page.gauge("rollcall_b", "Second.").is(1.5);
        page.counter("rollcall_a_total", "First.").with(&[("wire", "udp")], 7_u64);
        page.counter("rollcall_a_total", "First.").with(&[("wire", "http")], u64::MAX);
        page.counter("rollcall_a_total", "First.").with(&[("wire", "udp")], 8_u64);
        assert_eq!(
            page.finish(),
            "# HELP rollcall_a_total First.\n# TYPE rollcall_a_total counter\n\
             rollcall_a_total{wire=\"http\"} 18446744073709551615\nrollcall_a_total{wire=\"udp\"} 8\n\
             # HELP rollcall_b Second.\n# TYPE rollcall_b gauge\nrollcall_b 1.5\n"
        );
    }

    #[test]
    fn label_values_are_escaped() {
        let mut page = Page::default();
        page.gauge("rollcall_a", "Back\\slash.").with(&[("group", "a\"b\\c\nd}")], true);
        assert_eq!(
            page.finish(),
            "# HELP rollcall_a Back\\\\slash.\n# TYPE rollcall_a gauge\n\
             rollcall_a{group=\"a\\\"b\\\\c\\nd}\"} 1\n"
        );
    }

    #[test]
    fn histogram_buckets_are_cumulative() {
        let histogram = Histogram::default();
        [5, 20, 20, 30_000_000].into_iter().for_each(|us| histogram.record(Duration::from_micros(us)));
        let mut page = Page::default();
        page.histogram("rollcall_a_seconds", "Times.").measured(&[("wire", "udp")], &histogram.snapshot());
        let text = page.finish();
        assert!(text.contains("rollcall_a_seconds_bucket{wire=\"udp\",le=\"0.00001\"} 1\n"), "{text}");
        assert!(text.contains("rollcall_a_seconds_bucket{wire=\"udp\",le=\"0.000025\"} 3\n"), "{text}");
        assert!(text.contains("rollcall_a_seconds_bucket{wire=\"udp\",le=\"10\"} 3\n"), "{text}");
        assert!(text.contains("rollcall_a_seconds_bucket{wire=\"udp\",le=\"+Inf\"} 4\n"), "{text}");
        assert!(text.contains("rollcall_a_seconds_sum{wire=\"udp\"} 30.000045\n"), "{text}");
        assert!(text.contains("rollcall_a_seconds_count{wire=\"udp\"} 4\n"), "{text}");
    }
}

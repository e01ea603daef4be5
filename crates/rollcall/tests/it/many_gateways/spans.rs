//! Sets of moments, as spans that do not touch.

/// Milliseconds since the history began.
pub type Ms = u64;

/// When something was so: from the first moment of each span until just before the second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans(Vec<(Ms, Ms)>);

impl Spans {
    /// One span; nothing if it ends before it begins.
    pub fn one(from: Ms, to: Ms) -> Spans {
        Spans([(from, to)].into_iter().filter(|(from, to)| from < to).collect())
    }

    /// All of these together.
    pub fn of(spans: impl IntoIterator<Item = (Ms, Ms)>) -> Spans {
        let mut all: Vec<(Ms, Ms)> = spans.into_iter().filter(|(from, to)| from < to).collect();
        all.sort_unstable();
        let mut joined: Vec<(Ms, Ms)> = Vec::with_capacity(all.len());
        for (from, to) in all {
            match joined.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => joined.push((from, to)),
            }
        }
        Spans(joined)
    }

    /// The spans, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Ms, Ms)> {
        self.0.iter().copied()
    }

    /// The first of them.
    pub fn first(&self) -> Option<(Ms, Ms)> {
        self.0.first().copied()
    }

    /// What is in either.
    pub fn or(&self, other: &Spans) -> Spans {
        Spans::of(self.iter().chain(other.iter()))
    }

    /// What is in both.
    pub fn and(&self, other: &Spans) -> Spans {
        let pairs = self.iter().flat_map(|(from, to)| {
            other.iter().map(move |(other_from, other_to)| (from.max(other_from), to.min(other_to)))
        });
        Spans::of(pairs)
    }

    /// What is in this and not in the other.
    pub fn without(&self, other: &Spans) -> Spans {
        let mut left = Vec::new();
        for (mut from, to) in self.iter() {
            for (hole_from, hole_to) in other.iter() {
                left.push((from, hole_from.min(to)));
                from = from.max(hole_to);
            }
            left.push((from, to));
        }
        Spans::of(left)
    }
}

#[test]
fn spans_are_joined_cut_and_taken_away() {
    let spans = Spans::of([(5, 7), (1, 3), (2, 4), (9, 9)]);
    assert_eq!(spans, Spans::of([(1, 4), (5, 7)]));
    assert_eq!(spans.and(&Spans::one(3, 6)), Spans::of([(3, 4), (5, 6)]));
    assert_eq!(spans.without(&Spans::of([(2, 3), (6, 9)])), Spans::of([(1, 2), (3, 4), (5, 6)]));
    assert_eq!(spans.without(&Spans::one(0, 9)), Spans::default());
    assert_eq!(spans.or(&Spans::one(4, 5)), Spans::one(1, 7));
    assert_eq!(Spans::one(4, 2).first(), None);
}

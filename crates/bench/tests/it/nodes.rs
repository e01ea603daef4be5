//! Every measurement of many nodes runs to its end on a real Redis, at sizes that are too small to measure speed.

use bench::nodes::{self, DelayPlan, Sizes};
use bench::population::Shape;
use bench::process::Cores;

const TINY: Sizes = Sizes {
    rounds: 2,
    delay: DelayPlan { announces: 200, per_s: 1_000 },
    shape: Shape { torrents: 200, peers: 2_000 },
    mirrored_shape: Shape { torrents: 10, peers: 100 },
    mirrored_announces: 100,
};

#[test]
fn delays_warm_starts_and_learning_are_measured() {
    let cores = Cores::of_this_machine().unwrap();
    let found = nodes::measure(&TINY, cores, None, |_| true).unwrap();
    for row in found.rows() {
        assert!(row.figure > 0.0, "{}: nothing was measured", row.what);
    }
    assert_eq!(found.delay.unwrap().count, 200);
    assert_eq!(found.warm_start.unwrap().peers, 2_000);
    assert_eq!(found.learning.len(), 2);
}

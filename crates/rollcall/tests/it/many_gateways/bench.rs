//! The benchmark of presence over two gateways runs to its end, at sizes too small to measure speed.

use std::path::Path;
use std::time::Duration;

use bench::presence_redis::{self, Sizes};
use bench::process::Cores;

const TINY: Sizes = Sizes {
    // Enough for their memory to show beside what Redis itself allocates and frees.
    sessions: 200,
    rounds: 2,
    changes: 20,
    changes_per_s: 100,
    settle: Duration::from_millis(100),
    idle: Duration::from_secs(2),
};

#[test]
fn p13_what_gateways_cost_in_redis_is_measured() {
    let cores = Cores::of_this_machine().unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_rollcall"));
    let found = presence_redis::measure(binary, &TINY, cores).unwrap();
    for row in found.rows() {
        assert!(row.figure > 0.0, "{}: nothing was measured", row.what);
        assert!(row.ratio.is_none_or(|ratio| ratio > 0.0), "{}: held against nothing", row.what);
    }
    assert_eq!(found.notified.count, 20);
}

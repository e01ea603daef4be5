//! Every measurement of the gateway runs to its end, at sizes that are too small to measure speed, with a bare server in place
//! of the gateway.

use std::path::Path;
use std::time::Duration;

use bench::gateway_cost::close_latency::CloseLatencyPlan;
use bench::gateway_cost::fan_out::FanOutPlan;
use bench::gateway_cost::heartbeats::HeartbeatPlan;
use bench::gateway_cost::memory::MemoryPlan;
use bench::gateway_cost::{self, Sizes};
use bench::process::Cores;

const TINY: Sizes = Sizes {
    memory: MemoryPlan { sessions: 300, settle: Duration::from_millis(100) },
    close_latency: CloseLatencyPlan { sessions: 40, closes: 20, closes_per_s: 200 },
    heartbeats: HeartbeatPlan { sessions: 500, rounds: 1, round: Duration::from_millis(500) },
    fan_out: FanOutPlan { watchers: 50, rounds: 1, round: Duration::from_millis(200) },
};

fn measured(only: &str) -> Vec<String> {
    let cores = Cores::of_this_machine().unwrap();
    let bare = Path::new(env!("CARGO_BIN_EXE_rollcall-bench"));
    let found = gateway_cost::measure(None, bare, &TINY, cores, |name| name == only).unwrap();
    for row in found.rows() {
        assert!(row.figure > 0.0, "{}: nothing was measured", row.what);
        assert!(row.ratio.is_none_or(|ratio| ratio > 0.0), "{}: held against nothing", row.what);
    }
    found.rows().iter().map(|row| row.what.clone()).collect()
}

#[test]
fn memory_and_connects_are_measured() {
    let names = [
        "memory per idle session",
        "memory per idle session, 10 friends here",
        "connects per second of a core",
    ];
    assert_eq!(measured("gateway-memory"), names);
}

#[test]
fn the_time_until_a_friend_is_told_is_measured() {
    let names = ["closed connection to friend notified, p50", "closed connection to friend notified, p99"];
    assert_eq!(measured("gateway-close"), names);
}

#[test]
fn heartbeats_are_measured() {
    assert_eq!(measured("gateway-heartbeats"), ["heartbeats per second of a core"]);
}

#[test]
fn deliveries_are_measured() {
    assert_eq!(measured("gateway-fan-out"), ["feed deliveries per second of a core"]);
}

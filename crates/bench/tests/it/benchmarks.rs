//! Every benchmark runs to its end on real servers, at sizes that are too small to measure speed, with a fixed-response
//! server in place of the server. (Those that need the server are in the tests of `rollcall`.)

use bench::table::BENCHMARKS;
use bench::{Options, Sizes};

/// Measures the benchmarks of this name, and checks that each has all its rows.
fn measured(only: &str) {
    let report = bench::run(&Options {
        this_program: env!("CARGO_BIN_EXE_rollcall-bench").into(),
        only: Some(only.to_owned()),
        ..Options::new(Sizes::TINY)
    })
    .unwrap();
    for row in &report.rows {
        assert!(row.figure > 0.0, "{}: nothing was measured", row.what);
        assert!(row.ratio.is_none_or(|ratio| ratio > 0.0), "{}: compared with nothing", row.what);
    }
    let expected: Vec<&str> = BENCHMARKS
        .iter()
        .filter(|benchmark| benchmark.name.contains(only))
        .flat_map(|benchmark| benchmark.rows)
        .map(|row| row.what)
        .collect();
    let is_row = |what: &str, row: &str| match row.split_once("{}") {
        Some((start, end)) => what.starts_with(start) && what.ends_with(end),
        None => what == row,
    };
    let found: Vec<&str> = report.rows.iter().map(|row| row.what.as_str()).collect();
    assert_eq!(found.len(), expected.len(), "{found:?}");
    assert!(found.iter().zip(&expected).all(|(what, row)| is_row(what, row)), "{found:?}");
}

#[test]
fn the_journal_is_measured_on_redis_and_on_sqlite() {
    measured("journal");
}

#[test]
fn the_ledger_is_measured_on_every_database() {
    measured("ledger");
}

#[test]
fn activity_is_measured_for_heartbeats_and_changes() {
    measured("activity");
}

#[test]
fn a_queued_entry_has_a_size() {
    measured("queue");
}

#[test]
fn replication_is_measured() {
    measured("nodes-delay");
    measured("nodes-warm-start");
    measured("nodes-learn");
}

#[test]
fn memory_and_connects_are_measured() {
    measured("gateway-memory");
}

#[test]
fn the_time_until_a_friend_is_notified_is_measured() {
    measured("gateway-close");
}

#[test]
fn heartbeats_are_measured() {
    measured("gateway-heartbeats");
}

#[test]
fn deliveries_are_measured() {
    measured("gateway-fan-out");
}

#[test]
fn an_unknown_benchmark_is_an_error_that_names_all() {
    let options = Options { only: Some("nothing".to_owned()), ..Options::new(Sizes::TINY) };
    let error = bench::run(&options).unwrap_err().to_string();
    assert!(error.contains("gateway-close"), "{error}");
}

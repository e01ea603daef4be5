//! The benchmarks that need the server run to their end, at sizes too small to measure speed.

use bench::{Options, Sizes};

fn measured(only: &str) -> Vec<String> {
    let report = bench::run(&Options {
        binary: Some(env!("CARGO_BIN_EXE_rollcall").into()),
        // Nothing here is compared with a fixed-response server.
        this_program: Default::default(),
        sizes: Sizes::TINY,
        connections: 8,
        pipeline: 1,
        only: Some(only.to_owned()),
        instructions: None,
    })
    .unwrap();
    for row in &report.rows {
        assert!(row.figure > 0.0, "{}: nothing was measured", row.what);
        assert!(row.ratio.is_none_or(|ratio| ratio > 0.0), "{}: compared with nothing", row.what);
    }
    report.rows.into_iter().map(|row| row.what).collect()
}

#[test]
fn p13_what_gateways_cost_in_redis_is_measured() {
    assert_eq!(measured("presence-redis").len(), 12);
}

#[test]
fn the_cost_of_the_mirror_is_measured() {
    assert_eq!(measured("nodes-mirror").len(), 3);
}

#[test]
fn an_idle_server_is_measured_on_every_store() {
    let names = ["embedded", "PostgreSQL", "MariaDB", "Redis"].map(|store| format!("idle server, {store}"));
    assert_eq!(measured("idle"), names);
}

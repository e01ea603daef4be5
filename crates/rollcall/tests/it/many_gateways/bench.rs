//! The benchmarks that need the server run to their end, at sizes too small to measure speed.

use bench::against::PeerSpec;
use bench::report::Report;
use bench::{Options, Sizes};

fn measured(only: &str) -> Vec<String> {
    measured_against(only, None)
}

fn report(only: &str, against: Option<PeerSpec>) -> Report {
    bench::run(&Options {
        binary: Some(env!("CARGO_BIN_EXE_rollcall").into()),
        only: Some(only.to_owned()),
        against: against.into_iter().collect(),
        ..Options::new(Sizes::TINY)
    })
    .unwrap()
}

fn measured_against(only: &str, against: Option<PeerSpec>) -> Vec<String> {
    let report = report(only, against);
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
fn announces_all_in_are_measured_on_every_store() {
    let rows = measured("all-in");
    assert_eq!(rows.len(), 12);
    assert_eq!(rows[..2], ["all in, embedded, joins", "all in, embedded, heartbeats"]);
}

/// Its figures are those of a machine that runs other tests, but what was accepted is credited in any case.
#[test]
fn an_overloaded_server_loses_nothing() {
    let report = report("overload", None);
    let exact = report.rows.iter().find(|row| row.what == "overload, accounts exact to the byte").unwrap();
    assert_eq!((report.rows.len(), exact.figure), (4, 100.0));
}

#[test]
fn the_listeners_of_both_protocols_are_measured() {
    assert_eq!(measured("listener").len(), 2);
}

/// The server itself in the place of another tracker, with the users and torrents it is given.
#[test]
fn another_tracker_is_measured_by_the_same_load() {
    let command = format!(
        "env ROLLCALL_TRACKER__HTTP_ADDR=127.0.0.1:{{port}} ROLLCALL_TRACKER__UDP_ADDR=127.0.0.1:{{port}} \
         ROLLCALL_SITE__ADDR= ROLLCALL_LIMITS__CONNECTIONS_PER_ADDRESS_MAX=1000 {} serve --data {{data}}",
        env!("CARGO_BIN_EXE_rollcall")
    );
    let peer = PeerSpec { name: "another".to_owned(), command };
    let rows = measured_against("against", Some(peer));
    assert_eq!(rows, ["another over HTTP, heartbeats", "another over UDP, heartbeats"]);
}

#[test]
fn an_idle_server_is_measured_on_every_store() {
    let names = ["embedded", "PostgreSQL", "MariaDB", "Redis"].map(|store| format!("idle server, {store}"));
    assert_eq!(measured("idle"), names);
}

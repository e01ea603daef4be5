//! Every measurement of the journal and its views runs to its end on real servers, at sizes that are too small to measure
//! speed.

use bench::journal_and_views::{self, Sizes};
use bench::process::Cores;

// As in the program, or the allocator's counters would count nothing.
const TINY: Sizes = Sizes {
    rounds: 2,
    entries: 1_500,
    durable_entries: 1_200,
    pairs: 1_200,
    batches: 1,
    clients: 1_100,
    queued: 2_000,
};

fn measured(only: &str) -> Vec<String> {
    let cores = Cores::of_this_machine().unwrap();
    let found = journal_and_views::measure(&TINY, cores, |name| name.contains(only)).unwrap();
    for row in found.rows() {
        assert!(row.figure > 0.0, "{}: nothing was measured", row.what);
        assert!(row.ratio.is_none_or(|ratio| ratio > 0.0), "{}: held against nothing", row.what);
    }
    found.rows().iter().map(|row| row.what.clone()).collect()
}

#[test]
fn the_journal_is_measured_on_redis_and_on_sqlite() {
    let names = ["journal append, Redis", "journal append, Redis with AOF", "journal append, SQLite"];
    assert_eq!(measured("journal"), names);
}

#[test]
fn the_ledger_is_measured_on_every_database() {
    assert_eq!(measured("ledger"), ["ledger, SQLite", "ledger, PostgreSQL", "ledger, MariaDB"]);
}

#[test]
fn activity_is_measured_at_rest_and_in_turmoil() {
    assert_eq!(measured("activity"), ["activity, heartbeats", "activity, every entry a change"]);
}

#[test]
fn a_queued_entry_takes_what_it_is_made_of_and_room_for_more() {
    let cores = Cores::of_this_machine().unwrap();
    let memory = journal_and_views::measure(&TINY, cores, |name| name == "queue").unwrap().queue.unwrap();
    assert_eq!(memory.events, TINY.queued);
    // Other tests of this process allocate meanwhile, so there is no upper limit to ask for.
    assert!(memory.bytes_per_event > 100);
}

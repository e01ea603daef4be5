//! Memory of a session, measured by the allocator.

use presence::{ConnId, Effect, Input};
use tikv_jemalloc_ctl::thread::{allocatedp, deallocatedp};

use crate::support::*;

const SESSIONS: u32 = 20_000;

/// Bytes that this thread has allocated so far. Other tests run on their own threads.
fn allocated() -> u64 {
    allocatedp::read().unwrap().get()
}

/// Bytes that this thread allocated and has not freed.
fn held() -> u64 {
    allocated().wrapping_sub(deallocatedp::read().unwrap().get())
}

fn full_fixture() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.effects.reserve(10 * SESSIONS as usize);
    for conn in 0..SESSIONS {
        // As long as a UUID, which clients use.
        fixture.connect(u64::from(conn) + 1, conn, hello(&format!("{conn:036}")));
    }
    fixture
}

#[test]
fn sessions_cost_at_most_280_bytes_each() {
    let before = held();
    let mut fixture = full_fixture();
    fixture.pass(25);
    fixture.effects = Vec::new();
    let each = held().wrapping_sub(before) / u64::from(SESSIONS);
    // 20 of them for the ordered list of users.
    assert!(each <= 280, "{each} bytes for a person with one session");
    assert!(each >= 150, "{each} bytes: something was not measured");
}

#[test]
fn a_heartbeat_allocates_nothing() {
    let mut fixture = full_fixture();
    fixture.pass(10);
    let before = allocated();
    for conn in 0..SESSIONS {
        fixture.heard(u64::from(conn) + 1, conn);
        fixture.input(u64::from(conn) + 1, Input::ProbeAnswered { conn: ConnId(conn) });
    }
    assert_eq!(allocated() - before, 0, "bytes allocated by {SESSIONS} heartbeats");
}

#[test]
fn a_tick_with_pings_allocates_nothing() {
    let mut fixture = full_fixture();
    for _ in 0..25 {
        fixture.pass(1);
    }
    for conn in 0..SESSIONS {
        fixture.heard(u64::from(conn) + 1, conn);
    }
    fixture.effects.clear();
    let before = allocated();
    fixture.pass(25);
    assert_eq!(allocated() - before, 0, "bytes allocated by a round of pings");
    let pings = fixture.effects.iter().filter(|effect| matches!(effect, Effect::Ping(_))).count();
    assert_eq!(pings, SESSIONS as usize);
}

#[test]
fn a_storm_of_reconnects_uses_the_same_memory_again() {
    let mut fixture = full_fixture();
    fixture.effects = Vec::new();
    let before = held();
    for round in 1..=2 {
        for conn in 0..SESSIONS {
            fixture.drop(u64::from(conn) + 1, conn);
        }
        fixture.pass(1);
        for conn in 0..SESSIONS {
            fixture.connect(u64::from(conn) + 1, conn, hello(&format!("{conn:036}")));
        }
        fixture.effects = Vec::new();
        let grown = held().wrapping_sub(before) as i64;
        assert!(grown < i64::from(SESSIONS) * 4, "{grown} bytes more after storm {round}");
    }
}

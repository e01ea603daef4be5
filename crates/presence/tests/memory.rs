//! What a session costs in the roster, told by the allocator itself.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use presence::{ConnId, Effect, Input};
use support::*;
use tikv_jemalloc_ctl::thread::{allocatedp, deallocatedp};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const SESSIONS: u32 = 20_000;

/// Bytes that this thread has allocated so far. Other tests run on threads of their own.
fn allocated() -> u64 {
    allocatedp::read().unwrap().get()
}

/// Bytes that this thread allocated and did not give back.
fn held() -> u64 {
    allocated().wrapping_sub(deallocatedp::read().unwrap().get())
}

fn full_stage() -> Stage {
    let mut stage = Stage::new();
    stage.effects.reserve(10 * SESSIONS as usize);
    for conn in 0..SESSIONS {
        // As long as a UUID, which is what clients choose.
        stage.connect(u64::from(conn) + 1, conn, hello(&format!("{conn:036}")));
    }
    stage
}

#[test]
fn sessions_cost_at_most_280_bytes_each() {
    let before = held();
    let mut stage = full_stage();
    stage.pass(25);
    stage.effects = Vec::new();
    let each = held().wrapping_sub(before) / u64::from(SESSIONS);
    // 20 of them for their places in the order in which people are listed.
    assert!(each <= 280, "{each} bytes for a person with one session");
    assert!(each >= 150, "{each} bytes: something was not measured");
}

#[test]
fn a_heartbeat_allocates_nothing() {
    let mut stage = full_stage();
    stage.pass(10);
    let before = allocated();
    for conn in 0..SESSIONS {
        stage.heard(u64::from(conn) + 1, conn);
        stage.tell(u64::from(conn) + 1, Input::ProbeAnswered { conn: ConnId(conn) });
    }
    assert_eq!(allocated() - before, 0, "bytes allocated by {SESSIONS} heartbeats");
}

#[test]
fn a_tick_with_pings_allocates_nothing() {
    let mut stage = full_stage();
    for _ in 0..25 {
        stage.pass(1);
    }
    for conn in 0..SESSIONS {
        stage.heard(u64::from(conn) + 1, conn);
    }
    stage.effects.clear();
    let before = allocated();
    stage.pass(25);
    assert_eq!(allocated() - before, 0, "bytes allocated by a round of pings");
    let pings = stage.effects.iter().filter(|effect| matches!(effect, Effect::Ping(_))).count();
    assert_eq!(pings, SESSIONS as usize);
}

#[test]
fn a_storm_of_reconnects_uses_the_same_memory_again() {
    let mut stage = full_stage();
    stage.effects = Vec::new();
    let before = held();
    for round in 1..=2 {
        for conn in 0..SESSIONS {
            stage.drop(u64::from(conn) + 1, conn);
        }
        stage.pass(1);
        for conn in 0..SESSIONS {
            stage.connect(u64::from(conn) + 1, conn, hello(&format!("{conn:036}")));
        }
        stage.effects = Vec::new();
        let grown = held().wrapping_sub(before) as i64;
        assert!(grown < i64::from(SESSIONS) * 4, "{grown} bytes more after storm {round}");
    }
}

//! Any order, any batches, any repetition: the state is the same.

#[path = "../../tests/it/support/simulator.rs"]
#[allow(dead_code, reason = "shared with the tests on real databases")]
mod simulator;

mod cheating;
mod several_nodes;

use std::collections::BTreeSet;

use domain::{PeerId, RunId, SessionId};
use journal::{DeliveredEntry, EntryId, Totals};
use proptest::prelude::*;

use super::*;
use crate::admit::Directory;
use crate::admit::admit;
use crate::bucket::Bucket;
use crate::explain::explain;
use crate::settle::RUNS_MAX;
use simulator::{BEGIN, SPAN_MAX, Size, World, entry, simulate, torrent, user};

struct EmptyDirectory;

impl Directory for EmptyDirectory {
    fn user_of(&self, _passkey: &domain::Passkey) -> Option<domain::UserId> {
        None
    }
    fn torrent_of(&self, _info_hash: &domain::InfoHash) -> Option<domain::TorrentId> {
        None
    }
}

fn post_all(state: &mut AccountState, arrivals: &[DeliveredEntry]) -> Posted {
    post_under(&Multipliers::default(), state, arrivals)
}

fn post_under(multipliers: &Multipliers, state: &mut AccountState, arrivals: &[DeliveredEntry]) -> Posted {
    let rules = Rules {
        ceiling: RateCeiling::default(),
        user_ceiling: RateCeiling { bytes_per_s: 2 * RateCeiling::DEFAULT.bytes_per_s },
        silence: domain::SilenceLimit::default(),
        session_retention: Seconds(30 * 24 * 60 * 60),
        multipliers,
        now: UnixTime(BEGIN + SPAN_MAX),
        steady_now: UnixTime(BEGIN + SPAN_MAX),
    };
    let (admitted, rejected) = admit(arrivals, &BTreeSet::new(), &EmptyDirectory);
    assert_eq!(rejected, []);
    post(state, &admitted, &rules)
}

fn in_order(world: &World) -> AccountState {
    let mut state = AccountState::default();
    let posted = post_all(&mut state, &world.arrivals);
    assert_eq!(posted.rejected, []);
    state
}

/// The order in which runs became known is not part of the figures.
fn tidied(mut state: AccountState) -> AccountState {
    for client in state.clients.values_mut() {
        client.runs.sort_by_key(|run| run.key);
        // Remaining tokens depend on the order, credited bytes do not.
        client.sums.bucket = Bucket::default();
        client.sums.foreign_bucket = Bucket::default();
    }
    state.user_buckets.clear();
    state
}

/// Every account is the sum of its clients' contributions.
fn assert_explained(state: &AccountState) {
    for (key, account) in &state.accounts {
        let own = state
            .clients
            .iter()
            .filter(|(client, _)| (client.user, client.torrent) == (key.user, key.torrent));
        let clients = own.map(|(key, client)| (key.client, client.clone())).collect();
        let explanation = explain(account.clone(), clients, false, RateCeiling::default());
        assert_eq!(explanation.rest, Moved::default(), "{key:?}");
    }
}

fn assert_bytes(state: &AccountState, world: &World) {
    for ((owner, on), (uploaded, downloaded)) in &world.credited {
        let key = crate::AccountKey { user: user(*owner), torrent: torrent(*on) };
        let figures = &state.accounts[&key].figures;
        assert_eq!((figures.uploaded, figures.downloaded), (*uploaded, *downloaded), "{key:?}");
    }
    for (owner, figures) in &state.users {
        assert_eq!(
            (figures.uploaded, figures.downloaded),
            world.credited_to_user(owner.get()),
            "user {owner}"
        );
    }
}

const SMALL: Size =
    Size { nodes: 1, users: 2, torrents: 2, clients_per_account: 2, announces_per_client: 40 };

/// Announced to two nodes as well.
const BY_TWO_NODES: Size = Size { nodes: 2, ..SMALL };

/// Runs of two nodes are joined by times and counters, which in rare cases cannot distinguish a restart from a
/// continuation. So the histories here are chosen, not random.
#[test]
fn clients_on_two_nodes_are_credited_by_their_counters() {
    for seed in 0..24 {
        let world = simulate(seed, BY_TWO_NODES);
        assert_bytes(&in_order(&world), &world);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn l2_entries_in_order_are_credited_by_their_counters(seed: u64) {
        let world = simulate(seed, SMALL);
        assert_bytes(&in_order(&world), &world);
    }

    #[test]
    fn any_order_and_any_batches_give_the_same_state(seed: u64, batch in 1..60_usize) {
        let world = simulate(seed, BY_TWO_NODES);
        let mut shuffled = world.arrivals.clone();
        fastrand::Rng::with_seed(seed).shuffle(&mut shuffled);
        let mut state = AccountState::default();
        for chunk in shuffled.chunks(batch) {
            post_all(&mut state, chunk);
        }
        prop_assert_eq!(tidied(state), tidied(in_order(&world)));
    }

    #[test]
    fn l6_bytes_of_our_tracker_count_once_though_entries_come_again(seed: u64) {
        let world = simulate(seed, SMALL);
        let mut state = in_order(&world);
        let mut again: Vec<DeliveredEntry> = world.arrivals.iter().filter(|a| a.entry.totals.is_some()).copied().collect();
        fastrand::Rng::with_seed(seed).shuffle(&mut again);
        for chunk in again.chunks(17) {
            post_all(&mut state, chunk);
        }
        assert_bytes(&state, &world);
        // Nor does any client's state go back.
        for (key, client) in &in_order(&world).clients {
            prop_assert_eq!(state.clients[key].state, client.state);
        }
    }

    #[test]
    fn settling_runs_changes_no_amount(seed: u64, batch in 1..400_usize) {
        let world = simulate(seed, Size { nodes: 1, users: 1, torrents: 1, clients_per_account: 1, announces_per_client: 900 });
        let mut state = AccountState::default();
        for chunk in world.arrivals.chunks(batch) {
            post_all(&mut state, chunk);
        }
        assert_bytes(&state, &world);
        prop_assert!(state.clients.values().all(|client| client.runs.len() <= RUNS_MAX));
        assert_explained(&state);
    }

    #[test]
    fn l6_the_parts_of_an_explanation_sum_to_the_account(seed: u64, order: u64, batch in 1..300_usize) {
        let world = simulate(seed, Size { nodes: 2, users: 2, torrents: 2, clients_per_account: 3, announces_per_client: 30 });
        let mut arrivals = world.arrivals.clone();
        fastrand::Rng::with_seed(order).shuffle(&mut arrivals);
        let mut state = AccountState::default();
        for chunk in arrivals.chunks(batch) {
            post_all(&mut state, chunk);
            assert_explained(&state);
        }
    }
}

const PEER: PeerId = PeerId(*b"-TR3000-abcdefghijkl");

fn one(event: AnnounceEvent, at: u32, left: u64) -> TrafficEntry {
    entry(1, 1, PEER, UnixTime(BEGIN + at), event, left)
}

fn arrival(entry: TrafficEntry, seq: u64) -> DeliveredEntry {
    let id = EntryId { ms: u64::from(entry.at.0) * 1000, seq };
    DeliveredEntry { id, origin: id, entry }
}

fn account_after(entries: &[TrafficEntry]) -> Account {
    let mut state = AccountState::default();
    let arrivals: Vec<DeliveredEntry> =
        entries.iter().enumerate().map(|(seq, entry)| arrival(*entry, seq as u64)).collect();
    assert_eq!(post_all(&mut state, &arrivals).rejected, []);
    state.accounts.into_values().next().unwrap()
}

#[test]
fn l3_completed_or_nothing_left_is_seeding_and_stopped_is_not() {
    assert!(account_after(&[one(AnnounceEvent::None, 0, 0)]).is_seeding());
    assert!(account_after(&[one(AnnounceEvent::Completed, 0, 5)]).is_seeding());
    let leeching = account_after(&[one(AnnounceEvent::None, 0, 5)]);
    assert!(leeching.is_leeching() && !leeching.is_seeding());
    let gone = account_after(&[one(AnnounceEvent::None, 0, 0), one(AnnounceEvent::Stopped, 9, 0)]);
    assert!(!gone.is_leeching() && !gone.is_seeding());
}

#[test]
fn l3_a_stop_of_the_first_client_does_not_hide_the_second() {
    let second = TrafficEntry { peer_id: PeerId(*b"-TR3000-another one."), ..one(AnnounceEvent::None, 1, 0) };
    let account = account_after(&[one(AnnounceEvent::None, 0, 0), second, one(AnnounceEvent::Stopped, 9, 0)]);
    assert_eq!(account.seeding_clients, 1);
}

#[test]
fn l3_a_late_entry_does_not_bring_a_client_back() {
    let account = account_after(&[one(AnnounceEvent::Stopped, 9, 0), one(AnnounceEvent::None, 3, 0)]);
    assert!(!account.is_seeding());
    assert_eq!(account.latest.at, UnixTime(BEGIN + 9));
}

#[test]
fn l4_time_is_dt_where_it_is_there_else_the_interval() {
    let with_dt =
        |seconds| TrafficEntry { since_last: Some(Seconds(seconds)), ..one(AnnounceEvent::None, 0, 0) };
    assert_eq!(account_after(&[with_dt(300)]).figures.seeding_s, 300);
    assert_eq!(account_after(&[with_dt(0)]).figures.seeding_s, 0);
    assert_eq!(account_after(&[one(AnnounceEvent::None, 0, 0)]).figures.seeding_s, 1800);
}

#[test]
fn l4_time_before_an_entry_is_what_the_client_was_doing_then() {
    let times = |event, left| {
        let figures = account_after(&[one(event, 0, left)]).figures;
        (figures.seeding_s, figures.leeching_s)
    };
    assert_eq!(times(AnnounceEvent::Started, 0), (0, 0));
    assert_eq!(times(AnnounceEvent::Completed, 0), (0, 1800));
    assert_eq!(times(AnnounceEvent::None, 5), (0, 1800));
    assert_eq!(times(AnnounceEvent::Stopped, 0), (1800, 0));
    let silent = TrafficEntry { cause: Cause::Timeout, ..one(AnnounceEvent::Stopped, 0, 0) };
    assert_eq!(account_after(&[silent]).figures.seeding_s, 0);
}

#[test]
fn l5_completed_stays_and_counts_once_for_a_user() {
    let account = account_after(&[
        one(AnnounceEvent::Completed, 50, 0),
        one(AnnounceEvent::Completed, 20, 0),
        one(AnnounceEvent::Stopped, 60, 9),
    ]);
    assert_eq!(account.completed_at, Some(UnixTime(BEGIN + 20)));
    assert_eq!((account.figures.completed_count, account.figures.repeated_count), (1, 1));
}

#[test]
fn j8_a_foreign_entry_is_credited_up_to_the_ceiling_and_reported() {
    let lie = TrafficEntry {
        uploaded_delta: u64::MAX,
        since_last: Some(Seconds(0)),
        ..one(AnnounceEvent::None, 0, 0)
    };
    let mut state = AccountState::default();
    let posted = post_all(&mut state, &[arrival(lie, 0)]);
    let allowed = u128::from(RateCeiling::default().allowance(Seconds(1800)));
    assert_eq!(state.users[&user(1)].uploaded, allowed);
    assert_eq!(kinds(&posted), [RiskKind::ClientRate, RiskKind::UploadAheadOfDownload]);
    assert_eq!(
        (posted.risks[0].uploaded_claimed, posted.risks[0].uploaded_credited),
        (u64::MAX, u64::try_from(allowed).unwrap())
    );
}

fn kinds(posted: &Posted) -> Vec<RiskKind> {
    posted.risks.iter().map(|risk| risk.kind).collect()
}

fn ours(at: u32, run: u32, uploaded: u64) -> TrafficEntry {
    let session = SessionId { client: domain::ClientId(7), run: RunId(run) };
    let totals = Some(Totals { session, uploaded, downloaded: 0 });
    TrafficEntry { totals, ..one(AnnounceEvent::None, at, 0) }
}

#[test]
fn j8_a_jump_between_two_runs_is_reported_once() {
    let mut state = AccountState::default();
    assert_eq!(post_all(&mut state, &[arrival(ours(0, 1, 0), 0)]).risks, []);
    let posted = post_all(&mut state, &[arrival(ours(10, 2, 1 << 60), 1)]);
    assert_eq!(kinds(&posted), [RiskKind::ClientRate, RiskKind::UploadAheadOfDownload]);
    assert_eq!(posted.risks[0].uploaded_claimed, 1 << 60);
    assert_eq!(post_all(&mut state, &[arrival(ours(20, 2, (1 << 60) + 5), 2)]).risks, []);
}

#[test]
fn an_entry_beyond_the_session_retention_is_applied_only_to_a_known_run() {
    let mut state = AccountState::default();
    let ancient = TrafficEntry { at: UnixTime(BEGIN - SPAN_MAX), ..ours(0, 1, 5) };
    let posted = post_all(&mut state, &[arrival(ancient, 0)]);
    assert_eq!(posted.rejected.len(), 1);
    assert!(posted.rejected[0].reason.contains("older"), "{:?}", posted.rejected);
    assert!(posted.changes.accounts.is_empty());
    post_all(&mut state, &[arrival(ours(0, 1, 9), 1)]);
    assert_eq!(post_all(&mut state, &[arrival(ancient, 0)]).rejected, []);
    assert_eq!(state.users[&user(1)].uploaded, 4);
}

#[test]
fn l6_an_entry_of_a_settled_run_counts_without_its_bytes() {
    let mut state = AccountState::default();
    let runs = 2 * RUNS_MAX as u32;
    for run in 1..=runs {
        post_all(&mut state, &[arrival(ours(run * 10, run, u64::from(runs - run)), u64::from(run))]);
    }
    let posted = post_all(&mut state, &[arrival(ours(25, 2, 0), 1)]);
    assert_eq!((posted.rejected.len(), posted.late), (0, 1));
    assert_eq!(state.users[&user(1)].uploaded, 0);
}

/// The oldest stored run continues the settled ones: a late report moves the border between its own growth and the
/// bridge before it, and adds nothing.
#[test]
fn l6_a_late_report_of_the_oldest_stored_run_counts_once() {
    for count in RUNS_MAX as u32 + 1..=2 * RUNS_MAX as u32 {
        let mut state = AccountState::default();
        for run in 1..=count {
            let report = ours(run * 10 + 5, run, u64::from(run) * 100 + 50);
            post_all(&mut state, &[arrival(report, u64::from(run))]);
        }
        let credited = u128::from(count - 1) * 100;
        assert_eq!(state.users[&user(1)].uploaded, credited);
        let kept = state.clients.values().flat_map(|client| &client.runs).filter(|run| !run.is_settled);
        let oldest = kept.map(|run| run.key.run.0).min().unwrap();
        let late = ours(oldest * 10, oldest, u64::from(oldest) * 100);
        post_all(&mut state, &[arrival(late, 1000)]);
        assert_eq!(state.users[&user(1)].uploaded, credited, "of {count} runs");
    }
}

//! The parts of an account add up to it exactly, on each database.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::{AnnounceEvent, clock::ManualClock};
use domain::{ClientId, NodeId, PeerId, RateCeiling, RunId, Seconds, SessionId, UnixTime};
use journal::{Totals, TrafficEntry};
use ledger::run::Counters;
use ledger::settle::RUNS_MAX;
use ledger::{ClientState, Explanation, Ledger, LedgerSettings, Moved};

use crate::support::simulator::{BEGIN, SPAN_MAX, Size, World, arrivals_of, entry, simulate};
use crate::support::{self, Known, Place, Risks, apply, key, open, open_with};

const SIZE: Size = Size { nodes: 2, users: 3, torrents: 2, clients_per_account: 3, announces_per_client: 25 };
/// Clients with more runs than are stored.
const LONG: Size =
    Size { nodes: 1, users: 1, torrents: 1, clients_per_account: 2, announces_per_client: 700 };
const PEER: PeerId = PeerId(*b"-TR3000-abcdefghijkl");
const NONE: Moved = Moved { uploaded: 0, downloaded: 0 };

async fn explanation(ledger: &Ledger, owner: u64, on: u64) -> Explanation {
    ledger.explain(key(owner, on), 100).await.unwrap().unwrap()
}

/// The sum of the parts, with or without the rest.
fn contribution(explanation: &Explanation) -> Moved {
    explanation.clients.iter().map(|client| client.contribution()).fold(NONE, Moved::with)
}

fn in_account(explanation: &Explanation) -> Moved {
    let figures = &explanation.account.figures;
    Moved { uploaded: figures.uploaded as i128, downloaded: figures.downloaded as i128 }
}

fn moved(uploaded: i128) -> Moved {
    Moved { uploaded, downloaded: 0 }
}

async fn assert_explained(ledger: &Ledger, world: &World) {
    for ((owner, on), (uploaded, downloaded)) in &world.credited {
        let explanation = explanation(ledger, *owner, *on).await;
        let credited = Moved { uploaded: *uploaded as i128, downloaded: *downloaded as i128 };
        assert_eq!(
            (in_account(&explanation), contribution(&explanation)),
            (credited, credited),
            "{owner} on {on}"
        );
        assert_eq!((explanation.rest, explanation.is_cut), (NONE, false));
    }
}

async fn l6_the_parts_of_an_explanation_sum_to_the_account(place: Place) {
    let world = simulate(31, SIZE);
    let ledger = Arc::new(open(&place).await);
    let mut arrivals = world.arrivals.clone();
    fastrand::Rng::with_seed(31).shuffle(&mut arrivals);
    // At any time, also while entries are applied.
    let is_over = Arc::new(AtomicBool::new(false));
    let asking = tokio::spawn({
        let (ledger, is_over) = (Arc::clone(&ledger), Arc::clone(&is_over));
        async move {
            while !is_over.load(Ordering::Relaxed) {
                for owner in 1..=SIZE.users {
                    if let Some(explanation) = ledger.explain(key(owner, 1), 100).await.unwrap() {
                        assert_eq!(contribution(&explanation), in_account(&explanation), "{explanation:#?}");
                    }
                }
            }
        }
    });
    let share = arrivals.len().div_ceil(2);
    let consumers = arrivals.chunks(share).zip(["a", "b"]).map(|(share, name)| {
        let (ledger, share) = (Arc::clone(&ledger), share.to_vec());
        tokio::spawn(async move {
            for chunk in share.chunks(23) {
                assert_eq!(apply(&ledger, name, chunk).await, []);
            }
        })
    });
    for consumer in consumers.collect::<Vec<_>>() {
        consumer.await.unwrap();
    }
    is_over.store(true, Ordering::Relaxed);
    asking.await.unwrap();
    assert_explained(&ledger, &world).await;
}

async fn l6_settled_runs_are_known_as_a_sum(place: Place) {
    let world = simulate(34, LONG);
    let ledger = open(&place).await;
    for chunk in world.arrivals.chunks(200) {
        assert_eq!(apply(&ledger, "a", chunk).await, []);
    }
    assert!(ledger.counts().settled_runs > 0);
    assert_explained(&ledger, &world).await;
    let explanation = explanation(&ledger, 1, 1).await;
    let put_away: Vec<_> = explanation.clients.iter().filter(|client| client.sums.settled != NONE).collect();
    assert!(!put_away.is_empty());
    for client in put_away {
        assert!(client.stretches[0].is_settled && client.stretches.len() <= RUNS_MAX, "{client:#?}");
        assert_eq!(client.stretches[0].contribution(), NONE);
    }
}

/// An entry of ours.
fn ours(client: u64, (node, run): (u32, u32), at: u32, uploaded: u64) -> TrafficEntry {
    let session = SessionId { client: ClientId(client), run: RunId(run) };
    TrafficEntry {
        node: Some(NodeId::starting(UnixTime(BEGIN), &node.to_string(), 0)),
        totals: Some(Totals { session, uploaded, downloaded: 0 }),
        ..entry(1, 1, PEER, UnixTime(BEGIN + at), AnnounceEvent::None, 0)
    }
}

fn foreign(at: u32, uploaded_delta: u64) -> TrafficEntry {
    let interval = Some(Seconds(1000));
    TrafficEntry {
        uploaded_delta,
        since_last: interval,
        ..entry(1, 1, PEER, UnixTime(BEGIN + at), AnnounceEvent::None, 0)
    }
}

fn slow() -> LedgerSettings {
    LedgerSettings { ceiling: RateCeiling { bytes_per_s: 10 }, ..LedgerSettings::default() }
}

/// A client whose state a tracker lost twice, and that once moved more than is plausible; one that restarted; and one
/// of another producer.
fn story() -> Vec<TrafficEntry> {
    vec![
        ours(7, (1, 1), 0, 100),
        ours(7, (1, 1), 10, 150),
        ours(7, (2, 1), 10, 150),
        ours(7, (1, 2), 110, 400),
        ours(7, (1, 3), 120, 1000),
        ours(8, (1, 9), 0, 500),
        ours(8, (1, 10), 50, 30),
        ours(8, (1, 10), 60, 60),
        foreign(70, 3000),
        foreign(130, 20_000),
    ]
}

async fn an_explanation_contains_bridged_withheld_and_foreign_bytes(place: Place) {
    let ledger = open_with(&place, slow(), Known::default(), support::clock(), Risks::default()).await;
    assert_eq!(ledger.explain(key(1, 1), 100).await.unwrap(), None);
    apply(&ledger, "a", &arrivals_of(story())).await;
    let all = explanation(&ledger, 1, 1).await;
    assert_eq!((all.rest, all.account.figures.uploaded), (NONE, 50 + 250 + 200 + 30 + 3000 + 10_100));
    let [other, first, anew] = all.clients.as_slice() else { panic!("{all:#?}") };
    assert_eq!((other.sums.foreign, other.stretches.len()), (moved(13_100), 0));
    assert_eq!(
        (first.client, first.state, first.contribution()),
        (ClientId(7), ClientState::Seeding, moved(500))
    );
    let spans: Vec<_> = first.stretches.iter().map(|one| (one.first.0 - BEGIN, one.last.0 - BEGIN)).collect();
    assert_eq!(spans, [(0, 10), (110, 110), (120, 120)]);
    assert_eq!(first.stretches.iter().map(|one| one.nodes).collect::<Vec<_>>(), [2, 1, 1]);
    let up = |uploaded: u64| Counters { uploaded, downloaded: 0 };
    assert_eq!(
        (first.stretches[0].low, first.stretches[0].high, first.stretches[0].moved),
        (up(100), up(150), up(50))
    );
    let bridges: Vec<_> =
        first.stretches.iter().map(|one| one.bridge.map(|over| (over.granted, over.withheld))).collect();
    assert_eq!(bridges, [None, Some((up(250), up(0))), Some((up(200), up(400)))]);
    assert_eq!((anew.stretches[1].bridge, anew.contribution()), (None, moved(30)));

    // Of unlisted clients only the sum is returned.
    let cut = ledger.explain(key(1, 1), 2).await.unwrap().unwrap();
    assert_eq!((cut.clients.len(), cut.is_cut, cut.rest), (2, true, moved(30)));
    drop(ledger);

    // Another ceiling does not change what was credited, only how it would be credited today.
    let ledger = open(&place).await;
    assert_eq!(explanation(&ledger, 1, 1).await.rest, moved(-400));
}

async fn the_contribution_of_deleted_clients_is_the_rest(place: Place) {
    let late = ManualClock::at(UnixTime(BEGIN + SPAN_MAX));
    let ledger = open_with(&place, slow(), Known::default(), late.clone(), Risks::default()).await;
    apply(&ledger, "a", &arrivals_of(story())).await;
    let days = |days: u32| UnixTime(BEGIN + days * 24 * 60 * 60);
    late.advance(Seconds(29 * 24 * 60 * 60 - SPAN_MAX));
    apply(&ledger, "a", &arrivals_of(vec![ours(7, (1, 3), 29 * 24 * 60 * 60, 1040)])).await;
    assert_eq!(ledger.prune(days(31)).await.unwrap().clients, 2);
    let left = explanation(&ledger, 1, 1).await;
    assert_eq!((left.clients.len(), left.is_cut, left.rest), (1, false, moved(13_130)));
    assert_eq!(contribution(&left).with(left.rest), in_account(&left));
}

on_every_database!(
    l6_the_parts_of_an_explanation_sum_to_the_account,
    l6_settled_runs_are_known_as_a_sum,
    an_explanation_contains_bridged_withheld_and_foreign_bytes,
    the_contribution_of_deleted_clients_is_the_rest,
);

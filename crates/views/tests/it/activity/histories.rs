//! Histories: applied in any order, repeatedly and by several consumers, they give the same lists.

use std::collections::{BTreeMap, BTreeSet};

use domain::{AnnounceEvent, UnixTime};
use fastrand::Rng;
use views::ActivitySettings;

use crate::activity::fixture::{Announce, Backend, Fixture, Listed, THRESHOLD, apply, info_hash};

const USERS: u32 = 3;
const TORRENTS: u32 = 4;
const CLIENTS: u32 = 3;
const HISTORIES: u64 = 8;

/// Announces of two hours, many of them within the same second.
fn history(rng: &mut Rng, first_user: u32) -> Vec<Announce> {
    let events =
        [AnnounceEvent::None, AnnounceEvent::Started, AnnounceEvent::Completed, AnnounceEvent::Stopped];
    let mut history: Vec<Announce> = (0..300)
        .map(|seq| Announce {
            user: first_user + rng.u32(..USERS),
            torrent: rng.u32(..TORRENTS),
            client: rng.u32(..CLIENTS),
            event: events[rng.usize(..events.len())],
            left: Some(rng.u64(..2)),
            at: rng.i64(-24..120) * 60,
            seq,
            since_last_s: 0,
            has_fourteen_fields: rng.u32(..4) == 0,
            interval_s: 1800,
        })
        .collect();
    let mut seconds = BTreeSet::new();
    for announce in &mut history {
        let second =
            (announce.user, announce.torrent, announce.client, announce.has_fourteen_fields, announce.at);
        announce.since_last_s = if seconds.insert(second) { 60 } else { 0 };
    }
    history
}

/// The expected lists at `now`, computed from all entries: the latest of each client, then the strongest state of each
/// torrent.
fn expected(history: &[Announce], user: u32, now: UnixTime) -> (Listed, Listed) {
    let mut latest = BTreeMap::new();
    for announce in history.iter().filter(|announce| announce.user == user) {
        let client = (announce.torrent, announce.client, announce.has_fourteen_fields);
        let stamp = (announce.at, announce.seq);
        let known = latest.entry(client).or_insert((stamp, *announce));
        if known.0 <= stamp {
            *known = (stamp, *announce);
        }
    }
    let mut lists = (Listed::new(), Listed::new());
    for torrent in 0..TORRENTS {
        let current = latest.range((torrent, 0, false)..(torrent + 1, 0, false)).map(|(_, (_, last))| last);
        let current: Vec<_> = current.filter(|last| last.time().0 > now.0 - THRESHOLD).collect();
        let stopped = |last: &&&Announce| last.event == AnnounceEvent::Stopped;
        let seeding = |last: &&&Announce| last.left == Some(0) || last.event == AnnounceEvent::Completed;
        let present: Vec<_> = current.iter().filter(|last| !stopped(last)).collect();
        let seeders = present.iter().copied().filter(|last| seeding(last)).map(|last| last.time().0).max();
        let others = present.iter().map(|last| last.time().0).max();
        match (seeders, others) {
            (Some(at), _) => lists.0.push((torrent, at)),
            (None, Some(at)) => lists.1.push((torrent, at)),
            (None, None) => {}
        }
    }
    for list in [&mut lists.0, &mut lists.1] {
        list.sort_unstable_by_key(|(torrent, at)| std::cmp::Reverse((*at, info_hash(*torrent))));
    }
    lists
}

async fn check(fixture: &Fixture, history: &[Announce], first_user: u32, seed: u64) {
    let now = domain::clock::Clock::now(&fixture.clock);
    for user in first_user..first_user + USERS {
        let (seeding, leeching) = expected(history, user, now);
        assert_eq!(fixture.seeding(user).await, seeding, "user {user} at {now}, seed {seed}");
        assert_eq!(fixture.leeching(user).await, leeching, "user {user} at {now}, seed {seed}");
        assert_eq!(fixture.counts(user).await, (seeding.len() as u64, leeching.len() as u64));
    }
}

/// In batches of random size and order, some of it twice.
fn shuffled(history: &[Announce], rng: &mut Rng) -> Vec<Vec<Announce>> {
    let mut all: Vec<_> = history.iter().chain(&history[..history.len() / 2]).copied().collect();
    rng.shuffle(&mut all);
    let mut batches = Vec::new();
    while !all.is_empty() {
        let rest = all.split_off(rng.usize(1..40).min(all.len()));
        batches.push(std::mem::replace(&mut all, rest));
    }
    batches
}

pub async fn a2_shuffled_and_repeated_histories_end_as_in_order(backend: Backend) {
    for seed in 0..HISTORIES {
        let mut rng = Rng::with_seed(seed);
        let first_user = 100 * (seed as u32 + 1);
        let history = history(&mut rng, first_user);
        let fixture = backend.fixture().await;
        // The history ends two hours after the fixture's start.
        fixture.wait(7200);
        for batch in shuffled(&history, &mut rng) {
            fixture.apply(&batch).await;
            if rng.u32(..8) == 0 {
                fixture.activity.sweep().await.unwrap();
            }
        }
        check(&fixture, &history, first_user, seed).await;
        for _ in 0..6 {
            fixture.wait(rng.u32(60..600));
            if rng.bool() {
                fixture.activity.sweep().await.unwrap();
            }
            // A replay in between restores nothing.
            let some: Vec<_> = (0..30).map(|_| history[rng.usize(..history.len())]).collect();
            fixture.apply(&some).await;
            check(&fixture, &history, first_user, seed).await;
        }
    }
}

pub async fn a2_two_concurrent_consumers_end_as_one(backend: Backend) {
    let mut rng = Rng::with_seed(42);
    let history = history(&mut rng, 1);
    let fixture = backend.fixture().await;
    fixture.wait(7200);
    let other = backend.open(ActivitySettings::default(), &fixture.clock).await;
    let (first_batches, second_batches) = (shuffled(&history, &mut rng), shuffled(&history, &mut rng));
    let consume = |batches: Vec<Vec<Announce>>, activity: views::Activity| async move {
        for batch in batches {
            assert_eq!(apply(&activity, &batch).await.unwrap(), []);
            activity.sweep().await.unwrap();
        }
    };
    let first = tokio::spawn(consume(first_batches, fixture.activity.clone()));
    let second = tokio::spawn(consume(second_batches, other));
    first.await.unwrap();
    second.await.unwrap();
    check(&fixture, &history, 1, 42).await;
    // The index has every user: sweeps alone remove everything.
    fixture.wait(THRESHOLD + 60);
    while fixture.activity.sweep().await.unwrap().users > 0 {}
    assert!(backend.is_empty().await);
}

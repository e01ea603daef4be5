//! Simulations without a server: every announce is accepted at once.

use std::collections::BTreeMap;

use domain::AnnounceEvent;

use super::*;
use crate::truth::Moved;

const PLAN: Plan = Plan { torrents: 40, peers: 400, members: 30, pace: 4.0, seed: 7, misbehaviour: false };
const INTERVAL: Duration = Duration::from_secs(30);
const ACCEPTED: AnnounceOutcome =
    AnnounceOutcome::Accepted { interval: INTERVAL, min_interval: Duration::from_secs(5) };

/// Runs a simulation for this long. Returns all actions with their times.
fn play(
    plan: &Plan,
    length: Duration,
    mut answer: impl FnMut(u32) -> AnnounceOutcome,
) -> (Population, Vec<(Duration, Action)>) {
    let mut population = Population::new(plan);
    let mut done = Vec::new();
    while let Some(now) = population.next_at().filter(|at| *at <= length) {
        let mut actions = Vec::new();
        population.act(now, &mut actions);
        for action in actions {
            if let Action::Announce { peer, .. } = &action {
                population.handle_reply(*peer, &answer(*peer), now);
            }
            done.push((now, action));
        }
    }
    (population, done)
}

#[test]
fn what_happens_follows_from_the_seed() {
    let minutes = Duration::from_secs(300);
    let (_, one) = play(&PLAN, minutes, |_| ACCEPTED);
    let (_, same) = play(&PLAN, minutes, |_| ACCEPTED);
    let (_, other) = play(&Plan { seed: 8, ..PLAN }, minutes, |_| ACCEPTED);
    assert!(one.len() > 2_000, "{} acts", one.len());
    assert_eq!(one, same);
    assert_ne!(one, other);
}

#[test]
fn bytes_add_up_within_every_torrent_and_totals_only_grow() {
    let (population, done) = play(&PLAN, Duration::from_secs(900), |_| ACCEPTED);
    let mut torrents: BTreeMap<u64, Moved> = BTreeMap::new();
    let expected = population.truth();
    for ((_, torrent), transferred) in &expected.accounts {
        torrents.entry(*torrent).or_default().add(*transferred);
    }
    assert!(expected.total().uploaded > 1 << 30, "{:?}", expected.total());
    for (torrent, transferred) in torrents {
        assert!(transferred.uploaded <= transferred.downloaded, "torrent {torrent}: {transferred:?}");
    }
    let mut runs: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for (_, action) in &done {
        let Action::Announce { peer, announce, .. } = action else { continue };
        let totals = (announce.uploaded, announce.downloaded);
        let before = runs.insert(*peer, totals).unwrap_or_default();
        match announce.event {
            AnnounceEvent::Started => assert_eq!(totals, (0, 0), "a run begins at nothing"),
            _ => assert!(totals.0 >= before.0 && totals.1 >= before.1, "peer {peer}"),
        }
    }
}

#[test]
fn everything_that_clients_and_users_do_is_done() {
    let (population, done) = play(&PLAN, Duration::from_secs(900), |_| ACCEPTED);
    let events = |wanted| {
        done.iter()
            .filter(
                |(_, action)| matches!(action, Action::Announce { announce, .. } if announce.event == wanted),
            )
            .count()
    };
    use AnnounceEvent::{Completed, None as Heartbeat, Started, Stopped};
    for event in [Completed, Heartbeat, Started, Stopped] {
        assert!(events(event) > 20, "{event}: {}", events(event));
    }
    assert!(events(Started) > PLAN.peers as usize + events(Stopped) / 2, "some vanish, and come back");
    assert_eq!(population.truth().completions.values().sum::<u64>(), events(Completed) as u64);
    let roads: HashSet<_> = done
        .iter()
        .filter_map(|(_, action)| match action {
            Action::Announce { transport, .. } => Some(std::mem::discriminant(transport)),
            Action::Device { .. } => None,
        })
        .collect();
    assert_eq!(roads.len(), 4, "HTTP and UDP, IPv4 and IPv6");
    let actions = |is: fn(&DeviceAction) -> bool| {
        done.iter()
            .filter(|(_, action)| matches!(action, Action::Device { action, .. } if is(action)))
            .count()
    };
    for (what, count) in [
        ("connect", actions(|action| matches!(action, DeviceAction::Connect { .. }))),
        ("goodbye", actions(|action| matches!(action, DeviceAction::Close { .. }))),
        ("crash", actions(|action| matches!(action, DeviceAction::Crash { .. }))),
        ("freeze", actions(|action| matches!(action, DeviceAction::Freeze { .. }))),
        (
            "status",
            actions(|action| matches!(action, DeviceAction::Send { command: Command::Status(..), .. })),
        ),
        ("typing", actions(|action| matches!(action, DeviceAction::Send { command: Command::Type(_), .. }))),
        ("rooms", actions(|action| matches!(action, DeviceAction::Send { command: Command::Enter(_), .. }))),
    ] {
        assert!(count > 0, "{what}");
    }
}

#[test]
fn no_client_exceeds_its_bandwidth() {
    let (_, done) = play(&PLAN, Duration::from_secs(600), |_| ACCEPTED);
    let mut last: BTreeMap<u32, (Duration, u64, u64)> = BTreeMap::new();
    for (at, action) in &done {
        let Action::Announce { peer, announce, .. } = action else { continue };
        let (before, up, down) =
            last.insert(*peer, (*at, announce.uploaded, announce.downloaded)).unwrap_or((*at, 0, 0));
        if announce.event != AnnounceEvent::Started {
            let most = 20e6 * (*at - before).as_secs_f64() + 1.0;
            assert!((announce.uploaded - up) as f64 <= most && (announce.downloaded - down) as f64 <= most);
        }
    }
}

#[test]
fn regular_announces_keep_the_interval_of_the_server() {
    let (_, done) = play(&PLAN, Duration::from_secs(600), |_| ACCEPTED);
    let mut last: BTreeMap<u32, Duration> = BTreeMap::new();
    for (at, action) in &done {
        let Action::Announce { peer, announce, .. } = action else { continue };
        if let Some(before) = last.insert(*peer, *at)
            && announce.event == AnnounceEvent::None
        {
            assert!(*at - before >= Duration::from_secs(4), "peer {peer} after {:?}", *at - before);
        }
    }
}

#[test]
fn what_was_not_answered_is_repeated_and_what_was_refused_is_not_credited() {
    let mut lost = 0;
    let (population, done) = play(&PLAN, Duration::from_secs(200), |peer| match peer % 10 {
        0 => AnnounceOutcome::Refused("no".to_owned()),
        1 => {
            lost += 1;
            if lost % 3 == 0 { ACCEPTED } else { AnnounceOutcome::Lost }
        }
        _ => ACCEPTED,
    });
    let users_refused: HashSet<u64> = (0..PLAN.peers)
        .filter(|peer| peer % 10 == 0)
        .map(|peer| u64::from(1 + peer % PLAN.users()))
        .collect();
    let only_refused = |user: &u64| {
        (0..PLAN.peers).filter(|peer| u64::from(1 + peer % PLAN.users()) == *user).all(|peer| peer % 10 == 0)
    };
    let expected = population.truth();
    for user in users_refused.iter().filter(|user| only_refused(user)) {
        assert!(expected.accounts.keys().all(|(known, _)| known != user), "user {user} was refused");
    }
    let first_of = |wanted: u32| {
        done.iter()
            .filter_map(|(_, action)| match action {
                Action::Announce { peer, announce, .. } if *peer == wanted => Some(announce.event),
                _ => None,
            })
            .take(3)
            .collect::<Vec<_>>()
    };
    assert!((1..PLAN.peers).step_by(10).any(|peer| first_of(peer).starts_with(&[AnnounceEvent::Started; 2])));
}

#[test]
fn mischief_is_a_cheat_and_the_unwelcome() {
    let plan = Plan { misbehaviour: true, ..PLAN };
    let (population, done) = play(&plan, Duration::from_secs(120), |_| ACCEPTED);
    let claimed = done.iter().filter_map(|(_, action)| match action {
        Action::Announce { peer: 1, announce, .. } => Some(announce.uploaded),
        _ => None,
    });
    assert!(claimed.max().unwrap() > 20_000_000_000);
    assert!(
        population.truth().total().uploaded <= population.truth().total().downloaded,
        "the cheat is not in it"
    );
    let is_forbidden = |action: &Action| matches!(action, Action::Announce { announce, .. } if announce.agent.contains("Xunlei"));
    assert!(done.iter().any(|(_, action)| is_forbidden(action)));
}

/// Regression: seeders left for other torrents faster than downloads ended, and after some hours hardly any were left.
#[test]
fn the_share_of_leechers_stays_what_it_was_for_hours() {
    let plan = Plan { torrents: 60, peers: 500, members: 0, pace: 1.0, seed: 7, misbehaviour: false };
    let mut population = Population::new(&plan);
    let accepted = AnnounceOutcome::Accepted {
        interval: Duration::from_secs(60),
        min_interval: Duration::from_secs(30),
    };
    let mut out = Vec::new();
    for hour in 1..=12 {
        let end = Duration::from_secs(3_600 * hour);
        while let Some(now) = population.next_at().filter(|now| *now < end) {
            population.act(now, &mut out);
            for action in out.drain(..) {
                if let Action::Announce { peer, .. } = action {
                    population.handle_reply(peer, &accepted, now);
                }
            }
        }
        let members = population.torrents.swarms.iter().map(|swarm| swarm.members());
        let (seeders, leechers) =
            members.fold((0, 0), |(s, l), (seeders, leechers)| (s + seeders, l + leechers));
        let percent = 100 * leechers / (seeders + leechers);
        assert!((10..=30).contains(&percent), "hour {hour}: {leechers} leechers, {seeders} seeders");
    }
}

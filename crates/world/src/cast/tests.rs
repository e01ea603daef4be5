//! Worlds played through without a server: every announce is accepted at once.

use std::collections::BTreeMap;

use domain::AnnounceEvent;

use super::*;
use crate::truth::Moved;

const PLAN: Plan = Plan { torrents: 40, peers: 400, people: 30, pace: 4.0, seed: 7, mischief: false };
const INTERVAL: Duration = Duration::from_secs(30);
const ACCEPTED: Heard = Heard::Accepted { interval: INTERVAL, min_interval: Duration::from_secs(5) };

/// Plays a world for so long; everything that was done, with its time.
fn play(plan: &Plan, length: Duration, mut answer: impl FnMut(u32) -> Heard) -> (Cast, Vec<(Duration, Act)>) {
    let mut cast = Cast::new(plan);
    let mut done = Vec::new();
    while let Some(now) = cast.next_at().filter(|at| *at <= length) {
        let mut acts = Vec::new();
        cast.act(now, &mut acts);
        for act in acts {
            if let Act::Announce { peer, .. } = &act {
                cast.hear(*peer, &answer(*peer), now);
            }
            done.push((now, act));
        }
    }
    (cast, done)
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
    let (cast, done) = play(&PLAN, Duration::from_secs(900), |_| ACCEPTED);
    let mut torrents: BTreeMap<u64, Moved> = BTreeMap::new();
    let truth = cast.truth();
    for ((_, torrent), moved) in &truth.accounts {
        torrents.entry(*torrent).or_default().add(*moved);
    }
    assert!(truth.total().uploaded > 1 << 30, "{:?}", truth.total());
    for (torrent, moved) in torrents {
        assert!(moved.uploaded <= moved.downloaded, "torrent {torrent}: {moved:?}");
    }
    let mut runs: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for (_, act) in &done {
        let Act::Announce { peer, announce, .. } = act else { continue };
        let totals = (announce.uploaded, announce.downloaded);
        let before = runs.insert(*peer, totals).unwrap_or_default();
        match announce.event {
            AnnounceEvent::Started => assert_eq!(totals, (0, 0), "a run begins at nothing"),
            _ => assert!(totals.0 >= before.0 && totals.1 >= before.1, "peer {peer}"),
        }
    }
}

#[test]
fn everything_that_clients_and_people_do_is_done() {
    let (cast, done) = play(&PLAN, Duration::from_secs(900), |_| ACCEPTED);
    let events = |wanted| {
        done.iter()
            .filter(|(_, act)| matches!(act, Act::Announce { announce, .. } if announce.event == wanted))
            .count()
    };
    use AnnounceEvent::{Completed, None as Heartbeat, Started, Stopped};
    for event in [Completed, Heartbeat, Started, Stopped] {
        assert!(events(event) > 20, "{event}: {}", events(event));
    }
    assert!(events(Started) > PLAN.peers as usize + events(Stopped) / 2, "some vanish, and come back");
    assert_eq!(cast.truth().completions.values().sum::<u64>(), events(Completed) as u64);
    let roads: HashSet<_> = done
        .iter()
        .filter_map(|(_, act)| match act {
            Act::Announce { road, .. } => Some(std::mem::discriminant(road)),
            Act::Deed { .. } => None,
        })
        .collect();
    assert_eq!(roads.len(), 4, "HTTP and UDP, IPv4 and IPv6");
    let deeds = |is: fn(&Deed) -> bool| {
        done.iter().filter(|(_, act)| matches!(act, Act::Deed { deed, .. } if is(deed))).count()
    };
    for (what, count) in [
        ("connect", deeds(|deed| matches!(deed, Deed::Connect { .. }))),
        ("goodbye", deeds(|deed| matches!(deed, Deed::Goodbye { .. }))),
        ("crash", deeds(|deed| matches!(deed, Deed::Crash { .. }))),
        ("freeze", deeds(|deed| matches!(deed, Deed::Freeze { .. }))),
        ("status", deeds(|deed| matches!(deed, Deed::Say { line: Line::Status(..), .. }))),
        ("typing", deeds(|deed| matches!(deed, Deed::Say { line: Line::Type(_), .. }))),
        ("rooms", deeds(|deed| matches!(deed, Deed::Say { line: Line::Enter(_), .. }))),
    ] {
        assert!(count > 0, "{what}");
    }
}

#[test]
fn nobody_is_faster_than_their_line() {
    let (_, done) = play(&PLAN, Duration::from_secs(600), |_| ACCEPTED);
    let mut last: BTreeMap<u32, (Duration, u64, u64)> = BTreeMap::new();
    for (at, act) in &done {
        let Act::Announce { peer, announce, .. } = act else { continue };
        let (before, up, down) =
            last.insert(*peer, (*at, announce.uploaded, announce.downloaded)).unwrap_or((*at, 0, 0));
        if announce.event != AnnounceEvent::Started {
            let most = 20e6 * (*at - before).as_secs_f64() + 1.0;
            assert!((announce.uploaded - up) as f64 <= most && (announce.downloaded - down) as f64 <= most);
        }
    }
}

#[test]
fn nobody_announces_sooner_than_the_server_wants_but_for_news() {
    let (_, done) = play(&PLAN, Duration::from_secs(600), |_| ACCEPTED);
    let mut last: BTreeMap<u32, Duration> = BTreeMap::new();
    for (at, act) in &done {
        let Act::Announce { peer, announce, .. } = act else { continue };
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
    let (cast, done) = play(&PLAN, Duration::from_secs(200), |peer| match peer % 10 {
        0 => Heard::Refused("no".to_owned()),
        1 => {
            lost += 1;
            if lost % 3 == 0 { ACCEPTED } else { Heard::Lost }
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
    let truth = cast.truth();
    for user in users_refused.iter().filter(|user| only_refused(user)) {
        assert!(truth.accounts.keys().all(|(known, _)| known != user), "user {user} was refused");
    }
    let first_of = |wanted: u32| {
        done.iter()
            .filter_map(|(_, act)| match act {
                Act::Announce { peer, announce, .. } if *peer == wanted => Some(announce.event),
                _ => None,
            })
            .take(3)
            .collect::<Vec<_>>()
    };
    assert!((1..PLAN.peers).step_by(10).any(|peer| first_of(peer).starts_with(&[AnnounceEvent::Started; 2])));
}

#[test]
fn mischief_is_a_cheat_and_the_unwelcome() {
    let plan = Plan { mischief: true, ..PLAN };
    let (cast, done) = play(&plan, Duration::from_secs(120), |_| ACCEPTED);
    let claimed = done.iter().filter_map(|(_, act)| match act {
        Act::Announce { peer: 1, announce, .. } => Some(announce.uploaded),
        _ => None,
    });
    assert!(claimed.max().unwrap() > 20_000_000_000);
    assert!(cast.truth().total().uploaded <= cast.truth().total().downloaded, "the cheat is not in it");
    let is_forbidden =
        |act: &Act| matches!(act, Act::Announce { announce, .. } if announce.agent.contains("Xunlei"));
    assert!(done.iter().any(|(_, act)| is_forbidden(act)));
}

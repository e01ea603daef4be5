//! Membership, peer selection and expiry.

use std::collections::{BTreeMap, HashMap};

use domain::Families;
use domain::{AnnounceEvent, InfoHash, Seconds};
use proptest::prelude::*;
use swarm::{AnnounceError, PeerLists, SwarmCounts, Swarms};

use crate::support::*;

fn fill(swarms: &Swarms, seeders: u64, leechers: u64) {
    for number in 1..=seeders + leechers {
        let left = if number <= seeders { 0 } else { 1000 };
        take(swarms, &Announce { left: Some(left), wanted: 0, ..announce_of(number, START) });
    }
}

fn numbers_of(lists: &PeerLists) -> Vec<u64> {
    lists.v4.chunks(6).map(|p| u64::from_be_bytes([0, 0, 0, 0, 0, p[1], p[2], p[3]])).collect()
}

#[test]
fn seeders_are_given_leechers_only() {
    let swarms = swarms();
    fill(&swarms, 20, 10);
    let (_, lists) = take_with_peers(&swarms, &Announce { left: Some(0), ..announce_of(100, START) });
    let mut numbers = numbers_of(&lists);
    numbers.sort_unstable();
    assert_eq!(numbers, (21..=30).collect::<Vec<_>>());
}

#[test]
fn no_user_gets_their_own_peers() {
    let swarms = swarms();
    fill(&swarms, 3, 3);
    for client in 0..4 {
        let own =
            Announce { user: user(1), peer_id: peer_id(500 + client), ..announce_of(500 + client, START) };
        let (_, lists) = take_with_peers(&swarms, &own);
        let mut numbers = numbers_of(&lists);
        numbers.sort_unstable();
        assert_eq!(numbers, [2, 3, 4, 5, 6]);
    }
}

#[test]
fn a_user_may_run_only_so_many_clients_on_a_torrent() {
    let swarms = swarms();
    let client = |number| Announce { user: user(1), peer_id: peer_id(number), ..announce_of(1, START) };
    let mut lists = PeerLists::default();
    for number in 0..5 {
        take(&swarms, &client(number));
    }
    let refused = client(5).send(&swarms, &RULES, &mut lists);
    assert_eq!(refused, Err(AnnounceError::TooManyClients { limit: 5 }));
    assert_eq!(swarms.totals().peers, 5);
    take(&swarms, &Announce { event: AnnounceEvent::Stopped, ..client(0) });
    take(&swarms, &client(5));
}

/// Small swarms are searched one by one, large ones through an index: a swarm that grows and shrinks over and over, two
/// clients to each user.
#[test]
fn a_users_clients_are_found_in_a_swarm_of_any_size() {
    let swarms = swarms();
    let mut lists = PeerLists::default();
    let client = |number: u64, event, round: u32| Announce {
        user: user(number / 2 + 1),
        uploaded: u64::from(round) * 1_000,
        event,
        ..announce_of(number + 1, START + Seconds(round * 1_000))
    };
    let mut present = 0_u64;
    for (round, wanted) in (1..).zip([20, 120, 34, 30, 14, 40, 200, 33, 2, 64, 0, 33]) {
        let mut send = |number, event, round| {
            client(number, event, round).send(&swarms, &RULES, &mut lists).unwrap();
        };
        for number in present..wanted {
            send(number, AnnounceEvent::Started, round);
        }
        for number in wanted..present {
            send(number, AnnounceEvent::Stopped, round);
        }
        for number in 0..wanted {
            let heartbeat = client(number, AnnounceEvent::None, round);
            let outcome = Announce { uploaded: heartbeat.uploaded + 7, ..heartbeat }
                .send(&swarms, &RULES, &mut lists)
                .unwrap();
            let known = if number < present { 1_000 } else { 7 };
            assert_eq!((outcome.uploaded_delta, outcome.peer_ids), (known, 0), "client {number} of {wanted}");
            assert_eq!(u64::from(outcome.counts.leechers), wanted);
            assert!(!numbers_of(&lists).contains(&((number ^ 1) + 1)), "a client of the same user");
        }
        present = wanted;
    }
}

#[test]
fn low_ports_are_counted_but_never_returned() {
    let swarms = swarms();
    for (number, port) in [(1, 0), (2, 80), (3, 1023), (4, 1024)] {
        take(&swarms, &Announce { port, ..announce_of(number, START) });
    }
    let (outcome, lists) = take_with_peers(&swarms, &announce_of(9, START));
    assert_eq!(outcome.counts.leechers, 5);
    assert_eq!(numbers_of(&lists), [4]);
}

#[test]
fn a_udp_client_gets_its_own_family_only() {
    let swarms = swarms();
    fill(&swarms, 0, 30);
    for number in 31..=60 {
        let ip = std::net::Ipv6Addr::from(u128::from(number)).into();
        take(&swarms, &Announce { ip, ..announce_of(number, START) });
    }
    let ask = |families| {
        let requester = Announce { families, wanted: 20, ..announce_of(100 + families as u64, START) };
        take_with_peers(&swarms, &requester).1
    };
    let v4 = ask(Families::V4);
    assert_eq!((v4.v4.len() / 6, v4.v6.len()), (20, 0), "peers of the other family do not eat up the count");
    let v6 = ask(Families::V6);
    assert_eq!((v6.v4.len(), v6.v6.len() / 18), (0, 20));
}

/// A few peers of the rarer family among too many candidates to be shuffled are found nevertheless.
#[test]
fn a_udp_client_of_the_rarer_family_gets_peers_in_a_large_swarm() {
    let swarms = swarms();
    for number in 1..=390 {
        take(&swarms, &Announce { wanted: 0, ..announce_of(number, START) });
    }
    for number in 391..=400 {
        let ip = std::net::Ipv6Addr::from(u128::from(number)).into();
        take(&swarms, &Announce { ip, wanted: 0, ..announce_of(number, START) });
    }
    let requester = Announce { families: Families::V6, ..announce_of(999, START) };
    let (_, lists) = take_with_peers(&swarms, &requester);
    let mut given: Vec<&[u8]> = lists.v6.chunks(18).collect();
    given.sort_unstable();
    given.dedup();
    assert_eq!(given.len(), 10);
}

/// Candidates of three sizes: shuffled, at the border, and drawn from.
#[test]
fn the_choice_is_uniform() {
    for crowd in [60_u64, 200, 1000] {
        let swarms = swarms();
        fill(&swarms, crowd / 2, crowd - crowd / 2);
        let requester = Announce { wanted: 50, ..announce_of(5000, START) };
        let rounds = 2000;
        let mut seen: HashMap<u64, u32> = HashMap::new();
        let mut pairs = 0_u32;
        for round in 0..rounds {
            let now = START + Seconds(1000 * (round + 1));
            let (_, lists) = take_with_peers(&swarms, &Announce { now, ..requester });
            let numbers = numbers_of(&lists);
            assert_eq!(numbers.len(), 50);
            let mut unique = numbers.clone();
            unique.sort_unstable();
            unique.dedup();
            assert_eq!(unique.len(), 50, "no peer twice");
            pairs += u32::from(numbers.contains(&10) && numbers.contains(&11));
            numbers.into_iter().for_each(|number| *seen.entry(number).or_default() += 1);
        }
        // Each peer is chosen with probability 50 / candidates: chi squared, far from its tail.
        let expected = f64::from(rounds) * 50.0 / crowd as f64;
        let spread = expected * (1.0 - 50.0 / crowd as f64);
        let chi_squared: f64 =
            (1..=crowd).map(|n| (f64::from(*seen.get(&n).unwrap_or(&0)) - expected).powi(2) / spread).sum();
        let freedom = crowd as f64 - 1.0;
        let deviation = (chi_squared - freedom).abs() / (2.0 * freedom).sqrt();
        assert!(deviation < 5.0, "crowd {crowd}: chi squared {chi_squared}, {deviation} deviations off");
        // Adjacent peers are not chosen together more often than others.
        let pair_chance = 50.0 * 49.0 / (crowd as f64 * (crowd as f64 - 1.0));
        let pairs_expected = f64::from(rounds) * pair_chance;
        let pair_deviation = (f64::from(pairs) - pairs_expected).abs() / pairs_expected.sqrt();
        assert!(pair_deviation < 5.0, "crowd {crowd}: {pairs} pairs, {pairs_expected} expected");
    }
}

#[test]
fn t3_silent_peers_expire_after_interval_and_grace() {
    let swarms = swarms();
    fill(&swarms, 2, 2);
    take(&swarms, &Announce { now: START + Seconds(1800), uploaded: 9, ..announce_of(4, START) });
    assert!(expire(&swarms, START + Seconds(2399)).is_empty());
    let mut gone: Vec<_> = expire(&swarms, START + Seconds(2400)).iter().map(|d| d.user.get()).collect();
    gone.sort_unstable();
    assert_eq!(gone, [1, 2, 3]);
    assert_eq!(swarms.scrape(&TORRENT), SwarmCounts { seeders: 0, leechers: 1, snatches: 0 });
    let last = expire(&swarms, START + Seconds(1800 + 2400));
    assert_eq!((last[0].user, last[0].uploaded), (user(4), 9));
    assert_eq!(last[0].address, "10.0.0.4:6881".parse().unwrap());
    assert_eq!(swarms.totals().peers, 0);
}

/// A released slot is still armed in the wheel when it is reused.
#[test]
fn a_peer_in_a_reused_slot_expires_as_usual() {
    let swarms = swarms();
    take(&swarms, &announce_of(1, START));
    take(&swarms, &Announce { event: AnnounceEvent::Stopped, ..announce_of(1, START + Seconds(5)) });
    take(&swarms, &announce_of(2, START + Seconds(2000)));
    assert!(expire(&swarms, START + Seconds(2400)).is_empty());
    assert_eq!(expire(&swarms, START + Seconds(4400)).len(), 1);
}

#[test]
fn a_removed_torrent_or_user_takes_its_peers_along() {
    let swarms = swarms();
    let other = InfoHash([9; 20]);
    fill(&swarms, 5, 5);
    take(&swarms, &Announce { info_hash: other, ..announce_of(3, START) });
    let mut departed = 0;
    swarms.remove_peers(
        |other, _| other == user(3),
        |departure| {
            assert_eq!(departure.user, user(3));
            departed += 1;
        },
    );
    assert_eq!((departed, swarms.totals().peers), (2, 9));
    swarms.remove_torrent(&TORRENT, |_| departed += 1);
    assert_eq!((departed, swarms.totals().peers), (11, 0));
    assert_eq!(swarms.scrape(&TORRENT), SwarmCounts::default());
    assert!(expire(&swarms, START + Seconds(9999)).is_empty(), "no peer leaves twice");
    fill(&swarms, 1, 0);
    assert_eq!(swarms.scrape(&TORRENT).seeders, 1, "a torrent may come back");
}

#[derive(Clone, Debug)]
struct Step {
    torrent: u8,
    user: u64,
    client: u64,
    left: u64,
    event: u8,
    wait_s: u32,
}

fn step() -> impl Strategy<Value = Step> {
    (
        0..3_u8,
        1..6_u64,
        0..2_u64,
        0..2_u64,
        0..6_u8,
        prop_oneof![5 => Just(0), 3 => 1..300_u32, 1 => 2000..2600_u32],
    )
        .prop_map(|(torrent, user, client, left, event, wait_s)| Step {
            torrent,
            user,
            client,
            left,
            event,
            wait_s,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]
    /// Random histories against a naive model: counts and lists are those of the live peers.
    #[test]
    fn swarms_agree_with_a_naive_model(steps in prop::collection::vec(step(), 1..200)) {
        let swarms = swarms();
        let mut model: BTreeMap<(u8, u64, u64), (bool, u32)> = BTreeMap::new();
        let mut now = START;
        for step in steps {
            now += Seconds(step.wait_s);
            expire(&swarms, now);
            model.retain(|_, (_, last)| now.0 - *last < RULES.silence_max.0);
            let event = match step.event {
                0 => AnnounceEvent::Stopped,
                1 => AnnounceEvent::Started,
                2 => AnnounceEvent::Completed,
                _ => AnnounceEvent::None,
            };
            let number = step.user * 10 + step.client;
            let announce = Announce {
                info_hash: InfoHash([step.torrent; 20]),
                user: user(step.user),
                left: Some(step.left),
                event,
                ..announce_of(number, now)
            };
            let mut lists = PeerLists::default();
            let rules = swarm::Rules { min_interval: Seconds(0), ..RULES };
            let outcome = announce.send(&swarms, &rules, &mut lists).unwrap();
            let seeder = step.left == 0 || event == AnnounceEvent::Completed;
            if event == AnnounceEvent::Stopped {
                model.remove(&(step.torrent, step.user, step.client));
            } else {
                model.insert((step.torrent, step.user, step.client), (seeder, now.0));
            }
            let here = || model.iter().filter(|((torrent, ..), _)| *torrent == step.torrent);
            let seeders = here().filter(|(_, (seeder, _))| *seeder).count() as u32;
            prop_assert_eq!(outcome.counts.seeders, seeders);
            prop_assert_eq!(outcome.counts.leechers, here().count() as u32 - seeders);
            let mut given = numbers_of(&lists);
            given.sort_unstable();
            let mut expected: Vec<u64> = here()
                .filter(|((_, other, _), (is_seeder, _))| *other != step.user && !(seeder && *is_seeder))
                .map(|((_, user, client), _)| user * 10 + client)
                .collect();
            expected.sort_unstable();
            if event != AnnounceEvent::Stopped {
                prop_assert_eq!(given, expected);
            } else {
                prop_assert!(given.is_empty());
            }
        }
        let totals = swarms.totals();
        prop_assert_eq!(totals.peers, model.len());
        prop_assert_eq!(totals.seeders, model.values().filter(|(seeder, _)| *seeder).count());
        prop_assert_eq!(totals.leechers() + totals.seeders, totals.peers);
        let torrents_with = |seeding: bool| {
            let those = model.iter().filter(|(_, (seeder, _))| *seeder == seeding);
            those.map(|((torrent, ..), _)| *torrent).collect::<std::collections::BTreeSet<_>>().len()
        };
        prop_assert_eq!(totals.seeded, torrents_with(true));
        prop_assert_eq!(totals.leeched, torrents_with(false));
        swarms.remove_peers(|_, _| true, |_| {});
        prop_assert_eq!((swarms.totals().seeded, swarms.totals().leeched), (0, 0));
    }
}

/// One user with any number of peer ids, on a swarm larger than one list.
fn harvest(swarms: &Swarms, announces: u64, each: impl Fn(Announce) -> Vec<Announce>) -> (usize, u64) {
    let (mut seen, mut withheld) = (std::collections::BTreeSet::new(), 0);
    let rules = swarm::Rules { peer_ids_per_hour_max: 0, ..RULES };
    for turn in 0..announces {
        let base = Announce {
            user: user(1000),
            peer_id: peer_id(5000 + turn),
            ..announce_of(1000, START + Seconds(1))
        };
        for announce in each(base) {
            let mut lists = PeerLists::default();
            let outcome = announce.send(swarms, &rules, &mut lists).expect("it is accepted");
            withheld += u64::from(outcome.list_withheld);
            seen.extend(numbers_of(&lists));
        }
    }
    (seen.len(), withheld)
}

fn joined(announce: Announce) -> Announce {
    Announce { event: AnnounceEvent::Started, ..announce }
}

fn left(announce: Announce) -> Announce {
    Announce { event: AnnounceEvent::Stopped, ..announce }
}

/// A new peer id for each announce revealed a swarm of 95 peers in 45 announces.
#[test]
fn many_peer_ids_reveal_hardly_more_than_one_list() {
    let swarms = swarms();
    fill(&swarms, 30, 65);
    let (seen, withheld) = harvest(&swarms, 45, |announce| vec![joined(announce), left(announce)]);
    assert!(seen <= 55, "a list names 50 peers, all lists together {seen}");
    assert_eq!(withheld, 45 - 3 * 5, "three lists for each client that the user may run");
}

/// Neither the second address family nor `completed`, which get peers early, circumvents the budget.
#[test]
fn the_exemptions_from_min_interval_reveal_hardly_more_than_one_list() {
    let swarms = swarms();
    fill(&swarms, 0, 95);
    let (seen, withheld) = harvest(&swarms, 45, |announce| {
        let over_v6 = Announce { ip: "2001:db8::1".parse().unwrap(), event: AnnounceEvent::None, ..announce };
        let completed = Announce { event: AnnounceEvent::Completed, ..announce };
        vec![joined(announce), over_v6, completed, left(announce)]
    });
    assert!(seen <= 55, "a list names 50 peers, all lists together {seen}");
    assert_eq!(withheld, 3 * 45 - 15);
}

#[test]
fn every_client_of_a_user_that_starts_is_given_peers_over_both_families_and_when_it_completes() {
    let swarms = swarms();
    fill(&swarms, 10, 40);
    for client in 0..5 {
        let over_v4 = Announce {
            event: AnnounceEvent::Started,
            user: user(1000),
            peer_id: peer_id(2000 + client),
            ..announce_of(1000, START)
        };
        let ip = std::net::Ipv6Addr::from(u128::from(client)).into();
        let over_v6 = Announce { ip, ..over_v4 };
        let completed =
            Announce { event: AnnounceEvent::Completed, left: Some(0), now: START + Seconds(60), ..over_v4 };
        for (announce, peers) in [(over_v4, 50), (over_v6, 50), (completed, 40)] {
            assert_eq!(numbers_of(&take_with_peers(&swarms, &announce).1).len(), peers, "client {client}");
        }
    }
}

#[test]
fn clients_that_respect_min_interval_always_get_lists() {
    let swarms = swarms();
    fill(&swarms, 0, 60);
    let (_, withheld) = harvest(&swarms, 20, |announce| vec![joined(announce), left(announce)]);
    assert_eq!(withheld, 5);
    let patient = |at| Announce { now: START + Seconds(at), ..announce_of(1000, START) };
    assert_eq!(numbers_of(&take_with_peers(&swarms, &patient(100)).1).len(), 0, "the budget is the user's");
    for turn in 1..20 {
        assert_eq!(numbers_of(&take_with_peers(&swarms, &patient(100 + 900 * turn)).1).len(), 50);
    }
}

#[test]
fn a_user_may_use_only_so_many_peer_ids_on_a_torrent_within_an_hour() {
    let swarms = swarms();
    let client = |number, at| Announce {
        user: user(1),
        peer_id: peer_id(number),
        event: AnnounceEvent::Started,
        ..announce_of(1, START + Seconds(at))
    };
    let mut lists = PeerLists::default();
    for number in 1..=30 {
        assert_eq!(u64::from(take(&swarms, &client(number, 0)).peer_ids), number);
        // The same client over its other family, or restarted, is not a further peer id.
        take(&swarms, &left(client(number, 1)));
        take(&swarms, &client(number, 2));
        take(&swarms, &left(client(number, 3)));
    }
    let refused = client(31, 10).send(&swarms, &RULES, &mut lists);
    assert_eq!(refused, Err(AnnounceError::TooManyPeerIds { count: 31 }));
    let stop = take(&swarms, &left(client(32, 10)));
    assert_eq!((stop.unknown_stop, stop.peer_ids), (true, 32), "a stop is a success, and counted");
    let elsewhere = Announce { info_hash: InfoHash([9; 20]), ..client(33, 10) };
    assert_eq!(take(&swarms, &elsewhere).peer_ids, 1);
    assert_eq!(take(&swarms, &client(34, 3600)).peer_ids, 1);
}

/// A client that is known by its key may change its peer id, but not for every announce.
#[test]
fn a_key_does_not_hide_that_a_client_uses_many_peer_ids() {
    let swarms = swarms();
    let client = |number| Announce {
        user: user(1),
        peer_id: peer_id(number),
        key: domain::ClientKey(7),
        ..announce_of(1, START)
    };
    for number in 1..=30 {
        take(&swarms, &client(number));
    }
    let refused = client(31).send(&swarms, &RULES, &mut PeerLists::default());
    assert_eq!(refused, Err(AnnounceError::TooManyPeerIds { count: 31 }));
    assert_eq!(swarms.totals().peers, 1);
}

//! Leech slots: acquisition, release, and correct counts.

use std::collections::{HashMap, HashSet};
use std::sync::Barrier;
use std::thread;

use domain::{AnnounceEvent, Cause, ClientKey, InfoHash, Seconds, UnixTime, UserId};
use swarm::{AnnounceError, PeerLists, RemoteAnnounce, RemoteOutcome, SlotLimits, Swarms};

use crate::support::*;

fn torrent(number: u8) -> InfoHash {
    InfoHash([number; 20])
}

/// A leecher's announce of a user who may leech so many torrents at once.
fn leeches(user_number: u64, on: u8, limit: u32) -> Announce {
    Announce {
        info_hash: torrent(on),
        slots: SlotLimits { of_user: Some(limit), of_torrent: None },
        ..announce_of(user_number, START)
    }
}

fn seeds(user_number: u64, on: u8, limit: u32) -> Announce {
    Announce { left: Some(0), ..leeches(user_number, on, limit) }
}

fn another_client(announce: Announce) -> Announce {
    Announce { peer_id: peer_id(1000 + announce.user.get()), port: 7000, ..announce }
}

fn try_take(swarms: &Swarms, announce: &Announce) -> Result<(), AnnounceError> {
    announce.send(swarms, &RULES, &mut PeerLists::default()).map(|_| ())
}

fn full(limit: u32) -> Result<(), AnnounceError> {
    Err(AnnounceError::TooManyLeeches { limit })
}

#[test]
fn a_user_starts_no_more_than_allowed_and_continues_the_rest() {
    let swarms = swarms();
    for on in [1, 2] {
        assert_eq!(try_take(&swarms, &leeches(1, on, 2)), Ok(()));
    }
    assert_eq!(try_take(&swarms, &leeches(1, 3, 2)), full(2));
    assert_eq!(swarms.leeches_of(user(1)), 2);
    assert_eq!(swarms.scrape(&torrent(3)).leechers, 0, "a refused announce changes nothing");
    assert_eq!(swarms.totals().swarms, 2, "not even an empty swarm is left");
    assert_eq!(try_take(&swarms, &leeches(1, 2, 2)), Ok(()), "a heartbeat");
    assert_eq!(try_take(&swarms, &leeches(1, 2, 0)), Ok(()), "also when the limit was lowered");
    assert_eq!(try_take(&swarms, &another_client(leeches(1, 2, 2))), Ok(()), "a second client takes no slot");
    assert_eq!(try_take(&swarms, &seeds(1, 3, 2)), Ok(()), "seeding takes none");
    assert_eq!(try_take(&swarms, &leeches(2, 3, 2)), Ok(()), "others have slots of their own");
}

#[test]
fn a_slot_is_released_on_completion_stop_timeout_and_eviction() {
    let swarms = swarms();
    let is_free = |when: &str| {
        assert_eq!(swarms.leeches_of(user(1)), 0, "{when}");
        assert_eq!(try_take(&swarms, &leeches(1, 9, 1)), Ok(()), "{when}");
        let stop = Announce { event: AnnounceEvent::Stopped, ..leeches(1, 9, 1) };
        assert_eq!(try_take(&swarms, &stop), Ok(()), "{when}");
    };
    let begin = || {
        assert_eq!(try_take(&swarms, &leeches(1, 1, 1)), Ok(()));
        assert_eq!(try_take(&swarms, &leeches(1, 2, 1)), full(1));
    };
    begin();
    try_take(&swarms, &Announce { event: AnnounceEvent::Completed, ..seeds(1, 1, 1) }).unwrap();
    is_free("completed");
    try_take(&swarms, &Announce { event: AnnounceEvent::Stopped, ..seeds(1, 1, 1) }).unwrap();
    is_free("a seeder that stops gives nothing back");
    begin();
    try_take(&swarms, &Announce { event: AnnounceEvent::Stopped, ..leeches(1, 1, 1) }).unwrap();
    is_free("stopped");
    begin();
    swarms.remove_peers(|user, _| user.get() == 1, |_| ());
    is_free("the user was turned out");
    begin();
    swarms.remove_torrent(&torrent(1), |_| ());
    is_free("the torrent was removed");
    begin();
    swarms.remove_peers_on_ports(|port| port == 6881, |_| ());
    is_free("the port was banned");
    begin();
    assert_eq!(expire(&swarms, START + RULES.silence_max).len(), 1);
    is_free("silent for too long");
}

#[test]
fn the_last_leeching_client_of_a_user_gives_the_slot_back() {
    let swarms = swarms();
    try_take(&swarms, &leeches(1, 1, 1)).unwrap();
    try_take(&swarms, &another_client(leeches(1, 1, 1))).unwrap();
    try_take(&swarms, &seeds(1, 1, 1)).unwrap();
    assert_eq!(swarms.leeches_of(user(1)), 1, "the other client leeches on");
    try_take(&swarms, &Announce { event: AnnounceEvent::Stopped, ..another_client(leeches(1, 1, 1)) })
        .unwrap();
    assert_eq!(swarms.leeches_of(user(1)), 0);
}

#[test]
fn a_seeder_that_becomes_a_leecher_needs_a_slot() {
    let swarms = swarms();
    try_take(&swarms, &seeds(1, 1, 1)).unwrap();
    try_take(&swarms, &leeches(1, 2, 1)).unwrap();
    assert_eq!(try_take(&swarms, &leeches(1, 1, 1)), full(1));
    assert_eq!(swarms.scrape(&torrent(1)).seeders, 1, "refused, so it seeds as before");
    try_take(&swarms, &seeds(1, 2, 1)).unwrap();
    assert_eq!(try_take(&swarms, &leeches(1, 1, 1)), Ok(()));
}

#[test]
fn no_slots_at_all_leave_seeding() {
    let swarms = swarms();
    assert_eq!(try_take(&swarms, &leeches(1, 1, 0)), full(0));
    assert_eq!(try_take(&swarms, &seeds(1, 1, 0)), Ok(()));
    assert!(full(0).unwrap_err().to_string().contains("only seed"));
    assert!(full(1).unwrap_err().to_string().contains("one at a time"));
    assert!(full(7).unwrap_err().to_string().contains("7 torrents"));
}

#[test]
fn a_limit_that_comes_later_counts_what_is_there_already() {
    let swarms = swarms();
    for on in 1..=5 {
        let unlimited = Announce { slots: SlotLimits::default(), ..leeches(1, on, 0) };
        try_take(&swarms, &unlimited).unwrap();
        try_take(&swarms, &another_client(unlimited)).unwrap();
        try_take(&swarms, &Announce { slots: SlotLimits::default(), ..seeds(2, on, 0) }).unwrap();
    }
    assert_eq!(try_take(&swarms, &leeches(1, 6, 5)), full(5));
    assert_eq!(swarms.leeches_of(user(1)), 5);
    assert_eq!(swarms.leeches_of(user(2)), 0);
    assert_eq!(try_take(&swarms, &leeches(1, 6, 6)), Ok(()));
}

#[test]
fn a_full_torrent_takes_no_further_users() {
    let swarms = swarms();
    let on_torrent = |announce: Announce, limit: u32| Announce {
        slots: SlotLimits { of_user: None, of_torrent: Some(limit) },
        ..announce
    };
    for number in [1, 2] {
        assert_eq!(try_take(&swarms, &on_torrent(announce_of(number, START), 2)), Ok(()));
    }
    let third = on_torrent(announce_of(3, START), 2);
    assert_eq!(try_take(&swarms, &third), Err(AnnounceError::TorrentFull { limit: 2 }));
    assert_eq!(try_take(&swarms, &Announce { left: Some(0), ..third }), Ok(()), "seeders are welcome");
    assert_eq!(try_take(&swarms, &third), Err(AnnounceError::TorrentFull { limit: 2 }));
    let second_client = another_client(on_torrent(announce_of(1, START), 2));
    assert_eq!(try_take(&swarms, &second_client), Ok(()), "who leeches it already may");
    for gone in [second_client, announce_of(1, START), announce_of(2, START)] {
        try_take(&swarms, &Announce { event: AnnounceEvent::Stopped, ..gone }).unwrap();
    }
    assert_eq!(try_take(&swarms, &third), Ok(()));
}

/// Remote announces count here, and are never refused; a remote end releases the slot.
#[test]
fn remote_announces_count_and_are_never_refused() {
    let swarms = swarms();
    swarms.count_leeching();
    let remote = |on: u8, event: AnnounceEvent, left: u64, at: UnixTime| RemoteAnnounce {
        info_hash: torrent(on),
        user: user(1),
        peer_id: peer_id(1),
        key: ClientKey::NONE,
        ip: [10, 0, 0, 1].into(),
        port: 6881,
        left: Some(left),
        event,
        cause: Cause::Announce,
        at,
        since_last: None,
        silence_max: RULES.silence_max,
        totals: None,
    };
    let apply_remote = |remote: RemoteAnnounce| swarms.apply_remote(&remote, remote.at, &RULES);
    for on in 1..=3 {
        assert_eq!(apply_remote(remote(on, AnnounceEvent::Started, 5, START)), RemoteOutcome::Applied);
        assert_eq!(
            apply_remote(remote(on, AnnounceEvent::None, 5, START)),
            RemoteOutcome::Applied,
            "twice counts once"
        );
    }
    assert_eq!(swarms.leeches_of(user(1)), 3);
    assert_eq!(try_take(&swarms, &leeches(1, 4, 3)), full(3));
    assert_eq!(try_take(&swarms, &leeches(1, 3, 3)), Ok(()), "what it leeches elsewhere it may leech here");
    let later = START + Seconds(10);
    apply_remote(remote(1, AnnounceEvent::Completed, 0, later));
    apply_remote(remote(2, AnnounceEvent::Stopped, 5, later));
    assert_eq!(swarms.leeches_of(user(1)), 1);
    apply_remote(remote(1, AnnounceEvent::None, 5, later + Seconds(10)));
    assert_eq!(swarms.leeches_of(user(1)), 2);
}

/// Many threads compete for the last slots of one user on torrents in different shards, repeatedly.
#[test]
fn concurrent_announces_get_exactly_the_last_slots() {
    const THREADS: u8 = 4;
    const LIMIT: u32 = 3;
    let swarms = swarms();
    for round in 0..200_u32 {
        let barrier = Barrier::new(THREADS.into());
        let won: u32 = thread::scope(|scope| {
            let racers: Vec<_> = (0..THREADS)
                .map(|racer| {
                    let (swarms, barrier) = (&swarms, &barrier);
                    scope.spawn(move || {
                        barrier.wait();
                        let tries = (0..4).map(|on| leeches(1, racer * 4 + on, LIMIT));
                        tries.filter(|announce| try_take(swarms, announce).is_ok()).count() as u32
                    })
                })
                .collect();
            racers.into_iter().map(|racer| racer.join().unwrap()).sum()
        });
        assert_eq!((won, swarms.leeches_of(user(1))), (LIMIT, LIMIT), "round {round}");
        swarms.remove_peers(|_, _| true, |_| ());
        assert_eq!(swarms.leeches_of(user(1)), 0);
    }
}

/// A naive model: a list of clients.
#[derive(Default)]
struct Model {
    /// By user, torrent and client: whether it seeds, and its last announce.
    clients: HashMap<(u64, u8, u64), (bool, UnixTime)>,
}

impl Model {
    fn leeches_of(&self, user: u64) -> u32 {
        let on: HashSet<u8> = self
            .clients
            .iter()
            .filter(|((owner, ..), (seeds, _))| *owner == user && !seeds)
            .map(|((_, torrent, _), _)| *torrent)
            .collect();
        on.len() as u32
    }

    fn leeches(&self, user: u64, torrent: u8) -> bool {
        self.clients.iter().any(|((u, t, _), (seeds, _))| *u == user && *t == torrent && !seeds)
    }

    fn leechers_on(&self, torrent: u8) -> u32 {
        self.clients.iter().filter(|((_, t, _), (seeds, _))| *t == torrent && !seeds).count() as u32
    }
}

/// A random history of joins, role changes, stops, timeouts and evictions, with changing limits: every result and every
/// count equals the model's.
#[test]
fn counts_and_results_equal_a_naive_model() {
    const USERS: u64 = 4;
    const TORRENTS: u8 = 6;
    for seed in 0..4 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (swarms, mut model) = (swarms(), Model::default());
        // From the start, so that every count can be compared.
        swarms.count_leeching();
        let mut now = START;
        for step in 0..6_000 {
            now += Seconds(random.u32(0..3));
            let (user_number, on, client) =
                (random.u64(1..=USERS), random.u8(1..=TORRENTS), random.u64(1..=3));
            match random.u32(0..100) {
                0..=1 => {
                    now += Seconds(random.u32(600..2400));
                    let gone = expire(&swarms, now).len();
                    let before = model.clients.len();
                    model.clients.retain(|_, (_, last)| now.since(*last) < RULES.silence_max);
                    assert_eq!(gone, before - model.clients.len(), "step {step}");
                }
                2 => {
                    swarms.remove_peers(|owner, _| owner.get() == user_number, |_| ());
                    model.clients.retain(|(owner, ..), _| *owner != user_number);
                }
                3 => {
                    swarms.remove_torrent(&torrent(on), |_| ());
                    model.clients.retain(|(_, t, _), _| *t != on);
                }
                kind => {
                    let seeding = random.u32(0..10) < 3;
                    let stopping = kind < 20;
                    let limit_of = |random: &mut fastrand::Rng, most: u32| {
                        (random.u32(0..10) < 7).then(|| random.u32(0..most))
                    };
                    let slots = SlotLimits {
                        of_user: limit_of(&mut random, 5),
                        of_torrent: limit_of(&mut random, 8),
                    };
                    let announce = Announce {
                        info_hash: torrent(on),
                        user: UserId::new(user_number).unwrap(),
                        peer_id: peer_id(user_number * 100 + client),
                        left: Some(if seeding { 0 } else { 5 }),
                        event: if stopping { AnnounceEvent::Stopped } else { AnnounceEvent::None },
                        slots,
                        now,
                        ..announce_of(user_number, now)
                    };
                    let key = (user_number, on, client);
                    let begins = !stopping && !seeding && !model.leeches(user_number, on);
                    let expected = match slots {
                        SlotLimits { of_torrent: Some(limit), .. }
                            if begins && model.leechers_on(on) >= limit =>
                        {
                            Err(AnnounceError::TorrentFull { limit })
                        }
                        SlotLimits { of_user: Some(limit), .. }
                            if begins && model.leeches_of(user_number) >= limit =>
                        {
                            Err(AnnounceError::TooManyLeeches { limit })
                        }
                        _ => Ok(()),
                    };
                    assert_eq!(try_take(&swarms, &announce), expected, "seed {seed}, step {step}");
                    match (expected, stopping) {
                        (Ok(()), true) => drop(model.clients.remove(&key)),
                        (Ok(()), false) => drop(model.clients.insert(key, (seeding, now))),
                        (Err(_), _) => {}
                    }
                }
            }
            assert_eq!(
                swarms.leeches_of(user(user_number)),
                model.leeches_of(user_number),
                "seed {seed}, step {step}"
            );
        }
        assert!(!model.clients.is_empty());
    }
}

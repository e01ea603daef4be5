//! Everybody in the world, and whose turn is next. Pure: time and answers come in, what is to be done comes out.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use domain::InfoHash;
use fastrand::Rng;

use crate::announce::Announce;
use crate::flow::Swarm;
use crate::peer::Peer;
pub use crate::peer::{Heard, Road};
use crate::person::Person;
pub use crate::person::{Deed, Line};
use crate::plan::Plan;
use crate::register::{pending_torrent, work_of};
use crate::truth::Truth;

/// How steeply the popularity of torrents falls with rank.
const ZIPF_EXPONENT: f64 = 0.75;
/// How often another torrent is chosen if the user has this one already.
const CHOICES_MAX: u32 = 12;
/// So many clients begin within a second when the world begins.
const BEGINNERS_PER_S: f64 = 250.0;

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// A peer announces. To be followed by [`Cast::hear`].
    Announce {
        /// Which peer.
        peer: u32,
        /// Which way it goes.
        road: Road,
        /// What it says.
        announce: Box<Announce>,
    },
    /// A person does something with a device.
    Deed {
        /// Who, from 1.
        person: u32,
        /// Where they are.
        address: Ipv4Addr,
        /// What they do.
        deed: Deed,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Actor {
    Peer(u32),
    Person(u32),
}

/// What peers share.
#[derive(Debug)]
pub(crate) struct Stage {
    plan: Plan,
    works: Vec<(InfoHash, u64)>,
    swarms: Vec<Swarm>,
    /// Sums of the weights of the torrents before each.
    popularity: Vec<f64>,
    /// Which user has which torrent.
    taken: HashSet<(u32, u32)>,
    /// What earlier runs moved.
    pub(crate) truth: Truth,
}

impl Stage {
    fn new(plan: Plan) -> Stage {
        let works: Vec<(InfoHash, u64)> = (1..=plan.torrents.max(1))
            .map(|torrent| work_of(plan.seed, torrent))
            .map(|work| (work.info_hash, work.title.total_bytes))
            .collect();
        // The newest are the most wanted, but for the one that nobody is given peers for.
        let open = works.len() - usize::from(pending_torrent(&plan).is_some());
        let mut sum = 0.0;
        let weights = (0..open).map(|number| ((open - number) as f64).powf(-ZIPF_EXPONENT));
        let popularity = weights
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        let swarms = vec![Swarm::default(); works.len()];
        Stage { plan, works, swarms, popularity, taken: HashSet::new(), truth: Truth::default() }
    }

    pub(crate) fn paced(&self, length: Duration) -> Duration {
        self.plan.paced(length)
    }

    /// A torrent that the user has not got yet, if luck has it.
    pub(crate) fn choose_torrent(&mut self, user: u32, random: &mut Rng) -> u32 {
        let all = self.popularity.last().copied().unwrap_or(1.0);
        let mut torrent = 1;
        for _ in 0..CHOICES_MAX {
            let place = random.f64() * all;
            let index = self.popularity.partition_point(|sum| *sum < place);
            torrent = index.min(self.popularity.len().saturating_sub(1)) as u32 + 1;
            if self.taken.insert((user, torrent)) {
                break;
            }
        }
        torrent
    }

    pub(crate) fn give_back(&mut self, user: u32, torrent: u32) {
        self.taken.remove(&(user, torrent));
    }

    pub(crate) fn swarm(&mut self, torrent: u32) -> &mut Swarm {
        &mut self.swarms[torrent as usize - 1]
    }

    pub(crate) fn info_hash(&self, torrent: u32) -> InfoHash {
        self.works[torrent as usize - 1].0
    }

    pub(crate) fn total_bytes(&self, torrent: u32) -> u64 {
        self.works[torrent as usize - 1].1
    }
}

/// Everybody.
#[derive(Debug)]
pub struct Cast {
    stage: Stage,
    peers: Vec<Peer>,
    people: Vec<Person>,
    /// Who is next. A peer is in it once, or its announce is on its way; of a person only the newest entry counts.
    turns: BinaryHeap<Reverse<(Duration, u64, Actor)>>,
    serial: u64,
}

impl Cast {
    /// A world in which nobody has begun yet.
    pub fn new(plan: &Plan) -> Cast {
        let mut stage = Stage::new(*plan);
        let peers: Vec<Peer> = (0..plan.peers).map(|serial| Peer::new(serial, plan, &mut stage)).collect();
        let people: Vec<Person> = (1..=plan.people).map(|number| Person::new(number, plan)).collect();
        let mut cast = Cast { stage, peers, people, turns: BinaryHeap::new(), serial: 0 };
        let ramp_s = (f64::from(plan.peers) / BEGINNERS_PER_S).clamp(1.0, 60.0);
        for number in 0..plan.peers {
            let at = cast.peers[number as usize].begins_at(Duration::from_secs_f64(ramp_s));
            cast.push(at, Actor::Peer(number));
        }
        for number in 0..plan.people {
            let at = cast.people[number as usize].wakes_at();
            cast.push(at, Actor::Person(number));
        }
        cast
    }

    /// When somebody is next.
    pub fn next_at(&self) -> Option<Duration> {
        self.turns.peek().map(|Reverse((at, _, _))| *at)
    }

    /// Who is due by now does what they do.
    pub fn act(&mut self, now: Duration, out: &mut Vec<Act>) {
        while let Some(Reverse((at, _, actor))) =
            self.turns.peek().copied().filter(|Reverse((at, ..))| *at <= now)
        {
            self.turns.pop();
            match actor {
                Actor::Peer(number) => self.act_peer(number, now, out),
                Actor::Person(number) => self.act_person(number, (at, now), out),
            }
        }
    }

    /// What came of a peer's announce.
    pub fn hear(&mut self, peer: u32, heard: &Heard, now: Duration) {
        let at = self.peers[peer as usize].hear(heard, now, &mut self.stage);
        self.push(at, Actor::Peer(peer));
    }

    /// The announce could not be sent yet: the peer tries again a moment later.
    pub fn postpone(&mut self, peer: u32, until: Duration) {
        self.push(until, Actor::Peer(peer));
    }

    /// A person's device lost its connection without having meant to.
    pub fn lose(&mut self, person: u32, device: usize, now: Duration) {
        let Some(found) = self.people.get_mut((person as usize).wrapping_sub(1)) else { return };
        found.lose(device, now);
        let at = found.wakes_at();
        self.push(at, Actor::Person(person - 1));
    }

    /// What the server has accepted so far.
    pub fn truth(&self) -> Truth {
        let mut truth = self.stage.truth.clone();
        self.peers.iter().for_each(|peer| peer.add_to(&mut truth));
        truth
    }

    /// Peers of whose last announce nobody knows whether it counted.
    pub fn unsure(&self) -> usize {
        self.peers.iter().filter(|peer| peer.is_unsure()).count()
    }

    fn act_peer(&mut self, number: u32, now: Duration, out: &mut Vec<Act>) {
        let peer = &mut self.peers[number as usize];
        match peer.turn(now, &mut self.stage) {
            Ok(announce) => {
                out.push(Act::Announce { peer: number, road: peer.road(), announce: Box::new(announce) });
            }
            Err(at) => self.push(at, Actor::Peer(number)),
        }
    }

    fn act_person(&mut self, number: u32, (at, now): (Duration, Duration), out: &mut Vec<Act>) {
        let person = &mut self.people[number as usize];
        if person.wakes_at() != at {
            return;
        }
        let address = person.address();
        out.extend(person.turn(now).into_iter().map(|deed| Act::Deed { person: number + 1, address, deed }));
        let at = person.wakes_at();
        self.push(at, Actor::Person(number));
    }

    fn push(&mut self, at: Duration, actor: Actor) {
        self.serial += 1;
        self.turns.push(Reverse((at, self.serial, actor)));
    }
}

#[cfg(test)]
mod tests;

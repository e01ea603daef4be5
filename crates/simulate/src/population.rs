//! All simulated peers and users, and when each acts next. Pure: time and replies in, actions out.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use domain::InfoHash;
use fastrand::Rng;

use crate::announce::Announce;
use crate::catalogue::{pending_torrent, torrent_of};
use crate::peer::Peer;
use crate::plan::Plan;
use crate::reply::AnnounceOutcome;
use crate::swarm::Swarm;
use crate::transport::Transport;
use crate::truth::Truth;
use crate::user::User;
pub use crate::user::{Command, DeviceAction};

/// Percentage of clients that seed, at the start and later. Downloads take longer than seeders stay, so without this
/// target the share of leechers would grow for hours.
pub(crate) const SEEDERS_PERCENT: u8 = 82;
/// How steeply the popularity of torrents falls with rank.
const ZIPF_EXPONENT: f64 = 0.75;
/// Attempts to choose a torrent that the user does not have yet.
const CHOICES_MAX: u32 = 12;
/// Clients that start in a second at the beginning.
const STARTS_PER_S: f64 = 250.0;

#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A peer announces. To be followed by [`Population::handle_reply`].
    Announce { peer: u32, transport: Transport, from: Ipv4Addr, announce: Box<Announce> },
    /// A user acts on a device.
    Device {
        /// Numbered from 1.
        user: u32,
        action: DeviceAction,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Actor {
    Peer(u32),
    User(u32),
}

/// State shared by all peers: torrents and their swarms.
#[derive(Debug)]
pub(crate) struct Torrents {
    plan: Plan,
    torrents: Vec<(InfoHash, u64)>,
    swarms: Vec<Swarm>,
    /// Cumulative weights of the torrents.
    popularity: Vec<f64>,
    /// Pairs of user and torrent in use.
    taken: HashSet<(u32, u32)>,
    /// Transfers of ended runs.
    pub(crate) truth: Truth,
    /// Clients that are downloading.
    pub(crate) downloads: u32,
}

impl Torrents {
    fn new(plan: Plan) -> Torrents {
        let torrents: Vec<(InfoHash, u64)> = (1..=plan.torrents.max(1))
            .map(|torrent| torrent_of(plan.seed, torrent))
            .map(|torrent| (torrent.info_hash, torrent.title.total_bytes))
            .collect();
        // The newest torrents are the most popular, except for the one that awaits approval, which has no peers.
        let open = torrents.len() - usize::from(pending_torrent(&plan).is_some());
        let mut sum = 0.0;
        let weights = (0..open).map(|number| ((open - number) as f64).powf(-ZIPF_EXPONENT));
        let popularity = weights
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        let swarms = vec![Swarm::default(); torrents.len()];
        Torrents {
            plan,
            torrents,
            swarms,
            popularity,
            taken: HashSet::new(),
            truth: Truth::default(),
            downloads: 0,
        }
    }

    /// Whether there are fewer downloads than [`SEEDERS_PERCENT`] leaves.
    pub(crate) fn lacks_downloads(&self) -> bool {
        u64::from(self.downloads) * 100 < u64::from(self.plan.peers) * u64::from(100 - SEEDERS_PERCENT)
    }

    pub(crate) fn paced(&self, length: Duration) -> Duration {
        self.plan.paced(length)
    }

    /// A torrent that the user does not have yet, if one is found within [`CHOICES_MAX`] attempts.
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

    pub(crate) fn release(&mut self, user: u32, torrent: u32) {
        self.taken.remove(&(user, torrent));
    }

    pub(crate) fn swarm(&mut self, torrent: u32) -> &mut Swarm {
        &mut self.swarms[torrent as usize - 1]
    }

    pub(crate) fn info_hash(&self, torrent: u32) -> InfoHash {
        self.torrents[torrent as usize - 1].0
    }

    pub(crate) fn total_bytes(&self, torrent: u32) -> u64 {
        self.torrents[torrent as usize - 1].1
    }
}

/// All simulated peers and users.
#[derive(Debug)]
pub struct Population {
    torrents: Torrents,
    peers: Vec<Peer>,
    users: Vec<User>,
    /// Next actions. A peer has one entry, or its announce is in flight; of a user only the newest entry is valid.
    turns: BinaryHeap<Reverse<(Duration, u64, Actor)>>,
    serial: u64,
}

impl Population {
    pub fn new(plan: &Plan) -> Population {
        let mut torrents = Torrents::new(*plan);
        let peers: Vec<Peer> = (0..plan.peers).map(|serial| Peer::new(serial, plan, &mut torrents)).collect();
        let users: Vec<User> = (1..=plan.members).map(|number| User::new(number, plan)).collect();
        let mut population = Population { torrents, peers, users, turns: BinaryHeap::new(), serial: 0 };
        let ramp_s = (f64::from(plan.peers) / STARTS_PER_S).clamp(1.0, 60.0);
        for number in 0..plan.peers {
            let at = population.peers[number as usize].begins_at(Duration::from_secs_f64(ramp_s));
            population.push(at, Actor::Peer(number));
        }
        for number in 0..plan.members {
            let at = population.users[number as usize].wakes_at();
            population.push(at, Actor::User(number));
        }
        population
    }

    /// When the next action is due.
    pub fn next_at(&self) -> Option<Duration> {
        self.turns.peek().map(|Reverse((at, _, _))| *at)
    }

    /// Runs the actions that are due.
    pub fn act(&mut self, now: Duration, out: &mut Vec<Action>) {
        while let Some(Reverse((at, _, actor))) =
            self.turns.peek().copied().filter(|Reverse((at, ..))| *at <= now)
        {
            self.turns.pop();
            match actor {
                Actor::Peer(number) => self.act_peer(number, now, out),
                Actor::User(number) => self.act_person(number, (at, now), out),
            }
        }
    }

    /// The reply to a peer's announce.
    pub fn handle_reply(&mut self, peer: u32, outcome: &AnnounceOutcome, now: Duration) {
        let at = self.peers[peer as usize].handle_reply(outcome, now, &mut self.torrents);
        self.push(at, Actor::Peer(peer));
    }

    /// The announce was not sent: the peer retries at this time.
    pub fn postpone(&mut self, peer: u32, until: Duration) {
        self.push(until, Actor::Peer(peer));
    }

    /// A device lost its connection.
    pub fn connection_lost(&mut self, user: u32, device: usize, now: Duration) {
        let Some(found) = self.users.get_mut((user as usize).wrapping_sub(1)) else { return };
        found.connection_lost(device, now);
        let at = found.wakes_at();
        self.push(at, Actor::User(user - 1));
    }

    /// What the server has accepted so far. Cheating clients are left out: the server decides what they are credited.
    pub fn truth(&self) -> Truth {
        let mut truth = self.torrents.truth.clone();
        self.peers.iter().for_each(|peer| peer.add_to(&mut truth));
        truth
    }

    /// Peers whose last announce has no reply, so it may or may not be accounted.
    pub fn unconfirmed(&self) -> usize {
        self.peers.iter().filter(|peer| peer.is_unconfirmed()).count()
    }

    fn act_peer(&mut self, number: u32, now: Duration, out: &mut Vec<Action>) {
        let peer = &mut self.peers[number as usize];
        match peer.turn(now, &mut self.torrents) {
            Ok(announce) => {
                let (transport, from) = peer.route();
                out.push(Action::Announce { peer: number, transport, from, announce: Box::new(announce) });
            }
            Err(at) => self.push(at, Actor::Peer(number)),
        }
    }

    fn act_person(&mut self, number: u32, (at, now): (Duration, Duration), out: &mut Vec<Action>) {
        let user = &mut self.users[number as usize];
        if user.wakes_at() != at {
            return;
        }
        out.extend(user.turn(now).into_iter().map(|action| Action::Device { user: number + 1, action }));
        let at = user.wakes_at();
        self.push(at, Actor::User(number));
    }

    fn push(&mut self, at: Duration, actor: Actor) {
        self.serial += 1;
        self.turns.push(Reverse((at, self.serial, actor)));
    }
}

#[cfg(test)]
mod tests;

//! A population of simulated clients whose truth is known: what each of them moved, and what it is doing.
//!
//! # Layout
//!
//! - this file: who there is, and how they live side by side
//! - `client`: one client: its counters, its runs, and the steps it takes
//! - `line`: how its announces travel, over real sockets, through lost replies and servers that die
//! - [`truth`]: what must be credited, and who seeds and leeches
//!
//! # Rules of the truth
//!
//! - Every run of a client begins with an accepted `started` at zero. What a run moved counts up to its last accepted
//!   announce.
//! - A client whose announce failed, or was refused, keeps its totals and repeats it until it is accepted.
//! - Nobody announces totals that are older than what a server which may have died since could have been told: that
//!   is what real clients cannot do either, since their requests die with the server.
//!
//! The steps of each client follow from the seed alone; only how often something is repeated depends on the server.

mod client;
mod line;
pub mod truth;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::{InfoHash, Passkey, UserId};
use fastrand::Rng;

use client::{Client, Surroundings};
use line::Line;
pub use truth::{Moved, Standings, Truth};

use crate::server::{Server, test_passkey};
use crate::{Family, eventually};

/// How long a change to users and torrents may take to be known.
const CHANGE_LIMIT: Duration = Duration::from_secs(20);

/// What a population is to be like.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Everything follows from it.
    pub seed: u64,
    /// How many users, numbered from 1.
    pub users: u64,
    /// How many torrents, numbered from 1.
    pub torrents: u64,
    /// How many clients, each of one user on one torrent.
    pub clients: u32,
    /// How many of them announce at the same time.
    pub at_once: u32,
    /// Whether clients may die without a word and begin anew. Only where no accepted announce can be lost.
    pub crashes: bool,
    /// How long a client thinks between two announces.
    pub pause: Duration,
}

/// Where a population announces.
#[derive(Clone, Copy, Debug)]
pub struct Destination {
    /// Over IPv4, HTTP and UDP.
    pub v4: SocketAddr,
    /// Over IPv6, HTTP and UDP.
    pub v6: SocketAddr,
}

impl From<&Server> for Destination {
    fn from(server: &Server) -> Self {
        Destination { v4: server.addr(Family::V4), v6: server.addr(Family::V6) }
    }
}

/// Clients that announce one after the other; groups live at the same time.
struct Group {
    random: Rng,
    clients: Vec<Client>,
}

/// The population.
pub struct Population {
    plan: Plan,
    groups: Vec<Group>,
}

impl Population {
    /// A population in which nobody has begun yet.
    pub fn new(plan: Plan) -> Self {
        let mut random = Rng::with_seed(plan.seed);
        let mut groups: Vec<Group> = (0..plan.at_once)
            .map(|_| Group { random: Rng::with_seed(random.u64(..)), clients: Vec::new() })
            .collect();
        for serial in 0..plan.clients {
            let client = Client::new(serial, plan.users, plan.torrents, &mut random);
            groups[(serial % plan.at_once) as usize].clients.push(client);
        }
        Population { plan, groups }
    }

    /// The users and their passkeys.
    pub fn users(&self) -> Vec<(u64, Passkey)> {
        (1..=self.plan.users).map(|id| (id, passkey_of(id))).collect()
    }

    /// The torrents and their infohashes.
    pub fn torrents(&self) -> Vec<(u64, InfoHash)> {
        (1..=self.plan.torrents).map(|id| (id, info_hash_of(id))).collect()
    }

    /// SQL that makes users and torrents known, as a site would write it. Understood by all databases.
    pub fn registration(&self) -> String {
        let users =
            self.users().iter().map(|(id, passkey)| format!("({id}, '{passkey}')")).collect::<Vec<_>>();
        let torrents =
            self.torrents().iter().map(|(id, hash)| format!("({id}, '{hash}')")).collect::<Vec<_>>();
        format!(
            "INSERT INTO users (id, passkey) VALUES {}; INSERT INTO torrents (id, infohash) VALUES {};",
            users.join(", "),
            torrents.join(", ")
        )
    }

    /// Waits until a server knows all users and torrents.
    #[track_caller]
    pub fn wait_known(&self, server: &Server) {
        eventually("users and torrents to be known", CHANGE_LIMIT, || {
            self.users()
                .iter()
                .all(|(_, passkey)| server.try_scrape(passkey, &info_hash_of(1)).is_ok())
                .then_some(())
        });
        let passkey = passkey_of(1);
        eventually("torrents to be known", CHANGE_LIMIT, || {
            let is_known = |hash: &InfoHash| matches!(server.try_scrape(&passkey, hash), Ok(Some(_)));
            self.torrents().iter().all(|(_, hash)| is_known(hash)).then_some(())
        });
    }

    /// Each client takes so many steps.
    pub fn live(&mut self, to: Destination, steps: u32) {
        self.each_group(|group, surroundings| {
            let mut line = Line::new(to);
            for _ in 0..steps {
                group.step(&mut line, surroundings, || false);
            }
        });
    }

    /// Clients take steps until told otherwise.
    pub fn live_while(&mut self, to: Destination, is_on: &AtomicBool) {
        self.each_group(|group, surroundings| {
            let mut line = Line::new(to);
            while is_on.load(Ordering::Relaxed) {
                group.step(&mut line, surroundings, || !is_on.load(Ordering::Relaxed));
            }
        });
    }

    /// Everyone says goodbye, and again until it is accepted.
    pub fn stop(&mut self, to: Destination) {
        self.each_group(|group, _| {
            let mut line = Line::new(to);
            for client in &mut group.clients {
                client.stop(&mut line);
            }
        });
    }

    /// What must be credited by now.
    pub fn truth(&self) -> Truth {
        Truth::of(self.clients())
    }

    /// Who seeds and who leeches now.
    pub fn standings(&self) -> Standings {
        Standings::of(self.clients())
    }

    fn clients(&self) -> impl Iterator<Item = &Client> {
        self.groups.iter().flat_map(|group| &group.clients)
    }

    fn each_group(&mut self, live: impl Fn(&mut Group, &Surroundings) + Sync) {
        let surroundings = Surroundings { crashes: self.plan.crashes, pause: self.plan.pause };
        std::thread::scope(|scope| {
            for group in &mut self.groups {
                let live = &live;
                scope.spawn(move || live(group, &surroundings));
            }
        });
    }
}

impl Group {
    fn step(&mut self, line: &mut Line, surroundings: &Surroundings, is_over: impl Fn() -> bool) {
        for client in &mut self.clients {
            if is_over() {
                return;
            }
            client.step(line, surroundings, &mut self.random);
            if !surroundings.pause.is_zero() {
                std::thread::sleep(surroundings.pause);
            }
        }
    }
}

/// The passkey of a user.
pub fn passkey_of(user: u64) -> Passkey {
    test_passkey(UserId::new(user).expect("a user id is positive"))
}

/// The infohash of a torrent.
pub fn info_hash_of(torrent: u64) -> InfoHash {
    let mut bytes = [0xd5; 20];
    bytes[12..].copy_from_slice(&torrent.to_be_bytes());
    InfoHash(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: Plan = Plan {
        seed: 1,
        users: 3,
        torrents: 2,
        clients: 50,
        at_once: 4,
        crashes: false,
        pause: Duration::ZERO,
    };

    #[test]
    fn the_same_seed_makes_the_same_clients() {
        let clients = |seed| {
            let population = Population::new(Plan { seed, ..PLAN });
            population.clients().map(|client| format!("{client:?}")).collect::<Vec<_>>()
        };
        assert_eq!(clients(7), clients(7));
        assert_ne!(clients(7), clients(8));
        assert_eq!(clients(7).len(), 50);
    }

    #[test]
    fn users_and_torrents_are_registered_by_sql() {
        let sql = Population::new(PLAN).registration();
        assert_eq!(sql.matches("INSERT").count(), 2);
        assert!(sql.contains(&format!("(3, '{}')", passkey_of(3))));
        assert!(sql.contains(&format!("(2, '{}')", info_hash_of(2))));
    }
}

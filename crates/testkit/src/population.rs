//! Simulated clients with known totals and activity.
//!
//! # Layout
//!
//! - this file: the population, and how clients run concurrently
//! - `client`: one client: its counters, its runs, and the steps it takes
//! - `connections`: sends announces over real sockets, through lost replies and killed servers
//! - [`truth`]: expected credit, and which users seed and leech
//!
//! # Rules
//!
//! - Every run of a client begins with an accepted `started` at zero. A run counts up to its last accepted announce.
//! - A client whose announce failed, or was refused, keeps its totals and repeats it until it is accepted.
//! - No client announces totals that are older than what a killed server could have received: real clients cannot do so
//!   either, since their requests end with the server.
//!
//! The steps of each client follow from the seed alone; only the number of repetitions depends on the server.

mod client;
mod connections;
pub mod truth;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::{InfoHash, Passkey, UserId};
use fastrand::Rng;

use client::{Client, SharedState};
use connections::Connections;
pub use truth::{ActivityLists, Moved, Truth};

use crate::server::{Server, test_passkey};
use crate::{Family, eventually};

/// Timeout until a change of users and torrents is known.
const CHANGE_LIMIT: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub seed: u64,
    /// How many users, numbered from 1.
    pub users: u64,
    /// How many torrents, numbered from 1.
    pub torrents: u64,
    /// How many clients, each of one user on one torrent.
    pub clients: u32,
    /// How many of them announce at the same time.
    pub at_once: u32,
    /// Whether clients may vanish without `stopped` and start again. Only where no accepted announce can be lost.
    pub crashes: bool,
    /// Pause of a client between two announces.
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

/// Clients that announce one after the other; groups run concurrently.
struct Group {
    random: Rng,
    clients: Vec<Client>,
}

pub struct Population {
    plan: Plan,
    groups: Vec<Group>,
}

impl Population {
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

    /// SQL that inserts users and torrents, as a site would write it, for all databases.
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

    /// Each client takes this many steps.
    pub fn live(&mut self, to: Destination, steps: u32) {
        self.each_group(|group, shared| {
            let mut connections = Connections::new(to);
            for _ in 0..steps {
                group.step(&mut connections, shared, || false);
            }
        });
    }

    /// Clients take steps while `is_on`.
    pub fn live_while(&mut self, to: Destination, is_on: &AtomicBool) {
        self.each_group(|group, shared| {
            let mut connections = Connections::new(to);
            while is_on.load(Ordering::Relaxed) {
                group.step(&mut connections, shared, || !is_on.load(Ordering::Relaxed));
            }
        });
    }

    /// All clients announce `stopped`, until it is accepted.
    pub fn stop(&mut self, to: Destination) {
        self.each_group(|group, _| {
            let mut connections = Connections::new(to);
            for client in &mut group.clients {
                client.stop(&mut connections);
            }
        });
    }

    /// What must be credited by now.
    pub fn truth(&self) -> Truth {
        Truth::of(self.clients())
    }

    /// Which users seed and leech now.
    pub fn activity_lists(&self) -> ActivityLists {
        ActivityLists::of(self.clients())
    }

    fn clients(&self) -> impl Iterator<Item = &Client> {
        self.groups.iter().flat_map(|group| &group.clients)
    }

    fn each_group(&mut self, live: impl Fn(&mut Group, &SharedState) + Sync) {
        let shared = SharedState { crashes: self.plan.crashes, pause: self.plan.pause };
        std::thread::scope(|scope| {
            for group in &mut self.groups {
                let live = &live;
                scope.spawn(move || live(group, &shared));
            }
        });
    }
}

impl Group {
    fn step(&mut self, connections: &mut Connections, shared: &SharedState, is_over: impl Fn() -> bool) {
        for client in &mut self.clients {
            if is_over() {
                return;
            }
            client.step(connections, shared, &mut self.random);
            if !shared.pause.is_zero() {
                std::thread::sleep(shared.pause);
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

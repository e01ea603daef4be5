//! Clients that take random steps as fast as the server replies, through lost replies and killed servers, and whose
//! totals are known exactly.
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

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::clock::Stopwatch;
use domain::{InfoHash, Passkey};
use fastrand::Rng;

use crate::plan::ServerAddresses;
use crate::reply::AnnounceOutcome;
use crate::transport::Connections;
use crate::truth::{ActivityLists, Truth};
use client::{Client, Request};

/// How long an announce is repeated before the run fails.
const TIMEOUT: Duration = Duration::from_secs(90);
const REPEAT_DELAY: Duration = Duration::from_millis(30);

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

/// The server's users and torrents, by number.
#[derive(Clone, Copy, Debug)]
pub struct Identities {
    pub passkey_of: fn(u64) -> Passkey,
    pub info_hash_of: fn(u64) -> InfoHash,
}

/// Clients that announce one after the other; groups run concurrently.
struct Group {
    random: Rng,
    clients: Vec<Client>,
}

pub struct SteppedClients {
    plan: Plan,
    identities: Identities,
    groups: Vec<Group>,
}

impl SteppedClients {
    pub fn new(plan: Plan, identities: Identities) -> Self {
        let mut random = Rng::with_seed(plan.seed);
        let mut groups: Vec<Group> = (0..plan.at_once)
            .map(|_| Group { random: Rng::with_seed(random.u64(..)), clients: Vec::new() })
            .collect();
        for serial in 0..plan.clients {
            let client = Client::new(serial, &plan, &identities, &mut random);
            groups[(serial % plan.at_once) as usize].clients.push(client);
        }
        SteppedClients { plan, identities, groups }
    }

    /// The users and their passkeys.
    pub fn users(&self) -> Vec<(u64, Passkey)> {
        (1..=self.plan.users).map(|id| (id, (self.identities.passkey_of)(id))).collect()
    }

    /// The torrents and their infohashes.
    pub fn torrents(&self) -> Vec<(u64, InfoHash)> {
        (1..=self.plan.torrents).map(|id| (id, (self.identities.info_hash_of)(id))).collect()
    }

    /// Each client takes this many steps.
    pub fn live(&mut self, to: impl Into<ServerAddresses>, steps: u32) {
        self.each_group(&to.into(), |group, plan, connections| {
            for _ in 0..steps {
                group.step(plan, connections, || false);
            }
        });
    }

    /// Clients take steps while `is_on`.
    pub fn live_while(&mut self, to: impl Into<ServerAddresses>, is_on: &AtomicBool) {
        self.each_group(&to.into(), |group, plan, connections| {
            while is_on.load(Ordering::Relaxed) {
                group.step(plan, connections, || !is_on.load(Ordering::Relaxed));
            }
        });
    }

    /// All clients announce `stopped`, until it is accepted.
    pub fn stop(&mut self, to: impl Into<ServerAddresses>) {
        self.each_group(&to.into(), |group, _, connections| {
            for client in &mut group.clients {
                if let Some(request) = client.stop() {
                    send(connections, client, &request);
                }
            }
        });
    }

    /// What must be credited by now.
    pub fn truth(&self) -> Truth {
        let mut truth = Truth::default();
        for client in self.clients().filter(|client| client.has_announced) {
            truth.add(client.user, client.torrent, client.moved());
            (0..client.completions).for_each(|_| truth.complete(client.user, client.torrent));
        }
        truth
    }

    /// Which users seed and leech now.
    pub fn activity_lists(&self) -> ActivityLists {
        let mut lists = ActivityLists::default();
        for client in self.clients().filter(|client| client.is_running) {
            let list = if client.is_seeder() { &mut lists.seeding } else { &mut lists.leeching };
            list.insert((client.user, client.torrent));
        }
        lists.leeching.retain(|pair| !lists.seeding.contains(pair));
        lists
    }

    fn clients(&self) -> impl Iterator<Item = &Client> {
        self.groups.iter().flat_map(|group| &group.clients)
    }

    fn each_group(
        &mut self,
        to: &ServerAddresses,
        live: impl Fn(&mut Group, &Plan, &mut Connections) + Sync,
    ) {
        std::thread::scope(|scope| {
            for group in &mut self.groups {
                let (plan, live) = (&self.plan, &live);
                scope.spawn(move || {
                    live(group, plan, &mut Connections::new(to.clone(), Ipv4Addr::LOCALHOST));
                });
            }
        });
    }
}

impl Group {
    fn step(&mut self, plan: &Plan, connections: &mut Connections, is_over: impl Fn() -> bool) {
        for client in &mut self.clients {
            if is_over() {
                return;
            }
            for request in client.step(plan.crashes, &mut self.random) {
                send(connections, client, &request);
            }
            if !plan.pause.is_zero() {
                std::thread::sleep(plan.pause);
            }
        }
    }
}

/// Over two address families an announce is repeated until it is accepted over one of them, since that is the same
/// client.
fn send(connections: &mut Connections, client: &Client, request: &Request) {
    let mut announce = |newer, older| match client.transport {
        Some(transport) => connections.announce(newer, transport),
        None => connections.announce_both(newer, older),
    };
    match request {
        Request::Deliver(once) => insist(|| announce(once, once)),
        Request::LoseReply(once) => {
            announce(once, once);
            // A client without a reply closes its connection.
            connections.close();
        }
        // The older are sent only once: a repeated announce has the current totals.
        Request::Overtake { newer, older } => match announce(newer, older) {
            AnnounceOutcome::Accepted { .. } => {}
            AnnounceOutcome::Refused(_) | AnnounceOutcome::Lost => insist(|| announce(newer, newer)),
        },
    }
}

fn insist(mut announce: impl FnMut() -> AnnounceOutcome) {
    let watch = Stopwatch::start();
    loop {
        let outcome = announce();
        if matches!(outcome, AnnounceOutcome::Accepted { .. }) {
            return;
        }
        assert!(watch.elapsed() < TIMEOUT, "an announce was never accepted, at last: {outcome:?}");
        std::thread::sleep(REPEAT_DELAY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(seed: u64) -> Vec<String> {
        let plan = Plan {
            seed,
            users: 3,
            torrents: 2,
            clients: 50,
            at_once: 4,
            crashes: false,
            pause: Duration::ZERO,
        };
        let identities = Identities {
            passkey_of: |user| Passkey::from_random_bytes([user as u8; 16]),
            info_hash_of: |torrent| InfoHash([torrent as u8; 20]),
        };
        let mut stepped = SteppedClients::new(plan, identities);
        let Group { clients, random } = &mut stepped.groups[0];
        let steps = clients.iter_mut().map(|client| format!("{:?}", client.step(true, random))).collect();
        assert_eq!(stepped.clients().count(), 50);
        steps
    }

    #[test]
    fn the_same_seed_makes_the_same_clients_and_steps() {
        assert_eq!(described(7), described(7));
        assert_ne!(described(7), described(8));
    }
}

//! Planned faults: sequences of up to two concurrent faults at different gateways.

use fastrand::Rng;
use testkit::{NetworkState, Server};

use crate::many_gateways::gateways::{COUNT, Gateways, LEASE_S, Store};
use crate::many_gateways::history::{FaultKind, Gateway};
use crate::many_gateways::population::Population;
use crate::many_gateways::spans::Ms;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlannedFault {
    /// A gateway is killed, and started again after a while.
    Kill(Gateway),
    /// A gateway is stopped as for an upgrade, and started again.
    Restart(Gateway),
    /// A gateway stands still for longer than its lease.
    Freeze(Gateway),
    /// The network between a gateway and Redis.
    Network(Gateway, NetworkState),
    /// Redis is killed and comes back with nothing, or a master of the cluster is, and its replica takes over.
    KillRedis,
    /// Redis stands still.
    FreezeRedis,
}

/// A planned under way.
struct Pending {
    planned: PlannedFault,
    /// Its place in the history; a slow network is none.
    fault: Option<usize>,
    until: Ms,
    /// Whether the recovery has started.
    is_recovering: bool,
    /// Which node of a cluster was killed.
    node: usize,
}

/// Runs the sequence while users are active, until all have recovered.
pub fn play(people: &mut Population, gateways: &mut Gateways, acts: &[Vec<PlannedFault>]) {
    for act in acts {
        eprintln!("{:>6} ms: {act:?}", people.now());
        let mut pending: Vec<Pending> = act.iter().map(|planned| begin(*planned, people, gateways)).collect();
        while !pending.is_empty() {
            people.live(gateways);
            pending.retain_mut(|pending| !is_over(pending, people, gateways));
        }
        let quiet_until = people.now() + people.random.u64(500..2_500);
        while people.now() < quiet_until {
            people.live(gateways);
        }
    }
}

/// Acts in a random order, each kind once, as the store allows.
pub fn acts(random: &mut Rng, store: &Store) -> Vec<Vec<PlannedFault>> {
    let mut order: Vec<Gateway> = (0..COUNT).collect();
    random.shuffle(&mut order);
    let [one, two, three] = order[..] else { unreachable!("there are three gateways") };
    let slow = NetworkState::Slow(std::time::Duration::from_millis(100));
    let mut acts = match store {
        Store::Alone => {
            vec![vec![PlannedFault::Kill(0)], vec![PlannedFault::Restart(0)], vec![PlannedFault::Freeze(0)]]
        }
        Store::Cluster(_) => vec![
            vec![PlannedFault::Kill(one)],
            vec![PlannedFault::KillRedis],
            vec![PlannedFault::Freeze(two)],
            vec![PlannedFault::Restart(three)],
        ],
        Store::Single(_) => vec![
            vec![PlannedFault::Kill(one), PlannedFault::Network(two, slow)],
            vec![PlannedFault::Network(two, NetworkState::Cut), PlannedFault::Restart(three)],
            vec![PlannedFault::Freeze(three), PlannedFault::Network(one, NetworkState::BlackHole)],
            vec![PlannedFault::KillRedis],
            vec![PlannedFault::FreezeRedis],
        ],
    };
    random.shuffle(&mut acts);
    acts
}

fn begin(planned: PlannedFault, people: &mut Population, gateways: &mut Gateways) -> Pending {
    let now = people.now();
    let lasts = match planned {
        PlannedFault::Kill(_) => people.random.u64(1_000..4_000),
        PlannedFault::Restart(_) => 0,
        PlannedFault::Freeze(_) => (LEASE_S + 2) * 1_000 + people.random.u64(..2_000),
        PlannedFault::Network(..) => people.random.u64(2_000..9_000),
        PlannedFault::KillRedis | PlannedFault::FreezeRedis => people.random.u64(500..4_000),
    };
    let mut node = 0;
    let fault = match planned {
        PlannedFault::Kill(gateway) => {
            gateways.servers[gateway].get_mut().kill();
            Some((FaultKind::Dead, Some(gateway)))
        }
        PlannedFault::Restart(gateway) => {
            gateways.servers[gateway].lend(|server| {
                assert!(server.stop().success());
                server.start_again();
            });
            Some((FaultKind::Dead, Some(gateway)))
        }
        PlannedFault::Freeze(gateway) => {
            gateways.servers[gateway].get().freeze();
            Some((FaultKind::Frozen, Some(gateway)))
        }
        PlannedFault::Network(gateway, weather) => {
            gateways.network(gateway, weather);
            let is_slow = matches!(weather, NetworkState::Slow(_) | NetworkState::Working);
            (!is_slow).then_some((FaultKind::NoRedis, Some(gateway)))
        }
        PlannedFault::KillRedis => {
            match gateways.store.get_mut() {
                Store::Alone => panic!("there is no Redis"),
                Store::Single(redis) => redis.kill(),
                Store::Cluster(cluster) => node = cluster.kill_master_of("p:u:{1000}"),
            }
            Some((FaultKind::NoRedis, None))
        }
        PlannedFault::FreezeRedis => {
            if let Store::Single(redis) = gateways.store.get() {
                redis.freeze();
            }
            Some((FaultKind::NoRedis, None))
        }
    };
    if let PlannedFault::Kill(gateway) | PlannedFault::Restart(gateway) | PlannedFault::Freeze(gateway) =
        planned
    {
        people.set_serves(gateway, false);
    }
    let fault = fault.map(|(kind, gateway)| people.history.fault_started(kind, gateway, now));
    Pending { planned, fault, until: now + lasts, is_recovering: false, node }
}

/// Mends what has lasted long enough. Whether all is well.
fn is_over(pending: &mut Pending, people: &mut Population, gateways: &mut Gateways) -> bool {
    if people.now() < pending.until {
        return false;
    }
    if !std::mem::replace(&mut pending.is_recovering, true) {
        recover(pending, gateways);
    }
    let is_well = match pending.planned {
        PlannedFault::Kill(gateway) | PlannedFault::Restart(gateway) => gateways.servers[gateway].is_back(),
        PlannedFault::KillRedis => gateways.store.is_back(),
        _ => true,
    };
    if !is_well {
        return false;
    }
    if let PlannedFault::Kill(gateway) | PlannedFault::Restart(gateway) | PlannedFault::Freeze(gateway) =
        pending.planned
    {
        people.set_serves(gateway, true);
    }
    let now = people.now();
    if let Some(fault) = pending.fault {
        people.history.fault_ended(fault, now);
    }
    true
}

fn recover(pending: &Pending, gateways: &mut Gateways) {
    match pending.planned {
        PlannedFault::Kill(gateway) => gateways.servers[gateway].lend(Server::start_again),
        PlannedFault::Restart(_) => {}
        PlannedFault::Freeze(gateway) => gateways.servers[gateway].get().thaw(),
        PlannedFault::Network(gateway, _) => gateways.network(gateway, NetworkState::Working),
        PlannedFault::KillRedis => {
            let node = pending.node;
            gateways.store.lend(move |store| match store {
                Store::Alone => {}
                Store::Single(redis) => redis.restart(),
                Store::Cluster(cluster) => {
                    cluster.wait_master_of("p:u:{1000}");
                    cluster.node_mut(node).restart();
                    cluster.wait_ok();
                }
            });
        }
        PlannedFault::FreezeRedis => {
            if let Store::Single(redis) = gateways.store.get() {
                redis.thaw();
            }
        }
    }
}

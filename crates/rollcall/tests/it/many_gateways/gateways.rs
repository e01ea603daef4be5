//! Three gateways, each a process of its own, with what they share: a database, and a Redis behind a network that can
//! break, or a cluster.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use testkit::{NetworkState, PostgresServer, Proxy, RedisCluster, RedisServer, Server, ServerBuilder};

use crate::many_gateways::checker::Bounds;
use crate::many_gateways::history::Gateway;

/// What tokens are signed with.
pub const SECRET: &str = "a secret of tests, of at least 32 characters";
/// Gateways.
pub const COUNT: usize = 3;
/// Long enough for a machine that does much else, too.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Short settings: a device is offline after it was silent for three heartbeats.
pub const HEARTBEAT_S: u64 = 5;
pub const MISSED_MAX: u64 = 3;
pub const LEASE_S: u64 = 5;
pub const PENDING_S: u64 = 4;

/// What these settings promise, with room for a machine that is busy with other tests.
pub const BOUNDS: Bounds = Bounds {
    ttl: HEARTBEAT_S * MISSED_MAX * 1_000 + ROOM,
    pending: PENDING_S * 1_000 + ROOM,
    settle: ROOM,
    recovery: 5_000 + ROOM,
    lease: (LEASE_S + 2) * 1_000 + ROOM,
};
const ROOM: u64 = 5_000;

/// What they share.
pub enum Store {
    /// Nothing: one gateway, by itself.
    Alone,
    Single(Box<RedisServer>),
    Cluster(Box<RedisCluster>),
}

impl Store {
    /// One Redis that forgets everything when it dies.
    pub fn single() -> Store {
        Store::Single(Box::new(RedisServer::start()))
    }

    /// Three masters with a replica each.
    pub fn cluster() -> Store {
        let builder = RedisServer::builder().directive("repl-diskless-sync-delay 0");
        Store::Cluster(Box::new(RedisCluster::start_with(&builder, 1)))
    }

    /// Runs a command where its key lies.
    #[track_caller]
    pub fn cli(&self, args: &[&str]) -> String {
        match self {
            Store::Alone => panic!("there is no Redis"),
            Store::Single(redis) => redis.cli(args),
            Store::Cluster(cluster) => cluster.cli(args),
        }
    }

    /// Every key that matches, wherever it lies. Only a test may ask so.
    pub fn keys(&self, pattern: &str) -> Vec<String> {
        let ask = |redis: &RedisServer| {
            let keys = redis.cli(&["KEYS", pattern]);
            keys.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>()
        };
        match self {
            Store::Alone => Vec::new(),
            Store::Single(redis) => ask(redis),
            Store::Cluster(cluster) => {
                let mut keys: Vec<String> =
                    (0..cluster.len()).flat_map(|node| ask(cluster.node(node))).collect();
                keys.sort();
                keys.dedup();
                keys
            }
        }
    }

    /// A public key of a person, as this kind of Redis has it.
    pub fn key(&self, name: &str, user: u64) -> String {
        match self {
            Store::Alone | Store::Single(_) => format!("{name}:{user}"),
            Store::Cluster(_) => format!("{name}:{{{user}}}"),
        }
    }
}

/// A thing that is here, or with a thread that does something to it which takes a while.
pub struct Busy<T> {
    here: Option<T>,
    back: Option<Receiver<T>>,
}

impl<T: Send + 'static> Busy<T> {
    fn new(thing: T) -> Busy<T> {
        Busy { here: Some(thing), back: None }
    }

    /// The thing, which must be here.
    #[track_caller]
    pub fn get(&self) -> &T {
        self.here.as_ref().expect("it was lent to a thread")
    }

    /// The thing, which must be here.
    #[track_caller]
    pub fn get_mut(&mut self) -> &mut T {
        self.here.as_mut().expect("it was lent to a thread")
    }

    /// Lets a thread do something to it.
    #[track_caller]
    pub fn lend(&mut self, work: impl FnOnce(&mut T) + Send + 'static) {
        let mut thing = self.here.take().expect("it was lent to a thread");
        let (give, back) = channel();
        std::thread::spawn(move || {
            work(&mut thing);
            // A test that held it may have panicked.
            let _ = give.send(thing);
        });
        self.back = Some(back);
    }

    /// Whether it is here again.
    #[track_caller]
    pub fn is_back(&mut self) -> bool {
        let Some(back) = &self.back else { return true };
        match back.try_recv() {
            Ok(thing) => {
                (self.here, self.back) = (Some(thing), None);
                true
            }
            Err(TryRecvError::Empty) => false,
            Err(TryRecvError::Disconnected) => panic!("what was to be done to it failed"),
        }
    }
}

/// One at a time: what is promised in seconds is checked, and other tests run beside.
const AT_ONCE: usize = 1;
static RUNNING: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

/// The right to run gateways.
struct TestSlot;

impl TestSlot {
    fn take() -> TestSlot {
        let running = RUNNING.0.lock().unwrap();
        *RUNNING.1.wait_while(running, |running| *running >= AT_ONCE).unwrap() += 1;
        TestSlot
    }
}

impl Drop for TestSlot {
    fn drop(&mut self) {
        *RUNNING.0.lock().unwrap() -= 1;
        RUNNING.1.notify_one();
    }
}

/// The gateways and what they share.
pub struct Gateways {
    pub servers: Vec<Busy<Server>>,
    /// The network between each gateway and Redis; none on a cluster, whose nodes announce their own addresses.
    pub networks: Vec<Proxy>,
    pub store: Busy<Store>,
    /// The address of their database.
    pub database: String,
    addresses: Vec<SocketAddr>,
    /// Last, so that the next ones start when these have ended.
    _turn: TestSlot,
}

/// What the tests of several gateways have in common: quick settings, and no limits that a crowd would meet.
pub fn builder() -> ServerBuilder {
    Server::builder(env!("CARGO_BIN_EXE_rollcall"))
        .roles("tracker,gateway,site")
        .set("gateway.token_hmac_secret", format!("\"{SECRET}\""))
        .set("gateway.connections_per_address_max", 10_000)
        .set("site.metrics_open", true)
        .set("site.connections_max", 20_000)
        .set("site.requests_per_address_per_s", 0)
        .set("presence.heartbeat_s", HEARTBEAT_S)
        .set("presence.ping_s", 2)
        .set("presence.pending_s", PENDING_S)
        .set("presence.flap_grace_s", 0)
        .set("presence.batch_ms", 20)
        .set("log.level", "\"info\"")
}

impl Gateways {
    /// Starts them on a fresh database.
    pub fn start(store: Store) -> Gateways {
        Gateways::start_with(store, |builder| builder)
    }

    /// The same with other settings.
    pub fn start_with(store: Store, set: impl Fn(ServerBuilder) -> ServerBuilder) -> Gateways {
        let turn = TestSlot::take();
        let database = PostgresServer::shared().fresh_database();
        let networks: Vec<Proxy> = match &store {
            Store::Single(redis) => {
                let target = SocketAddr::from(([127, 0, 0, 1], redis.port()));
                (0..COUNT).map(|_| Proxy::start(target)).collect()
            }
            Store::Alone | Store::Cluster(_) => Vec::new(),
        };
        let url = |gateway: Gateway| match &store {
            Store::Alone => None,
            Store::Single(_) => Some(format!("redis://{}", networks[gateway].address())),
            Store::Cluster(cluster) => {
                let nodes: Vec<String> =
                    cluster.urls().iter().map(|url| url.replace("redis://", "")).collect();
                Some(format!("redis+cluster://{}", nodes.join(",")))
            }
        };
        let start = |gateway: Gateway| {
            let builder = builder().set("database.url", format!("\"{database}\""));
            let builder = match url(gateway) {
                Some(url) => builder.set("redis.url", format!("\"{url}\"")).set("presence.lease_s", LEASE_S),
                None => builder,
            };
            set(builder).start()
        };
        let count = if matches!(store, Store::Alone) { 1 } else { COUNT };
        // The first makes the tables.
        let servers: Vec<Server> = (0..count).map(start).collect();
        let addresses = servers.iter().map(Server::site_addr).collect();
        let servers = servers.into_iter().map(Busy::new).collect();
        Gateways { servers, networks, store: Busy::new(store), database, addresses, _turn: turn }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.servers.len()
    }

    pub fn address(&self, gateway: Gateway) -> SocketAddr {
        self.addresses[gateway]
    }

    /// The name under which a gateway is known.
    pub fn name(&self, gateway: Gateway) -> String {
        let file = self.servers[gateway].get().data_folder().join("node");
        std::fs::read_to_string(file).unwrap().trim().to_owned()
    }

    /// What the network of a gateway does from now on.
    pub fn network(&self, gateway: Gateway, weather: NetworkState) {
        self.networks[gateway].set(weather);
    }
}

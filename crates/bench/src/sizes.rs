//! How much of everything a run measures.

use std::time::Duration;

use simulate::load::Shape;

#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Rounds of each side.
    pub rounds: u32,
    /// Length of a round over sockets.
    pub round: Duration,
    /// Peers of one round of announces all in; every peer of a round announces once. Fewer than a queue holds.
    pub all_in_shape: Shape,
    /// Rounds of joins, and of heartbeats.
    pub all_in_rounds: u32,
    /// Peers of the overloaded server.
    pub overload_shape: Shape,
    /// Announces by which the sustainable rate is measured, a multiple of the peers; and the length of the overload.
    pub overload_announces: u64,
    pub overload: Duration,
    /// Announces in process, per round.
    pub announces: u32,
    /// How often the swarms of ten thousand peers are repeated for a large population; zero for none.
    pub swarm_copies: &'static [u32],
    /// Entries appended in a round.
    pub entries: u32,
    /// Entries per round where each of them is synced to disk.
    pub durable_entries: u32,
    /// Clients in the ledger from the start.
    pub ledger_clients: u32,
    /// Thousands of entries per round of the ledger.
    pub ledger_batches: u32,
    /// Clients of the views; all of them announce in a round.
    pub view_clients: u32,
    /// Events in a full queue.
    pub queued: u32,
    /// Announces on one node that another replicates.
    pub replicated: u32,
    /// Peers of warm start and replication.
    pub node_shape: Shape,
    /// WebSocket sessions.
    pub sessions: u32,
    /// Idle time before memory is read: allocators return pages with a delay.
    pub settle: Duration,
    /// Connections closed, at most half of the sessions.
    pub closes: u32,
    /// Friends that watch one user.
    pub watchers: u32,
    /// Sessions at two gateways.
    pub cluster_sessions: u32,
    /// Single changes at one of them.
    pub changes: u32,
    /// Time before sessions at two gateways count as idle, and length of that measurement.
    pub cluster_idle: (Duration, Duration),
    /// Time after the start of a server until it counts as idle, and length of that measurement.
    pub idle: (Duration, Duration),
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

impl Sizes {
    pub const FULL: Sizes = Sizes {
        rounds: 7,
        round: seconds(4),
        all_in_shape: Shape { torrents: 5_000, peers: 50_000 },
        all_in_rounds: 3,
        overload_shape: Shape { torrents: 500, peers: 5_000 },
        overload_announces: 50_000,
        overload: seconds(20),
        announces: 1_000_000,
        swarm_copies: &[1, 100, 1_000],
        entries: 100_000,
        durable_entries: 50_000,
        ledger_clients: 100_000,
        ledger_batches: 20,
        view_clients: 100_000,
        queued: 100_000,
        replicated: 10_000,
        node_shape: Shape { torrents: 100_000, peers: 1_000_000 },
        sessions: 15_000,
        settle: seconds(15),
        closes: 4_000,
        watchers: 5_000,
        cluster_sessions: 8_000,
        changes: 4_000,
        cluster_idle: (seconds(75), seconds(60)),
        idle: (seconds(30), seconds(30)),
    };
    /// Rough figures within a few minutes.
    pub const QUICK: Sizes = Sizes {
        rounds: 3,
        round: seconds(1),
        announces: 200_000,
        entries: 50_000,
        durable_entries: 30_000,
        ledger_clients: 20_000,
        ledger_batches: 5,
        view_clients: 30_000,
        replicated: 2_000,
        node_shape: Shape { torrents: 10_000, peers: 100_000 },
        all_in_shape: Shape { torrents: 2_000, peers: 20_000 },
        all_in_rounds: 2,
        overload_announces: 20_000,
        overload: seconds(5),
        swarm_copies: &[1, 100],
        sessions: 3_000,
        settle: seconds(3),
        closes: 500,
        watchers: 1_000,
        cluster_sessions: 1_000,
        changes: 500,
        cluster_idle: (seconds(2), seconds(15)),
        idle: (seconds(10), seconds(30)),
        ..Sizes::FULL
    };
    /// Too small to measure speed: for tests.
    pub const TINY: Sizes = Sizes {
        rounds: 2,
        round: Duration::from_millis(500),
        all_in_shape: Shape { torrents: 20, peers: 200 },
        all_in_rounds: 2,
        overload_shape: Shape { torrents: 20, peers: 200 },
        overload_announces: 400,
        overload: seconds(1),
        announces: 1_000,
        swarm_copies: &[1],
        entries: 1_500,
        durable_entries: 1_200,
        ledger_clients: 1_200,
        ledger_batches: 1,
        view_clients: 1_100,
        queued: 2_000,
        replicated: 200,
        node_shape: Shape { torrents: 200, peers: 2_000 },
        // Enough for their memory to show beside what the server itself allocates and frees.
        sessions: 300,
        settle: Duration::from_millis(100),
        closes: 20,
        watchers: 50,
        cluster_sessions: 200,
        changes: 20,
        cluster_idle: (Duration::from_millis(100), seconds(2)),
        idle: (seconds(1), seconds(1)),
    };
}

//! Every benchmark: what it measures, its limit and its budget.

use crate::report::Budget::{self, FigureAtLeast, FigureAtMost, RatioAtLeast, RatioAtMost};
use crate::run::Run;
use crate::{all_in, gateway, idle, journal, ledger, nodes, overload, presence, swarms, views};

/// A group of rows that are measured together.
pub struct Benchmark {
    /// Selected by `--only`.
    pub name: &'static str,
    pub rows: &'static [RowSpec],
    pub run: fn(&mut Run<'_>) -> anyhow::Result<()>,
}

/// A row of the report.
pub struct RowSpec {
    /// What is measured; `{}` stands for a number of things.
    pub what: &'static str,
    pub unit: &'static str,
    /// What the figure is compared with, if anything.
    pub limit: &'static str,
    /// A ratio is judged only where the row has one.
    pub budget: Option<Budget>,
}

const fn row(what: &'static str, unit: &'static str) -> RowSpec {
    RowSpec { what, unit, limit: "", budget: None }
}

impl RowSpec {
    const fn against(self, limit: &'static str) -> RowSpec {
        RowSpec { limit, ..self }
    }

    const fn within(self, budget: Budget) -> RowSpec {
        RowSpec { budget: Some(budget), ..self }
    }
}

/// Announces all in, to the rate of a fixed-response server: everything embedded; with Redis and all its views.
const ALL_IN_EMBEDDED: Budget = RatioAtLeast(0.28);
const ALL_IN_REDIS: Budget = RatioAtLeast(0.14);
/// Of the listener's thread, to a fixed-response server.
const HTTP: Budget = RatioAtLeast(0.80);
const UDP: Budget = RatioAtLeast(0.75);
/// Percent.
const ALL: Budget = FigureAtLeast(100.0);
/// Milliseconds until a reply at twice the sustainable rate, p99.
const OVERLOADED_REPLY: Budget = FigureAtMost(250.0);
/// Ratio to the plainest pipelined writes of the same keys.
const VIEW: Budget = RatioAtLeast(0.6);
/// Ratio to the plainest batched upserts.
const LEDGER: Budget = RatioAtLeast(0.6);
/// Ratio to pipelined XADDs.
const APPEND: Budget = RatioAtLeast(0.8);
/// Bytes of an entry in the embedded journal.
const ENTRY_BYTES: Budget = FigureAtMost(100.0);
/// Bytes of a peer.
const PEER_BYTES: Budget = FigureAtMost(96.0);
/// An announce among ten million peers, to one among ten thousand.
const GROWTH: Budget = RatioAtMost(1.5);
/// WebSocket connects with snapshot, and heartbeats, to a bare server.
const CONNECTS: Budget = RatioAtLeast(0.5);
const HEARTBEATS: Budget = RatioAtLeast(0.7);
/// Changes across gateways, to the same Redis commands sent raw.
const CHANGES: Budget = RatioAtLeast(0.7);
/// Milliseconds until a friend is notified, p99.
const NOTIFIED: Budget = FigureAtMost(100.0);
/// User-space bytes of an idle session.
const SESSION: Budget = FigureAtMost(4096.0);
/// An idle server's share of a core, in percent.
const IDLE: Budget = FigureAtMost(0.5);

const FIXED: &str = "a server that sends fixed replies of the same size";
const XADDS: &str = "prepared XADDs of the same entries, pipelined over one blocking socket";
const UPSERTS: &str = "upserts of one row per (user, torrent) that a batch of a thousand entries touches, in one \
    transaction, written without having been read";
const ZADDS: &str = "a prepared ZADD and ZREM for each entry, pipelined over one blocking socket";
const HSETS: &str = "a prepared HSET of a peer, SET of its timeout and HINCRBY of its torrent's announces for each \
    entry, pipelined over one blocking socket; ours also counts peers, keeps sets, indexes and statistics, and takes \
    no entry twice";
const DIRECT: &str = "the same by Swarms::announce, which also hands out peers";
const BARE: &str = "a connection of a bare tokio-tungstenite server with buffers of 1 KiB";
const ROUND_TRIP: &str = "the round trip of a message over the bare server";
const REPLAYED: &str = "the commands of one change, sent to Redis by themselves";

pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "all-in",
        run: all_in::measure,
        rows: &[
            row("all in, embedded, joins", "/s").against(FIXED).within(ALL_IN_EMBEDDED),
            row("all in, embedded, heartbeats", "/s").against(FIXED).within(ALL_IN_EMBEDDED),
            row("all in, embedded over UDP, joins", "/s").against(FIXED),
            row("all in, embedded over UDP, heartbeats", "/s").against(FIXED),
            row("all in, Redis without mirror, joins", "/s").against(FIXED),
            row("all in, Redis without mirror, heartbeats", "/s").against(FIXED),
            row("all in, Redis with mirror, joins", "/s").against(FIXED).within(ALL_IN_REDIS),
            row("all in, Redis with mirror, heartbeats", "/s").against(FIXED).within(ALL_IN_REDIS),
            row("all in, PostgreSQL, joins", "/s").against(FIXED),
            row("all in, PostgreSQL, heartbeats", "/s").against(FIXED),
            row("all in, MariaDB, joins", "/s").against(FIXED),
            row("all in, MariaDB, heartbeats", "/s").against(FIXED),
        ],
    },
    Benchmark {
        name: "against",
        run: all_in::against,
        rows: &[row("{}, heartbeats", "/s").against(FIXED)],
    },
    Benchmark {
        name: "listener",
        run: all_in::listener,
        rows: &[
            row("HTTP listener, announces per second of its thread", "/s").against(FIXED).within(HTTP),
            row("UDP listener, announces per second of its thread", "/s").against(FIXED).within(UDP),
        ],
    },
    Benchmark {
        name: "overload",
        run: overload::measure,
        rows: &[
            row("overload, clients answered", "%").within(ALL),
            row("overload, accounts exact to the byte", "%").within(ALL),
            row("overload, reply, p99", "ms").within(OVERLOADED_REPLY),
            row("overload, views up to date again", "s"),
        ],
    },
    Benchmark {
        name: "journal-redis",
        run: journal::on_redis,
        rows: &[row("journal append, Redis", "/s").against(XADDS).within(APPEND)],
    },
    Benchmark {
        name: "journal-aof",
        run: journal::on_redis_with_aof,
        rows: &[row("journal append, Redis with AOF", "/s").against(XADDS).within(APPEND)],
    },
    Benchmark {
        name: "journal-sqlite",
        run: journal::on_sqlite,
        rows: &[
            row("journal append, SQLite", "/s")
                .against("the same rows by one INSERT and one commit for each thousand"),
            row("journal entry on disk, SQLite", "bytes").within(ENTRY_BYTES),
        ],
    },
    Benchmark {
        name: "ledger-sqlite",
        run: ledger::on_sqlite,
        rows: &[row("ledger, SQLite", "/s").against(UPSERTS).within(LEDGER)],
    },
    Benchmark {
        name: "ledger-postgresql",
        run: ledger::on_postgres,
        rows: &[row("ledger, PostgreSQL", "/s").against(UPSERTS).within(LEDGER)],
    },
    Benchmark {
        name: "ledger-mariadb",
        run: ledger::on_mariadb,
        rows: &[row("ledger, MariaDB", "/s").against(UPSERTS).within(LEDGER)],
    },
    Benchmark {
        name: "activity",
        run: views::activity,
        rows: &[
            row("activity, heartbeats", "/s").against(ZADDS).within(VIEW),
            row("activity, every entry a change", "/s").against(ZADDS).within(VIEW),
        ],
    },
    Benchmark {
        name: "mirror",
        run: views::mirror,
        rows: &[
            row("mirror, heartbeats", "/s").against(HSETS).within(VIEW),
            row("mirror, heartbeats: commands in Redis", "per entry"),
            row("mirror, heartbeats: memory in Redis", "bytes per peer"),
            row("mirror, every entry a change", "/s").against(HSETS).within(VIEW),
            row("mirror, every entry a change: commands in Redis", "per entry"),
            row("mirror, every entry a change: memory in Redis", "bytes per peer"),
        ],
    },
    Benchmark { name: "queue", run: journal::queue, rows: &[row("memory per queued entry", "bytes")] },
    Benchmark {
        name: "nodes-delay",
        run: nodes::delay,
        rows: &[
            row("replication delay, p50", "ms"),
            // A peer of one node is returned by the others within a second.
            row("replication delay, p99", "ms").within(FigureAtMost(1_000.0)),
        ],
    },
    Benchmark {
        name: "nodes-warm-start",
        run: nodes::warm_start,
        rows: &[
            row("warm start from the journal, {} peers", "s"),
            row("warm start from the journal", "peers/s")
                .against("the same entries read from Redis in batches of a thousand, and dropped"),
            row("warm start from a snapshot, {} peers", "s"),
            row("warm start from a snapshot", "peers/s"),
            row("writing a snapshot, {} peers", "s"),
        ],
    },
    Benchmark {
        name: "nodes-learn",
        run: nodes::learn,
        rows: &[
            row("swarms learn, peers that join", "/s").against(DIRECT),
            row("swarms learn, heartbeats", "/s").against(DIRECT),
        ],
    },
    Benchmark {
        name: "gateway-memory",
        run: gateway::memory,
        rows: &[
            row("memory per idle session", "bytes").against(BARE).within(SESSION),
            row("memory per idle session, 10 friends here", "bytes").against(BARE).within(SESSION),
            row("connects per second of a core", "/s")
                .against("upgrades of the bare server")
                .within(CONNECTS),
        ],
    },
    Benchmark {
        name: "gateway-close",
        run: gateway::close_latency,
        rows: &[
            row("closed connection to friend notified, p50", "ms").against(ROUND_TRIP),
            row("closed connection to friend notified, p99", "ms").against(ROUND_TRIP).within(NOTIFIED),
        ],
    },
    Benchmark {
        name: "gateway-heartbeats",
        run: gateway::heartbeats,
        rows: &[row("heartbeats per second of a core", "/s")
            .against("messages and their echoes of the bare server at the same rate")
            .within(HEARTBEATS)],
    },
    Benchmark {
        name: "gateway-fan-out",
        run: gateway::fan_out,
        rows: &[row("feed deliveries per second of a core", "/s")
            .against("the bare server sends the same to all")],
    },
    Benchmark {
        name: "presence-redis",
        run: presence::measure,
        rows: &[
            row("changes per second over two gateways and Redis", "/s")
                .against(
                    "the commands that Redis got for it, sent again over one connection with nothing around them",
                )
                .within(CHANGES),
            row("change to friend notified at another gateway, p50", "ms").against(REPLAYED),
            row("change to friend notified at another gateway, p99", "ms").against(REPLAYED).within(NOTIFIED),
            row("Redis memory per online user", "bytes").against("the three public keys of P3 alone"),
            row("Redis scripts per change", ""),
            row("Redis commands per change", ""),
            row("Redis bytes in and out per change", "bytes"),
            row("Redis time in scripts per change", "us"),
            row("Redis scripts per idle session and minute", ""),
            row("Redis commands per idle session and minute", ""),
            row("Redis bytes in and out per idle session and minute", "bytes"),
            row("Redis time in scripts per idle session and minute", "us"),
        ],
    },
    Benchmark {
        name: "swarm",
        run: swarms::measure,
        rows: &[
            row("memory per peer, {}", "bytes").within(PEER_BYTES),
            row("announce in process, {}", "ns")
                .against("the cost among the fewest peers")
                .within(GROWTH),
        ],
    },
    Benchmark {
        name: "idle",
        run: idle::measure,
        rows: &[
            row("idle server, embedded", "% of a core").within(IDLE),
            row("idle server, PostgreSQL", "% of a core").within(IDLE),
            row("idle server, MariaDB", "% of a core").within(IDLE),
            row("idle server, Redis", "% of a core").within(IDLE),
        ],
    },
    Benchmark { name: "instructions", run: swarms::instructions, rows: &[row("instructions, {}", "")] },
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_row_is_there_once_and_a_ratio_has_a_limit() {
        let rows: Vec<&RowSpec> = BENCHMARKS.iter().flat_map(|benchmark| benchmark.rows).collect();
        let names: HashSet<&str> = rows.iter().map(|row| row.what).collect();
        assert_eq!(names.len(), rows.len());
        for row in rows {
            let is_ratio = matches!(row.budget, Some(RatioAtLeast(_) | RatioAtMost(_)));
            assert!(!is_ratio || !row.limit.is_empty(), "{}", row.what);
        }
    }
}

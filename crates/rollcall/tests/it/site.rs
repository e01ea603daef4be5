//! A whole site: the real server, Redis and a database.

pub mod accounts;
pub mod activity;
pub mod cheats;

use std::time::Duration;

use domain::clock::Stopwatch;
use serde_json::Value as Json;
use testkit::{
    Companion, Destination, Fsync, MariaDbServer, Population, PostgresServer, RedisServer, Server,
    ServerBuilder, eventually,
};

/// Long enough for a machine that does much else, too.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub enum Database {
    Sqlite,
    Postgres(Box<PostgresServer>),
    MariaDb(Box<MariaDbServer>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseKind {
    Sqlite,
    Postgres,
    MariaDb,
}

impl Database {
    pub fn start(kind: DatabaseKind) -> Self {
        match kind {
            DatabaseKind::Sqlite => Database::Sqlite,
            DatabaseKind::Postgres => Database::Postgres(Box::new(PostgresServer::start())),
            DatabaseKind::MariaDb => Database::MariaDb(Box::new(MariaDbServer::start())),
        }
    }

    /// The address of a fresh database; none if it is a file in the data folder.
    pub fn url(&self) -> Option<String> {
        match self {
            Database::Sqlite => None,
            Database::Postgres(server) => Some(server.fresh_database()),
            Database::MariaDb(server) => Some(server.fresh_database()),
        }
    }

    pub fn kill(&mut self) {
        match self {
            Database::Sqlite => panic!("a file cannot be killed"),
            Database::Postgres(server) => server.kill(),
            Database::MariaDb(server) => server.kill(),
        }
    }

    pub fn restart(&mut self) {
        match self {
            Database::Sqlite => panic!("a file cannot be killed"),
            Database::Postgres(server) => server.restart(),
            Database::MariaDb(server) => server.restart(),
        }
    }
}

/// The name of the database that [`Database::url`] made.
const FRESH: &str = "test_0";

/// The site.
pub struct Site {
    pub server: Server,
    pub companion: Option<Companion>,
    pub redis: Option<RedisServer>,
    pub database: Database,
}

/// What the tests of a site have in common: no limits that a simulation would meet, and quick readers.
pub fn builder() -> ServerBuilder {
    Server::builder(env!("CARGO_BIN_EXE_rollcall"))
        .set("limits.requests_per_address_per_s", 0)
        .set("limits.connections_per_address_max", 10_000)
        // Simulated clients move much at once, and announce late when the machine is busy.
        .set("limits.peer_rate_max_mbit_per_s", 10_000_000)
        .set("limits.user_rate_max_mbit_per_s", 10_000_000)
        // Nor do real ones start anew every few seconds.
        .set("limits.peer_ids_per_user_and_torrent_per_hour", 0)
        .set("tracker.min_announce_interval_s", 0)
        .set("tracker.announce_interval_s", 60)
        .set("tracker.peer_grace_s", 600)
        .set("tracker.peers_per_user_and_torrent_max", 16)
        .set("tracker.workers", 2)
        .set("ledger.consumers", 2)
}

/// A Redis that loses nothing it confirmed when its process is killed. `everysec` does not promise that: while the disk
/// is busy it confirms writes that it has not yet handed to the system.
pub fn durable_redis() -> RedisServer {
    RedisServer::builder().append_only(Fsync::Always).start()
}

impl Site {
    /// Starts the server on a fresh database and, if it is given one, on Redis.
    pub fn start(builder: ServerBuilder, redis: Option<RedisServer>, kind: DatabaseKind) -> Site {
        let database = Database::start(kind);
        let mut builder = builder;
        if let Some(url) = database.url() {
            builder = builder.set("database.url", quoted(&url));
        }
        if let Some(redis) = &redis {
            builder = builder.set("redis.url", quoted(&redis.url()));
        }
        Site { server: builder.start(), companion: None, redis, database }
    }

    /// Makes a population's users and torrents known, as a site's own SQL would.
    pub fn register(&self, population: &Population) {
        self.sql(&population.registration());
        population.wait_known(&self.server);
    }

    pub fn destination(&self) -> Destination {
        Destination::from(&self.server)
    }

    pub fn redis(&self) -> &RedisServer {
        self.redis.as_ref().expect("the site has a Redis")
    }

    pub fn redis_mut(&mut self) -> &mut RedisServer {
        self.redis.as_mut().expect("the site has a Redis")
    }

    /// Runs SQL with the database's own client: rows as lines, columns parted by `|`.
    #[track_caller]
    pub fn sql(&self, sql: &str) -> String {
        match &self.database {
            Database::Sqlite => self.sqlite("rollcall.db", sql),
            Database::Postgres(server) => server.psql(FRESH, sql),
            Database::MariaDb(server) => server.mariadb(FRESH, sql).replace('\t', "|"),
        }
    }

    /// Runs SQL on a file of the data folder.
    #[track_caller]
    pub fn sqlite(&self, file: &str, sql: &str) -> String {
        let path = self.server.data_folder().join(file);
        let output = std::process::Command::new("sqlite3")
            .arg("-bail")
            .arg("-cmd")
            .arg(".timeout 10000")
            .arg(&path)
            .arg(sql)
            .output()
            .expect("sqlite3 is installed; `make test` does that");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "sqlite3 {}: {complaint}", path.display());
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// Output of `rollcall journal status`.
    #[track_caller]
    pub fn status(&self) -> Json {
        self.server.cli(&["journal", "status"])
    }

    /// Waits until every view shows everything, and gives the state then. A backlog may take long, as long as it shrinks.
    /// A Redis that has just been killed or taken over, on a machine that does much else, may not answer the command in
    /// time: then it is asked again.
    #[track_caller]
    pub fn settle(&self) -> Json {
        let mut least = u64::MAX;
        let mut since_progress = Stopwatch::start();
        loop {
            // The command is a process of its own: asking without a pause takes the machine from those it asks about.
            std::thread::sleep(Duration::from_millis(200));
            let asked = self.server.try_cli(&["journal", "status"]);
            if !asked.status.success() && since_progress.elapsed() < PATIENCE {
                continue;
            }
            let complaint = String::from_utf8_lossy(&asked.stderr);
            assert!(asked.status.success(), "`journal status` fails: {complaint}\n{}", self.server.log());
            let status: Json = serde_json::from_slice(&asked.stdout).expect("the command writes JSON");
            let groups = status["groups"].as_array().expect("a list of groups");
            let lag: u64 = groups.iter().filter_map(|group| group["lag"].as_u64()).sum();
            if groups.len() >= 2 && lag == 0 {
                return status;
            }
            if lag < least {
                least = lag;
                since_progress = Stopwatch::start();
            }
            // A machine that is busy with other tests may leave Redis without a turn for a minute.
            let is_stuck = since_progress.elapsed() > 3 * PATIENCE;
            assert!(!is_stuck, "the views do not get on: {status:#}\n{}", self.server.log());
        }
    }

    /// Asserts that nothing lies where it should not.
    #[track_caller]
    pub fn assert_nothing_failed(&self, status: &Json) {
        for lane in ["dlq", "failed"] {
            if status[lane] != 0 {
                let first = self.server.cli(&[lane, "list", "--limit", "5"]);
                panic!("{lane}: {status:#}\nthe first of them: {first:#}");
            }
        }
        // A simulated client downloads from no one, which looks like cheating; but nothing of it is withheld.
        let risks = self.server.cli(&["journal", "risks", "--limit", "10000"]);
        let is_cheat = |risk: &Json| {
            let user = risk["user"].as_str().and_then(|user| user.parse().ok());
            user.is_some_and(|user: u64| user >= cheats::FIRST_CHEAT)
        };
        let is_withheld =
            |risk: &&Json| !is_cheat(risk) && (risk["kind"] == "client_rate" || risk["kind"] == "user_rate");
        assert_eq!(risks["risks"].as_array().unwrap().iter().find(is_withheld), None);
    }

    /// Waits until the log has a line with all of these.
    #[track_caller]
    pub fn wait_logged(&self, parts: &[&str]) -> String {
        eventually(&format!("a line in the log with {parts:?}"), PATIENCE, || {
            let log = self.server.log();
            log.lines().find(|line| parts.iter().all(|part| line.contains(part))).map(str::to_owned)
        })
    }
}

/// A text as TOML writes it.
pub fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

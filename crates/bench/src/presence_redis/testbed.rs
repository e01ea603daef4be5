//! Two gateways on one Redis and one database, with clients: the first of two friends is connected to the first
//! gateway, the second to the second.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use testkit::RedisServer;

use crate::error::BenchError;
use crate::latencies::Latencies;
use crate::process::{Cores, ServerProcess, free_address};
use crate::websocket_clients::protocol::{Protocol, TokenKey};
use crate::websocket_clients::{
    ClientId, CloseReason, Event, WebSocketClients, WebSocketClientsPlan, friends,
};

/// The token secret.
const SECRET: &str = "a secret for benchmarks on loopback only";
/// Connections being opened at once.
const OPENING_MAX: usize = 256;
/// Timeout until all are connected or notified.
const LIMIT: Duration = Duration::from_secs(180);
/// Longest wait of one poll.
const POLL: Duration = Duration::from_millis(5);

/// The declared statuses, alternating.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeclaredStatus {
    Busy,
    Away,
}

impl DeclaredStatus {
    pub(super) fn of_round(round: u32) -> DeclaredStatus {
        if round.is_multiple_of(2) { DeclaredStatus::Busy } else { DeclaredStatus::Away }
    }

    fn word(self) -> &'static str {
        match self {
            DeclaredStatus::Busy => "busy",
            DeclaredStatus::Away => "away",
        }
    }

    fn other(self) -> DeclaredStatus {
        match self {
            DeclaredStatus::Busy => DeclaredStatus::Away,
            DeclaredStatus::Away => DeclaredStatus::Busy,
        }
    }
}

pub(super) struct Testbed {
    redis: RedisServer,
    clients: WebSocketClients,
    sessions: u32,
    /// The last status of the first of each pair.
    statuses: HashMap<u32, DeclaredStatus>,
    /// Expected status of each receiver, and start time.
    awaited: HashMap<ClientId, (DeclaredStatus, Duration)>,
    disconnect: Option<CloseReason>,
    next_command: u32,
    _gateways: [ServerProcess; 2],
    _folder: TempDir,
}

impl Testbed {
    pub(super) fn start(binary: &Path, cores: Cores, sessions: u32) -> Result<Testbed, BenchError> {
        let redis = cores.on_server(RedisServer::start)?;
        let folder = TempDir::with_prefix("loadgen-").map_err(BenchError::io("making a folder"))?;
        let pairs: Vec<(u64, u64)> =
            (0..u64::from(sessions / 2)).map(|pair| (2 * pair + 1, 2 * pair + 2)).collect();
        friends::write(folder.path(), &pairs)?;
        let addresses = [free_address()?, free_address()?];
        let start = |number: usize| {
            let config = folder.path().join(format!("gateway-{number}.toml"));
            let database = folder.path().join("rollcall.db");
            std::fs::write(&config, settings(addresses[number], &redis.url(), &database))
                .map_err(BenchError::io("writing the settings"))?;
            let data = folder.path().join(format!("gateway-{number}"));
            let (config, data) = (config.display().to_string(), data.display().to_string());
            let args =
                ["serve", "--config", &config, "--data", &data, "--roles", "gateway,site"].map(str::to_owned);
            let log = folder.path().join(format!("gateway-{number}.log"));
            let mut process = ServerProcess::start(cores.server, binary, &args, &log)?;
            process.wait_for_tcp(addresses[number])?;
            Ok::<ServerProcess, BenchError>(process)
        };
        let gateways = [start(0)?, start(1)?];
        let protocol = Protocol::Centrifuge(TokenKey::new(SECRET));
        let mut clients = WebSocketClients::new(WebSocketClientsPlan {
            server: addresses[0],
            protocol,
            opening_max: OPENING_MAX,
        })?;
        for number in 0..sessions / 2 * 2 {
            let member = clients.join(u64::from(number) + 1, 0);
            clients.send_to(member, addresses[number as usize % 2]);
        }
        Ok(Testbed {
            redis,
            clients,
            sessions: sessions / 2 * 2,
            statuses: HashMap::new(),
            awaited: HashMap::new(),
            disconnect: None,
            next_command: 1,
            _gateways: gateways,
            _folder: folder,
        })
    }

    pub(super) fn redis(&self) -> &RedisServer {
        &self.redis
    }

    pub(super) fn now(&self) -> Duration {
        self.clients.now()
    }

    /// Connects all clients.
    pub(super) fn fill(&mut self) -> Result<(), BenchError> {
        self.clients.members().for_each(|member| self.clients.open(member));
        let until = self.now() + LIMIT;
        while self.clients.up() < self.sessions as usize {
            self.poll(POLL, &mut Latencies::default())?;
            if self.now() > until {
                let in_flight = self.clients.opening();
                return Err(BenchError::Timeout { waited_s: LIMIT.as_secs(), in_flight });
            }
        }
        Ok(())
    }

    /// Answers pings for this long.
    pub(super) fn hold(&mut self, length: Duration) -> Result<(), BenchError> {
        let until = self.now() + length;
        self.listen_until(until, &mut Latencies::default())
    }

    /// All users of the first gateway declare this status. Returns the time until every friend is notified.
    pub(super) fn change_all(&mut self, status: DeclaredStatus) -> Result<Duration, BenchError> {
        let since = self.now();
        for pair in 0..self.sessions / 2 {
            self.declare(pair, status)?;
        }
        self.listen_until_all(&mut Latencies::default())?;
        Ok(self.now() - since)
    }

    /// The first of a pair changes its status. A pair with a pending notification is skipped.
    pub(super) fn change(&mut self, pair: u32) -> Result<(), BenchError> {
        let status = self.statuses.get(&pair).map_or(DeclaredStatus::Busy, |status| status.other());
        self.declare(pair, status)
    }

    fn declare(&mut self, pair: u32, status: DeclaredStatus) -> Result<(), BenchError> {
        let (one, other) = (ClientId(2 * pair as usize), ClientId(2 * pair as usize + 1));
        if self.statuses.get(&pair) == Some(&status) || self.awaited.contains_key(&other) {
            return Ok(());
        }
        self.next_command += 1;
        let line = format!(
            r#"{{"id":{},"rpc":{{"method":"status.set","data":{{"status":"{}"}}}}}}"#,
            self.next_command,
            status.word()
        );
        self.awaited.insert(other, (status, self.clients.now()));
        self.statuses.insert(pair, status);
        self.clients.send(one, &line)
    }

    /// Records latencies until then.
    pub(super) fn listen_until(
        &mut self,
        until: Duration,
        latencies: &mut Latencies,
    ) -> Result<(), BenchError> {
        while let Some(wait) = until.checked_sub(self.now()) {
            self.poll(wait, latencies)?;
        }
        Ok(())
    }

    /// Until all pending notifications have arrived.
    pub(super) fn listen_until_all(&mut self, latencies: &mut Latencies) -> Result<(), BenchError> {
        let until = self.now() + LIMIT;
        while !self.awaited.is_empty() {
            if self.now() > until {
                return Err(BenchError::Timeout { waited_s: LIMIT.as_secs(), in_flight: self.awaited.len() });
            }
            self.poll(POLL, latencies)?;
        }
        Ok(())
    }

    fn poll(&mut self, wait: Duration, latencies: &mut Latencies) -> Result<(), BenchError> {
        let Testbed { clients, awaited, disconnect, .. } = self;
        let mut received = Vec::new();
        clients.poll(wait, &mut |member, event| match event {
            Event::Down(ending) => {
                disconnect.get_or_insert_with(|| ending.clone());
            }
            Event::Message(line) => {
                let is_it = awaited.get(&member).is_some_and(|(status, _)| {
                    memchr::memmem::find(line, format!(r#""status":"{}""#, status.word()).as_bytes())
                        .is_some()
                });
                if is_it {
                    received.push(member);
                }
            }
            Event::Up | Event::Reply { .. } => {}
        })?;
        let now = clients.now();
        for (_, since) in received.iter().filter_map(|member| awaited.remove(member)) {
            latencies.add(now - since);
        }
        match disconnect.take() {
            None => Ok(()),
            Some(ending) => Err(BenchError::NotAReply(format!("a client was disconnected: {ending:?}"))),
        }
    }

    /// Memory of the three public keys of a user, in an otherwise empty Redis.
    pub(super) fn memory_of_public_keys(&self, cores: Cores) -> Result<f64, BenchError> {
        let redis = cores.on_server(RedisServer::start)?;
        let before = super::RedisCounters::of(&redis)?;
        let mut lines = String::new();
        for user in 1..=self.sessions {
            lines.push_str(&format!(
                "SET presence:{user} online EX 900\nSET connection:{user} gateway-1 EX 900\nSET heartbeat:{user} 1700000000 EX 900\n"
            ));
        }
        redis.cli_lines(&lines);
        let after = super::RedisCounters::of(&redis)?;
        Ok(after.since(&before).memory_bytes / f64::from(self.sessions))
    }
}

/// The defaults, except for limits that many clients on one machine would reach, and for intentional delays of changes.
fn settings(address: SocketAddr, redis: &str, database: &Path) -> String {
    format!(
        r#"[site]
addr = "{address}"
connections_max = 100000
requests_per_address_per_s = 0
metrics_open = true

[redis]
url = "{redis}"

[database]
url = "sqlite://{}"

[gateway]
token_hmac_secret = "{SECRET}"
commands_per_s = 100000

[presence]
batch_ms = 0

[log]
level = "warn"
"#,
        database.display()
    )
}

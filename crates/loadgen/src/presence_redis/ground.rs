//! Two gateways on one Redis and one database, with a crowd before them: of each two friends the first is at the first
//! gateway, the second at the second.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use testkit::RedisServer;

use crate::crowd::speech::{Speech, TokenKey};
use crate::crowd::{Crowd, CrowdPlan, Ending, Event, Member, friends};
use crate::error::LoadError;
use crate::latencies::Latencies;
use crate::process::{Cores, ServerProcess, free_address};

/// What tokens are signed with here.
const SECRET: &str = "a secret for benchmarks on loopback only";
/// Connections on their way at once.
const OPENING_MAX: usize = 256;
/// How long everybody may take to be connected, or to be told.
const LIMIT: Duration = Duration::from_secs(180);
/// How often it is looked whether somebody was told.
const LOOK: Duration = Duration::from_millis(5);

/// What people say of themselves, in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Busy,
    Away,
}

impl Mood {
    pub(super) fn of_round(round: u32) -> Mood {
        if round.is_multiple_of(2) { Mood::Busy } else { Mood::Away }
    }

    fn word(self) -> &'static str {
        match self {
            Mood::Busy => "busy",
            Mood::Away => "away",
        }
    }

    fn other(self) -> Mood {
        match self {
            Mood::Busy => Mood::Away,
            Mood::Away => Mood::Busy,
        }
    }
}

pub(super) struct Ground {
    redis: RedisServer,
    crowd: Crowd,
    sessions: u32,
    /// What each pair's first said last.
    moods: HashMap<u32, Mood>,
    /// Who is to be told what, and since when.
    awaited: HashMap<Member, (Mood, Duration)>,
    trouble: Option<Ending>,
    next_command: u32,
    _gateways: [ServerProcess; 2],
    _folder: TempDir,
}

impl Ground {
    pub(super) fn start(binary: &Path, cores: Cores, sessions: u32) -> Result<Ground, LoadError> {
        let redis = cores.on_server(RedisServer::start)?;
        let folder = TempDir::with_prefix("loadgen-").map_err(LoadError::io("making a folder"))?;
        let pairs: Vec<(u64, u64)> =
            (0..u64::from(sessions / 2)).map(|pair| (2 * pair + 1, 2 * pair + 2)).collect();
        friends::write(folder.path(), &pairs)?;
        let addresses = [free_address()?, free_address()?];
        let start = |number: usize| {
            let config = folder.path().join(format!("gateway-{number}.toml"));
            let database = folder.path().join("rollcall.db");
            std::fs::write(&config, settings(addresses[number], &redis.url(), &database))
                .map_err(LoadError::io("writing the settings"))?;
            let data = folder.path().join(format!("gateway-{number}"));
            let (config, data) = (config.display().to_string(), data.display().to_string());
            let args =
                ["serve", "--config", &config, "--data", &data, "--roles", "gateway,site"].map(str::to_owned);
            let log = folder.path().join(format!("gateway-{number}.log"));
            let mut process = ServerProcess::start(cores.server, binary, &args, &log)?;
            process.wait_for_tcp(addresses[number])?;
            Ok::<ServerProcess, LoadError>(process)
        };
        let gateways = [start(0)?, start(1)?];
        let speech = Speech::Centrifuge(TokenKey::new(SECRET));
        let mut crowd = Crowd::new(CrowdPlan { server: addresses[0], speech, opening_max: OPENING_MAX })?;
        for number in 0..sessions / 2 * 2 {
            let member = crowd.join(u64::from(number) + 1, 0);
            crowd.send_to(member, addresses[number as usize % 2]);
        }
        Ok(Ground {
            redis,
            crowd,
            sessions: sessions / 2 * 2,
            moods: HashMap::new(),
            awaited: HashMap::new(),
            trouble: None,
            next_command: 1,
            _gateways: gateways,
            _folder: folder,
        })
    }

    pub(super) fn redis(&self) -> &RedisServer {
        &self.redis
    }

    pub(super) fn now(&self) -> Duration {
        self.crowd.now()
    }

    /// Everybody connects.
    pub(super) fn fill(&mut self) -> Result<(), LoadError> {
        self.crowd.members().for_each(|member| self.crowd.open(member));
        let until = self.now() + LIMIT;
        while self.crowd.up() < self.sessions as usize {
            self.turn(LOOK, &mut Latencies::default())?;
            if self.now() > until {
                let in_flight = self.crowd.on_their_way();
                return Err(LoadError::Silent { silent_s: LIMIT.as_secs(), in_flight });
            }
        }
        Ok(())
    }

    /// Answers pings for so long.
    pub(super) fn hold(&mut self, length: Duration) -> Result<(), LoadError> {
        let until = self.now() + length;
        self.listen_until(until, &mut Latencies::default())
    }

    /// Everybody at the first gateway says so; how long until every friend was told.
    pub(super) fn everybody(&mut self, mood: Mood) -> Result<Duration, LoadError> {
        let since = self.now();
        for pair in 0..self.sessions / 2 {
            self.say(pair, mood)?;
        }
        self.listen_for_the_rest(&mut Latencies::default())?;
        Ok(self.now() - since)
    }

    /// The first of a pair changes to what it did not say last. One whose friend is yet to be told stays as it is.
    pub(super) fn change(&mut self, pair: u32) -> Result<(), LoadError> {
        let mood = self.moods.get(&pair).map_or(Mood::Busy, |mood| mood.other());
        self.say(pair, mood)
    }

    fn say(&mut self, pair: u32, mood: Mood) -> Result<(), LoadError> {
        let (one, other) = (Member(2 * pair as usize), Member(2 * pair as usize + 1));
        if self.moods.get(&pair) == Some(&mood) || self.awaited.contains_key(&other) {
            return Ok(());
        }
        self.next_command += 1;
        let line = format!(
            r#"{{"id":{},"rpc":{{"method":"status.set","data":{{"status":"{}"}}}}}}"#,
            self.next_command,
            mood.word()
        );
        self.awaited.insert(other, (mood, self.crowd.now()));
        self.moods.insert(pair, mood);
        self.crowd.send(one, &line)
    }

    /// Takes the time of what is heard until then.
    pub(super) fn listen_until(
        &mut self,
        until: Duration,
        latencies: &mut Latencies,
    ) -> Result<(), LoadError> {
        while let Some(wait) = until.checked_sub(self.now()) {
            self.turn(wait, latencies)?;
        }
        Ok(())
    }

    /// Until everybody was told who has to be.
    pub(super) fn listen_for_the_rest(&mut self, latencies: &mut Latencies) -> Result<(), LoadError> {
        let until = self.now() + LIMIT;
        while !self.awaited.is_empty() {
            if self.now() > until {
                return Err(LoadError::Silent { silent_s: LIMIT.as_secs(), in_flight: self.awaited.len() });
            }
            self.turn(LOOK, latencies)?;
        }
        Ok(())
    }

    fn turn(&mut self, wait: Duration, latencies: &mut Latencies) -> Result<(), LoadError> {
        let Ground { crowd, awaited, trouble, .. } = self;
        let mut heard = Vec::new();
        crowd.turn(wait, &mut |member, event| match event {
            Event::Down(ending) => {
                trouble.get_or_insert_with(|| ending.clone());
            }
            Event::Message(line) => {
                let is_it = awaited.get(&member).is_some_and(|(mood, _)| {
                    memchr::memmem::find(line, format!(r#""status":"{}""#, mood.word()).as_bytes()).is_some()
                });
                if is_it {
                    heard.push(member);
                }
            }
            Event::Up | Event::Reply { .. } => {}
        })?;
        let now = crowd.now();
        for (_, since) in heard.iter().filter_map(|member| awaited.remove(member)) {
            latencies.add(now - since);
        }
        match trouble.take() {
            None => Ok(()),
            Some(ending) => Err(LoadError::NotAReply(format!("somebody was disconnected: {ending:?}"))),
        }
    }

    /// What the three public keys of a person take, in a Redis that holds nothing else.
    pub(super) fn memory_of_public_keys(&self, cores: Cores) -> Result<f64, LoadError> {
        let redis = cores.on_server(RedisServer::start)?;
        let before = super::Tally::of(&redis)?;
        let mut lines = String::new();
        for user in 1..=self.sessions {
            lines.push_str(&format!(
                "SET presence:{user} online EX 900\nSET connection:{user} gateway-1 EX 900\nSET heartbeat:{user} 1700000000 EX 900\n"
            ));
        }
        redis.cli_lines(&lines);
        let after = super::Tally::of(&redis)?;
        Ok(after.since(&before).memory_bytes / f64::from(self.sessions))
    }
}

/// The defaults, except where a crowd on one machine would meet a limit meant for strangers, and where changes would be
/// held back on purpose.
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
sample_one_in = 0

[log]
level = "warn"
"#,
        database.display()
    )
}

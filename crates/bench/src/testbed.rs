//! Servers with WebSocket clients: gateways of the real binary, or the bare WebSocket server.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use fastrand::Rng;
use simulate::websocket::protocol::{Protocol, tokens_signed_with};
use simulate::websocket::{ClientId, Event, WebSocketClients, WebSocketClientsPlan};
use tempfile::TempDir;

use crate::friends;
use crate::measure::{Latencies, Round, RoundWatch};
use crate::process::{ServerProcess, free_address};
use crate::run::{Run, new_folder};
use crate::server::{SECRET, Server, ServerPlan};

/// Connections being opened at once: fewer than a listener's queue holds, so that none is retried.
const OPENING_MAX: usize = 256;
/// Timeout until all are connected.
const CONNECT_LIMIT: Duration = Duration::from_secs(180);
/// Longest wait of one poll.
const POLL: Duration = Duration::from_millis(5);

/// Running servers and their clients. The servers end when this is dropped.
pub struct Testbed {
    pub clients: WebSocketClients,
    /// Time until what was expected has arrived.
    pub latencies: Latencies,
    /// The site, which has the metrics; none for the bare server, which speaks no protocol on top of WebSocket.
    pub site: Option<SocketAddr>,
    servers: Vec<ServerProcess>,
    addresses: Vec<SocketAddr>,
    /// The text that a client is to receive, and since when.
    expected: HashMap<ClientId, (Rc<str>, Duration)>,
    _folder: TempDir,
}

impl Testbed {
    /// One gateway of these friends, with further settings; the bare server where it stands in.
    pub fn start_gateway(run: &Run<'_>, friends: &[(u64, u64)], settings: &str) -> anyhow::Result<Testbed> {
        match run.binary() {
            Some(binary) => Testbed::start_gateways(run, binary, friends, &[settings.to_owned()]),
            None => Testbed::start_bare(run),
        }
    }

    /// Gateways on one database. Clients are spread over them in turn.
    pub fn start_gateways(
        run: &Run<'_>,
        binary: &Path,
        pairs: &[(u64, u64)],
        settings: &[String],
    ) -> anyhow::Result<Testbed> {
        let folder = new_folder()?;
        friends::write(folder.path(), pairs)?;
        let (mut servers, mut sites) = (Vec::new(), Vec::new());
        for (number, settings) in settings.iter().enumerate() {
            let data = folder.path().join(format!("gateway-{number}"));
            std::fs::create_dir(&data)?;
            let database = folder.path().join("rollcall.db");
            let settings = format!("database.url = \"sqlite://{}\"\n{settings}\n", database.display());
            let (data, roles) = (data.as_path(), Some("gateway,site"));
            let plan = ServerPlan { binary, data, cores: run.cores, roles, settings };
            let server = Server::start_without_limits(&plan)?;
            servers.push(server.process);
            sites.push(server.site);
        }
        Testbed::with(servers, &sites, Protocol::Centrifuge(tokens_signed_with(SECRET)), folder)
    }

    pub fn start_bare(run: &Run<'_>) -> anyhow::Result<Testbed> {
        let (folder, address) = (new_folder()?, free_address()?);
        let args = ["baseline-websocket", "--listen", &address.to_string()].map(str::to_owned);
        let log = folder.path().join("bare.log");
        let mut server = ServerProcess::start(run.cores.server, &run.options.this_program, &args, &log)?;
        server.wait_for_tcp(address)?;
        Testbed::with(vec![server], &[address], Protocol::Plain, folder)
    }

    fn with(
        servers: Vec<ServerProcess>,
        sites: &[SocketAddr],
        protocol: Protocol,
        folder: TempDir,
    ) -> anyhow::Result<Testbed> {
        let is_bare = matches!(protocol, Protocol::Plain);
        let server = *sites.first().context("there is a server")?;
        let plan = WebSocketClientsPlan { server, protocol, opening_max: OPENING_MAX };
        Ok(Testbed {
            clients: WebSocketClients::new(plan)?,
            latencies: Latencies::default(),
            site: (!is_bare).then_some(server),
            servers,
            addresses: sites.to_vec(),
            expected: HashMap::new(),
            _folder: folder,
        })
    }

    pub fn server(&self) -> &ServerProcess {
        &self.servers[0]
    }

    pub fn is_bare(&self) -> bool {
        self.site.is_none()
    }

    /// Connects `count` users from `first` on, in turn to the servers. Returns the processor time of the first server for
    /// each.
    pub fn fill(&mut self, first: u64, count: u32) -> anyhow::Result<Round> {
        let watch = RoundWatch::start(Some(self.server().pid()))?;
        let wanted = self.clients.up() + count as usize;
        for (position, user) in (first..first + u64::from(count)).enumerate() {
            let client = self.clients.join(user, 0);
            self.clients.send_to(client, self.addresses[position % self.addresses.len()]);
            self.clients.open(client);
        }
        let until = self.clients.now() + CONNECT_LIMIT;
        while self.clients.up() < wanted {
            if self.clients.now() > until {
                bail!("{} clients were not connected within {CONNECT_LIMIT:?}", self.clients.opening());
            }
            self.poll(POLL)?;
        }
        watch.stop(count.into())
    }

    /// A client is to receive a message that contains `text`.
    pub fn expect(&mut self, client: ClientId, text: &Rc<str>) {
        self.expected.insert(client, (Rc::clone(text), self.clients.now()));
    }

    pub fn is_expecting(&self, client: ClientId) -> bool {
        self.expected.contains_key(&client)
    }

    /// Until all that is expected has arrived.
    pub fn wait_for_expected(&mut self, limit: Duration) -> anyhow::Result<()> {
        let until = self.clients.now() + limit;
        while !self.expected.is_empty() {
            if self.clients.now() > until {
                bail!("{} clients were not notified within {limit:?}", self.expected.len());
            }
            self.poll(POLL)?;
        }
        Ok(())
    }

    /// Polls for this long.
    pub fn hold(&mut self, length: Duration) -> anyhow::Result<()> {
        self.hold_until(self.clients.now() + length)
    }

    /// Polls until then.
    pub fn hold_until(&mut self, until: Duration) -> anyhow::Result<()> {
        while let Some(wait) = until.checked_sub(self.clients.now()) {
            self.poll(wait)?;
        }
        Ok(())
    }

    /// Answers pings, and records latencies. An unexpected disconnect is an error.
    fn poll(&mut self, wait: Duration) -> anyhow::Result<()> {
        let (mut received, mut disconnect) = (Vec::new(), None);
        let expected = &self.expected;
        self.clients.poll(wait, &mut |client, event| match event {
            Event::Down(reason) => {
                disconnect.get_or_insert_with(|| reason.clone());
            }
            Event::Message(line) => {
                let text = expected.get(&client).map(|(text, _)| text.as_bytes());
                if text.is_some_and(|text| memchr::memmem::find(line, text).is_some()) {
                    received.push(client);
                }
            }
            Event::Up | Event::Reply { .. } => {}
        })?;
        if let Some(reason) = disconnect {
            bail!("a client was disconnected: {reason:?}");
        }
        let now = self.clients.now();
        for (_, since) in received.iter().filter_map(|client| self.expected.remove(client)) {
            self.latencies.add(now - since);
        }
        Ok(())
    }
}

/// Pairs of users, numbered from 1.
pub fn pairs_of(users: u32) -> Vec<(u64, u64)> {
    (0..u64::from(users / 2)).map(|pair| (2 * pair + 1, 2 * pair + 2)).collect()
}

/// The pause before the next of many independent events.
pub fn random_pause(random: &mut Rng, per_s: f64) -> Duration {
    Duration::from_secs_f64(-random.f64().max(1e-9).ln() / per_s)
}

/// A command that declares a status, with a text unless it is empty.
pub fn status_command(id: u32, status: &str, text: &str) -> String {
    let text = if text.is_empty() { String::new() } else { format!(r#","text":"{text}""#) };
    format!(r#"{{"id":{id},"rpc":{{"method":"status.set","data":{{"status":"{status}"{text}}}}}}}"#)
}

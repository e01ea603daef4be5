//! The task that runs a population: it performs due actions and passes the server's replies back.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use domain::clock::Stopwatch;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::catalogue::user_id;
use crate::error::SimulationError;
use crate::plan::{Plan, Target};
use crate::population::{Action, Command, DeviceAction, Population};
use crate::reply::AnnounceOutcome;
use crate::transport::Connections;
use crate::truth::Truth;
use crate::websocket::protocol::Protocol;
use crate::websocket::{ClientId, Event, WebSocketClients, WebSocketClientsPlan};

/// Announces in flight, each on a thread. Others are postponed.
const IN_FLIGHT_MAX: usize = 96;
/// Delay of a postponed announce.
const POSTPONE: Duration = Duration::from_millis(30);
/// The longest pause without actions: the devices' sockets are read this often.
const PAUSE_MAX: Duration = Duration::from_millis(20);
/// Connections being opened at once.
const OPENING_MAX: usize = 256;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimulationCounters {
    pub accepted: u64,
    pub refused: u64,
    /// Announces without a reply.
    pub lost: u64,
    /// Announces postponed because too many were in flight.
    pub postponed: u64,
    pub connects: u64,
    /// Connections that failed or ended unexpectedly.
    pub disconnects: u64,
}

pub struct Simulation {
    population: Population,
    target: Target,
    counters: SimulationCounters,
    watch: Stopwatch,
    devices: Option<Devices>,
    /// The outcome of each peer's announce.
    announces: JoinSet<(u32, AnnounceOutcome)>,
}

/// The devices of all users, on one event loop. None without a site.
struct Devices {
    clients: WebSocketClients,
    by_user: HashMap<(u32, usize), ClientId>,
    /// User and device of each client.
    owners: Vec<(u32, usize)>,
    frozen_until: HashMap<ClientId, Duration>,
    command: u32,
}

impl Simulation {
    /// All users and torrents have to be in the server's database: see [`catalogue`](crate::catalogue).
    pub fn new(plan: &Plan, target: Target) -> Simulation {
        Simulation {
            population: Population::new(plan),
            target,
            counters: SimulationCounters::default(),
            watch: Stopwatch::start(),
            devices: None,
            announces: JoinSet::new(),
        }
    }

    /// Runs until `stop` is ready; then waits for announces in flight and closes the devices. To be called once.
    pub async fn run_until(
        &mut self,
        stop: impl Future<Output = ()>,
    ) -> Result<SimulationCounters, SimulationError> {
        self.devices = Devices::of(&self.target)?;
        self.watch = Stopwatch::start();
        let mut stop = std::pin::pin!(stop);
        let mut actions = Vec::new();
        loop {
            let now = self.watch.elapsed();
            self.population.act(now, &mut actions);
            for action in actions.drain(..) {
                self.perform(action, now)?;
            }
            self.poll_devices(now)?;
            let next_at = self.population.next_at().unwrap_or(now + PAUSE_MAX);
            let pause = next_at.saturating_sub(self.watch.elapsed()).min(PAUSE_MAX);
            tokio::select! {
                biased;
                () = &mut stop => break,
                Some(Ok((peer, outcome))) = self.announces.join_next() => self.take(peer, &outcome),
                () = sleep(pause) => {}
            }
        }
        if let Some(Devices { mut clients, .. }) = self.devices.take() {
            clients.members().for_each(|client| clients.close(client, true));
        }
        // Accepted announces must be known. Each has its own timeout.
        while let Some(outcome) = self.announces.join_next().await {
            if let Ok((peer, outcome)) = outcome {
                self.take(peer, &outcome);
            }
        }
        Ok(self.counters)
    }

    /// What the ledger must show once [`Simulation::run_until`] has ended. Exact if [`Simulation::unconfirmed`] is 0.
    pub fn truth(&self) -> Truth {
        self.population.truth()
    }

    /// Clients whose last announce has no reply, so it may or may not be accounted.
    pub fn unconfirmed(&self) -> usize {
        self.population.unconfirmed()
    }

    fn perform(&mut self, action: Action, now: Duration) -> Result<(), SimulationError> {
        match action {
            Action::Announce { peer, .. } if self.announces.len() >= IN_FLIGHT_MAX => {
                self.counters.postponed += 1;
                self.population.postpone(peer, now + POSTPONE);
            }
            Action::Announce { peer, transport, from, announce } => {
                // One connection for each announce, as most clients do.
                let mut connections = Connections::new(self.target.addresses.clone(), from);
                self.announces.spawn_blocking(move || (peer, connections.announce(&announce, transport)));
            }
            Action::Device { user, action } => {
                if let Some(devices) = &mut self.devices {
                    self.counters.connects += u64::from(matches!(action, DeviceAction::Connect { .. }));
                    devices.perform(user, action, now)?;
                }
            }
        }
        Ok(())
    }

    fn poll_devices(&mut self, now: Duration) -> Result<(), SimulationError> {
        let Some(devices) = &mut self.devices else { return Ok(()) };
        for (user, device) in devices.poll(now)? {
            self.counters.disconnects += 1;
            self.population.connection_lost(user, device, now);
        }
        Ok(())
    }

    fn take(&mut self, peer: u32, outcome: &AnnounceOutcome) {
        match outcome {
            AnnounceOutcome::Accepted { .. } => self.counters.accepted += 1,
            AnnounceOutcome::Refused(_) => self.counters.refused += 1,
            AnnounceOutcome::Lost => self.counters.lost += 1,
        }
        self.population.handle_reply(peer, outcome, self.watch.elapsed());
    }
}

impl Devices {
    fn of(target: &Target) -> Result<Option<Devices>, SimulationError> {
        let Some(server) = target.addresses.site else { return Ok(None) };
        let protocol = Protocol::Centrifuge(Arc::clone(&target.tokens));
        let plan = WebSocketClientsPlan { server, protocol, opening_max: OPENING_MAX };
        let clients = WebSocketClients::new(plan)?;
        let (by_user, frozen_until) = (HashMap::new(), HashMap::new());
        Ok(Some(Devices { clients, by_user, owners: Vec::new(), frozen_until, command: 1 }))
    }

    fn perform(&mut self, user: u32, action: DeviceAction, now: Duration) -> Result<(), SimulationError> {
        let clients = &mut self.clients;
        match action {
            DeviceAction::Connect { device, name, platform } => {
                let client = *self.by_user.entry((user, device)).or_insert_with(|| {
                    self.owners.push((user, device));
                    clients.join_as(user_id(user).get(), &name, platform)
                });
                clients.open(client);
            }
            DeviceAction::Close { device } => self.close(user, device, true),
            DeviceAction::Crash { device } => self.close(user, device, false),
            DeviceAction::Freeze { device, length } => {
                if let Some(client) = self.by_user.get(&(user, device)) {
                    clients.silence(*client);
                    self.frozen_until.insert(*client, now + length);
                }
            }
            DeviceAction::Send { device, command } => {
                if let Some(client) = self.by_user.get(&(user, device)) {
                    self.command += 1;
                    clients.send(*client, &line_of(self.command, &command))?;
                }
            }
        }
        Ok(())
    }

    fn close(&mut self, user: u32, device: usize, with_close_frame: bool) {
        if let Some(client) = self.by_user.get(&(user, device)) {
            self.frozen_until.remove(client);
            self.clients.close(*client, with_close_frame);
        }
    }

    /// Reads and answers what has arrived. Returns the devices that lost their connection.
    fn poll(&mut self, now: Duration) -> Result<Vec<(u32, usize)>, SimulationError> {
        let clients = &mut self.clients;
        let thawed = self.frozen_until.extract_if(|_, until| *until <= now);
        thawed.for_each(|(client, _)| clients.resume(client));
        let mut lost = Vec::new();
        clients.poll(Duration::ZERO, &mut |client, event| {
            if let Event::Down(_) = event {
                lost.push(self.owners[client.0]);
            }
        })?;
        Ok(lost)
    }
}

fn line_of(id: u32, command: &Command) -> String {
    let rpc = |method: &str, data: serde_json::Value| json!({ "id": id, "rpc": { "method": method, "data": data } });
    let command = match command {
        Command::Status(status, text) => rpc("status.set", json!({ "status": status, "text": text })),
        Command::ClearStatus => rpc("status.clear", json!({})),
        Command::AppState(state) => rpc("app.state", json!({ "state": state })),
        Command::Type(to) => rpc("typing", json!({ "to": to.to_string(), "on": true })),
        Command::TypeInRoom(room) => rpc("typing", json!({ "room": room, "on": true })),
        Command::Enter(room) => json!({ "id": id, "subscribe": { "channel": format!("room:{room}") } }),
    };
    command.to_string()
}

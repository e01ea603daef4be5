//! The task that runs a population: it performs due actions and passes the server's replies back.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use domain::clock::Stopwatch;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::catalogue::user_id;
use crate::device::{self, DeviceCommand, DeviceSettings};
use crate::expected::ExpectedAccounts;
use crate::plan::{Plan, Target};
use crate::population::{Action, AnnounceOutcome, DeviceAction, Population};
use crate::transport;

/// Announces in flight. Others are postponed.
const IN_FLIGHT_MAX: usize = 96;
/// Delay of a postponed announce.
const POSTPONE: Duration = Duration::from_millis(30);
/// Queued commands of a device. Excess ones are dropped.
const COMMANDS_MAX: usize = 16;
/// The longest pause without actions.
const IDLE: Duration = Duration::from_secs(1);
/// Timeout for the devices to close at the end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

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

/// The result of a task.
enum Report {
    Answer { peer: u32, outcome: AnnounceOutcome },
    Ended { user: u32, device: usize, serial: u64, as_commanded: bool },
}

struct Open {
    serial: u64,
    commands: mpsc::Sender<DeviceCommand>,
}

pub struct Simulation {
    population: Population,
    target: Arc<Target>,
    counters: SimulationCounters,
    watch: Stopwatch,
    devices: HashMap<(u32, usize), Open>,
    tasks: JoinSet<Report>,
    in_flight: usize,
    serial: u64,
}

impl Simulation {
    /// All users and torrents have to be in the server's database: see [`catalogue`](crate::catalogue).
    pub fn new(plan: &Plan, target: Target) -> Simulation {
        Simulation {
            population: Population::new(plan),
            target: Arc::new(target),
            counters: SimulationCounters::default(),
            watch: Stopwatch::start(),
            devices: HashMap::new(),
            tasks: JoinSet::new(),
            in_flight: 0,
            serial: 0,
        }
    }

    /// Runs until `stop` is ready; then waits for announces in flight and closes the devices. To be called once.
    pub async fn run_until(&mut self, stop: impl Future<Output = ()>) -> SimulationCounters {
        self.watch = Stopwatch::start();
        let mut stop = std::pin::pin!(stop);
        let mut actions = Vec::new();
        loop {
            let now = self.watch.elapsed();
            self.population.act(now, &mut actions);
            actions.drain(..).for_each(|action| self.perform(action, now));
            let next_at = self.population.next_at().unwrap_or(now + IDLE);
            let pause = next_at.saturating_sub(self.watch.elapsed()).min(IDLE);
            tokio::select! {
                biased;
                () = &mut stop => break,
                Some(Ok(report)) = self.tasks.join_next() => self.take(report),
                () = sleep(pause) => {}
            }
        }
        self.end().await;
        self.counters
    }

    /// What the ledger must show once [`Simulation::run_until`] has ended. Exact if [`Simulation::unconfirmed`] is 0.
    pub fn expected_accounts(&self) -> ExpectedAccounts {
        self.population.expected_accounts()
    }

    /// Clients whose last announce has no reply, so it may or may not be accounted.
    pub fn unconfirmed(&self) -> usize {
        self.population.unconfirmed()
    }

    pub fn counters(&self) -> SimulationCounters {
        self.counters
    }

    async fn end(&mut self) {
        // Devices close without their command channel, while replies are awaited: accepted announces must be known.
        // Each announce has its own timeout.
        self.devices.clear();
        while self.in_flight > 0
            && let Some(report) = self.tasks.join_next().await
        {
            if let Ok(report) = report {
                self.take(report);
            }
        }
        let _ = timeout(CLOSE_TIMEOUT, async { while self.tasks.join_next().await.is_some() {} }).await;
        self.tasks.abort_all();
    }

    fn perform(&mut self, action: Action, now: Duration) {
        match action {
            Action::Announce { peer, .. } if self.in_flight >= IN_FLIGHT_MAX => {
                self.counters.postponed += 1;
                self.population.postpone(peer, now + POSTPONE);
            }
            Action::Announce { peer, transport, announce } => {
                self.in_flight += 1;
                let target = Arc::clone(&self.target);
                self.tasks.spawn(async move {
                    let outcome = transport::send(transport, &announce, &target.addresses).await;
                    Report::Answer { peer, outcome }
                });
            }
            Action::Device { user, address, action } => self.perform_on_device(user, address, action),
        }
    }

    fn perform_on_device(&mut self, user: u32, from: Ipv4Addr, action: DeviceAction) {
        match action {
            DeviceAction::Connect { device, name, platform } => {
                let (Some(site), Some(token)) =
                    (self.target.addresses.site, (self.target.tokens)(user_id(user)))
                else {
                    return;
                };
                self.open(user, device, DeviceSettings { site, from, token, name, platform });
            }
            // A device closes without its command channel.
            DeviceAction::Close { device } => drop(self.devices.remove(&(user, device))),
            DeviceAction::Crash { device } => {
                self.command(user, device, DeviceCommand::Crash);
                self.devices.remove(&(user, device));
            }
            DeviceAction::Freeze { device, length } => {
                self.command(user, device, DeviceCommand::Freeze(length))
            }
            DeviceAction::Send { device, command } => {
                self.command(user, device, DeviceCommand::Send(command))
            }
        }
    }

    fn open(&mut self, user: u32, device: usize, settings: DeviceSettings) {
        self.serial += 1;
        self.counters.connects += 1;
        let (commands, given) = mpsc::channel(COMMANDS_MAX);
        let serial = self.serial;
        self.devices.insert((user, device), Open { serial, commands });
        self.tasks.spawn(async move {
            let as_commanded = device::run(settings, given).await.unwrap_or(false);
            Report::Ended { user, device, serial, as_commanded }
        });
    }

    fn command(&mut self, user: u32, device: usize, command: DeviceCommand) {
        if let Some(open) = self.devices.get(&(user, device)) {
            let _ = open.commands.try_send(command);
        }
    }

    fn take(&mut self, report: Report) {
        let now = self.watch.elapsed();
        match report {
            Report::Answer { peer, outcome } => {
                self.in_flight -= 1;
                match outcome {
                    AnnounceOutcome::Accepted { .. } => self.counters.accepted += 1,
                    AnnounceOutcome::Refused(_) => self.counters.refused += 1,
                    AnnounceOutcome::Lost => self.counters.lost += 1,
                }
                self.population.handle_reply(peer, &outcome, now);
            }
            Report::Ended { user, device, serial, as_commanded } => {
                let is_current = self.devices.get(&(user, device)).is_some_and(|open| open.serial == serial);
                if is_current {
                    self.devices.remove(&(user, device));
                    self.population.connection_lost(user, device, now);
                }
                self.counters.disconnects += u64::from(!as_commanded);
            }
        }
    }
}

//! The one task that lets everybody live: it asks the cast who is next, and tells it what the server answered.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use domain::clock::Stopwatch;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::cast::{Act, Cast, Deed, Heard};
use crate::device::{self, Call, Order};
use crate::line;
use crate::plan::{Plan, Surroundings};
use crate::register::user_id;
use crate::truth::Truth;

/// Announces that may be on their way at once. More wait for their turn.
const IN_FLIGHT_MAX: usize = 96;
/// How long an announce waits that had no place.
const BEFORE_NEXT_PLACE: Duration = Duration::from_millis(30);
/// Orders that a device may be behind with. More are dropped: people do not insist.
const ORDERS_MAX: usize = 16;
/// The longest pause of a world in which nobody has anything to do.
const IDLE: Duration = Duration::from_secs(1);
/// How long devices may take to say goodbye in the end.
const GOODBYES: Duration = Duration::from_secs(2);

/// What happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Announces that counted.
    pub accepted: u64,
    /// Announces that were refused.
    pub refused: u64,
    /// Announces that were not answered.
    pub lost: u64,
    /// Announces that had to wait because too many were on their way.
    pub postponed: u64,
    /// Devices that were opened.
    pub connects: u64,
    /// Connections that ended by themselves, or were never made.
    pub disconnects: u64,
}

/// What a task reports.
enum Report {
    Answer { peer: u32, heard: Heard },
    Ended { person: u32, device: usize, serial: u64, as_told: bool },
}

struct Open {
    serial: u64,
    orders: mpsc::Sender<Order>,
}

/// A living world.
pub struct World {
    cast: Cast,
    surroundings: Arc<Surroundings>,
    tally: Tally,
    watch: Stopwatch,
    devices: HashMap<(u32, usize), Open>,
    tasks: JoinSet<Report>,
    in_flight: usize,
    serial: u64,
}

impl World {
    /// A world in which nobody has begun yet. Everything in it has to be known to the server: see
    /// [`register`](crate::register).
    pub fn new(plan: &Plan, surroundings: Surroundings) -> World {
        World {
            cast: Cast::new(plan),
            surroundings: Arc::new(surroundings),
            tally: Tally::default(),
            watch: Stopwatch::start(),
            devices: HashMap::new(),
            tasks: JoinSet::new(),
            in_flight: 0,
            serial: 0,
        }
    }

    /// Lets everybody live until `stop` is ready; then waits for what is on its way, and closes the devices. The world
    /// must not be run again.
    pub async fn run_until(&mut self, stop: impl Future<Output = ()>) -> Tally {
        self.watch = Stopwatch::start();
        let mut stop = std::pin::pin!(stop);
        let mut acts = Vec::new();
        loop {
            let now = self.watch.elapsed();
            self.cast.act(now, &mut acts);
            acts.drain(..).for_each(|act| self.perform(act, now));
            let next_at = self.cast.next_at().unwrap_or(now + IDLE);
            let pause = next_at.saturating_sub(self.watch.elapsed()).min(IDLE);
            tokio::select! {
                biased;
                () = &mut stop => break,
                Some(Ok(report)) = self.tasks.join_next() => self.take(report),
                () = sleep(pause) => {}
            }
        }
        self.end().await;
        self.tally
    }

    /// What the books must show, once [`World::run_until`] has ended. Exact if [`World::unsure`] is 0.
    pub fn truth(&self) -> Truth {
        self.cast.truth()
    }

    /// Clients of whose last announce nobody knows whether it counted.
    pub fn unsure(&self) -> usize {
        self.cast.unsure()
    }

    /// What happened so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    async fn end(&mut self) {
        // Without their orders devices say goodbye, while answers are waited for: what counts has to be known. Each
        // announce has a deadline of its own.
        self.devices.clear();
        while self.in_flight > 0
            && let Some(report) = self.tasks.join_next().await
        {
            if let Ok(report) = report {
                self.take(report);
            }
        }
        let _ = timeout(GOODBYES, async { while self.tasks.join_next().await.is_some() {} }).await;
        self.tasks.abort_all();
    }

    fn perform(&mut self, act: Act, now: Duration) {
        match act {
            Act::Announce { peer, .. } if self.in_flight >= IN_FLIGHT_MAX => {
                self.tally.postponed += 1;
                self.cast.postpone(peer, now + BEFORE_NEXT_PLACE);
            }
            Act::Announce { peer, road, announce } => {
                self.in_flight += 1;
                let surroundings = Arc::clone(&self.surroundings);
                self.tasks.spawn(async move {
                    let heard = line::send(road, &announce, &surroundings.places).await;
                    Report::Answer { peer, heard }
                });
            }
            Act::Deed { person, address, deed } => self.perform_deed(person, address, deed),
        }
    }

    fn perform_deed(&mut self, person: u32, from: Ipv4Addr, deed: Deed) {
        match deed {
            Deed::Connect { device, name, platform } => {
                let (Some(site), Some(token)) =
                    (self.surroundings.places.site, (self.surroundings.tokens)(user_id(person)))
                else {
                    return;
                };
                self.open(person, device, Call { site, from, token, name, platform });
            }
            // Without its orders a device says goodbye.
            Deed::Goodbye { device } => drop(self.devices.remove(&(person, device))),
            Deed::Crash { device } => {
                self.order(person, device, Order::Crash);
                self.devices.remove(&(person, device));
            }
            Deed::Freeze { device, length } => self.order(person, device, Order::Freeze(length)),
            Deed::Say { device, line } => self.order(person, device, Order::Say(line)),
        }
    }

    fn open(&mut self, person: u32, device: usize, call: Call) {
        self.serial += 1;
        self.tally.connects += 1;
        let (orders, given) = mpsc::channel(ORDERS_MAX);
        let serial = self.serial;
        self.devices.insert((person, device), Open { serial, orders });
        self.tasks.spawn(async move {
            let as_told = device::live(call, given).await.unwrap_or(false);
            Report::Ended { person, device, serial, as_told }
        });
    }

    fn order(&mut self, person: u32, device: usize, order: Order) {
        if let Some(open) = self.devices.get(&(person, device)) {
            let _ = open.orders.try_send(order);
        }
    }

    fn take(&mut self, report: Report) {
        let now = self.watch.elapsed();
        match report {
            Report::Answer { peer, heard } => {
                self.in_flight -= 1;
                match heard {
                    Heard::Accepted { .. } => self.tally.accepted += 1,
                    Heard::Refused(_) => self.tally.refused += 1,
                    Heard::Lost => self.tally.lost += 1,
                }
                self.cast.hear(peer, &heard, now);
            }
            Report::Ended { person, device, serial, as_told } => {
                let is_current =
                    self.devices.get(&(person, device)).is_some_and(|open| open.serial == serial);
                if is_current {
                    self.devices.remove(&(person, device));
                    self.cast.lose(person, device, now);
                }
                self.tally.disconnects += u64::from(!as_told);
            }
        }
    }
}

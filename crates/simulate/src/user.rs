//! One user: devices, and what the user does with them.

use std::time::Duration;

use fastrand::Rng;

use crate::catalogue::{Purpose, rng_for};
use crate::names::status_text;
use crate::plan::Plan;

/// Most users connect within this time.
const ARRIVAL_S: f64 = 5.0;
/// Percentage of users that are absent at the start.
const AWAY_PERCENT: u8 = 15;
const ROOMS: [&str; 3] = ["lobby", "films", "闲聊"];

/// What a user does with a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceAction {
    Connect {
        device: usize,
        name: String,
        /// `web`, `phone` or `computer`.
        platform: &'static str,
    },
    /// Closes the connection with a close frame.
    Close {
        device: usize,
    },
    /// The connection ends without a close frame.
    Crash {
        device: usize,
    },
    /// The device neither reads nor answers.
    Freeze {
        device: usize,
        length: Duration,
    },
    Send {
        device: usize,
        command: Command,
    },
}

/// A command of the gateway protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Status and text.
    Status(&'static str, &'static str),
    ClearStatus,
    AppState(&'static str),
    /// Types to another user.
    Type(u32),
    TypeInRoom(&'static str),
    Enter(&'static str),
}

#[derive(Clone, Debug)]
struct Device {
    name: String,
    platform: &'static str,
    is_open: bool,
    /// When it reconnects after it lost its connection.
    returns_at: Option<Duration>,
    room: Option<&'static str>,
}

#[derive(Debug)]
pub(crate) struct User {
    number: u32,
    members: u32,
    plan: Plan,
    random: Rng,
    devices: Vec<Device>,
    activity_at: Duration,
    has_status: bool,
}

impl User {
    pub(crate) fn new(number: u32, plan: &Plan) -> User {
        let mut random = rng_for(plan.seed, Purpose::User, number);
        let count = [1, 1, 2, 2, 2, 3][random.usize(..6)];
        let mut platforms = ["web", "phone", "computer"];
        random.shuffle(&mut platforms);
        let device = |platform: &&'static str| Device {
            name: format!("{platform}-{number}"),
            platform,
            is_open: false,
            returns_at: None,
            room: None,
        };
        let devices = platforms[..count].iter().map(device).collect();
        let begins_s = match random.u8(..100) {
            0..AWAY_PERCENT => 20.0 + 60.0 * random.f64(),
            _ => ARRIVAL_S * random.f64(),
        };
        let activity_at = plan.paced(Duration::from_secs_f64(begins_s));
        User { number, members: plan.members, plan: *plan, random, devices, activity_at, has_status: false }
    }

    pub(crate) fn wakes_at(&self) -> Duration {
        self.devices.iter().filter_map(|device| device.returns_at).fold(self.activity_at, Duration::min)
    }

    /// A device lost its connection: it reconnects by itself, as the SDKs do.
    pub(crate) fn connection_lost(&mut self, device: usize, now: Duration) {
        let pause = Duration::from_secs_f64(0.5 + 2.5 * self.random.f64());
        if let Some(device) = self.devices.get_mut(device).filter(|device| device.is_open) {
            device.is_open = false;
            device.returns_at = Some(now + pause);
        }
    }

    /// Runs what is due.
    pub(crate) fn turn(&mut self, now: Duration) -> Vec<DeviceAction> {
        let mut actions = Vec::new();
        for device in 0..self.devices.len() {
            if self.devices[device].returns_at.is_some_and(|at| at <= now) {
                actions.push(self.open(device));
            }
        }
        if self.activity_at <= now {
            let pause_s = self.activity(now, &mut actions);
            let pause = self.plan.paced(Duration::from_secs_f64(pause_s * (0.5 + self.random.f64())));
            self.activity_at = now + pause.max(Duration::from_millis(200));
        }
        actions
    }

    /// One random activity. Returns the mean pause after it, in seconds.
    fn activity(&mut self, now: Duration, actions: &mut Vec<DeviceAction>) -> f64 {
        let open: Vec<usize> =
            (0..self.devices.len()).filter(|number| self.devices[*number].is_open).collect();
        let is_returning = self.devices.iter().any(|device| device.returns_at.is_some());
        let Some(device) = self.random.choice(open.iter().copied()) else {
            if !is_returning {
                let first = self.random.usize(..self.devices.len());
                actions.push(self.open(first));
            }
            return 8.0;
        };
        match self.random.u8(..100) {
            0..14 => {
                match self.devices.iter().position(|device| !device.is_open && device.returns_at.is_none()) {
                    Some(another) => actions.push(self.open(another)),
                    None if open.len() > 1 => actions.push(self.close(device)),
                    None => {}
                }
            }
            14..23 => {
                self.devices[device].is_open = false;
                let seconds = 1.0 + 8.0 * self.random.f64();
                self.devices[device].returns_at =
                    Some(now + self.plan.paced(Duration::from_secs_f64(seconds)));
                actions.push(DeviceAction::Crash { device });
            }
            23..35 => {
                let state = ["background", "foreground", "foreground", "inactive"][self.random.usize(..4)];
                actions.push(DeviceAction::Send { device, command: Command::AppState(state) });
                return 15.0;
            }
            35..60 => actions.push(self.typing(device)),
            60..72 => actions.push(self.declare(device)),
            72..80 if self.has_status => {
                self.has_status = false;
                actions.push(DeviceAction::Send { device, command: Command::ClearStatus });
            }
            80..88 => actions.push(self.enter(device)),
            88..90 => {
                let seconds = 40.0 + 30.0 * self.random.f64();
                actions.push(DeviceAction::Freeze { device, length: Duration::from_secs_f64(seconds) });
                return 45.0;
            }
            // All devices are closed for a while.
            90..96 => {
                open.iter().for_each(|device| actions.push(self.close(*device)));
                return 45.0;
            }
            _ => {}
        }
        12.0
    }

    fn open(&mut self, number: usize) -> DeviceAction {
        let device = &mut self.devices[number];
        device.is_open = true;
        device.returns_at = None;
        device.room = None;
        DeviceAction::Connect { device: number, name: device.name.clone(), platform: device.platform }
    }

    fn close(&mut self, device: usize) -> DeviceAction {
        self.devices[device].is_open = false;
        DeviceAction::Close { device }
    }

    fn typing(&mut self, device: usize) -> DeviceAction {
        let command = match self.devices[device].room {
            Some(room) if self.random.bool() => Command::TypeInRoom(room),
            _ => {
                let to = self.random.u32(1..=self.members.max(1));
                Command::Type(if to == self.number { to % self.members.max(1) + 1 } else { to })
            }
        };
        DeviceAction::Send { device, command }
    }

    fn declare(&mut self, device: usize) -> DeviceAction {
        self.has_status = true;
        let status = ["busy", "busy", "busy", "away", "online", "invisible"][self.random.usize(..6)];
        DeviceAction::Send { device, command: Command::Status(status, status_text(&mut self.random)) }
    }

    fn enter(&mut self, device: usize) -> DeviceAction {
        let room = ROOMS[self.random.usize(..ROOMS.len())];
        let command = match self.devices[device].room.replace(room) {
            Some(present) => {
                self.devices[device].room = Some(present);
                Command::TypeInRoom(present)
            }
            None => Command::Enter(room),
        };
        DeviceAction::Send { device, command }
    }
}

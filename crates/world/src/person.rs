//! One person: their devices, and what they do all day.

use std::net::Ipv4Addr;
use std::time::Duration;

use fastrand::Rng;

use crate::names::status_text;
use crate::plan::Plan;
use crate::register::{Purpose, dice};

/// People begin to arrive when the world begins; most are here within this time.
const ARRIVAL_S: f64 = 5.0;
/// Of a hundred people, how many are away when the world begins.
const AWAY_PERCENT: u8 = 15;
/// The rooms that people enter.
const ROOMS: [&str; 3] = ["lobby", "films", "闲聊"];

/// What a person does with a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Opens it.
    Connect {
        /// Which one.
        device: usize,
        /// What it calls itself.
        name: String,
        /// `web`, `phone` or `computer`.
        platform: &'static str,
    },
    /// Closes it properly.
    Goodbye {
        /// Which one.
        device: usize,
    },
    /// It crashes: the connection is gone without a word.
    Crash {
        /// Which one.
        device: usize,
    },
    /// It hangs: it neither reads nor answers for so long.
    Freeze {
        /// Which one.
        device: usize,
        /// For how long.
        length: Duration,
    },
    /// Says something.
    Say {
        /// On which one.
        device: usize,
        /// What.
        line: Line,
    },
}

/// What can be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Declares a status, with a text.
    Status(&'static str, &'static str),
    /// Takes it back.
    ClearStatus,
    /// The app is looked at, or not.
    AppState(&'static str),
    /// Types to another person.
    Type(u32),
    /// Types in a room.
    TypeInRoom(&'static str),
    /// Enters a room.
    Enter(&'static str),
}

#[derive(Clone, Debug)]
struct Device {
    name: String,
    platform: &'static str,
    is_open: bool,
    /// When it connects again, if it lost its connection.
    returns_at: Option<Duration>,
    room: Option<&'static str>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Person {
    number: u32,
    people: u32,
    plan: Plan,
    random: Rng,
    devices: Vec<Device>,
    scene_at: Duration,
    has_status: bool,
}

impl Person {
    pub(crate) fn new(number: u32, plan: &Plan) -> Person {
        let mut random = dice(plan.seed, Purpose::Person, number);
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
        let scene_at = plan.paced(Duration::from_secs_f64(begins_s));
        Person { number, people: plan.people, plan: *plan, random, devices, scene_at, has_status: false }
    }

    /// Where they live.
    pub(crate) fn address(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(Ipv4Addr::new(127, 8, 0, 1).to_bits() + self.number)
    }

    pub(crate) fn wakes_at(&self) -> Duration {
        self.devices.iter().filter_map(|device| device.returns_at).fold(self.scene_at, Duration::min)
    }

    /// A device lost its connection: it comes back by itself, as the SDKs do.
    pub(crate) fn lose(&mut self, device: usize, now: Duration) {
        let pause = Duration::from_secs_f64(0.5 + 2.5 * self.random.f64());
        if let Some(device) = self.devices.get_mut(device).filter(|device| device.is_open) {
            device.is_open = false;
            device.returns_at = Some(now + pause);
        }
    }

    /// Does what is due.
    pub(crate) fn turn(&mut self, now: Duration) -> Vec<Deed> {
        let mut deeds = Vec::new();
        for device in 0..self.devices.len() {
            if self.devices[device].returns_at.is_some_and(|at| at <= now) {
                deeds.push(self.open(device));
            }
        }
        if self.scene_at <= now {
            let pause_s = self.scene(now, &mut deeds);
            let pause = self.plan.paced(Duration::from_secs_f64(pause_s * (0.5 + self.random.f64())));
            self.scene_at = now + pause.max(Duration::from_millis(200));
        }
        deeds
    }

    /// One of the things that people do; tells for how long they are content then, in seconds.
    fn scene(&mut self, now: Duration, deeds: &mut Vec<Deed>) -> f64 {
        let open: Vec<usize> =
            (0..self.devices.len()).filter(|number| self.devices[*number].is_open).collect();
        let is_returning = self.devices.iter().any(|device| device.returns_at.is_some());
        let Some(device) = self.random.choice(open.iter().copied()) else {
            if !is_returning {
                let first = self.random.usize(..self.devices.len());
                deeds.push(self.open(first));
            }
            return 8.0;
        };
        match self.random.u8(..100) {
            0..14 => {
                match self.devices.iter().position(|device| !device.is_open && device.returns_at.is_none()) {
                    Some(another) => deeds.push(self.open(another)),
                    None if open.len() > 1 => deeds.push(self.close(device)),
                    None => {}
                }
            }
            14..23 => {
                self.devices[device].is_open = false;
                let seconds = 1.0 + 8.0 * self.random.f64();
                self.devices[device].returns_at =
                    Some(now + self.plan.paced(Duration::from_secs_f64(seconds)));
                deeds.push(Deed::Crash { device });
            }
            23..35 => {
                let state = ["background", "foreground", "foreground", "inactive"][self.random.usize(..4)];
                deeds.push(Deed::Say { device, line: Line::AppState(state) });
                return 15.0;
            }
            35..60 => deeds.push(self.typing(device)),
            60..72 => deeds.push(self.declare(device)),
            72..80 if self.has_status => {
                self.has_status = false;
                deeds.push(Deed::Say { device, line: Line::ClearStatus });
            }
            80..88 => deeds.push(self.enter(device)),
            88..90 => {
                let seconds = 40.0 + 30.0 * self.random.f64();
                deeds.push(Deed::Freeze { device, length: Duration::from_secs_f64(seconds) });
                return 45.0;
            }
            // The lights go out: everything is closed, for a while.
            90..96 => {
                open.iter().for_each(|device| deeds.push(self.close(*device)));
                return 45.0;
            }
            _ => {}
        }
        12.0
    }

    fn open(&mut self, number: usize) -> Deed {
        let device = &mut self.devices[number];
        device.is_open = true;
        device.returns_at = None;
        device.room = None;
        Deed::Connect { device: number, name: device.name.clone(), platform: device.platform }
    }

    fn close(&mut self, device: usize) -> Deed {
        self.devices[device].is_open = false;
        Deed::Goodbye { device }
    }

    fn typing(&mut self, device: usize) -> Deed {
        let line = match self.devices[device].room {
            Some(room) if self.random.bool() => Line::TypeInRoom(room),
            _ => {
                let to = self.random.u32(1..=self.people.max(1));
                Line::Type(if to == self.number { to % self.people.max(1) + 1 } else { to })
            }
        };
        Deed::Say { device, line }
    }

    fn declare(&mut self, device: usize) -> Deed {
        self.has_status = true;
        let status = ["busy", "busy", "busy", "away", "online", "invisible"][self.random.usize(..6)];
        Deed::Say { device, line: Line::Status(status, status_text(&mut self.random)) }
    }

    fn enter(&mut self, device: usize) -> Deed {
        let room = ROOMS[self.random.usize(..ROOMS.len())];
        let line = match self.devices[device].room.replace(room) {
            Some(present) => {
                self.devices[device].room = Some(present);
                Line::TypeInRoom(present)
            }
            None => Line::Enter(room),
        };
        Deed::Say { device, line }
    }
}

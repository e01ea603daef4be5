//! A roster with a clock in the hand of the test.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "not every suite needs everything; a test that cannot go on has failed"
)]

pub mod actions;
pub mod world;

use domain::{UnixTime, UserId};
use presence::{
    AppState, ConnId, Declaration, Declared, DeviceId, Effect, Goodbye, Hello, Input, Moment, Platform,
    Policy, Refused, Roster, Status, View,
};

/// When every stage begins, in seconds.
pub const START_S: u32 = 1_800_000_000;

pub fn user(number: u64) -> UserId {
    UserId::new(number).unwrap()
}

pub fn device(name: &str) -> DeviceId {
    DeviceId::new(name).unwrap()
}

pub fn hello(name: &str) -> Hello {
    Hello { device: device(name), platform: Platform::Web, app: AppState::Foreground, declared: None }
}

pub fn declaration(status: Declared) -> Declaration {
    Declaration { status, text: None, until: None }
}

pub struct Stage {
    pub roster: Roster,
    /// Milliseconds since the start.
    pub at_ms: u64,
    /// What came out and was not taken yet.
    pub effects: Vec<Effect>,
}

impl Stage {
    pub fn new() -> Stage {
        Stage::with(Policy::default())
    }

    pub fn with(policy: Policy) -> Stage {
        let roster = Roster::new(policy, Moment(u64::from(START_S) * 1000), 7);
        Stage { roster, at_ms: 0, effects: Vec::new() }
    }

    pub fn now(&self) -> Moment {
        Moment(u64::from(START_S) * 1000 + self.at_ms)
    }

    pub fn try_tell(&mut self, who: u64, input: Input) -> Result<(), Refused> {
        self.roster.handle(self.now(), user(who), input, &mut self.effects)
    }

    pub fn tell(&mut self, who: u64, input: Input) {
        self.try_tell(who, input).unwrap();
    }

    pub fn connect(&mut self, who: u64, conn: u32, hello: Hello) {
        self.tell(who, Input::Connected { conn: ConnId(conn), hello });
    }

    pub fn heard(&mut self, who: u64, conn: u32) {
        self.tell(who, Input::Heard { conn: ConnId(conn) });
    }

    pub fn declare(&mut self, who: u64, conn: u32, declaration: Option<Declaration>) {
        self.tell(who, Input::Declare { conn: ConnId(conn), declaration });
    }

    pub fn app(&mut self, who: u64, conn: u32, state: AppState) {
        self.tell(who, Input::App { conn: ConnId(conn), state });
    }

    pub fn close(&mut self, who: u64, conn: u32) {
        self.tell(who, Input::Closed { conn: ConnId(conn), how: Goodbye::Clean });
    }

    pub fn drop(&mut self, who: u64, conn: u32) {
        self.tell(who, Input::Closed { conn: ConnId(conn), how: Goodbye::Dropped });
    }

    pub fn tick(&mut self) {
        let now = self.now();
        self.roster.tick(now, &mut self.effects);
    }

    /// Lets the seconds pass until this one since the start, with a tick in each.
    pub fn pass_to(&mut self, second: u64) {
        while self.at_ms < second * 1000 {
            self.at_ms = (self.at_ms / 1000 + 1) * 1000;
            self.tick();
        }
    }

    pub fn pass(&mut self, seconds: u64) {
        self.pass_to(self.at_ms / 1000 + seconds);
    }

    /// Lets seconds pass in which these connections are heard.
    pub fn pass_alive(&mut self, seconds: u64, alive: &[(u64, u32)]) {
        for _ in 0..seconds {
            self.pass(1);
            for (who, conn) in alive {
                self.heard(*who, *conn);
            }
        }
    }

    pub fn public(&self, who: u64) -> View {
        self.roster.public_view(user(who))
    }

    pub fn own(&self, who: u64) -> View {
        self.roster.own_view(user(who))
    }

    /// The status that others see.
    pub fn status(&self, who: u64) -> Status {
        self.public(who).status
    }

    pub fn take(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// What came out, but for the regular pings and what is to be stored.
    pub fn news(&mut self) -> Vec<Effect> {
        let mut effects = self.take();
        effects.retain(|effect| !matches!(effect, Effect::Ping(_) | Effect::Remember { .. }));
        effects
    }

    pub fn probes(&mut self) -> usize {
        self.take().iter().filter(|effect| matches!(effect, Effect::Probe(_))).count()
    }

    pub fn unix(&self) -> UnixTime {
        self.now().seconds()
    }
}

/// The second so long after the start.
pub fn second(after: u32) -> Option<UnixTime> {
    Some(UnixTime(START_S + after))
}

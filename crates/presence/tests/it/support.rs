//! A presence table with a clock that the test controls.

pub mod actions;
pub mod runner;

use domain::{UnixTime, UserId};
use presence::{
    AppState, CloseKind, ConnId, Declaration, Declared, DeviceId, Effect, Hello, Input, Platform, Policy,
    PresenceTable, Refused, Status, View, WallTime,
};

/// When every test begins, in seconds.
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

pub struct Fixture {
    pub table: PresenceTable,
    /// Milliseconds since the start.
    pub at_ms: u64,
    /// Effects that were not taken yet.
    pub effects: Vec<Effect>,
}

impl Fixture {
    pub fn new() -> Fixture {
        Fixture::with(Policy::default())
    }

    pub fn with(policy: Policy) -> Fixture {
        let table = PresenceTable::new(policy, WallTime(u64::from(START_S) * 1000), 7);
        Fixture { table, at_ms: 0, effects: Vec::new() }
    }

    pub fn now(&self) -> WallTime {
        WallTime(u64::from(START_S) * 1000 + self.at_ms)
    }

    pub fn try_input(&mut self, id: u64, input: Input) -> Result<(), Refused> {
        self.table.handle(self.now(), user(id), input, &mut self.effects)
    }

    pub fn input(&mut self, id: u64, input: Input) {
        self.try_input(id, input).unwrap();
    }

    pub fn connect(&mut self, id: u64, conn: u32, hello: Hello) {
        self.input(id, Input::Connected { conn: ConnId(conn), hello });
    }

    pub fn heard(&mut self, id: u64, conn: u32) {
        self.input(id, Input::Message { conn: ConnId(conn) });
    }

    pub fn declare(&mut self, id: u64, conn: u32, declaration: Option<Declaration>) {
        self.input(id, Input::Declare { conn: ConnId(conn), declaration });
    }

    pub fn app(&mut self, id: u64, conn: u32, state: AppState) {
        self.input(id, Input::App { conn: ConnId(conn), state });
    }

    pub fn close(&mut self, id: u64, conn: u32) {
        self.input(id, Input::Closed { conn: ConnId(conn), how: CloseKind::Clean });
    }

    pub fn drop(&mut self, id: u64, conn: u32) {
        self.input(id, Input::Closed { conn: ConnId(conn), how: CloseKind::Dropped });
    }

    pub fn tick(&mut self) {
        let now = self.now();
        self.table.tick(now, &mut self.effects);
    }

    /// Advances to this second since the start, with a tick in each second.
    pub fn pass_to(&mut self, second: u64) {
        while self.at_ms < second * 1000 {
            self.at_ms = (self.at_ms / 1000 + 1) * 1000;
            self.tick();
        }
    }

    pub fn pass(&mut self, seconds: u64) {
        self.pass_to(self.at_ms / 1000 + seconds);
    }

    /// Advances by seconds in which these connections send messages.
    pub fn pass_alive(&mut self, seconds: u64, alive: &[(u64, u32)]) {
        for _ in 0..seconds {
            self.pass(1);
            for (id, conn) in alive {
                self.heard(*id, *conn);
            }
        }
    }

    pub fn public(&self, id: u64) -> View {
        self.table.public_view(user(id))
    }

    pub fn own(&self, id: u64) -> View {
        self.table.own_view(user(id))
    }

    /// The status that other users see.
    pub fn status(&self, id: u64) -> Status {
        self.public(id).status
    }

    pub fn take(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Effects without pings and stores.
    pub fn changes(&mut self) -> Vec<Effect> {
        let mut effects = self.take();
        effects.retain(|effect| !matches!(effect, Effect::Ping(_) | Effect::Store { .. }));
        effects
    }

    pub fn probes(&mut self) -> usize {
        self.take().iter().filter(|effect| matches!(effect, Effect::Probe(_))).count()
    }

    pub fn unix(&self) -> UnixTime {
        self.now().seconds()
    }
}

/// So many seconds after the start.
pub fn second(after: u32) -> Option<UnixTime> {
    Some(UnixTime(START_S + after))
}

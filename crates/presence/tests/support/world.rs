//! A roster, the connections that are open, and what a history does to them.

use domain::{Seconds, UnixTime};
use presence::{
    ConnId, Declaration, Effect, Elsewhere, Goodbye, Hello, Input, LastKnown, Moment, PartDevice, Platform,
    Roster,
};

use super::actions::{Action, PERSONS, Said, Told, hasty};
use super::{START_S, device, hello, user};

pub struct World {
    pub roster: Roster,
    pub now_ms: u64,
    /// Connections that the roster has not been told the end of.
    pub open: Vec<(u64, ConnId)>,
    /// What came out of the last action.
    pub effects: Vec<Effect>,
    next_conn: u32,
}

impl World {
    pub fn new() -> World {
        let now_ms = u64::from(START_S) * 1000 + 321;
        let roster = Roster::new(hasty(), Moment(now_ms), 7);
        World { roster, now_ms, open: Vec::new(), effects: Vec::new(), next_conn: 0 }
    }

    pub fn unix(&self) -> UnixTime {
        Moment(self.now_ms).seconds()
    }

    /// What the action says to the roster, if it is about a person.
    pub fn input(&mut self, action: &Action) -> Option<(u64, Input)> {
        let picked = |pick: &usize| self.open.get(pick % self.open.len().max(1)).copied();
        match action {
            Action::Pass { .. } | Action::Leap { .. } | Action::StepBack { .. } => None,
            Action::EveryoneHeard | Action::Watch { .. } => None,
            Action::Elsewhere { .. } | Action::Lose { .. } => None,
            Action::Connect { who, device, said } => {
                self.next_conn += 1;
                Some((
                    *who,
                    Input::Connected { conn: ConnId(self.next_conn), hello: greeting(*device, said) },
                ))
            }
            Action::Heartbeat { who, device, said } => {
                Some((*who, Input::Heartbeat { hello: greeting(*device, said) }))
            }
            Action::Goodbye { who, device } => Some((*who, Input::Goodbye { device: name(*device) })),
            Action::SignOut { who, device } => Some((*who, Input::SignOut { device: name(*device) })),
            Action::Traffic { who, seeding } => {
                Some((*who, Input::Traffic { seeding: *seeding, leeching: 0 }))
            }
            Action::Heard { pick } => picked(pick).map(|(who, conn)| (who, Input::Heard { conn })),
            Action::Answered { pick } => picked(pick).map(|(who, conn)| (who, Input::ProbeAnswered { conn })),
            Action::Failed { pick } => picked(pick).map(|(who, conn)| (who, Input::ProbeFailed { conn })),
            Action::App { pick, state } => {
                picked(pick).map(|(who, conn)| (who, Input::App { conn, state: *state }))
            }
            Action::Close { pick, dropped } => {
                let how = if *dropped { Goodbye::Dropped } else { Goodbye::Clean };
                picked(pick).map(|(who, conn)| (who, Input::Closed { conn, how }))
            }
            Action::Declare { pick, status, text, for_s } => picked(pick).map(|(who, conn)| {
                let until = for_s.map(|length| self.unix() + Seconds(length));
                let text = text.then(|| "text".into());
                let declaration = status.map(|status| Declaration { status, text, until });
                (who, Input::Declare { conn, declaration })
            }),
        }
    }

    /// Tells the roster; whether it was accepted. Keeps the list of open connections.
    pub fn tell(&mut self, who: u64, input: Input) -> bool {
        let accepted =
            self.roster.handle(Moment(self.now_ms), user(who), input.clone(), &mut self.effects).is_ok();
        match input {
            Input::Connected { conn, .. } if accepted => self.open.push((who, conn)),
            Input::Closed { conn, .. } => self.open.retain(|(_, open)| *open != conn),
            _ => {}
        }
        self.forget_closed();
        accepted
    }

    /// What the roster has closed is not open any more.
    fn forget_closed(&mut self) {
        for effect in &self.effects {
            if let Effect::Close { conn, .. } = effect {
                self.open.retain(|(_, open)| open != conn);
            }
        }
    }

    pub fn tick(&mut self) {
        self.roster.tick(Moment(self.now_ms), &mut self.effects);
        self.forget_closed();
    }

    /// What is told from elsewhere, as the roster is given it.
    pub fn elsewhere(&self, who: u64, told: &Told) -> Elsewhere {
        let device = |(number, app, online, said): &(u8, _, bool, _)| PartDevice {
            id: name(*number),
            platform: Platform::Web,
            app: *app,
            online: *online,
            said: *said,
        };
        Elsewhere {
            devices: told.devices.iter().map(device).collect(),
            last_sign: (!told.devices.is_empty()).then(|| self.unix()),
            pending_until: told.pending_ms.map(|ms| Moment(self.now_ms + ms)),
            declaration: told.declared.map(|status| Declaration { status, text: None, until: None }),
            hidden_since: told.hidden.then(|| self.unix()),
            public_version: told.versions.0,
            own_version: told.versions.1,
            ..Elsewhere::nothing(user(who))
        }
    }

    pub fn hear(&mut self, elsewhere: Elsewhere) {
        self.roster.hear_elsewhere(Moment(self.now_ms), elsewhere, &mut self.effects);
    }

    pub fn lose(&mut self, who: u64) {
        self.roster.lose_elsewhere(Moment(self.now_ms), user(who), &mut self.effects);
    }

    pub fn watch(&mut self, who: u64, on: bool) {
        if on {
            self.roster.know(Moment(self.now_ms), user(who), LastKnown::default());
        } else {
            self.roster.forget(user(who));
        }
    }
}

pub fn everyone() -> impl Iterator<Item = u64> {
    1..=PERSONS
}

fn name(number: u8) -> presence::DeviceId {
    device(["desk", "lap", "phone"][usize::from(number)])
}

fn greeting(number: u8, said: &Said) -> Hello {
    Hello { app: said.app, declared: said.declared, ..hello(name(number).as_str()) }
}

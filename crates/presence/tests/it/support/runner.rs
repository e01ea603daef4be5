//! A presence table, its open connections, and the actions of a history.

use domain::{Seconds, UnixTime};
use presence::{
    CloseKind, ConnId, Declaration, Effect, Hello, Input, LastKnown, NodeDevice, Platform, PresenceTable,
    RemoteSessions, WallTime,
};

use super::actions::{Action, Declares, Report, USERS, hasty};
use super::{START_S, device, hello, user};

pub struct Runner {
    pub table: PresenceTable,
    pub now_ms: u64,
    /// Connections whose end was not passed to the table.
    pub open: Vec<(u64, ConnId)>,
    /// Effects of the last action.
    pub effects: Vec<Effect>,
    next_conn: u32,
}

impl Runner {
    pub fn new() -> Runner {
        let now_ms = u64::from(START_S) * 1000 + 321;
        let table = PresenceTable::new(hasty(), WallTime(now_ms), 7);
        Runner { table, now_ms, open: Vec::new(), effects: Vec::new(), next_conn: 0 }
    }

    pub fn unix(&self) -> UnixTime {
        WallTime(self.now_ms).seconds()
    }

    /// The input of the action, if it has one.
    pub fn input(&mut self, action: &Action) -> Option<(u64, Input)> {
        let picked = |pick: &usize| self.open.get(pick % self.open.len().max(1)).copied();
        match action {
            Action::Pass { .. } | Action::Leap { .. } | Action::StepBack { .. } => None,
            Action::EveryoneHeard | Action::Watch { .. } => None,
            Action::RemoteSessions { .. } | Action::Lose { .. } => None,
            Action::Connect { id, device, said } => {
                self.next_conn += 1;
                Some((*id, Input::Connected { conn: ConnId(self.next_conn), hello: greeting(*device, said) }))
            }
            Action::Heartbeat { id, device, said } => {
                Some((*id, Input::Heartbeat { hello: greeting(*device, said) }))
            }
            Action::Goodbye { id, device } => Some((*id, Input::Goodbye { device: name(*device) })),
            Action::SignOut { id, device } => Some((*id, Input::SignOut { device: name(*device) })),
            Action::Traffic { id, seeding } => {
                Some((*id, Input::TorrentCounts { seeding: *seeding, leeching: 0 }))
            }
            Action::Heard { pick } => picked(pick).map(|(id, conn)| (id, Input::Message { conn })),
            Action::Answered { pick } => picked(pick).map(|(id, conn)| (id, Input::ProbeAnswered { conn })),
            Action::Failed { pick } => picked(pick).map(|(id, conn)| (id, Input::ProbeFailed { conn })),
            Action::App { pick, state } => {
                picked(pick).map(|(id, conn)| (id, Input::App { conn, state: *state }))
            }
            Action::Close { pick, dropped } => {
                let how = if *dropped { CloseKind::Dropped } else { CloseKind::Clean };
                picked(pick).map(|(id, conn)| (id, Input::Closed { conn, how }))
            }
            Action::Declare { pick, status, text, for_s } => picked(pick).map(|(id, conn)| {
                let until = for_s.map(|length| self.unix() + Seconds(length));
                let text = text.then(|| "text".into());
                let declaration = status.map(|status| Declaration { status, text, until });
                (id, Input::Declare { conn, declaration })
            }),
        }
    }

    /// Returns whether the input was accepted. Maintains the list of open connections.
    pub fn tell(&mut self, id: u64, input: Input) -> bool {
        let accepted =
            self.table.handle(WallTime(self.now_ms), user(id), input.clone(), &mut self.effects).is_ok();
        match input {
            Input::Connected { conn, .. } if accepted => self.open.push((id, conn)),
            Input::Closed { conn, .. } => self.open.retain(|(_, open)| *open != conn),
            _ => {}
        }
        self.forget_closed();
        accepted
    }

    /// Removes connections that the table has closed.
    fn forget_closed(&mut self) {
        for effect in &self.effects {
            if let Effect::Close { conn, .. } = effect {
                self.open.retain(|(_, open)| open != conn);
            }
        }
    }

    pub fn tick(&mut self) {
        self.table.tick(WallTime(self.now_ms), &mut self.effects);
        self.forget_closed();
    }

    /// The report as the table receives it.
    pub fn remote(&self, id: u64, report: &Report) -> RemoteSessions {
        let device = |(number, app, online, declared): &(u8, _, bool, _)| NodeDevice {
            id: name(*number),
            platform: Platform::Web,
            app: *app,
            online: *online,
            declared: *declared,
        };
        RemoteSessions {
            devices: report.devices.iter().map(device).collect(),
            last_activity: (!report.devices.is_empty()).then(|| self.unix()),
            pending_until: report.pending_ms.map(|ms| WallTime(self.now_ms + ms)),
            declaration: report.declared.map(|status| Declaration { status, text: None, until: None }),
            hidden_since: report.hidden.then(|| self.unix()),
            public_version: report.versions.0,
            own_version: report.versions.1,
            ..RemoteSessions::none(user(id))
        }
    }

    pub fn hear(&mut self, remote: RemoteSessions) {
        self.table.set_remote(WallTime(self.now_ms), remote, &mut self.effects);
    }

    pub fn lose(&mut self, id: u64) {
        self.table.expire_remote(WallTime(self.now_ms), user(id), &mut self.effects);
    }

    pub fn watch(&mut self, id: u64, on: bool) {
        if on {
            self.table.watch(WallTime(self.now_ms), user(id), LastKnown::default());
        } else {
            self.table.unwatch(user(id));
        }
    }
}

pub fn everyone() -> impl Iterator<Item = u64> {
    1..=USERS
}

fn name(number: u8) -> presence::DeviceId {
    device(["desk", "lap", "phone"][usize::from(number)])
}

fn greeting(number: u8, said: &Declares) -> Hello {
    Hello { app: said.app, declared: said.declared, ..hello(name(number).as_str()) }
}

//! The presence table against a naive model that stores plain facts and computes everything again each second.

use domain::UnixTime;
use presence::{
    AppState, CloseKind, ConnId, Declaration, Declared, DeviceId, DeviceView, Hello, Input, NodeDevice,
    Platform, RemoteSessions, Status, StoredPresence, View, WallTime,
};

use crate::support::actions::{Action, check, hasty, history, shared_history};
use crate::support::runner::{Runner, everyone};
use crate::support::user;

#[derive(Clone, Debug)]
struct Session {
    conn: Option<ConnId>,
    hello: Hello,
    heard_ms: u64,
    sign_ms: u64,
    away: bool,
    /// Ended, and only shown.
    ghost: bool,
}

impl Session {
    /// When it becomes away and when it ends, in whole seconds.
    fn deadlines_s(&self) -> (u64, u64) {
        let policy = hasty();
        let ms = |seconds: u32| u64::from(seconds) * 1000;
        let (heartbeat, missed) = (policy.heartbeat.0, policy.missed_max);
        let (away_s, gone) = match (self.hello.app, self.conn) {
            (AppState::Foreground, Some(_)) => {
                // Probed in the first second after it is overdue, and then given its time.
                let asked_s = (self.heard_ms + ms(heartbeat)).div_ceil(1000);
                (asked_s + u64::from(policy.probe.0), heartbeat * missed)
            }
            (AppState::Foreground, None) => {
                ((self.heard_ms + ms(2 * heartbeat)).div_ceil(1000), heartbeat * missed)
            }
            _ => ((self.heard_ms + ms(policy.background_away.0)).div_ceil(1000), policy.background_gone.0),
        };
        (away_s, (self.sign_ms + ms(gone)) / 1000)
    }

    fn is_online(&self) -> bool {
        !self.away && self.hello.app != AppState::Inactive
    }
}

#[derive(Default)]
struct UserPresence {
    sessions: Vec<Session>,
    /// Remote devices, and their last activity.
    remote: Vec<NodeDevice>,
    afar_sign_ms: u64,
    declaration: Option<Declaration>,
    seeding: u32,
    last_seen: Option<UnixTime>,
    /// The latest activity of ended sessions.
    last_alive: u64,
    level: u32,
    up_since_s: u64,
    left_at_s: Option<u64>,
    dropped: bool,
    grace_until_s: Option<u64>,
    pending_until_s: Option<u64>,
    pending_hidden: bool,
    /// Several sessions ended in the same second. Which one was last decides whether it was visible.
    went_together: bool,
}

impl UserPresence {
    fn own(&self) -> Status {
        if self.sessions.is_empty() && self.remote.is_empty() {
            return if self.pending_until_s.is_some() { Status::Pending } else { Status::Offline };
        }
        let is_online =
            self.sessions.iter().any(Session::is_online) || self.remote.iter().any(|it| it.online);
        let automatic = if is_online { Status::Online } else { Status::Away };
        let says = |declared| {
            self.sessions.iter().any(|session| session.hello.declared == Some(declared))
                || self.remote.iter().any(|device| device.declared == Some(declared))
        };
        let online_and_says_so = || {
            self.sessions.iter().any(|it| it.is_online() && it.hello.declared == Some(Declared::Online))
                || self.remote.iter().any(|it| it.online && it.declared == Some(Declared::Online))
        };
        match &self.declaration {
            Some(Declaration { status: Declared::Invisible, .. }) => Status::Invisible,
            Some(Declaration { status: Declared::Busy, .. }) => Status::Busy,
            Some(Declaration { status: Declared::Away, .. }) => Status::Away,
            Some(Declaration { status: Declared::Online, .. }) => automatic,
            None if says(Declared::Invisible) => Status::Invisible,
            None if says(Declared::Busy) => Status::Busy,
            None if online_and_says_so() => Status::Online,
            None if says(Declared::Away) => Status::Away,
            None => automatic,
        }
    }

    fn public(&self) -> Status {
        match self.own() {
            Status::Invisible => Status::Offline,
            Status::Pending if self.pending_hidden => Status::Offline,
            own => own,
        }
    }

    fn devices(&self) -> Vec<DeviceView> {
        let mut ids: Vec<DeviceId> = self.sessions.iter().map(|it| it.hello.device.clone()).collect();
        ids.extend(self.remote.iter().map(|it| it.id.clone()));
        ids.sort();
        ids.dedup();
        let view = |id: DeviceId| {
            let of_it = || self.sessions.iter().filter(|session| session.hello.device == id);
            let remote = || self.remote.iter().filter(|device| device.id == id);
            let is =
                |app: &AppState| of_it().any(|it| it.hello.app == *app) || remote().any(|it| it.app == *app);
            let app = AppState::ALL.into_iter().find(is).unwrap();
            let is_online = of_it().any(Session::is_online) || remote().any(|it| it.online);
            let status = if is_online { Status::Online } else { Status::Away };
            let platform = of_it().next_back().map_or(Platform::Web, |it| it.hello.platform);
            DeviceView { id: id.clone(), platform, app, status }
        };
        ids.into_iter().map(view).collect()
    }

    /// Acts, and then computes what others know of the last activity.
    fn change(&mut self, now_ms: u64, act: impl FnOnce(&mut UserPresence)) {
        let (own, public) = (self.own(), self.public());
        act(self);
        if public != Status::Offline && self.public() == Status::Offline && own != Status::Pending {
            let at_ms = if self.own() == Status::Invisible { now_ms } else { self.last_alive };
            self.last_seen = Some(WallTime(at_ms).seconds());
        }
    }

    fn come(&mut self, now_ms: u64, conn: Option<ConnId>, hello: Hello) {
        let now_s = now_ms / 1000;
        self.sessions.retain(|session| !session.ghost);
        self.grace_until_s = None;
        if self.sessions.is_empty() {
            let forget = u64::from(hasty().flap_forget.0);
            match self.left_at_s {
                Some(left) if now_s - left <= forget => {
                    // Two, four and six seconds: levels end where the grace period does.
                    if self.dropped && conn.is_some() && self.remote.is_empty() {
                        self.level = (self.level + 1).min(4);
                    }
                }
                _ => self.level = 0,
            }
            self.dropped = false;
            self.up_since_s = now_s;
            self.pending_until_s = None;
        }
        self.sessions.push(Session {
            conn,
            hello,
            heard_ms: now_ms,
            sign_ms: now_ms,
            away: false,
            ghost: false,
        });
    }

    fn go(&mut self, now_ms: u64, index: usize, clean: bool, dropped: bool) {
        let now_s = now_ms / 1000;
        let alive_ms = if clean { now_ms } else { self.sessions[index].sign_ms };
        self.last_alive = self.last_alive.max(alive_ms);
        if self.sessions.len() > 1 {
            self.sessions.remove(index);
            return;
        }
        self.level =
            self.level.saturating_sub(((now_s - self.up_since_s) / u64::from(hasty().flap_forget.0)) as u32);
        self.left_at_s = Some(now_s);
        self.dropped = dropped;
        let grace = [0, 0, 2, 4, 6][self.level as usize];
        if dropped && grace > 0 && self.remote.is_empty() {
            self.sessions[index].ghost = true;
            self.sessions[index].conn = None;
            self.grace_until_s = Some((now_ms + grace * 1000).div_ceil(1000));
        } else {
            self.sessions.remove(index);
        }
    }

    fn take(&mut self, now_ms: u64, input: Input) {
        let by_conn = |person: &UserPresence, conn| {
            person.sessions.iter().position(|session| session.conn == Some(conn))
        };
        let by_heartbeats = |person: &UserPresence, device: &DeviceId| {
            let of_it = |it: &Session| it.conn.is_none() && !it.ghost && it.hello.device == *device;
            person.sessions.iter().position(of_it)
        };
        let hear = |session: &mut Session| {
            (session.heard_ms, session.sign_ms, session.away) = (now_ms, now_ms, false);
        };
        match input {
            Input::Connected { conn, hello } => self.come(now_ms, Some(conn), hello),
            Input::Heartbeat { hello } => match by_heartbeats(self, &hello.device) {
                Some(index) => {
                    hear(&mut self.sessions[index]);
                    self.sessions[index].hello = hello;
                }
                None => self.come(now_ms, None, hello),
            },
            Input::Goodbye { device } => {
                if let Some(index) = by_heartbeats(self, &device) {
                    self.go(now_ms, index, true, false);
                }
            }
            Input::SignOut { device } => {
                while let Some(index) = self.sessions.iter().position(|it| it.hello.device == device) {
                    if self.sessions[index].ghost {
                        self.sessions.remove(index);
                        self.grace_until_s = None;
                    } else {
                        self.go(now_ms, index, false, false);
                    }
                }
            }
            Input::TorrentCounts { seeding, .. } => self.seeding = seeding,
            Input::Message { conn } => {
                let index = by_conn(self, conn).unwrap();
                hear(&mut self.sessions[index]);
            }
            Input::ProbeAnswered { conn } => {
                let index = by_conn(self, conn).unwrap();
                self.sessions[index].sign_ms = now_ms;
            }
            Input::ProbeFailed { conn } => {
                let index = by_conn(self, conn).unwrap();
                let session = &self.sessions[index];
                let patience = match session.hello.app {
                    AppState::Foreground => hasty().heartbeat,
                    _ => hasty().background_away,
                };
                if now_ms >= session.heard_ms + u64::from(patience.0) * 1000 {
                    self.go(now_ms, index, false, false);
                }
            }
            Input::App { conn, state } => {
                let index = by_conn(self, conn).unwrap();
                hear(&mut self.sessions[index]);
                self.sessions[index].hello.app = state;
            }
            Input::Declare { conn, declaration } => {
                let index = by_conn(self, conn).unwrap();
                hear(&mut self.sessions[index]);
                self.sessions[index].hello.declared = None;
                let now = WallTime(now_ms).seconds();
                self.declaration =
                    declaration.filter(|declared| declared.until.is_none_or(|until| until > now));
            }
            Input::Closed { conn, how } => {
                let index = by_conn(self, conn).unwrap();
                self.go(now_ms, index, how == CloseKind::Clean, how == CloseKind::Dropped);
            }
        }
    }

    fn hear(&mut self, now_ms: u64, remote: &RemoteSessions) {
        self.forget_elsewhere();
        self.remote.clone_from(&remote.devices);
        self.afar_sign_ms = now_ms;
        if !self.remote.is_empty() {
            for ghost in self.sessions.extract_if(.., |session| session.ghost) {
                self.last_alive = self.last_alive.max(ghost.sign_ms);
            }
            self.grace_until_s = None;
        }
        self.declaration.clone_from(&remote.declaration);
        let is_offline = self.sessions.is_empty() && self.remote.is_empty();
        let until = remote.pending_until.filter(|_| is_offline);
        self.pending_until_s = until.map(|until| until.0.div_ceil(1000));
        self.pending_hidden = remote.hidden_since.is_some();
    }

    fn lose(&mut self, now_ms: u64) {
        if self.remote.is_empty() {
            return;
        }
        if self.sessions.is_empty() {
            let hidden = self.own() == Status::Invisible;
            if !hidden {
                self.last_seen = self.last_seen.max(Some(WallTime(self.afar_sign_ms).seconds()));
            }
            self.pending_hidden = hidden;
            self.pending_until_s = Some((now_ms + u64::from(hasty().pending.0) * 1000).div_ceil(1000));
        }
        self.forget_elsewhere();
    }

    fn forget_elsewhere(&mut self) {
        if !self.remote.is_empty() {
            self.last_alive = self.last_alive.max(self.afar_sign_ms / 1000 * 1000);
            self.remote.clear();
        }
    }

    /// Computes everything again.
    fn second(&mut self, now_s: u64) {
        let now_ms = now_s * 1000;
        let going = self.sessions.iter().filter(|it| !it.ghost && now_s >= it.deadlines_s().1).count();
        self.went_together = going > 1;
        while let Some(index) = self.sessions.iter().position(|it| !it.ghost && now_s >= it.deadlines_s().1) {
            self.change(now_ms, |person| person.go(now_ms, index, false, false));
        }
        self.change(now_ms, |person| {
            for session in person.sessions.iter_mut().filter(|session| !session.ghost) {
                session.away |= now_s >= session.deadlines_s().0;
            }
        });
        if self
            .declaration
            .as_ref()
            .is_some_and(|declared| declared.until.is_some_and(|it| u64::from(it.0) <= now_s))
        {
            self.change(now_ms, |person| person.declaration = None);
        }
        if self.grace_until_s.is_some_and(|until| until <= now_s) {
            self.change(now_ms, |person| {
                person.sessions.clear();
                person.grace_until_s = None;
            });
        }
        if self.pending_until_s.is_some_and(|until| until <= now_s) {
            self.change(now_ms, |person| person.pending_until_s = None);
            self.left_at_s = Some(now_s);
        }
    }

    fn own_view(&self, id: u64) -> View {
        View {
            status: self.own(),
            text: self.declaration.as_ref().and_then(|declared| declared.text.clone()),
            until: self.declaration.as_ref().and_then(|declared| declared.until),
            devices: self.devices(),
            seeding: self.seeding,
            ..View::unknown(user(id))
        }
    }

    fn public_view(&self, id: u64) -> View {
        match self.public() {
            Status::Offline => View { last_seen: self.last_seen, ..View::unknown(user(id)) },
            _ => {
                let here = self.sessions.iter().map(|session| session.sign_ms);
                let remote = (!self.remote.is_empty()).then_some(self.afar_sign_ms);
                let is_present = !self.sessions.is_empty() || !self.remote.is_empty();
                let live = here.chain(remote).chain([self.last_alive]).max();
                let alive = live.filter(|_| is_present).map(|at_ms| WallTime(at_ms).seconds());
                View { last_seen: alive.or(self.last_seen), ..self.own_view(id) }
            }
        }
    }
}

struct Both {
    runner: Runner,
    /// By id, from 1 on.
    users: Vec<UserPresence>,
}

impl Both {
    fn new() -> Both {
        let mut both =
            Both { runner: Runner::new(), users: everyone().map(|_| UserPresence::default()).collect() };
        let now_s = both.runner.now_ms / 1000;
        // The last two were online before a restart; one of them was hidden.
        for (id, hidden) in [(2, true), (3, false)] {
            let last_seen = Some(UnixTime((now_s - 100) as u32));
            let stored = StoredPresence {
                user: user(id),
                online: true,
                declaration: None,
                last_seen,
                hidden_since: last_seen.filter(|_| hidden),
                public_version: 1,
                own_version: 1,
            };
            both.runner.table.restore(WallTime(both.runner.now_ms), stored);
            let person = &mut both.users[id as usize - 1];
            person.pending_until_s = Some((both.runner.now_ms + 15_000).div_ceil(1000));
            person.pending_hidden = hidden;
            person.left_at_s = Some(now_s);
            person.last_seen = last_seen;
        }
        // All users are watched, so none is removed.
        for id in everyone() {
            both.runner.watch(id, true);
        }
        both
    }

    fn tell(&mut self, id: u64, input: Input) {
        if self.runner.tell(id, input.clone()) {
            let now_ms = self.runner.now_ms;
            self.users[id as usize - 1].change(now_ms, |person| person.take(now_ms, input));
        }
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::Pass { ms } => self.pass(*ms),
            Action::EveryoneHeard => {
                for (id, conn) in self.runner.open.clone() {
                    self.tell(id, Input::Message { conn });
                }
            }
            Action::RemoteSessions { id, report } => {
                let remote = self.runner.remote(*id, report);
                self.users[*id as usize - 1].hear(self.runner.now_ms, &remote);
                self.runner.hear(remote);
            }
            Action::Lose { id } => {
                self.users[*id as usize - 1].lose(self.runner.now_ms);
                self.runner.lose(*id);
            }
            _ => {
                if let Some((id, input)) = self.runner.input(action) {
                    // How often a probe may fail depends on earlier ones; the state machine has its own test.
                    let person = &self.users[id as usize - 1];
                    let away = |conn| person.sessions.iter().any(|it| it.conn == Some(conn) && it.away);
                    if !matches!(input, Input::ProbeFailed { conn } if away(conn)) {
                        self.tell(id, input);
                    }
                }
            }
        }
        self.compare();
    }

    /// One tick in each second, at any time within it.
    fn pass(&mut self, ms: u64) {
        let end_ms = self.runner.now_ms + ms;
        while self.runner.now_ms / 1000 < end_ms / 1000 {
            let next_ms = (self.runner.now_ms / 1000 + 1) * 1000;
            self.runner.now_ms = end_ms.min(next_ms + (self.runner.now_ms * 7) % 1000);
            self.runner.tick();
            for person in &mut self.users {
                person.second(self.runner.now_ms / 1000);
            }
            self.compare();
        }
        self.runner.now_ms = end_ms;
    }

    fn compare(&mut self) {
        for id in everyone() {
            let person = &mut self.users[id as usize - 1];
            let public = View { version: 0, ..self.runner.table.public_view(user(id)) };
            if std::mem::take(&mut person.went_together) && public.status == Status::Offline {
                person.last_seen = public.last_seen;
            }
            assert_eq!(public, person.public_view(id), "what others see");
            let own = View { version: 0, last_seen: None, ..self.runner.table.own_view(user(id)) };
            assert_eq!(own, person.own_view(id), "what one's own devices see");
        }
        let table = &self.runner.table;
        let is_listed = |id: &u64| {
            self.users[*id as usize - 1].own() != Status::Offline && !table.is_remote_only(user(*id))
        };
        let listed: Vec<u64> = table.listed_after(None).map(|user| user.get()).collect();
        assert_eq!(listed, everyone().filter(is_listed).collect::<Vec<u64>>(), "online users, in order");
        self.runner.effects.clear();
    }
}

#[test]
fn the_table_agrees_with_a_naive_model() {
    check(800, history(), |actions| {
        let mut both = Both::new();
        for action in &actions {
            both.act(action);
        }
        both.pass(40_000);
    });
}

#[test]
fn the_table_agrees_with_a_naive_model_with_remote_sessions() {
    check(800, shared_history(), |actions| {
        let mut both = Both::new();
        for action in &actions {
            both.act(action);
        }
        both.pass(40_000);
    });
}

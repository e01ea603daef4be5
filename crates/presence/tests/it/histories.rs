//! Thousands of random histories against invariants, with clocks that leap and step back.

use std::collections::HashMap;

use presence::{
    CloseKind, Effect, Input, LastKnown, Status, StoredPresence, TableSize, UserCounts, View, WallTime,
};

use crate::support::actions::{Action, check, wild_history, wild_shared_history};
use crate::support::runner::{Runner, everyone};
use crate::support::user;

/// What is known of one user from outside.
#[derive(Default)]
struct Watcher {
    own: Option<View>,
    public: Option<View>,
    online: bool,
    /// Other gateways have reported the user: arrivals and departures are not emitted here.
    is_shared: bool,
    /// The last stored presence, as a database would have it.
    stored: Option<StoredPresence>,
}

/// A view without what changes by itself.
fn still(view: &View) -> View {
    let moves = view.status != Status::Offline;
    View { last_seen: view.last_seen.filter(|_| !moves), ..view.clone() }
}

fn without_version(view: &View) -> View {
    View { version: 0, last_seen: None, ..view.clone() }
}

struct Observed {
    runner: Runner,
    watchers: HashMap<u64, Watcher>,
}

impl Observed {
    fn new() -> Observed {
        Observed { runner: Runner::new(), watchers: everyone().map(|id| (id, Watcher::default())).collect() }
    }

    fn act(&mut self, action: &Action) {
        self.runner.effects.clear();
        match action {
            Action::Pass { ms } | Action::Leap { ms } => self.runner.now_ms += ms,
            Action::StepBack { ms } => self.runner.now_ms -= ms,
            Action::EveryoneHeard => {
                for (id, conn) in self.runner.open.clone() {
                    self.runner.tell(id, Input::Message { conn });
                }
            }
            Action::Watch { id, on } => {
                self.runner.watch(*id, *on);
                let watcher = self.watchers.get_mut(id).unwrap();
                // The cluster is not queried about users without watchers.
                if watcher.is_shared && !self.runner.table.has_local_session(user(*id)) {
                    (watcher.own, watcher.public, watcher.stored) = (None, None, None);
                }
            }
            Action::RemoteSessions { id, report } => {
                let remote = self.runner.remote(*id, report);
                self.watchers.get_mut(id).unwrap().is_shared = true;
                self.runner.hear(remote);
                self.only_views_have_changed();
            }
            Action::Lose { id } => {
                self.runner.lose(*id);
                self.only_views_have_changed();
            }
            _ => {
                if let Some((id, input)) = self.runner.input(action) {
                    self.preload(id);
                    self.runner.tell(id, input);
                }
            }
        }
        self.check();
        // Ticks happen in between.
        self.runner.effects.clear();
        self.runner.tick();
        self.check();
    }

    /// A user that connects is loaded from the database first.
    fn preload(&mut self, id: u64) {
        if let Some(stored) = &self.watchers[&id].stored {
            let last = LastKnown {
                last_seen: stored.last_seen,
                public_version: stored.public_version,
                own_version: stored.own_version,
                declaration: stored.declaration.clone(),
            };
            self.runner.table.preload(WallTime(self.runner.now_ms), user(id), last);
            let watcher = self.watchers.get_mut(&id).unwrap();
            // The database knows more of users that the cluster is no longer queried about.
            if watcher.is_shared && !self.runner.table.has_local_session(user(id)) {
                (watcher.own, watcher.public) = (None, None);
            }
        }
    }

    fn check(&mut self) {
        self.first_in_and_last_out_alternate();
        for id in everyone() {
            let effects: Vec<Effect> =
                self.runner.effects.iter().filter(|it| is_about(it, id)).cloned().collect();
            self.views_and_versions_agree(id, &effects);
            self.sessions_and_status_agree(id);
        }
        self.counts_match_a_recount();
    }

    fn only_views_have_changed(&self) {
        assert!(self.runner.effects.iter().all(|effect| matches!(effect, Effect::Changed { .. })));
    }

    fn first_in_and_last_out_alternate(&mut self) {
        for effect in &self.runner.effects {
            let (id, comes) = match effect {
                Effect::Arrived { user, .. } => (user.get(), true),
                Effect::Left { user, .. } => (user.get(), false),
                _ => continue,
            };
            let watcher = self.watchers.get_mut(&id).unwrap();
            assert!(watcher.is_shared || watcher.online != comes, "{effect:?}");
            watcher.online = comes;
        }
    }

    fn views_and_versions_agree(&mut self, id: u64, effects: &[Effect]) {
        let (own, public) = (self.runner.table.own_view(user(id)), self.runner.table.public_view(user(id)));
        let watcher = self.watchers.get_mut(&id).unwrap();
        let report = |want_public: bool| {
            effects.iter().any(|effect| match effect {
                Effect::Changed { public, own, .. } => {
                    if want_public {
                        *public
                    } else {
                        *own
                    }
                }
                _ => false,
            })
        };
        let Some(stored) = self.runner.table.stored_presence(user(id)) else {
            // Removed: only offline users may be.
            if !watcher.is_shared {
                assert!(!watcher.online);
                assert!(watcher.public.as_ref().is_none_or(|view| view.status == Status::Offline));
            }
            watcher.online = false;
            (watcher.own, watcher.public) = (None, None);
            return;
        };
        for (seen, now, was_told) in
            [(&watcher.own, &own, report(false)), (&watcher.public, &public, report(true))]
        {
            let Some(seen) = seen else { continue };
            assert!(now.version >= seen.version, "{seen:?} to {now:?}");
            // Another gateway may have raised the version of a known state.
            let was_raised = watcher.is_shared && now.version > seen.version;
            assert!(was_raised || (now.version > seen.version) == was_told, "{seen:?} to {now:?}");
            if !was_told {
                let seen = View { version: now.version, ..seen.clone() };
                assert_eq!(still(&seen), still(now), "changed without an effect");
            }
        }
        if let (Some(seen), true) = (&watcher.own, own.status == Status::Invisible) {
            if seen.status == Status::Invisible
                && !effects.iter().any(|it| matches!(it, Effect::Transition { .. }))
            {
                let kept = watcher.public.as_ref().map(without_version);
                assert_eq!(Some(without_version(&public)), kept, "hiding gives something away");
                let is_same = Some(&public) == watcher.public.as_ref();
                assert!(watcher.is_shared || is_same, "hiding gives something away");
            }
            assert_eq!(without_version(&public), View::unknown(user(id)));
        }
        (watcher.own, watcher.public) = (Some(own), Some(public));
        if !effects.is_empty() {
            watcher.stored = Some(stored);
        }
    }

    fn sessions_and_status_agree(&self, id: u64) {
        let own = self.runner.table.own_view(user(id));
        let public = self.runner.table.public_view(user(id));
        let alive = self.runner.table.sessions(user(id)).count();
        if alive > 0 {
            assert!(!matches!(own.status, Status::Offline | Status::Pending), "alive and {:?}", own.status);
        }
        assert_ne!(public.status, Status::Invisible);
        if self.watchers[&id].is_shared {
            let hides = own.status == Status::Pending && public.status == Status::Offline;
            assert!(hides || public.status == own.status.to_others());
        } else {
            assert_eq!(public.status, own.status.to_others());
            assert_eq!(self.watchers[&id].online, own.status != Status::Offline);
        }
        let open = self.runner.open.iter().filter(|(owner, _)| *owner == id).count();
        let connected = self.runner.table.sessions(user(id)).filter(|session| session.conn.is_some()).count();
        assert_eq!(open, connected);
    }

    fn counts_match_a_recount(&self) {
        let table = &self.runner.table;
        let mut counted = UserCounts::default();
        for id in everyone().map(user).filter(|id| table.stored_presence(*id).is_some()) {
            let is_remote_only = self.watchers[&id.get()].is_shared && !table.has_local_session(id);
            let status = if is_remote_only { Status::Offline } else { table.own_view(id).status };
            counted.users[status as usize] += 1;
            for session in table.sessions(id) {
                counted.connections += u32::from(session.conn.is_some());
                counted.without_connection += u32::from(session.conn.is_none());
            }
        }
        assert_eq!(table.counts(), counted);
    }

    /// All users disconnect, and time passes.
    fn end(&mut self) {
        for id in everyone() {
            self.runner.watch(id, false);
        }
        for (id, conn) in self.runner.open.clone() {
            self.runner.tell(id, Input::Closed { conn, how: CloseKind::Dropped });
        }
        for _ in 0..200 {
            self.runner.now_ms += 1000;
            self.runner.tick();
        }
        let unknown_inputs = self.runner.table.size().unknown_inputs;
        assert_eq!(self.runner.table.size(), TableSize { unknown_inputs, ..TableSize::default() });
        assert_eq!(self.runner.table.counts(), UserCounts::default());
    }
}

fn is_about(effect: &Effect, id: u64) -> bool {
    match effect {
        Effect::Changed { user, .. }
        | Effect::Arrived { user, .. }
        | Effect::Left { user, .. }
        | Effect::Transition { user, .. }
        | Effect::Store { user } => user.get() == id,
        Effect::Ping(_) | Effect::Probe(_) | Effect::Close { .. } => false,
    }
}

#[test]
fn invariants_hold_in_every_history() {
    check(1000, wild_history(), |actions| {
        let mut observed = Observed::new();
        for action in &actions {
            observed.act(action);
        }
        observed.end();
    });
}

#[test]
fn invariants_hold_with_remote_sessions() {
    check(1000, wild_shared_history(), |actions| {
        let mut observed = Observed::new();
        for action in &actions {
            observed.act(action);
        }
        observed.end();
    });
}

/// A grace period is the only time that a user without a session is shown, and it ends.
#[test]
fn no_user_is_shown_without_a_session_for_longer_than_the_grace() {
    check(60, wild_history(), |actions| {
        let mut observed = Observed::new();
        let mut shown_for_s: HashMap<u64, u32> = HashMap::new();
        for action in &actions {
            observed.act(action);
            for _ in 0..3 {
                observed.runner.now_ms += 1000;
                observed.runner.effects.clear();
                observed.runner.tick();
                observed.check();
                for id in everyone() {
                    let status = observed.runner.table.own_view(user(id)).status;
                    let alive = observed.runner.table.sessions(user(id)).count() > 0;
                    let seconds = shown_for_s.entry(id).or_default();
                    *seconds = if alive || status == Status::Offline { 0 } else { *seconds + 1 };
                    assert!(*seconds <= 7, "{status:?} without a session for {seconds} s");
                }
            }
        }
    });
}

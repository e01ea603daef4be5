//! Thousands of random histories against what must always hold, with clocks that leap and step back.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::collections::HashMap;

use presence::{Effect, Goodbye, Input, LastKnown, Load, Moment, Remembered, Status, Tally, View};
use support::actions::{Action, check, wild_history, wild_shared_history};
use support::user;
use support::world::{World, everyone};

/// What is known of one person from outside.
#[derive(Default)]
struct Watcher {
    own: Option<View>,
    public: Option<View>,
    here: bool,
    /// Others were heard of: their comings and goings are not told here.
    is_shared: bool,
    /// The roster's last word, as a database would have it.
    stored: Option<Remembered>,
}

/// A view without what moves by itself.
fn still(view: &View) -> View {
    let moves = view.status != Status::Offline;
    View { last_seen: view.last_seen.filter(|_| !moves), ..view.clone() }
}

fn without_version(view: &View) -> View {
    View { version: 0, last_seen: None, ..view.clone() }
}

struct Observed {
    world: World,
    watchers: HashMap<u64, Watcher>,
}

impl Observed {
    fn new() -> Observed {
        Observed { world: World::new(), watchers: everyone().map(|who| (who, Watcher::default())).collect() }
    }

    fn act(&mut self, action: &Action) {
        self.world.effects.clear();
        match action {
            Action::Pass { ms } | Action::Leap { ms } => self.world.now_ms += ms,
            Action::StepBack { ms } => self.world.now_ms -= ms,
            Action::EveryoneHeard => {
                for (who, conn) in self.world.open.clone() {
                    self.world.tell(who, Input::Heard { conn });
                }
            }
            Action::Watch { who, on } => {
                self.world.watch(*who, *on);
                let watcher = self.watchers.get_mut(who).unwrap();
                // Others are not asked any more about who is not watched.
                if watcher.is_shared && !self.world.roster.has_part(user(*who)) {
                    (watcher.own, watcher.public, watcher.stored) = (None, None, None);
                }
            }
            Action::Elsewhere { who, told } => {
                let elsewhere = self.world.elsewhere(*who, told);
                self.watchers.get_mut(who).unwrap().is_shared = true;
                self.world.hear(elsewhere);
                self.only_views_have_changed();
            }
            Action::Lose { who } => {
                self.world.lose(*who);
                self.only_views_have_changed();
            }
            _ => {
                if let Some((who, input)) = self.world.input(action) {
                    self.recall(who);
                    self.world.tell(who, input);
                }
            }
        }
        self.check();
        // Ticks come in between.
        self.world.effects.clear();
        self.world.tick();
        self.check();
    }

    /// Who comes is looked up in the database first.
    fn recall(&mut self, who: u64) {
        if let Some(stored) = &self.watchers[&who].stored {
            let last = LastKnown {
                last_seen: stored.last_seen,
                public_version: stored.public_version,
                own_version: stored.own_version,
                declaration: stored.declaration.clone(),
            };
            self.world.roster.recall(Moment(self.world.now_ms), user(who), last);
            let watcher = self.watchers.get_mut(&who).unwrap();
            // Of whom others were asked once, and no more, the database knows more.
            if watcher.is_shared && !self.world.roster.has_part(user(who)) {
                (watcher.own, watcher.public) = (None, None);
            }
        }
    }

    fn check(&mut self) {
        self.first_in_and_last_out_alternate();
        for who in everyone() {
            let effects: Vec<Effect> =
                self.world.effects.iter().filter(|it| is_about(it, who)).cloned().collect();
            self.views_and_versions_agree(who, &effects);
            self.sessions_and_status_agree(who);
        }
        self.the_tally_is_what_one_would_count();
    }

    fn only_views_have_changed(&self) {
        assert!(self.world.effects.iter().all(|effect| matches!(effect, Effect::Changed { .. })));
    }

    fn first_in_and_last_out_alternate(&mut self) {
        for effect in &self.world.effects {
            let (who, comes) = match effect {
                Effect::Arrived { user, .. } => (user.get(), true),
                Effect::Left { user, .. } => (user.get(), false),
                _ => continue,
            };
            let watcher = self.watchers.get_mut(&who).unwrap();
            assert!(watcher.is_shared || watcher.here != comes, "{effect:?}");
            watcher.here = comes;
        }
    }

    fn views_and_versions_agree(&mut self, who: u64, effects: &[Effect]) {
        let (own, public) = (self.world.roster.own_view(user(who)), self.world.roster.public_view(user(who)));
        let watcher = self.watchers.get_mut(&who).unwrap();
        let told = |want_public: bool| {
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
        let Some(stored) = self.world.roster.remembered(user(who)) else {
            // Forgotten: only who is not here may be.
            if !watcher.is_shared {
                assert!(!watcher.here);
                assert!(watcher.public.as_ref().is_none_or(|view| view.status == Status::Offline));
            }
            watcher.here = false;
            (watcher.own, watcher.public) = (None, None);
            return;
        };
        for (seen, now, was_told) in
            [(&watcher.own, &own, told(false)), (&watcher.public, &public, told(true))]
        {
            let Some(seen) = seen else { continue };
            assert!(now.version >= seen.version, "{seen:?} to {now:?}");
            // A version may have been given elsewhere to what is known here already.
            let was_raised = watcher.is_shared && now.version > seen.version;
            assert!(was_raised || (now.version > seen.version) == was_told, "{seen:?} to {now:?}");
            if !was_told {
                let seen = View { version: now.version, ..seen.clone() };
                assert_eq!(still(&seen), still(now), "changed and nobody was told");
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
            assert_eq!(without_version(&public), View::unknown(user(who)));
        }
        (watcher.own, watcher.public) = (Some(own), Some(public));
        if !effects.is_empty() {
            watcher.stored = Some(stored);
        }
    }

    fn sessions_and_status_agree(&self, who: u64) {
        let own = self.world.roster.own_view(user(who));
        let public = self.world.roster.public_view(user(who));
        let alive = self.world.roster.sessions(user(who)).count();
        if alive > 0 {
            assert!(!matches!(own.status, Status::Offline | Status::Pending), "alive and {:?}", own.status);
        }
        assert_ne!(public.status, Status::Invisible);
        if self.watchers[&who].is_shared {
            let hides = own.status == Status::Pending && public.status == Status::Offline;
            assert!(hides || public.status == own.status.to_others());
        } else {
            assert_eq!(public.status, own.status.to_others());
            assert_eq!(self.watchers[&who].here, own.status != Status::Offline);
        }
        let open = self.world.open.iter().filter(|(owner, _)| *owner == who).count();
        let connected =
            self.world.roster.sessions(user(who)).filter(|session| session.conn.is_some()).count();
        assert_eq!(open, connected);
    }

    fn the_tally_is_what_one_would_count(&self) {
        let roster = &self.world.roster;
        let mut counted = Tally::default();
        for who in everyone().map(user).filter(|who| roster.remembered(*who).is_some()) {
            let is_others = self.watchers[&who.get()].is_shared && !roster.has_part(who);
            let status = if is_others { Status::Offline } else { roster.own_view(who).status };
            counted.persons[status as usize] += 1;
            for session in roster.sessions(who) {
                counted.connections += u32::from(session.conn.is_some());
                counted.without_connection += u32::from(session.conn.is_none());
            }
        }
        assert_eq!(roster.online(), counted);
    }

    /// Everybody goes, and time passes.
    fn end(&mut self) {
        for who in everyone() {
            self.world.watch(who, false);
        }
        for (who, conn) in self.world.open.clone() {
            self.world.tell(who, Input::Closed { conn, how: Goodbye::Dropped });
        }
        for _ in 0..200 {
            self.world.now_ms += 1000;
            self.world.tick();
        }
        let strays = self.world.roster.load().strays;
        assert_eq!(self.world.roster.load(), Load { strays, ..Load::default() });
        assert_eq!(self.world.roster.online(), Tally::default());
    }
}

fn is_about(effect: &Effect, who: u64) -> bool {
    match effect {
        Effect::Changed { user, .. }
        | Effect::Arrived { user, .. }
        | Effect::Left { user, .. }
        | Effect::Transition { user, .. }
        | Effect::Remember { user } => user.get() == who,
        Effect::Ping(_) | Effect::Probe(_) | Effect::Close { .. } => false,
    }
}

#[test]
fn what_must_always_hold_holds_in_every_history() {
    check(1000, wild_history(), |actions| {
        let mut observed = Observed::new();
        for action in &actions {
            observed.act(action);
        }
        observed.end();
    });
}

#[test]
fn what_must_always_hold_holds_for_people_who_are_elsewhere_too() {
    check(1000, wild_shared_history(), |actions| {
        let mut observed = Observed::new();
        for action in &actions {
            observed.act(action);
        }
        observed.end();
    });
}

/// A grace period is the only time that somebody without a session is shown, and it ends.
#[test]
fn nobody_is_shown_without_a_session_for_longer_than_the_grace() {
    check(60, wild_history(), |actions| {
        let mut observed = Observed::new();
        let mut shown_for_s: HashMap<u64, u32> = HashMap::new();
        for action in &actions {
            observed.act(action);
            for _ in 0..3 {
                observed.world.now_ms += 1000;
                observed.world.effects.clear();
                observed.world.tick();
                observed.check();
                for who in everyone() {
                    let status = observed.world.roster.own_view(user(who)).status;
                    let alive = observed.world.roster.sessions(user(who)).count() > 0;
                    let seconds = shown_for_s.entry(who).or_default();
                    *seconds = if alive || status == Status::Offline { 0 } else { *seconds + 1 };
                    assert!(*seconds <= 7, "{status:?} without a session for {seconds} s");
                }
            }
        }
    });
}

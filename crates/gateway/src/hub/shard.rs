//! A part of the people, behind one lock: carries out what `presence` decides.
//!
//! # Guarantees
//!
//! - Watchers' outboxes are filled under the lock, so what they hear of one person is in order.
//! - What the database does not know yet of somebody is never replaced by what it does know.
//!
//! # Deliberately absent
//!
//! A bound on people in memory: they are those who are here, and their friends and whom they track, both bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::UserId;
use hashbrown::HashMap;
use parking_lot::RwLock;
use people::{Occurrence, OccurrenceKind};
use presence::{
    Cause, CloseCause, ConnId, DeviceId, Effect, Input, LastKnown, Moment, Platform, Policy, Privacy,
    Refused, Remembered, Roster, Sight, Status,
};

use super::ConnRef;
use super::person::{Connection, Person, Shown};
use super::table::ConnTable;
use crate::between::Relay;
use crate::counters::GatewayCounters;
use crate::feed::{self, PublicText};
use crate::keeper::Keeper;
use crate::occurrences::{Happening, Occurrences};
use crate::outbox::{FeedUser, Outbox};
use crate::protocol::CloseCode;
use crate::rooms::RoomName;
use crate::sharing::{Book, Noted, Sharing};
use crate::traffic;

/// Whom a shard tells what it decides.
pub(crate) struct Outside {
    pub(crate) keeper: Keeper,
    pub(crate) counters: Arc<GatewayCounters>,
    pub(crate) table: RwLock<ConnTable>,
    pub(crate) traffic: traffic::Waiting,
    /// Other gateways; none for who is alone.
    pub(crate) relay: Option<Arc<Relay>>,
    /// Numbers for [`Shown`].
    pub(crate) epochs: AtomicU64,
    /// Days for which changes of status are kept; 0 for none.
    pub(crate) history_days: AtomicU64,
    /// Connections by platform, in the order of [`Platform::ALL`].
    pub(crate) platforms: [AtomicU64; Platform::ALL.len()],
    /// Other gateways, if there are others.
    pub(crate) sharing: Option<Sharing>,
    /// What happened lately.
    pub(crate) occurrences: Occurrences,
}

/// What is to be done once the lock is released.
#[derive(Default)]
pub(crate) struct After {
    /// People who show themselves differently, and the rooms they are in.
    pub(crate) shown: Vec<(UserId, Arc<Shown>, Vec<RoomName>)>,
}

/// A part of the people.
pub(crate) struct Shard {
    pub(crate) roster: Roster,
    pub(crate) people: HashMap<UserId, Person, foldhash::fast::RandomState>,
    /// What is told to other gateways and by them, if there are others.
    pub(crate) book: Option<Box<Book>>,
    effects: Vec<Effect>,
}

impl Shard {
    pub(crate) fn new(policy: Policy, now: Moment, seed: u64) -> Shard {
        let roster = Roster::new(policy, now, seed);
        Shard { roster, people: HashMap::default(), book: None, effects: Vec::new() }
    }

    /// Somebody is about to come: brings what was last known of them into memory, unless more is known already.
    pub(crate) fn recall(&mut self, now: Moment, user: UserId, last: LastKnown, outside: &Outside) {
        self.roster.recall(now, user, outside.keeper.newest(user, last));
    }

    /// Somebody is watched, here or not. Likewise.
    pub(crate) fn watch(
        &mut self,
        now: Moment,
        user: UserId,
        last: LastKnown,
        outside: &Outside,
    ) -> &mut Person {
        self.roster.know(now, user, outside.keeper.newest(user, last));
        self.begin_asking(now, user);
        self.person(user, outside)
    }

    /// A person who is watched or has a connection.
    pub(crate) fn person(&mut self, user: UserId, outside: &Outside) -> &mut Person {
        self.people.entry(user).or_insert_with(|| {
            // Asked for soon: nobody has to wait for it.
            outside.counters.hub.traffic_dropped.add(outside.traffic.add([user]));
            Person::default()
        })
    }

    /// Whether the roster knows this person.
    pub(crate) fn knows(&self, user: UserId) -> bool {
        self.roster.remembered(user).is_some()
    }

    /// Lets somebody go whom nobody watches and who has no connection. The roster keeps them as long as it needs to.
    pub(crate) fn release(&mut self, user: UserId) {
        if self.people.get(&user).is_some_and(Person::is_idle) {
            self.people.remove(&user);
            self.roster.forget(user);
            self.stop_asking(user);
        }
    }

    /// Takes a connection out. Gives it, and whose friends it watched.
    pub(crate) fn drop_connection(
        &mut self,
        conn: ConnRef,
        outside: &Outside,
    ) -> Option<(Connection, Arc<Vec<UserId>>)> {
        let person = self.people.get_mut(&conn.user)?;
        let connection = person.remove_connection(conn.conn)?;
        let friends = person.circle.as_ref().map(|circle| circle.friends.clone()).unwrap_or_default();
        outside.platform(connection.seat.platform).fetch_sub(1, Ordering::Relaxed);
        if person.connections.is_empty() {
            person.circle = None;
        }
        self.release(conn.user);
        Some((connection, friends))
    }

    /// Something happened to somebody in memory.
    pub(crate) fn input(
        &mut self,
        now: Moment,
        user: UserId,
        input: Input,
        outside: &Outside,
    ) -> Result<After, Refused> {
        let noted = if self.book.is_some() { Noted::of(now, &input) } else { Noted::Nothing };
        let mut effects = std::mem::take(&mut self.effects);
        let handled = self.roster.handle(now, user, input, &mut effects);
        if handled.is_ok() {
            self.note(user, noted, &effects, outside);
        }
        let after = self.carry_out(now, effects, outside);
        handled.map(|()| after)
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self, now: Moment, outside: &Outside) -> After {
        let mut effects = std::mem::take(&mut self.effects);
        self.roster.tick(now, &mut effects);
        self.note_all(&effects, outside);
        self.carry_out(now, effects, outside)
    }

    /// The process before this one has ended, and this is what it wrote last of somebody.
    pub(crate) fn bring_back(&mut self, now: Moment, remembered: Remembered, outside: &Outside) -> After {
        // Something newer happened here.
        if outside.keeper.has(remembered.user) {
            return After::default();
        }
        let mut effects = std::mem::take(&mut self.effects);
        self.roster.bring_back(now, remembered, &mut effects);
        self.carry_out(now, effects, outside)
    }

    pub(crate) fn carry_out(&mut self, now: Moment, mut effects: Vec<Effect>, outside: &Outside) -> After {
        let mut after = After::default();
        for effect in effects.drain(..) {
            match effect {
                Effect::Ping(conn) => outside.outbox(conn, Outbox::ping),
                Effect::Probe(conn) => outside.outbox(conn, Outbox::probe),
                Effect::Close { conn, cause } => {
                    outside.outbox(conn, |outbox| outbox.close(close_code(cause)))
                }
                Effect::Changed { user, public, own, urgent } => {
                    if own {
                        self.tell_own_devices(user, outside, &mut after);
                    }
                    if public {
                        self.tell_watchers(user, now, urgent, outside);
                    }
                }
                // Where there are other gateways, this follows from what the register says has changed.
                Effect::Arrived { .. } | Effect::Left { .. } | Effect::Transition { .. }
                    if self.book.is_some() => {}
                Effect::Remember { user } if self.book.is_some() => self.keep_sign(user, outside),
                Effect::Arrived { user, cause, device } => {
                    outside.record(now, user, OccurrenceKind::Arrived, (cause, device));
                }
                Effect::Left { user, cause, device, .. } => {
                    outside.record(now, user, OccurrenceKind::Left, (cause, device));
                }
                Effect::Transition { user, from, to, cause, device } => {
                    outside.counters.hub.transitions.count(cause.name());
                    let platform = device.as_ref().and_then(|id| self.roster.platform_of(user, id));
                    outside.occurrences.add(Happening::new(now.0, user, (from, to), cause).on(platform));
                    if outside.history_days.load(Ordering::Relaxed) > 0 {
                        let kind = OccurrenceKind::Transition { from, to };
                        outside.record(now, user, kind, (cause, device));
                    }
                }
                Effect::Remember { user } => {
                    if let Some(remembered) = self.roster.remembered(user) {
                        outside.keeper.remember(remembered);
                    }
                }
            }
        }
        // The same piece of memory serves the next event, unless a storm has made it huge.
        effects.shrink_to(64);
        self.effects = effects;
        after
    }

    fn tell_own_devices(&mut self, user: UserId, outside: &Outside, after: &mut After) {
        let Some(person) = self.people.get_mut(&user) else { return };
        let view = self.roster.own_view(user);
        let told = feed::own(&view);
        for connection in &person.connections {
            connection.outbox.change(told.clone(), true);
        }
        let is_invisible = view.status == Status::Invisible;
        let Some(circle) = &mut person.circle else { return };
        if circle.shown.is_invisible != is_invisible {
            let privacy = circle.shown.privacy.clone();
            circle.shown = outside.shown(is_invisible, privacy);
            after.shown.push((user, circle.shown.clone(), rooms_of(person)));
        }
    }

    fn tell_watchers(&mut self, user: UserId, now: Moment, urgent: bool, outside: &Outside) {
        let Some(person) = self.people.get_mut(&user) else { return };
        person.text = None;
        if person.watchers().is_empty() {
            return;
        }
        let view = self.roster.public_view(user);
        let mut text = PublicText::of(&view, now.seconds());
        let mut deliveries = 0;
        for watcher in person.watchers().iter().filter(|watcher| watcher.sight.status) {
            watcher.outbox.change(text.seen(&view, watcher.sight), urgent);
            deliveries += 1;
        }
        outside.counters.hub.deliveries.add(deliveries);
        person.text = Some(Box::new(text));
    }

    /// What somebody with this sight is given of a person in memory.
    pub(crate) fn seen(&mut self, now: Moment, user: UserId, sight: Sight) -> FeedUser {
        if !sight.status {
            return feed::hidden(user);
        }
        // Here over HTTP only, pending, or gone a moment ago: nobody watches them, but the roster knows them.
        let Some(person) = self.people.get_mut(&user) else {
            let view = self.roster.public_view(user);
            return PublicText::of(&view, now.seconds()).seen(&view, sight);
        };
        if let Some(text) = &mut person.text
            && let Some(seen) = text.seen_again(user, sight, now.seconds())
        {
            return seen;
        }
        let view = self.roster.public_view(user);
        let mut text = PublicText::of(&view, now.seconds());
        let seen = text.seen(&view, sight);
        if !person.watchers().is_empty() {
            person.text = Some(Box::new(text));
        }
        seen
    }

    /// What a person's own devices are given.
    pub(crate) fn own(&self, user: UserId) -> FeedUser {
        feed::own(&self.roster.own_view(user))
    }

    /// The person's choice of who may see them. Tells every watcher for whom that makes a difference.
    pub(crate) fn choose(
        &mut self,
        now: Moment,
        user: UserId,
        privacy: &Privacy,
        outside: &Outside,
    ) -> After {
        let mut after = After::default();
        let Some(person) = self.people.get_mut(&user) else { return after };
        if let Some(circle) = &mut person.circle
            && *circle.shown.privacy != *privacy
        {
            circle.shown = outside.shown(circle.shown.is_invisible, Arc::new(privacy.clone()));
            after.shown.push((user, circle.shown.clone(), rooms_of(person)));
        }
        let mut changed = Vec::new();
        for watcher in person.watchers_mut() {
            let sight = privacy.sight(watcher.viewer, watcher.is_friend);
            if sight != watcher.sight {
                watcher.sight = sight;
                changed.push((watcher.outbox.clone(), sight));
            }
        }
        for (outbox, sight) in changed {
            outbox.change(self.seen(now, user, sight), true);
        }
        after
    }
}

impl Outside {
    fn outbox(&self, conn: ConnId, act: impl FnOnce(&Outbox)) {
        if let Some(outbox) = self.table.read().outbox(conn) {
            act(outbox);
        }
    }

    /// How many connections there are of a platform.
    pub(crate) fn platform(&self, platform: Platform) -> &AtomicU64 {
        &self.platforms[platform as usize]
    }

    pub(crate) fn record(
        &self,
        now: Moment,
        user: UserId,
        kind: OccurrenceKind,
        (cause, device): (Cause, Option<DeviceId>),
    ) {
        self.keeper.record(Occurrence { user, at_ms: now.0, kind, cause: Some(cause), device });
    }

    /// What a person shows from now on.
    pub(crate) fn shown(&self, is_invisible: bool, privacy: Arc<Privacy>) -> Arc<Shown> {
        Arc::new(Shown { epoch: self.next_epoch(), is_invisible, privacy })
    }

    /// A number for a [`Shown`], higher than all before.
    pub(crate) fn next_epoch(&self) -> u64 {
        self.epochs.fetch_add(1, Ordering::Relaxed)
    }
}

fn rooms_of(person: &Person) -> Vec<RoomName> {
    let mut rooms: Vec<RoomName> =
        person.connections.iter().flat_map(|connection| connection.seat.rooms.iter().cloned()).collect();
    rooms.sort_unstable();
    rooms.dedup();
    rooms
}

fn close_code(cause: CloseCause) -> CloseCode {
    match cause {
        CloseCause::NoPong => CloseCode::NoPong,
        CloseCause::SignedOut => CloseCode::ForceNoReconnect,
    }
}

//! A part of the users, behind one lock: applies the effects that `presence` decides.
//!
//! # Guarantees
//!
//! - Watchers' outboxes are filled under the lock, so changes of one user arrive in order.
//! - State that is not in the database yet is never replaced by older state from it.
//!
//! # Deliberately absent
//!
//! A bound on users in memory: they are the connected users, their friends and the users they track, all of them
//! bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::UserId;
use friends::{PresenceEvent, PresenceEventKind};
use hashbrown::HashMap;
use parking_lot::RwLock;
use presence::{
    Cause, CloseCause, ConnId, DeviceId, Effect, Input, LastKnown, Moment, Platform, Policy, PresenceTable,
    Privacy, Refused, Status, StoredPresence, Visibility,
};

use super::ConnRef;
use super::connection_table::ConnectionTable;
use super::user::{Connection, UserEntry, VisibilityState};
use crate::cluster_sync::{ClusterSync, MarkDirty, SyncState};
use crate::counters::GatewayCounters;
use crate::feed::{self, EncodedUser};
use crate::gateway_messages::MessageSender;
use crate::outbox::{FeedUser, Outbox};
use crate::presence_writer::PresenceWriter;
use crate::protocol::CloseCode;
use crate::recent_events::{RecentEvent, RecentEvents};
use crate::rooms::RoomName;
use crate::traffic;

/// What all shards share.
pub(crate) struct ShardContext {
    pub(crate) writer: PresenceWriter,
    pub(crate) counters: Arc<GatewayCounters>,
    pub(crate) table: RwLock<ConnectionTable>,
    pub(crate) traffic: traffic::TrafficQueue,
    /// None without a cluster.
    pub(crate) sender: Option<Arc<MessageSender>>,
    /// Numbers for [`VisibilityState`].
    pub(crate) epochs: AtomicU64,
    /// Days for which changes of status are kept; 0 for none.
    pub(crate) history_days: AtomicU64,
    /// Connections by platform, in the order of [`Platform::ALL`].
    pub(crate) platforms: [AtomicU64; Platform::ALL.len()],
    /// None without a cluster.
    pub(crate) sync: Option<ClusterSync>,
    pub(crate) recent_events: RecentEvents,
}

#[derive(Default)]
pub(crate) struct AfterUnlock {
    /// Users with a new visibility, and the rooms they are in.
    pub(crate) visibility: Vec<(UserId, Arc<VisibilityState>, Vec<RoomName>)>,
}

pub(crate) struct Shard {
    pub(crate) roster: PresenceTable,
    pub(crate) users: HashMap<UserId, UserEntry, foldhash::fast::RandomState>,
    /// None without a cluster.
    pub(crate) sync_state: Option<Box<SyncState>>,
    effects: Vec<Effect>,
}

impl Shard {
    pub(crate) fn new(policy: Policy, now: Moment, seed: u64) -> Shard {
        let roster = PresenceTable::new(policy, now, seed);
        Shard { roster, users: HashMap::default(), sync_state: None, effects: Vec::new() }
    }

    /// Loads the last known state of a user that is about to connect, unless newer state is in memory.
    pub(crate) fn load(&mut self, now: Moment, user: UserId, last: LastKnown, context: &ShardContext) {
        self.roster.preload(now, user, context.writer.newest(user, last));
    }

    /// Loads a watched user, online or not, unless newer state is in memory.
    pub(crate) fn watch(
        &mut self,
        now: Moment,
        user: UserId,
        last: LastKnown,
        context: &ShardContext,
    ) -> &mut UserEntry {
        self.roster.watch(now, user, context.writer.newest(user, last));
        self.start_watching(now, user);
        self.user_entry(user, context)
    }

    /// The entry of a user that is watched or connected.
    pub(crate) fn user_entry(&mut self, user: UserId, context: &ShardContext) -> &mut UserEntry {
        self.users.entry(user).or_insert_with(|| {
            // Read in the background.
            context.counters.hub.traffic_dropped.add(context.traffic.add([user]));
            UserEntry::default()
        })
    }

    /// Whether the presence table knows this user.
    pub(crate) fn knows(&self, user: UserId) -> bool {
        self.roster.stored_presence(user).is_some()
    }

    /// Drops a user without watchers and connections. The presence table keeps them as long as needed.
    pub(crate) fn release(&mut self, user: UserId) {
        if self.users.get(&user).is_some_and(UserEntry::is_idle) {
            self.users.remove(&user);
            self.roster.unwatch(user);
            self.stop_watching(user);
        }
    }

    /// Removes a connection. Returns it, and the friends it watched.
    pub(crate) fn drop_connection(
        &mut self,
        conn: ConnRef,
        context: &ShardContext,
    ) -> Option<(Connection, Arc<Vec<UserId>>)> {
        let entry = self.users.get_mut(&conn.user)?;
        let connection = entry.remove_connection(conn.conn)?;
        let friends = entry.connected.as_ref().map(|connected| connected.friends.clone()).unwrap_or_default();
        context.platform(connection.details.platform).fetch_sub(1, Ordering::Relaxed);
        if entry.connections.is_empty() {
            entry.connected = None;
        }
        self.release(conn.user);
        Some((connection, friends))
    }

    /// Applies an input of a user in memory.
    pub(crate) fn input(
        &mut self,
        now: Moment,
        user: UserId,
        input: Input,
        context: &ShardContext,
    ) -> Result<AfterUnlock, Refused> {
        let noted =
            if self.sync_state.is_some() { MarkDirty::for_input(now, &input) } else { MarkDirty::Never };
        let mut effects = std::mem::take(&mut self.effects);
        let handled = self.roster.handle(now, user, input, &mut effects);
        if handled.is_ok() {
            self.mark_changed(user, noted, &effects, context);
        }
        let after = self.apply_effects(now, effects, context);
        handled.map(|()| after)
    }

    pub(crate) fn tick(&mut self, now: Moment, context: &ShardContext) -> AfterUnlock {
        let mut effects = std::mem::take(&mut self.effects);
        self.roster.tick(now, &mut effects);
        self.mark_all_changed(&effects, context);
        self.apply_effects(now, effects, context)
    }

    /// The previous process has ended, and this is its last saved state of a user.
    pub(crate) fn restore_after_handover(
        &mut self,
        now: Moment,
        remembered: StoredPresence,
        context: &ShardContext,
    ) -> AfterUnlock {
        // A local change is newer.
        if context.writer.has(remembered.user) {
            return AfterUnlock::default();
        }
        let mut effects = std::mem::take(&mut self.effects);
        self.roster.restore_after_handover(now, remembered, &mut effects);
        self.apply_effects(now, effects, context)
    }

    pub(crate) fn apply_effects(
        &mut self,
        now: Moment,
        mut effects: Vec<Effect>,
        context: &ShardContext,
    ) -> AfterUnlock {
        let mut after = AfterUnlock::default();
        for effect in effects.drain(..) {
            match effect {
                Effect::Ping(conn) => context.outbox(conn, Outbox::ping),
                Effect::Probe(conn) => context.outbox(conn, Outbox::probe),
                Effect::Close { conn, cause } => {
                    context.outbox(conn, |outbox| outbox.close(close_code(cause)))
                }
                Effect::Changed { user, public, own, urgent } => {
                    if own {
                        self.notify_own_devices(user, now, context, &mut after);
                    }
                    if public {
                        self.notify_watchers(user, now, urgent, context);
                    }
                }
                // In a cluster, these follow from the changes that the store reports.
                Effect::Arrived { .. } | Effect::Left { .. } | Effect::Transition { .. }
                    if self.sync_state.is_some() => {}
                Effect::Store { user } if self.sync_state.is_some() => self.save_last_sign(user, context),
                Effect::Arrived { user, cause, device } => {
                    context.record(now, user, PresenceEventKind::Arrived, (cause, device));
                }
                Effect::Left { user, cause, device, .. } => {
                    context.record(now, user, PresenceEventKind::Left, (cause, device));
                }
                Effect::Transition { user, from, to, cause, device } => {
                    context.counters.hub.transitions.count(cause.name());
                    let platform = device.as_ref().and_then(|id| self.roster.platform_of(user, id));
                    context.recent_events.add(RecentEvent::new(now.0, user, (from, to), cause).on(platform));
                    if context.history_days.load(Ordering::Relaxed) > 0 {
                        let kind = PresenceEventKind::Transition { from, to };
                        context.record(now, user, kind, (cause, device));
                    }
                }
                Effect::Store { user } => {
                    if let Some(remembered) = self.roster.stored_presence(user) {
                        context.writer.remember(remembered);
                    }
                }
            }
        }
        // The same piece of memory serves the next event, unless a storm has made it huge.
        effects.shrink_to(64);
        self.effects = effects;
        after
    }

    fn notify_own_devices(
        &mut self,
        user: UserId,
        now: Moment,
        context: &ShardContext,
        after: &mut AfterUnlock,
    ) {
        let Some(entry) = self.users.get_mut(&user) else { return };
        let view = self.roster.own_view(user);
        let own_change = feed::own(&view);
        for connection in &entry.connections {
            connection.outbox.change(own_change.clone(), true, now);
        }
        let is_invisible = view.status == Status::Invisible;
        let Some(connected) = &mut entry.connected else { return };
        if connected.visibility.is_invisible != is_invisible {
            let privacy = connected.visibility.privacy.clone();
            connected.visibility = context.visibility(is_invisible, privacy);
            after.visibility.push((user, connected.visibility.clone(), rooms_of(entry)));
        }
    }

    fn notify_watchers(&mut self, user: UserId, now: Moment, urgent: bool, context: &ShardContext) {
        let Some(entry) = self.users.get_mut(&user) else { return };
        entry.text = None;
        if entry.watchers().is_empty() {
            return;
        }
        let view = self.roster.public_view(user);
        let mut text = EncodedUser::of(&view, now.seconds());
        let mut deliveries = 0;
        for watcher in entry.watchers().iter().filter(|watcher| watcher.visibility.status) {
            watcher.outbox.change(text.seen(&view, watcher.visibility), urgent, now);
            deliveries += 1;
        }
        context.counters.hub.deliveries.add(deliveries);
        entry.text = Some(Box::new(text));
    }

    /// A user in memory, as a viewer with this visibility sees them.
    pub(crate) fn feed_user_for(&mut self, now: Moment, user: UserId, visibility: Visibility) -> FeedUser {
        if !visibility.status {
            return feed::hidden(user);
        }
        // With HTTP sessions only, pending, or offline a moment ago: not watched, but in the presence table.
        let Some(entry) = self.users.get_mut(&user) else {
            let view = self.roster.public_view(user);
            return EncodedUser::of(&view, now.seconds()).seen(&view, visibility);
        };
        if let Some(text) = &mut entry.text
            && let Some(seen) = text.seen_again(user, visibility, now.seconds())
        {
            return seen;
        }
        let view = self.roster.public_view(user);
        let mut text = EncodedUser::of(&view, now.seconds());
        let seen = text.seen(&view, visibility);
        if !entry.watchers().is_empty() {
            entry.text = Some(Box::new(text));
        }
        seen
    }

    /// The user, for their own devices.
    pub(crate) fn own_feed_user(&self, user: UserId) -> FeedUser {
        feed::own(&self.roster.own_view(user))
    }

    /// Applies privacy settings, and notifies watchers whose visibility changes.
    pub(crate) fn set_privacy(
        &mut self,
        now: Moment,
        user: UserId,
        privacy: &Privacy,
        context: &ShardContext,
    ) -> AfterUnlock {
        let mut after = AfterUnlock::default();
        let Some(entry) = self.users.get_mut(&user) else { return after };
        if let Some(connected) = &mut entry.connected
            && *connected.visibility.privacy != *privacy
        {
            connected.visibility =
                context.visibility(connected.visibility.is_invisible, Arc::new(privacy.clone()));
            after.visibility.push((user, connected.visibility.clone(), rooms_of(entry)));
        }
        let mut changed = Vec::new();
        for watcher in entry.watchers_mut() {
            let visibility = privacy.visibility_for(watcher.viewer, watcher.is_friend);
            if visibility != watcher.visibility {
                watcher.visibility = visibility;
                changed.push((watcher.outbox.clone(), visibility));
            }
        }
        for (outbox, visibility) in changed {
            outbox.change(self.feed_user_for(now, user, visibility), true, now);
        }
        after
    }
}

impl ShardContext {
    fn outbox(&self, conn: ConnId, act: impl FnOnce(&Outbox)) {
        if let Some(outbox) = self.table.read().outbox(conn) {
            act(outbox);
        }
    }

    /// Open connections of a platform.
    pub(crate) fn platform(&self, platform: Platform) -> &AtomicU64 {
        &self.platforms[platform as usize]
    }

    pub(crate) fn record(
        &self,
        now: Moment,
        user: UserId,
        kind: PresenceEventKind,
        (cause, device): (Cause, Option<DeviceId>),
    ) {
        self.writer.record(PresenceEvent { user, at_ms: now.0, kind, cause: Some(cause), device });
    }

    /// A new visibility state.
    pub(crate) fn visibility(&self, is_invisible: bool, privacy: Arc<Privacy>) -> Arc<VisibilityState> {
        Arc::new(VisibilityState { epoch: self.next_epoch(), is_invisible, privacy })
    }

    /// A number for a [`VisibilityState`], higher than all before.
    pub(crate) fn next_epoch(&self) -> u64 {
        self.epochs.fetch_add(1, Ordering::Relaxed)
    }
}

fn rooms_of(entry: &UserEntry) -> Vec<RoomName> {
    let mut rooms: Vec<RoomName> =
        entry.connections.iter().flat_map(|connection| connection.details.rooms.iter().cloned()).collect();
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

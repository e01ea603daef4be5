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

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::UserId;
use friends::{PresenceEvent, PresenceEventKind};
use hashbrown::HashMap;
use parking_lot::RwLock;
use presence::{
    Cause, CloseCause, ConnId, DeviceId, Effect, Input, LastKnown, Platform, PresenceTable, Privacy, Refused,
    Status, StoredPresence, Visibility, WallTime,
};

use super::ConnRef;
use super::connection_table::ConnectionTable;
use super::user::{Connection, UserEntry, VisibilityState};
use crate::cluster_sync::{MarkDirty, ShardSync};
use crate::counters::GatewayCounters;
use crate::feed::{self, EncodedUser};
use crate::outbox::{FeedUser, Outbox};
use crate::presence_writer::PresenceWriter;
use crate::protocol::CloseCode;
use crate::recent_events::{RecentEvent, RecentEvents};
use crate::rooms::RoomName;
use crate::torrent_counts;

/// What all shards share.
pub(crate) struct ShardContext {
    pub(crate) writer: PresenceWriter,
    pub(crate) counters: Arc<GatewayCounters>,
    pub(crate) table: RwLock<ConnectionTable>,
    pub(crate) torrent_counts: torrent_counts::TorrentCountQueue,
    /// Numbers for [`VisibilityState`].
    pub(crate) epochs: AtomicU64,
    /// Whether changes of status are kept.
    pub(crate) keeps_history: bool,
    /// Connections by platform, in the order of [`Platform::ALL`].
    pub(crate) platforms: [AtomicU64; Platform::ALL.len()],
    pub(crate) recent_events: RecentEvents,
}

/// Why something happened, and by which device.
pub(crate) type Trigger = (Cause, Option<DeviceId>);

/// A user with a new visibility, and the rooms they are in.
pub(crate) struct VisibilityChange {
    pub(crate) user: UserId,
    pub(crate) visibility: Arc<VisibilityState>,
    pub(crate) rooms: Vec<RoomName>,
}

pub(crate) struct Shard {
    pub(crate) roster: PresenceTable,
    pub(crate) users: HashMap<UserId, UserEntry, foldhash::fast::RandomState>,
    /// None without a cluster.
    pub(crate) sync: Option<Box<ShardSync>>,
    context: Arc<ShardContext>,
    effects: Vec<Effect>,
    /// Passed on when the lock is released.
    visibility_changes: Vec<VisibilityChange>,
}

impl Shard {
    pub(crate) fn new(
        roster: PresenceTable,
        context: Arc<ShardContext>,
        sync: Option<Box<ShardSync>>,
    ) -> Shard {
        let (effects, visibility_changes) = (Vec::new(), Vec::new());
        Shard { roster, users: HashMap::default(), sync, context, effects, visibility_changes }
    }

    pub(super) fn take_visibility_changes(&mut self) -> Vec<VisibilityChange> {
        std::mem::take(&mut self.visibility_changes)
    }

    /// Loads the last known state of a user that is about to connect, unless newer state is in memory.
    pub(crate) fn load(&mut self, now: WallTime, user: UserId, last: LastKnown) {
        self.roster.preload(now, user, self.context.writer.newest(user, last));
    }

    /// Loads a watched user, online or not, unless newer state is in memory.
    pub(crate) fn watch(&mut self, now: WallTime, user: UserId, last: LastKnown) -> &mut UserEntry {
        self.roster.watch(now, user, self.context.writer.newest(user, last));
        self.watch_record(now, user);
        self.user_entry(user)
    }

    /// The entry of a user that is watched or connected.
    pub(crate) fn user_entry(&mut self, user: UserId) -> &mut UserEntry {
        self.users.entry(user).or_insert_with(|| {
            // Read in the background.
            self.context.counters.hub.torrent_counts_dropped.add(self.context.torrent_counts.add([user]));
            UserEntry::default()
        })
    }

    /// Whether the presence table knows this user.
    pub(crate) fn knows(&self, user: UserId) -> bool {
        self.roster.stored_presence(user).is_some()
    }

    /// Whether the local state of the user holds for all gateways.
    pub(crate) fn is_current(&self, user: UserId) -> bool {
        let is_read = |sync: &ShardSync| sync.is_current(user) || self.roster.has_local_session(user);
        self.knows(user) && self.sync.as_deref().is_none_or(is_read)
    }

    /// Returns whether the user's record is still to be read.
    pub(crate) fn watch_record(&mut self, now: WallTime, user: UserId) -> bool {
        let is_known = self.knows(user);
        self.sync.as_mut().is_some_and(|sync| sync.start_watching(now, user, is_known))
    }

    /// Drops a user without watchers and connections. The presence table keeps them as long as needed.
    pub(crate) fn release(&mut self, user: UserId) {
        if self.users.get(&user).is_some_and(UserEntry::is_idle) {
            self.users.remove(&user);
            self.roster.unwatch(user);
            if let Some(sync) = &mut self.sync
                && !self.roster.has_local_session(user)
            {
                sync.stop_watching(user);
            }
        }
    }

    /// Removes a connection. Returns it, and the friends it watched.
    pub(crate) fn drop_connection(&mut self, conn: ConnRef) -> Option<(Connection, Arc<Vec<UserId>>)> {
        let entry = self.users.get_mut(&conn.user)?;
        let connection = entry.remove_connection(conn.conn)?;
        let friends = entry.connected.as_ref().map(|connected| connected.friends.clone()).unwrap_or_default();
        self.context.platform(connection.details.platform).fetch_sub(1, Ordering::Relaxed);
        if entry.connections.is_empty() {
            entry.connected = None;
        }
        self.release(conn.user);
        Some((connection, friends))
    }

    /// Applies an input of a user in memory.
    pub(crate) fn input(&mut self, now: WallTime, user: UserId, input: Input) -> Result<(), Refused> {
        let mark = if self.sync.is_some() { MarkDirty::for_input(now, &input) } else { MarkDirty::Never };
        let mut effects = std::mem::take(&mut self.effects);
        let handled = self.roster.handle(now, user, input, &mut effects);
        if let (Ok(()), Some(sync)) = (&handled, &mut self.sync) {
            sync.mark_changed(user, mark, &effects);
        }
        self.apply_effects(now, effects);
        handled
    }

    pub(crate) fn tick(&mut self, now: WallTime) {
        let mut effects = std::mem::take(&mut self.effects);
        self.roster.tick(now, &mut effects);
        if let Some(sync) = &mut self.sync {
            sync.mark_all_changed(&self.roster, &effects);
        }
        self.apply_effects(now, effects);
    }

    /// The previous process has ended, and this is its last saved state of a user.
    pub(crate) fn restore_after_handover(&mut self, now: WallTime, remembered: StoredPresence) {
        // A local change is newer.
        if self.context.writer.has(remembered.user) {
            return;
        }
        let mut effects = std::mem::take(&mut self.effects);
        self.roster.restore_after_handover(now, remembered, &mut effects);
        self.apply_effects(now, effects);
    }

    /// Applies what the cluster sync makes of the presence table. Does nothing without a cluster.
    pub(crate) fn sync(
        &mut self,
        now: WallTime,
        act: impl FnOnce(&mut ShardSync, &mut PresenceTable, &mut Vec<Effect>),
    ) {
        let Some(sync) = &mut self.sync else { return };
        let mut effects = std::mem::take(&mut self.effects);
        act(sync, &mut self.roster, &mut effects);
        self.apply_effects(now, effects);
    }

    fn apply_effects(&mut self, now: WallTime, mut effects: Vec<Effect>) {
        for effect in effects.drain(..) {
            match effect {
                Effect::Ping(conn) => self.context.outbox(conn, Outbox::ping),
                Effect::Probe(conn) => self.context.outbox(conn, Outbox::probe),
                Effect::Close { conn, cause } => {
                    self.context.outbox(conn, |outbox| outbox.close(close_code(cause)))
                }
                Effect::Changed { user, public, own, urgent } => {
                    if own {
                        self.notify_own_devices(user, now);
                    }
                    if public {
                        self.notify_watchers(user, now, urgent);
                    }
                }
                // In a cluster, these follow from the changes that the store reports.
                Effect::Arrived { .. } | Effect::Left { .. } | Effect::Transition { .. }
                    if self.sync.is_some() => {}
                Effect::Store { user } => self.remember(user),
                Effect::Arrived { user, cause, device } => {
                    self.record(now, user, PresenceEventKind::Arrived, (cause, device))
                }
                Effect::Left { user, cause, device, .. } => {
                    self.record(now, user, PresenceEventKind::Left, (cause, device))
                }
                Effect::Transition { user, from, to, cause, device } => {
                    self.record(now, user, PresenceEventKind::Transition { from, to }, (cause, device))
                }
            }
        }
        // The same piece of memory serves the next event, unless a storm has made it huge.
        effects.shrink_to(64);
        self.effects = effects;
    }

    fn record(&self, now: WallTime, user: UserId, kind: PresenceEventKind, (cause, device): Trigger) {
        let platform = || self.roster.platform_of(user, device.as_ref()?);
        let (cause, device) = (Some(cause), device.clone());
        self.context.record(PresenceEvent { user, at_ms: now.0, kind, cause, device }, platform);
    }

    /// Saves the state of a user. In a cluster only the last activity: changes are saved when the store has
    /// answered to them.
    fn remember(&self, user: UserId) {
        let Some(remembered) = self.roster.stored_presence(user) else { return };
        let remembered = match &self.sync {
            Some(sync) => sync.last_sign(remembered),
            None => Some(remembered),
        };
        remembered.into_iter().for_each(|remembered| self.context.writer.remember(remembered));
    }

    fn notify_own_devices(&mut self, user: UserId, now: WallTime) {
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
            connected.visibility = self.context.visibility(is_invisible, privacy);
            self.visibility_changes.extend(VisibilityChange::of(user, entry));
        }
    }

    fn notify_watchers(&mut self, user: UserId, now: WallTime, urgent: bool) {
        let Some(entry) = self.users.get_mut(&user) else { return };
        entry.text = None;
        if entry.watchers.is_empty() {
            return;
        }
        let view = self.roster.public_view(user);
        let mut text = EncodedUser::of(&view, now.seconds());
        let mut deliveries = 0;
        for watcher in entry.watchers.iter().filter(|watcher| watcher.visibility.status) {
            watcher.outbox.change(text.seen(&view, watcher.visibility), urgent, now);
            deliveries += 1;
        }
        self.context.counters.hub.deliveries.add(deliveries);
        entry.text = Some(Box::new(text));
    }

    /// A user in memory, as a viewer with this visibility sees them.
    pub(crate) fn feed_user_for(&mut self, now: WallTime, user: UserId, visibility: Visibility) -> FeedUser {
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
        if !entry.watchers.is_empty() {
            entry.text = Some(Box::new(text));
        }
        seen
    }

    /// The user, for their own devices.
    pub(crate) fn own_feed_user(&self, user: UserId) -> FeedUser {
        feed::own(&self.roster.own_view(user))
    }

    /// Applies privacy settings, and notifies watchers whose visibility changes.
    pub(crate) fn set_privacy(&mut self, now: WallTime, user: UserId, privacy: &Privacy) {
        let Some(entry) = self.users.get_mut(&user) else { return };
        if let Some(connected) = &mut entry.connected
            && *connected.visibility.privacy != *privacy
        {
            connected.visibility =
                self.context.visibility(connected.visibility.is_invisible, Arc::new(privacy.clone()));
            self.visibility_changes.extend(VisibilityChange::of(user, entry));
        }
        let mut changed = Vec::new();
        for watcher in entry.watchers.iter_mut() {
            let visibility = privacy.visibility_for(watcher.viewer, watcher.is_friend);
            if visibility != watcher.visibility {
                watcher.visibility = visibility;
                changed.push((watcher.outbox.clone(), visibility));
            }
        }
        for (outbox, visibility) in changed {
            outbox.change(self.feed_user_for(now, user, visibility), true, now);
        }
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

    /// Something happened that belongs into the history. Changes of status are also counted and listed for operators.
    pub(crate) fn record(&self, event: PresenceEvent, platform: impl FnOnce() -> Option<Platform>) {
        if let (PresenceEventKind::Transition { from, to }, Some(cause)) = (event.kind, event.cause) {
            self.counters.hub.transitions.count(cause);
            let recent = RecentEvent::new(event.at_ms, event.user, (from, to), cause);
            self.recent_events.add(RecentEvent { platform: platform(), ..recent });
            if !self.keeps_history {
                return;
            }
        }
        self.writer.record(event);
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

impl VisibilityChange {
    /// None if the user is not connected.
    fn of(user: UserId, entry: &UserEntry) -> Option<VisibilityChange> {
        let visibility = entry.connected.as_ref()?.visibility.clone();
        let rooms: BTreeSet<&RoomName> =
            entry.connections.iter().flat_map(|connection| &connection.details.rooms).collect();
        Some(VisibilityChange { user, visibility, rooms: rooms.into_iter().cloned().collect() })
    }
}

fn close_code(cause: CloseCause) -> CloseCode {
    match cause {
        CloseCause::NoPong => CloseCode::NoPong,
        CloseCause::SignedOut => CloseCode::ForceNoReconnect,
    }
}

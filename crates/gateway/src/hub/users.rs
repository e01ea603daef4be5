//! The users of this gateway: those with sessions here, and the users that they watch.
//!
//! # Guarantees
//!
//! - Users are spread over shards, each behind one short lock. No two shards are locked at once, and no lock is held
//!   across an await.
//! - Changes of a user are put into the watchers' outboxes under the lock of that user's shard. So every watcher
//!   receives the changes of one user in order, and none after the watch has ended or the user became invisible to
//!   them.
//! - During shutdown, closing a connection no longer marks its user offline: after the restart those users are
//!   pending (P11).
//! - A user that the tracker has disabled gets no connection and sends no heartbeat. The check is repeated under the
//!   shard's lock, so a connection that was being made while its user was disabled is refused, or is there to be
//!   closed. A user that the tracker does not know is not disabled: presence also serves users without an account.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use domain::UserId;
use domain::clock::Clock;
use parking_lot::{Mutex, MutexGuard};
use presence::{CloseKind, ConnId, DeviceId, Input, Policy, SessionView, Status, WallTime};

use super::shard::{Shard, ShardContext};
use super::{ConnRef, HubSettings, OnlineCount};
use crate::protocol::CloseCode;
use crate::rooms::{Recipient, Rooms};
use crate::typing::{TYPING_RECIPIENTS_MAX, Target, Typing};

/// Locks over which users are spread.
pub(crate) const SHARDS: usize = 64;
/// Connections per pass of the connection table under its lock.
const PAGE: usize = 4_096;

/// Whether the tracker knows a user and has disabled them. Called under locks: must answer from memory and not block.
pub type IsDisabled = Arc<dyn Fn(UserId) -> bool + Send + Sync>;

pub struct Users {
    pub(super) shards: Box<[Mutex<Shard>]>,
    pub(crate) context: Arc<ShardContext>,
    pub(crate) settings: HubSettings,
    pub(crate) rooms: Arc<Rooms>,
    pub(crate) typing: Arc<Typing>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) is_disabled: IsDisabled,
    /// Set during shutdown: closing a connection no longer marks its user offline.
    pub(super) is_stopping: AtomicBool,
}

impl Users {
    pub fn policy(&self) -> &Policy {
        &self.settings.policy
    }

    pub(crate) fn now(&self) -> WallTime {
        WallTime(self.clock.now_ms())
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Whether the tracker has disabled a user.
    pub fn is_disabled(&self, user: UserId) -> bool {
        (self.is_disabled)(user)
    }

    /// Locks the user's shard. Must not be called while another shard is locked.
    pub(crate) fn shard(&self, user: UserId) -> MutexGuard<'_, Shard> {
        // Ids are sequential: the lowest bits spread them best.
        self.shards[user.get() as usize % SHARDS].lock()
    }

    /// Every shard, to be locked one after the other.
    pub(crate) fn shards(&self) -> impl Iterator<Item = &Mutex<Shard>> + Clone {
        self.shards.iter()
    }

    /// Likewise, beginning with another one each time.
    pub(crate) fn shards_from(&self, turn: &AtomicUsize) -> impl Iterator<Item = &Mutex<Shard>> {
        let first = turn.fetch_add(1, Ordering::Relaxed) % SHARDS;
        self.shards[first..].iter().chain(&self.shards[..first])
    }

    /// Changes a user under the lock of their shard, and does afterwards what must be done without it.
    pub(crate) fn change<T>(&self, user: UserId, change: impl FnOnce(&mut Shard, WallTime) -> T) -> T {
        let now = self.now();
        let mut shard = self.shard(user);
        let result = change(&mut shard, now);
        self.release(shard);
        result
    }

    /// Releases the lock of a shard, and passes on what changed under it.
    pub(crate) fn release(&self, mut shard: MutexGuard<'_, Shard>) {
        let changes = shard.take_visibility_changes();
        drop(shard);
        for change in changes {
            for room in &change.rooms {
                self.rooms.update_visibility(room, change.user, &change.visibility);
            }
            // The users notified of the typing may not be those who can see the user now.
            self.typing.end_all(change.user, self.now());
        }
    }

    /// For inputs that cannot be refused.
    pub(crate) fn apply_input(&self, user: UserId, input: Input) {
        let _ = self.change(user, |shard, now| shard.input(now, user, input));
    }

    /// Returns the number of users in the shard.
    pub(super) fn tick_shard(&self, shard: usize) -> usize {
        if self.is_stopping() {
            return 0;
        }
        let now = self.now();
        let mut shard = self.shards[shard].lock();
        shard.tick(now);
        let users = shard.users.len();
        self.release(shard);
        users
    }

    /// A connection ended.
    pub(crate) fn closed(&self, conn: ConnRef, how: CloseKind) {
        let ended = self.change(conn.user, |shard, now| {
            let is_there =
                shard.users.get(&conn.user).is_some_and(|entry| entry.connection(conn.conn).is_some());
            // The remaining devices of the user are notified; the closed one is removed first.
            let dropped = shard.drop_connection(conn);
            if is_there && !self.is_stopping() {
                let _ = shard.input(now, conn.user, Input::Closed { conn: conn.conn, how });
            }
            dropped
        });
        let Some((connection, friends)) = ended else { return };
        for watched in friends.iter().chain(&connection.details.tracked) {
            self.end_watch(*watched, conn.conn);
        }
        for room in &connection.details.rooms {
            self.rooms.leave(room, conn.user, conn.conn);
        }
        if !self.is_connected(conn.user) {
            self.typing.end_all(conn.user, self.now());
        }
        self.context.table.write().release(conn);
    }

    pub(crate) fn is_connected(&self, user: UserId) -> bool {
        self.shard(user).users.get(&user).is_some_and(|entry| entry.connected.is_some())
    }

    /// Ends a watch, whatever its reason.
    pub(crate) fn end_watch(&self, subject: UserId, conn: ConnId) {
        let mut shard = self.shard(subject);
        if let Some(entry) = shard.users.get_mut(&subject) {
            entry.remove_watcher(conn);
            shard.release(subject);
        }
    }

    /// Connections to notify of typing; none if there are too many.
    pub(crate) fn typing_recipients(&self, from: UserId, target: &Target) -> Option<Vec<Recipient>> {
        match target {
            Target::User(to) => Some(self.connections_of(*to)),
            Target::Room(name) => self.rooms.recipients_for(name, from, TYPING_RECIPIENTS_MAX),
        }
    }

    fn connections_of(&self, user: UserId) -> Vec<Recipient> {
        let shard = self.shard(user);
        let connections =
            shard.users.get(&user).map(|entry| entry.connections.as_slice()).unwrap_or_default();
        connections.iter().map(|connection| (user, Arc::clone(&connection.outbox))).collect()
    }

    /// Users with a connection.
    pub(crate) fn connected(&self) -> BTreeSet<UserId> {
        let mut users = BTreeSet::new();
        self.for_each_connection(|conn| _ = users.insert(conn.user));
        users
    }

    /// The table is not locked for long at a time.
    pub(super) fn for_each_connection(&self, mut act: impl FnMut(ConnRef)) {
        let mut from = Some(0);
        while let Some(place) = from {
            let (page, next) = self.context.table.read().page(place, PAGE);
            page.into_iter().for_each(&mut act);
            from = next;
        }
    }

    /// Sessions at this gateway, invisible or not.
    pub fn devices(&self, user: UserId) -> Vec<SessionView> {
        self.shard(user).roster.sessions(user).collect()
    }

    /// Closes a user's connections at this gateway, all or those of one device. Without `reconnect` (3503) HTTP
    /// sessions end as well; with it (3000) clients reconnect. Returns the number of sessions.
    pub(crate) fn disconnect(&self, user: UserId, device: Option<&DeviceId>, reconnect: bool) -> usize {
        let mut sessions = self.devices(user);
        sessions.retain(|session| device.is_none_or(|device| session.device == *device));
        if reconnect {
            sessions.retain(|session| session.conn.is_some());
            for conn in sessions.iter().filter_map(|session| session.conn) {
                self.close_connection(user, conn, CloseCode::Normal);
            }
            return sessions.len();
        }
        let count = sessions.len();
        let devices: BTreeSet<DeviceId> = sessions.into_iter().map(|session| session.device).collect();
        for device in devices {
            self.apply_input(user, Input::SignOut { device });
        }
        count
    }

    /// Ends all sessions of a disabled or removed user at this gateway; every gateway follows the user table itself.
    /// Clients do not reconnect (3507). Returns the number of sessions.
    pub fn disconnect_disabled(&self, user: UserId) -> usize {
        for conn in self.devices(user).iter().filter_map(|session| session.conn) {
            self.close_connection(user, conn, CloseCode::PermissionDenied);
        }
        // The first close code counts; this ends the remaining sessions.
        self.disconnect(user, None, false)
    }

    /// Closes a connection, if it is still this user's.
    fn close_connection(&self, user: UserId, conn: ConnId, code: CloseCode) {
        let table = self.context.table.read();
        if table.user(conn) == Some(user)
            && let Some(outbox) = table.outbox(conn)
        {
            outbox.close(code);
        }
    }

    /// Constant time.
    pub fn online_count(&self) -> OnlineCount {
        let mut count = OnlineCount::default();
        for shard in self.shards() {
            let tally = shard.lock().roster.counts();
            for status in Status::ALL {
                count.tally.users[status as usize] += tally.of(status);
            }
            count.tally.connections += tally.connections;
            count.tally.without_connection += tally.without_connection;
        }
        for (count, platform) in count.connections.iter_mut().zip(&self.context.platforms) {
            *count = platform.load(Ordering::Relaxed);
        }
        count
    }

    /// The torrent counts of these users changed. Does not wait.
    pub fn torrents_changed(&self, users: &[UserId]) {
        let is_in_memory = |user: &UserId| self.shard(*user).users.contains_key(user);
        let users: Vec<UserId> = users.iter().copied().filter(is_in_memory).collect();
        if !users.is_empty() {
            self.context.counters.hub.torrent_counts_dropped.add(self.context.torrent_counts.add(users));
        }
    }
}

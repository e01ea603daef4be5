//! Rooms: their members, and the join and leave messages.
//!
//! # Guarantees
//!
//! - As in Centrifuge, clients are connections and users are distinct: each connection of a user joins, leaves and is
//!   listed separately. Changes of status are not sent to rooms.
//! - Join and leave messages are net: a connection that leaves and re-enters within the batch window did neither, and
//!   a user who reconnects within it joins with the new connection before the old one leaves. Replies to `presence`
//!   agree with the messages sent before and after.
//! - Users that are invisible, show their status to no one, or list the viewer as `never` are not visible. A change
//!   of `never` applies at once.
//! - Empty rooms cost nothing.
//! - In a cluster a room spans all gateways: members at other gateways are remote members ([`sync`]), announced and
//!   listed like local ones. A gateway knows the remote members only of rooms that have local members.
//!
//! # Deliberately absent
//!
//! Messages, history, and a list of all rooms. Access control: the session checks tokens.

pub(crate) mod remote_member;
mod room;
pub(crate) mod sync;

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use domain::UserId;
use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::counters::GatewayCounters;
use crate::hub::user::VisibilityState;
use crate::outbox::Outbox;
use crate::protocol::{ClientInfo, PresenceStats};
use presence::ConnId;
pub(crate) use room::Recipient;
use room::Room;

/// A room's channel: `room:` and the room's name.
pub(crate) type RoomName = Arc<str>;

/// Rooms are spread over this many locks.
const SHARDS: usize = 16;
const NAME_CHARACTERS_MAX: usize = 64;

type RoomMap = HashMap<RoomName, Room, foldhash::fast::RandomState>;

/// A connection that enters a room.
pub(crate) struct Entrant {
    pub(crate) info: ClientInfo,
    pub(crate) conn: ConnId,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) visibility: Arc<VisibilityState>,
}

/// All rooms with local members.
pub(crate) struct Rooms {
    shards: [Mutex<RoomMap>; SHARDS],
    hasher: foldhash::fast::RandomState,
    /// Rooms to flush at the end of the window. May contain duplicates.
    due: Mutex<Vec<RoomName>>,
    some_due: Notify,
    counters: Arc<GatewayCounters>,
    /// None without a cluster.
    sync: Option<sync::RoomSyncQueue>,
}

/// Whether this is the channel of a room: `room:` and 1 to 64 visible characters.
pub(crate) fn is_room(channel: &str) -> bool {
    let Some(name) = channel.strip_prefix("room:") else { return false };
    let is_visible = |character: char| !character.is_control() && !character.is_whitespace();
    let length = name.chars().take(NAME_CHARACTERS_MAX + 1).count();
    (1..=NAME_CHARACTERS_MAX).contains(&length) && name.chars().all(is_visible)
}

impl Rooms {
    pub(crate) fn new(counters: Arc<GatewayCounters>, is_shared: bool) -> Rooms {
        Rooms {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: foldhash::fast::RandomState::default(),
            due: Mutex::default(),
            some_due: Notify::new(),
            counters,
            sync: is_shared.then(sync::RoomSyncQueue::default),
        }
    }

    pub(crate) fn enter(&self, name: &RoomName, entrant: Entrant) {
        let user = entrant.info.user;
        let is_due = {
            let mut shard = self.shard(name).lock();
            let room = shard.entry(name.clone()).or_insert_with(|| {
                self.counters.hub.rooms.rise();
                Room::new(name.clone())
            });
            room.enter(entrant)
        };
        self.changed(name, user, is_due);
    }

    pub(crate) fn leave(&self, name: &RoomName, user: UserId, conn: ConnId) {
        let is_due = self.with(name, |room| room.leave(user, conn));
        self.changed(name, user, is_due);
    }

    pub(crate) fn update_visibility(&self, name: &RoomName, user: UserId, visibility: &Arc<VisibilityState>) {
        let is_due = self.with(name, |room| room.update_visibility(user, visibility));
        self.changed(name, user, is_due);
    }

    /// Connections that `viewer` sees.
    pub(crate) fn presence(&self, name: &RoomName, viewer: UserId) -> Vec<ClientInfo> {
        self.with(name, |room| room.presence(viewer))
    }

    /// How many `viewer` sees in a room.
    pub(crate) fn stats(&self, name: &RoomName, viewer: UserId) -> PresenceStats {
        self.with(name, |room| room.stats(viewer))
    }

    /// The connections in a room that may see `user`, without the user's own; empty if the user is not in it, or not
    /// visible. None if there are more than `max`.
    pub(crate) fn recipients_for(&self, name: &RoomName, user: UserId, max: usize) -> Option<Vec<Recipient>> {
        let mut shard = self.shard(name).lock();
        shard.get_mut(name).map_or_else(|| Some(Vec::new()), |room| room.recipients_for(user, max))
    }

    /// Flushes rooms at the end of each window, until stopped.
    pub(crate) async fn run(&self, window: Duration, mut stop: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                () = self.some_due.notified() => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            tokio::time::sleep(window).await;
            self.flush();
        }
    }

    pub(crate) fn flush(&self) {
        let mut due = std::mem::take(&mut *self.due.lock());
        due.sort_unstable();
        due.dedup();
        for name in due {
            let mut shard = self.shard(&name).lock();
            if let Some(room) = shard.get_mut(&name) {
                room.flush();
                if room.has_no_local_clients() {
                    shard.remove(&name);
                    self.counters.hub.rooms.fall();
                }
            }
        }
    }

    /// Reads or changes a room; the default without one.
    fn with<T: Default>(&self, name: &RoomName, act: impl FnOnce(&mut Room) -> T) -> T {
        self.shard(name).lock().get_mut(name).map(act).unwrap_or_default()
    }

    /// A local member may have changed.
    fn changed(&self, name: &RoomName, user: UserId, is_due: bool) {
        self.flush_later(name, is_due);
        if let Some(queue) = &self.sync {
            queue.changed(name, user);
        }
    }

    fn flush_later(&self, name: &RoomName, is_due: bool) {
        if is_due {
            self.due.lock().push(name.clone());
            self.some_due.notify_one();
        }
    }

    fn shard(&self, name: &RoomName) -> &Mutex<RoomMap> {
        &self.shards[self.place(name)]
    }

    fn place(&self, name: &str) -> usize {
        self.hasher.hash_one(name) as usize % SHARDS
    }
}

#[cfg(test)]
mod tests {
    use super::is_room;

    #[test]
    fn a_room_has_a_name_of_1_to_64_visible_characters() {
        let longest = format!("room:{}", "é".repeat(64));
        for good in ["room:x", "room:{}\"<>", longest.as_str()] {
            assert!(is_room(good), "{good}");
        }
        let too_long = format!("{longest}é");
        for bad in
            ["room:", "room", "x", "", "feed:#7", "room:a b", "room:a\n", "room:\u{7f}", too_long.as_str()]
        {
            assert!(!is_room(bad), "{bad}");
        }
    }
}

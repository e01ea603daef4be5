//! Rooms: who is in them, and who is told when somebody comes or goes.
//!
//! # Guarantees
//!
//! - A person is in a room as long as any of their connections is, under one name: that of the connection that came
//!   first. An update of their status is nothing to a room.
//! - What others are told is net: who leaves and comes back within the batch window neither left nor came. What
//!   `presence` answers agrees with what was told before and what will be told after.
//! - Others do not see who is invisible, who shows themselves to nobody, or who never wants to be seen by them. A change
//!   of the latter acts at once.
//! - Empty rooms cost nothing.
//! - Among many gateways a room is one: those whom others have in it are guests here ([`shared`]), told of and listed like
//!   everybody else. A gateway knows guests of the rooms that somebody here is in, and of no others.
//!
//! # Deliberately absent
//!
//! Messages, history, and a list of all rooms. Whether somebody may enter: the session checks tokens.

pub(crate) mod guest;
mod room;
pub(crate) mod shared;

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use domain::UserId;
use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::counters::GatewayCounters;
use crate::hub::person::Shown;
use crate::outbox::Outbox;
use crate::protocol::{ClientInfo, PresenceStats};
use presence::ConnId;
pub(crate) use room::Recipient;
use room::Room;

/// A room's channel: `room:` and the room's name.
pub(crate) type RoomName = Arc<str>;

/// Rooms are spread over this many locks.
const SHARDS: usize = 16;
/// The longest name.
const NAME_CHARACTERS_MAX: usize = 64;

type RoomMap = HashMap<RoomName, Room, foldhash::fast::RandomState>;

/// A connection that enters a room.
pub(crate) struct Entrant {
    pub(crate) info: ClientInfo,
    pub(crate) conn: ConnId,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) shown: Arc<Shown>,
}

/// Every room with somebody in it.
pub(crate) struct Rooms {
    shards: [Mutex<RoomMap>; SHARDS],
    hasher: foldhash::fast::RandomState,
    /// Rooms in which something is to be told at the end of the window. May name a room twice.
    due: Mutex<Vec<RoomName>>,
    some_due: Notify,
    counters: Arc<GatewayCounters>,
    /// What other gateways are to be told; none for who is alone.
    shared: Option<shared::Waiting>,
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
            shared: is_shared.then(shared::Waiting::default),
        }
    }

    /// A connection comes in.
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
        self.tell_later(name, is_due);
        self.share(name, user);
    }

    /// A connection goes.
    pub(crate) fn leave(&self, name: &RoomName, user: UserId, conn: ConnId) {
        let is_due = self.shard(name).lock().get_mut(name).is_some_and(|room| room.leave(user, conn));
        self.tell_later(name, is_due);
        self.share(name, user);
    }

    /// Somebody shows themselves differently.
    pub(crate) fn show(&self, name: &RoomName, user: UserId, shown: &Arc<Shown>) {
        let is_due = self.shard(name).lock().get_mut(name).is_some_and(|room| room.show(user, shown));
        self.tell_later(name, is_due);
        self.share(name, user);
    }

    /// Whom `viewer` sees in a room.
    pub(crate) fn presence(&self, name: &RoomName, viewer: UserId) -> Vec<ClientInfo> {
        self.shard(name).lock().get_mut(name).map(|room| room.presence(viewer)).unwrap_or_default()
    }

    /// How many `viewer` sees in a room.
    pub(crate) fn stats(&self, name: &RoomName, viewer: UserId) -> PresenceStats {
        self.shard(name).lock().get(name).map(|room| room.stats(viewer)).unwrap_or_default()
    }

    /// The connections in a room that may know of `user`, without their own; empty if they are not in it, or hidden.
    /// None if they are more than `max`.
    pub(crate) fn who_may_see(&self, name: &RoomName, user: UserId, max: usize) -> Option<Vec<Recipient>> {
        self.shard(name).lock().get(name).map_or_else(|| Some(Vec::new()), |room| room.who_may_see(user, max))
    }

    /// Tells what is due at the end of each window, until it is told to stop.
    pub(crate) async fn run(&self, window: impl Fn() -> Duration, mut stop: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                () = self.some_due.notified() => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            tokio::time::sleep(window()).await;
            self.tell();
        }
    }

    /// Tells what is due.
    pub(crate) fn tell(&self) {
        let mut due = std::mem::take(&mut *self.due.lock());
        due.sort_unstable();
        due.dedup();
        for name in due {
            let mut shard = self.shard(&name).lock();
            if let Some(room) = shard.get_mut(&name) {
                room.tell();
                if room.is_deserted() {
                    shard.remove(&name);
                    self.counters.hub.rooms.fall();
                }
            }
        }
    }

    fn share(&self, name: &RoomName, user: UserId) {
        if let Some(shared) = &self.shared {
            shared.changed(name, user);
        }
    }

    fn tell_later(&self, name: &RoomName, is_due: bool) {
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

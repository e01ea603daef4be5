//! Rooms over many gateways: who is in a room is told truly, whichever gateway they are at.
//!
//! Each gateway writes its own part of a room into Redis: whom it has in it. A part has one writer and a version. What
//! changed is then told to the gateways that have somebody in the room, through their inboxes.
//!
//! # Layout
//!
//! - this file: what waits to be told, and what is heard
//! - [`work`]: the task that writes, tells and reads
//!
//! # Guarantees
//!
//! - State, not events: a part is read from the room when it is written, so that many changes become one.
//! - Nothing stays missed. A gateway that enters a room says so before it reads the others' parts; a version that does not
//!   follow the one before makes it read the part; and every part is compared once a minute.
//! - Whom a dead gateway had in rooms leaves as soon as the others know of its death, unless they have come back.
//! - Nobody waits for Redis: people here are told of each other as before, whatever becomes of the others.
//!
//! # Deliberately absent
//!
//! A list of all rooms, and any order between gateways: each tells of its own people only.

mod work;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

use domain::UserId;
use parking_lot::Mutex;
use register::NodeName;
use tokio::sync::Notify;

use super::guest::{Guest, Word};
use super::{RoomName, Rooms, SHARDS};
pub(crate) use work::Sharing;

/// What there is to do. Bounded by the people in rooms here.
#[derive(Default)]
struct Todo {
    /// Rooms in which people came, went or changed here.
    changed: HashMap<RoomName, HashSet<UserId>>,
    /// Parts of others that are to be read.
    unread: HashSet<(RoomName, NodeName)>,
    /// Everything is to be compared.
    compare: bool,
    /// Gateways that were missing the last time somebody looked.
    missing: HashSet<NodeName>,
}

/// What other gateways are to be told of, and what is to be read of theirs.
#[derive(Default)]
pub(crate) struct Waiting {
    todo: Mutex<Todo>,
    some: Notify,
    /// Connections that end are nobody's going any more.
    is_stopping: AtomicBool,
}

impl Waiting {
    /// Something about somebody in a room changed here.
    pub(super) fn changed(&self, room: &RoomName, user: UserId) {
        if self.is_stopping.load(Ordering::Relaxed) {
            return;
        }
        self.todo.lock().changed.entry(room.clone()).or_default().insert(user);
        self.some.notify_one();
    }

    fn read(&self, room: &RoomName, node: NodeName) {
        self.todo.lock().unread.insert((room.clone(), node));
        self.some.notify_one();
    }

    fn take_changed(&self, rooms_max: usize) -> Vec<(RoomName, HashSet<UserId>)> {
        let mut todo = self.todo.lock();
        let names: Vec<RoomName> = todo.changed.keys().take(rooms_max).cloned().collect();
        names.into_iter().filter_map(|name| todo.changed.remove_entry(&name)).collect()
    }

    fn put_back(&self, room: RoomName, users: impl IntoIterator<Item = UserId>) {
        self.todo.lock().changed.entry(room).or_default().extend(users);
    }

    fn take_unread(&self, parts_max: usize) -> Vec<(RoomName, NodeName)> {
        let mut todo = self.todo.lock();
        let parts: Vec<(RoomName, NodeName)> = todo.unread.iter().take(parts_max).cloned().collect();
        parts.iter().for_each(|part| _ = todo.unread.remove(part));
        parts
    }
}

/// What is heard of others.
impl Rooms {
    /// Another gateway says this of a room.
    pub(crate) fn hear(&self, room: &str, said: Word, epoch: impl Fn() -> u64) {
        let Some(shared) = &self.shared else { return };
        let Word::Part { n, p, v, u } = said else { return };
        let Some(node) = NodeName::read(&n) else { return };
        let mut shard = self.shards[self.place(room)].lock();
        let Some((name, here)) =
            shard.get_key_value(room).map(|(name, _)| name.clone()).zip(shard.get_mut(room))
        else {
            return;
        };
        let known = here.known(&node);
        if known.is_some_and(|known| known >= v) {
            return;
        }
        let Some(changes) = u.filter(|_| known == Some(p)) else {
            self.counters.between.room_gaps.increment();
            drop(shard);
            return shared.read(&name, node);
        };
        let changes = changes.into_iter().filter_map(|(user, text)| {
            let user = UserId::new(user)?;
            Some((user, text.and_then(|text| Guest::read(user, &text, epoch()))))
        });
        let is_due = here.hear(&node, v, changes.collect());
        drop(shard);
        self.tell_later(&name, is_due);
    }

    /// These gateways are alive. Who is not among them for the second time in a row is gone, with everybody it had in
    /// rooms. (One that has just come may be missing in a list that was made before.)
    pub(crate) fn keep_nodes(&self, alive: &[NodeName]) {
        let Some(shared) = &self.shared else { return };
        let mut missing: HashSet<NodeName> = HashSet::new();
        for place in 0..SHARDS {
            for room in self.shards[place].lock().values() {
                missing.extend(room.nodes().into_iter().filter(|node| !alive.contains(node)));
            }
        }
        let before = std::mem::replace(&mut shared.todo.lock().missing, missing.clone());
        for gone in missing.intersection(&before) {
            self.lose_node(gone);
        }
    }

    fn lose_node(&self, node: &NodeName) {
        for place in 0..SHARDS {
            let mut due = Vec::new();
            for (name, room) in self.shards[place].lock().iter_mut() {
                if room.lose(node) {
                    due.push(name.clone());
                }
            }
            due.iter().for_each(|name| self.tell_later(name, true));
        }
    }

    /// The server stops: whoever is sent away comes back elsewhere, and has not left until this gateway is gone.
    pub(crate) fn begin_to_stop(&self) {
        if let Some(shared) = &self.shared {
            shared.is_stopping.store(true, Ordering::Relaxed);
        }
    }

    /// What was told may have been missed: everything is compared.
    pub(crate) fn compare_all(&self) {
        if let Some(shared) = &self.shared {
            shared.todo.lock().compare = true;
            shared.some.notify_one();
        }
    }

    /// The other gateways with somebody in a room.
    pub(crate) fn nodes_of(&self, room: &RoomName) -> Vec<NodeName> {
        self.shard(room).lock().get(room).map(super::room::Room::nodes).unwrap_or_default()
    }

    fn names(&self) -> Vec<RoomName> {
        self.shards.iter().flat_map(|shard| shard.lock().keys().cloned().collect::<Vec<_>>()).collect()
    }
}

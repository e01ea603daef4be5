//! Rooms across gateways: members of a room are listed whichever gateway they use.
//!
//! Each gateway writes its own entry of a room into Redis: its local members. An entry has one writer and a version.
//! Changes are then sent to the gateways with members in the room, through their inboxes.
//!
//! # Layout
//!
//! - this file: the queue of work, and messages from other gateways
//! - [`task`]: the task that writes, sends and reads
//!
//! # Guarantees
//!
//! - State, not events: an entry is read from the room when it is written, so that many changes become one.
//! - No change stays missed. A gateway that enters a room writes its entry before it reads the others'; a version
//!   that does not follow the known one makes it read the entry; and every entry is compared once a minute.
//! - Members at a dead gateway leave as soon as the others notice it, unless they have reconnected.
//! - Local members never wait for Redis.
//!
//! # Deliberately absent
//!
//! A list of all rooms, and any order between gateways: each sends only its own members.

mod task;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::cluster::NodeName;
use domain::UserId;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::remote_member::{RemoteMember, RoomMessage};
use super::{RoomName, Rooms, SHARDS};
pub(crate) use task::RoomSync;

/// Bounded by the local members of rooms.
#[derive(Default)]
struct PendingWork {
    /// Local members that changed, by room.
    changed: HashMap<RoomName, HashSet<UserId>>,
    /// Entries of other gateways to read.
    unread: HashSet<(RoomName, NodeName)>,
    /// All entries are to be compared.
    compare: bool,
    /// Gateways that were missing in the last list of nodes.
    missing: HashSet<NodeName>,
}

#[derive(Default)]
pub(crate) struct RoomSyncQueue {
    todo: Mutex<PendingWork>,
    some: Notify,
    /// Set during shutdown: closed connections are not published as leaves.
    is_stopping: AtomicBool,
}

impl RoomSyncQueue {
    /// A local member changed.
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

/// Messages from other gateways.
impl Rooms {
    pub(crate) fn receive(&self, room: &str, message: RoomMessage, epoch: impl Fn() -> u64) {
        let Some(queue) = &self.sync else { return };
        let RoomMessage::Members { n, p, v, u } = message else { return };
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
            self.counters.messages.room_gaps.increment();
            drop(shard);
            return queue.read(&name, node);
        };
        let changes = changes.into_iter().filter_map(|(user, text)| {
            let user = UserId::new(user)?;
            Some((user, text.and_then(|text| RemoteMember::read(user, &text, epoch()))))
        });
        let is_due = here.apply_changes(&node, v, changes.collect());
        drop(shard);
        self.flush_later(&name, is_due);
    }

    /// The gateways with a valid lease. One that is missing twice in a row is dead, and its members leave. (A new one
    /// may be missing in an older list.)
    pub(crate) fn set_alive_nodes(&self, alive: &[NodeName]) {
        let Some(queue) = &self.sync else { return };
        let mut missing: HashSet<NodeName> = HashSet::new();
        for place in 0..SHARDS {
            for room in self.shards[place].lock().values() {
                missing.extend(room.nodes().into_iter().filter(|node| !alive.contains(node)));
            }
        }
        let before = std::mem::replace(&mut queue.todo.lock().missing, missing.clone());
        for gone in missing.intersection(&before) {
            self.remove_node(gone);
        }
    }

    fn remove_node(&self, node: &NodeName) {
        for place in 0..SHARDS {
            let mut due = Vec::new();
            for (name, room) in self.shards[place].lock().iter_mut() {
                if room.remove_node(node) {
                    due.push(name.clone());
                }
            }
            due.iter().for_each(|name| self.flush_later(name, true));
        }
    }

    /// During shutdown members reconnect to other gateways, and do not leave until this one has ended.
    pub(crate) fn prepare_shutdown(&self) {
        if let Some(queue) = &self.sync {
            queue.is_stopping.store(true, Ordering::Relaxed);
        }
    }

    /// Messages may have been missed: all entries are compared.
    pub(crate) fn compare_all(&self) {
        if let Some(queue) = &self.sync {
            queue.todo.lock().compare = true;
            queue.some.notify_one();
        }
    }

    /// Other gateways with members in a room.
    pub(crate) fn nodes_of(&self, room: &RoomName) -> Vec<NodeName> {
        self.with(room, |room| room.nodes())
    }

    fn names(&self) -> Vec<RoomName> {
        self.shards.iter().flat_map(|shard| shard.lock().keys().cloned().collect::<Vec<_>>()).collect()
    }
}

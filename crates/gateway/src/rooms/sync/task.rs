//! The task that writes this gateway's entries of rooms, notifies other gateways, and reads theirs.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use crate::cluster::{ClusterStore, GatewayMessage, NodeName};
use domain::UserId;
use keyspace::keys::gateways::RoomKeys;
use keyspace::{Redis, RedisError, read_reply, scripts};
use redis::Pipeline;
use tokio::sync::watch;

use super::super::remote_member::{RemoteMember, RoomMessage};
use super::super::{RoomName, Rooms};
use super::RoomSyncQueue;

/// Time to live of an entry and of the interest in a room.
const ENTRY_TTL: Duration = Duration::from_secs(180);
/// Interval at which all entries are renewed and compared.
const RENEW: Duration = Duration::from_secs(60);
/// Rooms written, or entries read, in one pipeline.
const BATCH_MAX: usize = 200;
/// Changes in one message; with more, the receiver reads the entry.
const CHANGES_MAX: usize = 100;
/// Delay after a failure.
const PAUSE: Duration = Duration::from_millis(500);

pub(crate) struct RoomSync {
    pub(crate) redis: Redis,
    pub(crate) store: Arc<ClusterStore>,
    /// Epochs for the visibility of remote members.
    pub(crate) epoch: Box<dyn Fn() -> u64 + Send + Sync>,
}

/// Reply of a write: the version in Redis before, and the other gateways with members in the room.
struct PutReply {
    before: Option<u64>,
    nodes: Vec<NodeName>,
}

/// Versions of this gateway's entries.
#[derive(Default)]
struct OwnEntries {
    node: Option<NodeName>,
    versions: HashMap<RoomName, u64>,
    next: u64,
}

impl Rooms {
    /// Runs until stopped.
    pub(crate) async fn run_sync(&self, sync: RoomSync, mut stop: watch::Receiver<bool>) {
        let Some(waiting) = &self.sync else { return };
        let mut own = OwnEntries::default();
        let mut renewal = tokio::time::interval(RENEW);
        renewal.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = waiting.some.notified() => {}
                _ = renewal.tick() => waiting.todo.lock().compare = true,
                _ = stop.wait_for(|stop| *stop) => return,
            }
            // Dropped at shutdown: unfinished work is found by the next comparison of the other gateways.
            let done = tokio::select! {
                done = self.sync_all(waiting, &sync, &mut own) => done,
                _ = stop.wait_for(|stop| *stop) => return,
            };
            if let Err(error) = done {
                self.counters.messages.room_failures.increment();
                tracing::debug!(%error, "cannot sync rooms with Redis; retrying");
                tokio::select! {
                    () = tokio::time::sleep(PAUSE) => waiting.some.notify_one(),
                    _ = stop.wait_for(|stop| *stop) => return,
                }
            }
        }
    }

    async fn sync_all(
        &self,
        waiting: &RoomSyncQueue,
        sync: &RoomSync,
        own: &mut OwnEntries,
    ) -> Result<(), RedisError> {
        let node = sync.store.node();
        if own.node.as_ref() != Some(&node) {
            // After a rejoin all entries are written under the new name.
            *own = OwnEntries { node: Some(node.clone()), next: own.next, ..OwnEntries::default() };
            self.names().iter().for_each(|name| self.queue_room(waiting, name));
        }
        if std::mem::take(&mut waiting.todo.lock().compare) {
            let compared = self.compare(waiting, sync, own, &node).await;
            compared.inspect_err(|_| waiting.todo.lock().compare = true)?;
        }
        loop {
            let changed = waiting.take_changed(BATCH_MAX);
            if changed.is_empty() {
                break;
            }
            self.put(waiting, sync, own, changed).await?;
        }
        loop {
            let unread = waiting.take_unread(BATCH_MAX);
            if unread.is_empty() {
                return Ok(());
            }
            self.read(waiting, sync, unread).await?;
        }
    }

    /// Writes changed members, notifies the other gateways, and queues the entries to read.
    async fn put(
        &self,
        waiting: &RoomSyncQueue,
        sync: &RoomSync,
        own: &mut OwnEntries,
        changed: Vec<(RoomName, HashSet<UserId>)>,
    ) -> Result<(), RedisError> {
        let Some(node) = own.node.clone() else { return Ok(()) };
        let mut pipeline = Pipeline::new();
        let mut written = Vec::with_capacity(changed.len());
        for (name, users) in changed {
            let (changes, is_here) = self.changes(&name, &users);
            own.next += 1;
            let version = own.next;
            pipeline.add_command(put_call(&name, &node, version, is_here, &changes));
            written.push((name, users, changes, is_here, version));
        }
        let replies = sync.redis.pipeline(&pipeline).await;
        let mut failure = None;
        let mut messages_by_node: HashMap<NodeName, Vec<GatewayMessage>> = HashMap::new();
        for ((name, users, changes, is_here, version), reply) in written.into_iter().zip(replies) {
            let put = match read_put(reply, &node) {
                Ok(put) => put,
                Err(error) => {
                    waiting.put_back(name, users);
                    failure = Some(error);
                    continue;
                }
            };
            self.counters.messages.rooms_written.increment();
            let before = own.versions.get(&name).copied();
            // Redis lost the previous version, or it is unknown: the other gateways must read the whole entry.
            let is_whole = put.before == before;
            match is_here {
                true => _ = own.versions.insert(name.clone(), version),
                false => _ = own.versions.remove(&name),
            }
            if !is_whole && is_here && before.is_some() {
                self.queue_room(waiting, &name);
            }
            let listed = (is_whole && changes.len() <= CHANGES_MAX)
                .then(|| changes.into_iter().map(|(user, member)| (user.get(), member)).collect());
            let text =
                RoomMessage::Members { n: node.to_string(), p: before.unwrap_or(0), v: version, u: listed }
                    .to_text();
            self.update_nodes(waiting, &name, &put.nodes);
            for other in put.nodes {
                let message = GatewayMessage::Room { room: (&*name).into(), body: text.as_str().into() };
                messages_by_node.entry(other).or_default().push(message);
            }
        }
        for (other, messages) in messages_by_node {
            self.counters.messages.messages_sent.add(messages.len() as u64);
            if let Err(error) = sync.store.send(&other, &messages).await {
                // The receiver finds it at its next comparison, or by the version gap of a later message.
                self.counters.messages.messages_failed.add(messages.len() as u64);
                tracing::debug!(%error, node = %other, "cannot send a room message to another gateway");
            }
        }
        failure.map_or(Ok(()), Err)
    }

    fn queue_room(&self, waiting: &RoomSyncQueue, name: &RoomName) {
        waiting.put_back(name.clone(), self.with(name, |room| room.local_users()));
    }

    /// The entries of these users in a room, and whether it has local members.
    fn changes(&self, name: &RoomName, users: &HashSet<UserId>) -> (Vec<(UserId, Option<String>)>, bool) {
        let shard = self.shard(name).lock();
        let room = shard.get(name);
        let text = |user: &UserId| Some(room?.remote_member(*user)?.to_text());
        let changes = users.iter().map(|user| (*user, text(user))).collect();
        (changes, room.is_some_and(|room| !room.has_no_local_clients()))
    }

    /// Queues unknown entries of other gateways to be read, and removes gateways without members.
    fn update_nodes(&self, waiting: &RoomSyncQueue, name: &RoomName, nodes: &[NodeName]) {
        let mut is_due = false;
        if let Some(room) = self.shard(name).lock().get_mut(name) {
            for node in nodes.iter().filter(|node| room.known(node).is_none()) {
                waiting.todo.lock().unread.insert((name.clone(), node.clone()));
            }
            for gone in room.nodes().iter().filter(|node| !nodes.contains(node)) {
                is_due |= room.remove_node(gone);
            }
        }
        self.flush_later(name, is_due);
    }

    /// Reads whole entries of other gateways.
    async fn read(
        &self,
        waiting: &RoomSyncQueue,
        sync: &RoomSync,
        unread: Vec<(RoomName, NodeName)>,
    ) -> Result<(), RedisError> {
        let mut pipeline = Pipeline::new();
        for (name, node) in &unread {
            pipeline.cmd("HGETALL").arg(keys_of(name).members(node.as_str()));
        }
        let replies = sync.redis.pipeline(&pipeline).await;
        let mut failure = None;
        for ((name, node), reply) in unread.into_iter().zip(replies) {
            let part: HashMap<String, String> = match read_reply(reply) {
                Ok(part) => part,
                Err(error) => {
                    waiting.todo.lock().unread.insert((name, node));
                    failure = Some(error);
                    continue;
                }
            };
            self.counters.messages.rooms_read.increment();
            let version: Option<u64> = part.get("v").and_then(|text| text.parse().ok());
            let remote_members = part.iter().filter_map(|(field, text)| {
                let user: UserId = field.parse().ok()?;
                Some((user, RemoteMember::read(user, text, (sync.epoch)())?))
            });
            let is_due = match (self.shard(&name).lock().get_mut(&name), version) {
                // No members in the room any more.
                (Some(room), None) => room.remove_node(&node),
                // A message that arrived meanwhile is newer.
                (Some(room), Some(version)) if room.known(&node).is_none_or(|known| known <= version) => {
                    room.replace(&node, version, remote_members.collect())
                }
                _ => false,
            };
            self.flush_later(&name, is_due);
        }
        failure.map_or(Ok(()), Err)
    }

    /// Renews this gateway's entries, and compares the versions of the others'.
    async fn compare(
        &self,
        waiting: &RoomSyncQueue,
        sync: &RoomSync,
        own: &mut OwnEntries,
        node: &NodeName,
    ) -> Result<(), RedisError> {
        let names: Vec<RoomName> = own.versions.keys().cloned().collect();
        for batch in names.chunks(BATCH_MAX) {
            let mut pipeline = Pipeline::new();
            for name in batch {
                let version = own.versions.get(name).copied().unwrap_or(0);
                pipeline.add_command(put_call(name, node, version, true, &[]));
            }
            let replies = sync.redis.pipeline(&pipeline).await;
            let mut looked = Vec::new();
            let mut versions = Pipeline::new();
            for (name, reply) in batch.iter().zip(replies) {
                let put = read_put(reply, node)?;
                if put.before != own.versions.get(name).copied() {
                    own.versions.remove(name);
                    self.queue_room(waiting, name);
                }
                self.update_nodes(waiting, name, &put.nodes);
                for other in put.nodes {
                    versions.cmd("HGET").arg(keys_of(name).members(other.as_str())).arg("v");
                    looked.push((name.clone(), other));
                }
            }
            for ((name, other), reply) in looked.into_iter().zip(sync.redis.pipeline(&versions).await) {
                let version: Option<u64> = read_reply(reply)?;
                let known = self.shard(&name).lock().get(&name).and_then(|room| room.known(&other));
                if known.is_some() && known != version {
                    waiting.todo.lock().unread.insert((name, other));
                }
            }
        }
        Ok(())
    }
}

fn keys_of(name: &RoomName) -> RoomKeys {
    RoomKeys::of(name.strip_prefix("room:").unwrap_or(name))
}

fn put_call(
    name: &RoomName,
    node: &NodeName,
    version: u64,
    is_here: bool,
    changes: &[(UserId, Option<String>)],
) -> redis::Cmd {
    let keys = keys_of(name);
    let mut call = scripts::ROOM_PUT.call(&[&keys.members(node.as_str()), keys.nodes()]);
    let ttl_ms = u64::try_from(ENTRY_TTL.as_millis()).unwrap_or(u64::MAX);
    call.arg(node.as_str()).arg(ttl_ms).arg(version).arg(u8::from(is_here));
    for (user, remote_member) in changes {
        call.arg(user.get()).arg(remote_member.as_deref().unwrap_or_default());
    }
    call
}

fn read_put(reply: keyspace::Reply, own: &NodeName) -> Result<PutReply, RedisError> {
    let (before, nodes): (String, Vec<String>) = read_reply(reply)?;
    let nodes = nodes.iter().filter_map(|node| NodeName::read(node)).filter(|node| node != own);
    Ok(PutReply { before: before.parse().ok(), nodes: nodes.collect() })
}

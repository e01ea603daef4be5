//! The task that writes the own parts of rooms, tells others, and reads theirs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use domain::UserId;
use keyspace::keys::gateways::RoomKeys;
use keyspace::{Redis, Trouble, read_reply, scripts};
use redis::Pipeline;
use register::{Message, NodeName, Register};
use tokio::sync::watch;

use super::super::guest::{Guest, Word};
use super::super::{RoomName, Rooms};
use super::Waiting;

/// How long a part, and the interest in a room, lasts unless it is renewed.
const LASTS: Duration = Duration::from_secs(180);
/// How often everything is renewed and compared.
const RENEW: Duration = Duration::from_secs(60);
/// Rooms written in one pipeline, and parts read.
const BATCH_MAX: usize = 200;
/// Changes in one message; where there are more, the part is read.
const CHANGES_MAX: usize = 100;
/// How long to wait when Redis does not do it.
const PAUSE: Duration = Duration::from_millis(500);

/// What sharing rooms takes.
pub(crate) struct Sharing {
    pub(crate) redis: Redis,
    pub(crate) register: Arc<Register>,
    /// Numbers for what guests show.
    pub(crate) epoch: Box<dyn Fn() -> u64 + Send + Sync>,
}

/// What was written of a room: who else has somebody in it, and the version that Redis knew before.
struct Put {
    before: Option<u64>,
    nodes: Vec<NodeName>,
}

/// What this task knows of its own parts.
#[derive(Default)]
struct Own {
    node: Option<NodeName>,
    /// The version of each part that was written.
    versions: HashMap<RoomName, u64>,
    next: u64,
}

impl Rooms {
    /// Shares rooms with other gateways until it is told to stop.
    pub(crate) async fn run_sharing(&self, sharing: Sharing, mut stop: watch::Receiver<bool>) {
        let Some(waiting) = &self.shared else { return };
        let mut own = Own::default();
        let mut renewal = tokio::time::interval(RENEW);
        renewal.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = waiting.some.notified() => {}
                _ = renewal.tick() => waiting.todo.lock().compare = true,
                _ = stop.wait_for(|stop| *stop) => return,
            }
            // Dropped where it waits: what was not written or told then is compared by the next who looks.
            let done = tokio::select! {
                done = self.share_all(waiting, &sharing, &mut own) => done,
                _ = stop.wait_for(|stop| *stop) => return,
            };
            if let Err(trouble) = done {
                self.counters.between.room_failures.increment();
                tracing::debug!(%trouble, "rooms cannot be shared right now; it is tried again");
                tokio::select! {
                    () = tokio::time::sleep(PAUSE) => waiting.some.notify_one(),
                    _ = stop.wait_for(|stop| *stop) => return,
                }
            }
        }
    }

    async fn share_all(&self, waiting: &Waiting, sharing: &Sharing, own: &mut Own) -> Result<(), Trouble> {
        let node = sharing.register.node();
        if own.node.as_ref() != Some(&node) {
            // Under another name everything is new to the others.
            *own = Own { node: Some(node.clone()), next: own.next, ..Own::default() };
            self.share_everybody(waiting);
        }
        if std::mem::take(&mut waiting.todo.lock().compare) {
            let compared = self.compare(waiting, sharing, own, &node).await;
            compared.inspect_err(|_| waiting.todo.lock().compare = true)?;
        }
        loop {
            let changed = waiting.take_changed(BATCH_MAX);
            if changed.is_empty() {
                break;
            }
            self.put(waiting, sharing, own, changed).await?;
        }
        loop {
            let unread = waiting.take_unread(BATCH_MAX);
            if unread.is_empty() {
                return Ok(());
            }
            self.read(waiting, sharing, unread).await?;
        }
    }

    fn share_everybody(&self, waiting: &Waiting) {
        for name in self.names() {
            let users =
                self.shard(&name).lock().get(&name).map(|room| room.local_users()).unwrap_or_default();
            waiting.put_back(name, users);
        }
    }

    /// Writes what changed in rooms, tells the others, and notes whose parts are to be read.
    async fn put(
        &self,
        waiting: &Waiting,
        sharing: &Sharing,
        own: &mut Own,
        changed: Vec<(RoomName, std::collections::HashSet<UserId>)>,
    ) -> Result<(), Trouble> {
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
        let replies = sharing.redis.pipeline(&pipeline).await;
        let mut failure = None;
        let mut letters: HashMap<NodeName, Vec<Message>> = HashMap::new();
        for ((name, users, changes, is_here, version), reply) in written.into_iter().zip(replies) {
            let put = match read_put(reply, &node) {
                Ok(put) => put,
                Err(trouble) => {
                    waiting.put_back(name, users);
                    failure = Some(trouble);
                    continue;
                }
            };
            self.counters.between.rooms_written.increment();
            let before = own.versions.get(&name).copied();
            // Redis has lost what was written before, or nobody knows whether it was: the others are to read it all.
            let is_whole = put.before == before;
            match is_here {
                true => _ = own.versions.insert(name.clone(), version),
                false => _ = own.versions.remove(&name),
            }
            if !is_whole && is_here && before.is_some() {
                self.share_room(waiting, &name);
            }
            let told = (is_whole && changes.len() <= CHANGES_MAX)
                .then(|| changes.iter().map(|(user, guest)| (user.get(), guest.clone())).collect::<Vec<_>>());
            let word =
                Word::Part { n: node.to_string(), p: before.unwrap_or(0), v: version, u: told }.to_text();
            self.note_nodes(waiting, &name, &put.nodes);
            for other in put.nodes {
                let message = Message::Room { room: (&*name).into(), body: word.as_str().into() };
                letters.entry(other).or_default().push(message);
            }
        }
        for (other, messages) in letters {
            self.counters.between.messages_sent.add(messages.len() as u64);
            if let Err(trouble) = sharing.register.send(&other, &messages).await {
                // Found by the next comparison of theirs; and a later change shows them that this one is missing.
                self.counters.between.messages_failed.add(messages.len() as u64);
                tracing::debug!(%trouble, node = %other, "another gateway could not be told of a room");
            }
        }
        failure.map_or(Ok(()), Err)
    }

    fn share_room(&self, waiting: &Waiting, name: &RoomName) {
        let users = self.shard(name).lock().get(name).map(|room| room.local_users()).unwrap_or_default();
        waiting.put_back(name.clone(), users);
    }

    /// What there is to say of these people in a room, and whether anybody is in it here.
    fn changes(
        &self,
        name: &RoomName,
        users: &std::collections::HashSet<UserId>,
    ) -> (Vec<(UserId, Option<String>)>, bool) {
        let shard = self.shard(name).lock();
        let room = shard.get(name);
        let text = |user: &UserId| room.and_then(|room| room.guest(*user)).map(|guest| guest.to_text());
        let changes = users.iter().map(|user| (*user, text(user))).collect();
        (changes, room.is_some_and(|room| !room.is_deserted()))
    }

    /// Who else has somebody in a room: parts of others that are not known are to be read, and whoever has nobody in it
    /// any more is taken out.
    fn note_nodes(&self, waiting: &Waiting, name: &RoomName, nodes: &[NodeName]) {
        let mut is_due = false;
        if let Some(room) = self.shard(name).lock().get_mut(name) {
            for node in nodes.iter().filter(|node| room.known(node).is_none()) {
                waiting.todo.lock().unread.insert((name.clone(), node.clone()));
            }
            for gone in room.nodes().iter().filter(|node| !nodes.contains(node)) {
                is_due |= room.lose(gone);
            }
        }
        self.tell_later(name, is_due);
    }

    /// Reads whole parts of others.
    async fn read(
        &self,
        waiting: &Waiting,
        sharing: &Sharing,
        unread: Vec<(RoomName, NodeName)>,
    ) -> Result<(), Trouble> {
        let mut pipeline = Pipeline::new();
        for (name, node) in &unread {
            pipeline.cmd("HGETALL").arg(keys_of(name).part(node.as_str()));
        }
        let replies = sharing.redis.pipeline(&pipeline).await;
        let mut failure = None;
        for ((name, node), reply) in unread.into_iter().zip(replies) {
            let part: HashMap<String, String> = match read_reply(reply) {
                Ok(part) => part,
                Err(trouble) => {
                    waiting.todo.lock().unread.insert((name, node));
                    failure = Some(trouble);
                    continue;
                }
            };
            self.counters.between.rooms_read.increment();
            let version: Option<u64> = part.get("v").and_then(|text| text.parse().ok());
            let guests = part.iter().filter_map(|(field, text)| {
                let user: UserId = field.parse().ok()?;
                Some((user, Guest::read(user, text, (sharing.epoch)())?))
            });
            let is_due = match (self.shard(&name).lock().get_mut(&name), version) {
                // It has nobody in the room any more.
                (Some(room), None) => room.lose(&node),
                // What was told meanwhile is newer.
                (Some(room), Some(version)) if room.known(&node).is_none_or(|known| known <= version) => {
                    room.replace(&node, version, guests.collect())
                }
                _ => false,
            };
            self.tell_later(&name, is_due);
        }
        failure.map_or(Ok(()), Err)
    }

    /// Renews the own parts, and looks whether the others' are as they are known.
    async fn compare(
        &self,
        waiting: &Waiting,
        sharing: &Sharing,
        own: &mut Own,
        node: &NodeName,
    ) -> Result<(), Trouble> {
        let names: Vec<RoomName> = own.versions.keys().cloned().collect();
        for batch in names.chunks(BATCH_MAX) {
            let mut pipeline = Pipeline::new();
            for name in batch {
                let version = own.versions.get(name).copied().unwrap_or(0);
                pipeline.add_command(put_call(name, node, version, true, &[]));
            }
            let replies = sharing.redis.pipeline(&pipeline).await;
            let mut looked = Vec::new();
            let mut versions = Pipeline::new();
            for (name, reply) in batch.iter().zip(replies) {
                let put = read_put(reply, node)?;
                if put.before != own.versions.get(name).copied() {
                    own.versions.remove(name);
                    self.share_room(waiting, name);
                }
                self.note_nodes(waiting, name, &put.nodes);
                for other in put.nodes {
                    versions.cmd("HGET").arg(keys_of(name).part(other.as_str())).arg("v");
                    looked.push((name.clone(), other));
                }
            }
            for ((name, other), reply) in looked.into_iter().zip(sharing.redis.pipeline(&versions).await) {
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
    let mut call = scripts::ROOM_PUT.call(&[&keys.part(node.as_str()), keys.nodes()]);
    let lasts_ms = u64::try_from(LASTS.as_millis()).unwrap_or(u64::MAX);
    call.arg(node.as_str()).arg(lasts_ms).arg(version).arg(u8::from(is_here));
    for (user, guest) in changes {
        call.arg(user.get()).arg(guest.as_deref().unwrap_or_default());
    }
    call
}

fn read_put(reply: keyspace::Reply, own: &NodeName) -> Result<Put, Trouble> {
    let (before, nodes): (String, Vec<String>) = read_reply(reply)?;
    let nodes = nodes.iter().filter_map(|node| NodeName::read(node)).filter(|node| node != own);
    Ok(Put { before: before.parse().ok(), nodes: nodes.collect() })
}

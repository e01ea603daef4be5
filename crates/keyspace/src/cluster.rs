//! Routing on a cluster: slot map, redirects, topology.
//!
//! A command answered with `MOVED` or `ASK` was not executed, so it is sent again to the named node. A command without
//! an answer is never sent again.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use redis::{Cmd, Pipeline, ServerError, Value};
use tokio::task::JoinSet;

use crate::dial::Dialer;
use crate::error::RedisError;
use crate::handle::Reply;
use crate::hash_slots::{SLOTS, key_of, slot_of};
use crate::link::{Link, Target};
use crate::settings::Node;

/// Redirects followed per command.
const REDIRECTS_MAX: usize = 5;

pub(crate) struct Cluster {
    dialer: Arc<Dialer>,
    slot_map: Mutex<Arc<SlotMap>>,
    links: Mutex<HashMap<Node, Arc<Link>>>,
    /// Whether the slot map must be refreshed before the next command.
    is_stale: AtomicBool,
    refreshes: AtomicU64,
    /// Held while refreshing the slot map.
    refresh_lock: tokio::sync::Mutex<()>,
}

/// The master of each slot; empty before the first refresh.
#[derive(Clone, Default)]
struct SlotMap {
    by_slot: Vec<Option<Node>>,
}

/// The nodes of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Topology {
    pub(crate) masters: Vec<Node>,
    pub(crate) replicas: Vec<Node>,
}

enum Redirect {
    /// The slot has moved to this node.
    Moved(u16, Node),
    /// The slot is migrating to this node, and this key has been migrated.
    Ask(Node),
}

impl Cluster {
    pub(crate) fn new(dialer: Arc<Dialer>) -> Self {
        Cluster {
            dialer,
            slot_map: Mutex::new(Arc::new(SlotMap::default())),
            links: Mutex::new(HashMap::new()),
            is_stale: AtomicBool::new(true),
            refreshes: AtomicU64::new(0),
            refresh_lock: tokio::sync::Mutex::new(()),
        }
    }

    /// Sends a command to the master of its first key.
    pub(crate) async fn command(&self, command: &Cmd) -> Reply {
        let slot = key_of(command).map(slot_of);
        for _ in 0..REDIRECTS_MAX {
            let link = self.link_for(slot).await?;
            let reply = self.check_result(link.command(command).await)?;
            match redirect_of(&reply) {
                None => return Ok(reply),
                Some(Redirect::Moved(slot, node)) => self.record_move(slot, node),
                Some(Redirect::Ask(node)) => return self.send_asking(node, command).await,
            }
        }
        Err(too_many_redirects())
    }

    /// Sends each command to the master of its first key: one pipeline per master, all masters concurrently.
    pub(crate) async fn commands(&self, pipeline: &Pipeline) -> Vec<Reply> {
        let commands: Vec<&Cmd> = pipeline.cmd_iter().collect();
        let mut replies: Vec<Reply> = commands.iter().map(|_| Err(too_many_redirects())).collect();
        let mut pending: Vec<usize> = (0..commands.len()).collect();
        for _ in 0..REDIRECTS_MAX {
            if pending.is_empty() {
                break;
            }
            let answered = self.send_round(&commands, std::mem::take(&mut pending)).await;
            for (position, reply) in answered {
                match reply.as_ref().ok().and_then(redirect_of) {
                    None => replies[position] = reply,
                    Some(Redirect::Moved(slot, node)) => {
                        self.record_move(slot, node);
                        pending.push(position);
                    }
                    Some(Redirect::Ask(node)) => {
                        replies[position] = self.send_asking(node, commands[position]).await
                    }
                }
            }
            pending.sort_unstable();
        }
        replies
    }

    /// Sends a transaction to the master of the slot that its keys share.
    pub(crate) async fn transaction(&self, pipeline: &Pipeline) -> Result<Vec<Value>, RedisError> {
        let slot = common_slot(pipeline)?;
        let mut result = Err(too_many_redirects());
        for _ in 0..REDIRECTS_MAX {
            let link = self.link_for(slot).await?;
            result = self.check_result(link.commands(pipeline, pipeline.len() + 1, 1).await);
            match &result {
                Err(error) if error.code() == "MOVED" => {}
                _ => break,
            }
        }
        result
    }

    /// The link to the master of a slot; to any master for none.
    pub(crate) async fn link_for(&self, slot: Option<u16>) -> Result<Arc<Link>, RedisError> {
        let slot_map = self.slot_map().await?;
        let node = match slot {
            Some(slot) => slot_map.by_slot.get(usize::from(slot)).cloned().flatten(),
            None => slot_map.by_slot.iter().flatten().next().cloned(),
        };
        let node = node.ok_or_else(|| {
            self.mark_stale();
            RedisError::Refused {
                code: "CLUSTERDOWN".to_owned(),
                reason: "no node serves this slot: assign all slots (redis-cli --cluster fix)".to_owned(),
            }
        })?;
        Ok(self.link(&node))
    }

    /// The slot map is refreshed before the next command.
    pub(crate) fn mark_stale(&self) {
        self.is_stale.store(true, Ordering::Release);
    }

    /// Reads the topology from the first node that answers. Marks the slot map stale if there is a new master.
    pub(crate) async fn fetch_topology(&self) -> Result<Topology, RedisError> {
        let mut error = RedisError::unavailable("the settings name no node of the cluster");
        for node in self.known_nodes() {
            match self.fetch_slots(&node).await.map(|reply| Topology::read(&reply, &node)) {
                Ok(Some(topology)) => {
                    let slot_map = self.slot_map.lock().clone();
                    let is_known =
                        |master: &Node| slot_map.by_slot.iter().flatten().any(|owner| owner == master);
                    if !topology.masters.iter().all(is_known) {
                        self.mark_stale();
                    }
                    return Ok(topology);
                }
                Ok(None) => error = RedisError::malformed_reply("CLUSTER SLOTS"),
                Err(other) => error = other,
            }
        }
        Err(error)
    }

    /// Marks the slot map stale if the result suggests that slots have moved.
    fn check_result<T: crate::link::Replies>(&self, result: Result<T, RedisError>) -> Result<T, RedisError> {
        let is_stale = match &result {
            Ok(replies) => ["READONLY", "CLUSTERDOWN"].iter().any(|code| replies.has_error_code(code)),
            Err(_) => true,
        };
        if is_stale {
            self.mark_stale();
        }
        result
    }

    async fn send_asking(&self, node: Node, command: &Cmd) -> Reply {
        self.dialer.counters().redirected.fetch_add(1, Ordering::Relaxed);
        let mut pipeline = redis::pipe();
        pipeline.cmd("ASKING").add_command(command.clone());
        let replies = self.link(&node).commands(&pipeline, 1, 1).await?;
        replies.into_iter().next().ok_or_else(|| RedisError::malformed_reply("no reply to ASKING"))
    }

    /// Sends the commands at these positions; returns each position with its reply.
    async fn send_round(&self, commands: &[&Cmd], positions: Vec<usize>) -> Vec<(usize, Reply)> {
        let mut groups: Vec<(Arc<Link>, Pipeline, Vec<usize>)> = Vec::new();
        let mut answered = Vec::with_capacity(positions.len());
        for position in positions {
            let link = match self.link_for(key_of(commands[position]).map(slot_of)).await {
                Ok(link) => link,
                Err(error) => {
                    answered.push((position, Err(error)));
                    continue;
                }
            };
            let known = groups.iter_mut().find(|(other, ..)| Arc::ptr_eq(other, &link));
            let (_, pipeline, group) = match known {
                Some(group) => group,
                None => {
                    groups.push((link, Pipeline::new(), Vec::new()));
                    groups.last_mut().expect("one was pushed just now")
                }
            };
            pipeline.add_command(commands[position].clone());
            group.push(position);
        }
        let mut tasks = JoinSet::new();
        for (link, pipeline, group) in groups {
            tasks.spawn(async move { (link.commands(&pipeline, 0, pipeline.len()).await, group) });
        }
        while let Some(joined) = tasks.join_next().await {
            let Ok((result, group)) = joined else { continue };
            match self.check_result(result) {
                Ok(values) => answered.extend(group.into_iter().zip(values.into_iter().map(Ok))),
                Err(error) => {
                    answered.extend(group.into_iter().map(|position| (position, Err(error.clone()))))
                }
            }
        }
        answered
    }

    fn link(&self, node: &Node) -> Arc<Link> {
        let mut links = self.links.lock();
        let link = links
            .entry(node.clone())
            .or_insert_with(|| Arc::new(Link::new(self.dialer.clone(), Target::Node(node.clone()))));
        link.clone()
    }

    fn record_move(&self, slot: u16, node: Node) {
        self.dialer.counters().redirected.fetch_add(1, Ordering::Relaxed);
        let mut slot_map = self.slot_map.lock();
        if let Some(owner) = Arc::make_mut(&mut slot_map).by_slot.get_mut(usize::from(slot)) {
            *owner = Some(node);
        }
        self.mark_stale();
    }

    async fn slot_map(&self) -> Result<Arc<SlotMap>, RedisError> {
        let seen = self.refreshes.load(Ordering::Acquire);
        if self.is_stale.load(Ordering::Acquire) {
            let refreshed = self.refresh(seen).await;
            // If the refresh fails, an outdated map is used.
            if self.slot_map.lock().by_slot.is_empty() {
                refreshed?;
            }
        }
        Ok(self.slot_map.lock().clone())
    }

    /// Reads the slot map from the first node that answers, unless it was refreshed since `seen`.
    async fn refresh(&self, seen: u64) -> Result<(), RedisError> {
        let _guard = self.refresh_lock.lock().await;
        if self.refreshes.load(Ordering::Acquire) != seen {
            return Ok(());
        }
        let mut error = RedisError::unavailable("the settings name no node of the cluster");
        for node in self.known_nodes() {
            match self.fetch_slot_map(&node).await {
                Ok(slot_map) => {
                    self.links
                        .lock()
                        .retain(|node, _| slot_map.by_slot.iter().flatten().any(|owner| owner == node));
                    *self.slot_map.lock() = Arc::new(slot_map);
                    self.is_stale.store(false, Ordering::Release);
                    self.refreshes.fetch_add(1, Ordering::AcqRel);
                    return Ok(());
                }
                Err(other) => error = other,
            }
        }
        Err(error)
    }

    /// Masters of the slot map, then the configured nodes.
    fn known_nodes(&self) -> Vec<Node> {
        let slot_map = self.slot_map.lock().clone();
        let mut nodes: Vec<Node> = Vec::new();
        for node in slot_map.by_slot.iter().flatten().chain(&self.dialer.settings().nodes) {
            if nodes.last() != Some(node) && !nodes.contains(node) {
                nodes.push(node.clone());
            }
        }
        nodes
    }

    async fn fetch_slot_map(&self, node: &Node) -> Result<SlotMap, RedisError> {
        let reply = self.fetch_slots(node).await?;
        SlotMap::read(&reply, node).ok_or_else(|| RedisError::malformed_reply("CLUSTER SLOTS"))
    }

    async fn fetch_slots(&self, node: &Node) -> Reply {
        let mut command = redis::cmd("CLUSTER");
        command.arg("SLOTS");
        match self.link(node).command(&command).await? {
            Value::ServerError(error) => match RedisError::from_reply(&error) {
                RedisError::Other { reason, .. } => Err(RedisError::settings(format!(
                    "{node} is not a cluster node ({reason}): write redis:// instead"
                ))),
                error => Err(error),
            },
            reply => Ok(reply),
        }
    }
}

impl SlotMap {
    /// Parses the reply to `CLUSTER SLOTS`: ranges, each with its master first.
    fn read(reply: &Value, asked: &Node) -> Option<SlotMap> {
        let mut slot_map = SlotMap { by_slot: vec![None; usize::from(SLOTS)] };
        for range in reply.as_sequence()? {
            let [Value::Int(first), Value::Int(last), master, ..] = range.as_sequence()? else {
                return None;
            };
            let node = node_of(master, asked)?;
            let slots = usize::try_from(*first).ok()?..=usize::try_from(*last).ok()?;
            slot_map.by_slot.get_mut(slots)?.fill(Some(node));
        }
        Some(slot_map)
    }
}

impl Topology {
    /// Parses the reply to `CLUSTER SLOTS`; each node once, ordered by slot.
    fn read(reply: &Value, asked: &Node) -> Option<Topology> {
        let mut topology = Topology::default();
        for range in reply.as_sequence()? {
            let [_, _, nodes @ ..] = range.as_sequence()? else { return None };
            for (position, node) in nodes.iter().enumerate() {
                let node = node_of(node, asked)?;
                let list = if position == 0 { &mut topology.masters } else { &mut topology.replicas };
                if !list.contains(&node) {
                    list.push(node);
                }
            }
        }
        Some(topology)
    }
}

/// Parses host and port of a node.
fn node_of(value: &Value, asked: &Node) -> Option<Node> {
    let [host, Value::Int(port), ..] = value.as_sequence()? else {
        return None;
    };
    let host = match host {
        Value::BulkString(host) if !host.is_empty() && host != b"?" => {
            String::from_utf8(host.clone()).ok()?
        }
        // A node that does not know its own address is the one that was asked.
        _ => asked.host.clone(),
    };
    Some(Node { host, port: u16::try_from(*port).ok()? })
}

fn common_slot(pipeline: &Pipeline) -> Result<Option<u16>, RedisError> {
    let mut slots = pipeline.cmd_iter().filter_map(|command| key_of(command).map(slot_of));
    let first = slots.next();
    match slots.all(|slot| Some(slot) == first) {
        true => Ok(first),
        false => Err(RedisError::Other {
            code: "CROSSSLOT".to_owned(),
            reason: "the keys of a transaction must share a slot".to_owned(),
        }),
    }
}

fn redirect_of(reply: &Value) -> Option<Redirect> {
    let Value::ServerError(error) = reply else {
        return None;
    };
    let (slot, node) = address_of(error)?;
    match error.code() {
        "MOVED" => Some(Redirect::Moved(slot, node)),
        "ASK" => Some(Redirect::Ask(node)),
        _ => None,
    }
}

/// Parses `3999 127.0.0.1:6381`.
fn address_of(error: &ServerError) -> Option<(u16, Node)> {
    let (slot, address) = error.details()?.split_once(' ')?;
    let (host, port) = address.rsplit_once(':')?;
    Some((slot.parse().ok()?, Node { host: host.to_owned(), port: port.parse().ok()? }))
}

fn too_many_redirects() -> RedisError {
    RedisError::Refused {
        code: "MOVED".to_owned(),
        reason: "too many redirects: slots of the cluster are migrating".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cluster_slots_are_parsed() {
        let reply = "*2\r\n*3\r\n:0\r\n:8191\r\n*2\r\n$9\r\n127.0.0.1\r\n:7001\r\n*3\r\n:8192\r\n:16383\r\n*2\r\n$0\r\n\r\n:7002\r\n";
        let asked = Node { host: "seed".to_owned(), port: 1 };
        let slot_map = SlotMap::read(&redis::parse_redis_value(reply.as_bytes()).unwrap(), &asked).unwrap();
        assert_eq!(slot_map.by_slot[8191].as_ref().unwrap().to_string(), "127.0.0.1:7001");
        assert_eq!(slot_map.by_slot[8192].as_ref().unwrap().to_string(), "seed:7002");
        let topology = Topology::read(&redis::parse_redis_value(reply.as_bytes()).unwrap(), &asked).unwrap();
        assert_eq!((topology.masters.len(), topology.replicas.len()), (2, 0));
    }

    #[test]
    fn a_moved_reply_is_parsed() {
        let reply = redis::parse_redis_value(b"-MOVED 3999 ::1:6381\r\n").unwrap();
        match redirect_of(&reply) {
            Some(Redirect::Moved(3999, node)) => assert_eq!((node.host.as_str(), node.port), ("::1", 6381)),
            _ => panic!("not parsed"),
        }
    }

    #[test]
    fn a_transaction_across_slots_is_refused() {
        let mut pipeline = redis::pipe();
        pipeline.atomic().cmd("SET").arg("{a}1").arg(1).cmd("SET").arg("{a}2").arg(1);
        assert_eq!(common_slot(&pipeline).unwrap(), Some(slot_of(b"a")));
        pipeline.cmd("SET").arg("b").arg(1);
        assert!(common_slot(&pipeline).is_err());
    }
}

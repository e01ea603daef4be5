//! A node of the cluster: join, renew, leave.
//!
//! # Guarantees
//!
//! - A node renews a lease. A node whose lease ended is declared dead by another node, but only by one that has been
//!   in contact with Redis for the length of a lease, and that saw by its own clock that the lease was not renewed
//!   for about that long. So no node is declared dead because of an outage, or because Redis's clock was set.
//! - A node that was declared dead never writes under the same incarnation again.
//! - If Redis lost its data, no node was declared dead, and nodes are members again when they renew.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::UserId;
use domain::clock::{Clock, Stopwatch, SystemClock};
use keyspace::keys::presence::{NODES, NODES_DEAD, NODES_INFO};
use keyspace::{PresenceKeys, Redis, RedisError, Reply, read_reply, scripts};
use parking_lot::Mutex;
use redis::Pipeline;
use tokio::sync::watch;

use super::counters::ClusterCounters;
use super::inbox::Inbox;
use super::node::NodeName;
use super::notify::UnsentEntries;
use super::reap::ReapState;
use super::record::Membership;
use super::settings::{ClusterSettings, ms};

/// How long dead nodes are listed, and their writes fenced.
pub(crate) const DEAD_NODE_TTL: Duration = Duration::from_secs(3600);
/// How long an inbox stays after its node renewed it.
const INBOX_TTL: Duration = Duration::from_secs(600);
/// Former incarnations whose entries are removed when this node writes. Entries of older ones have been reaped by
/// then.
const FORMER_NAMES_MAX: usize = 4;
pub(crate) const BATCH_MAX: usize = 1000;

/// One node of the cluster.
pub struct ClusterStore {
    pub(crate) redis: Redis,
    pub(crate) keys: PresenceKeys,
    pub(crate) settings: ClusterSettings,
    pub(crate) counters: Arc<ClusterCounters>,
    name: String,
    random: Mutex<fastrand::Rng>,
    /// The current name, and where its inbox begins.
    place: watch::Sender<InboxStart>,
    /// Former incarnations, newest first.
    former_names: Mutex<VecDeque<NodeName>>,
    membership: Mutex<MembershipState>,
    /// Numbers calls, so that an unanswered one can be recognised.
    calls: AtomicU64,
    /// First unanswered call about each user.
    pub(crate) unanswered: Mutex<HashMap<UserId, u64>>,
    pub(crate) unsent: Mutex<UnsentEntries>,
    pub(crate) reap_state: Mutex<ReapState>,
}

#[derive(Clone, Debug)]
pub(crate) struct InboxStart {
    pub node: NodeName,
    pub start: String,
}

/// The nodes, as of the last renewal.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeList {
    pub is_member: bool,
    /// The end of each lease, as Redis returns it.
    leases: Vec<(NodeName, String)>,
    pub live: Vec<NodeName>,
    /// Lease ended, not declared dead yet.
    pub lapsed: Vec<NodeName>,
    pub gone: Vec<NodeName>,
}

struct MembershipState {
    node_list: NodeList,
    was_alone: bool,
    /// Start of the current uninterrupted contact with Redis.
    contact: Option<Stopwatch>,
    renewed: Stopwatch,
    /// The end of each other lease, and since when it has not changed.
    leases_seen: HashMap<NodeName, (String, Stopwatch)>,
}

impl MembershipState {
    fn new(node_list: NodeList, was_alone: bool, contact: Option<Stopwatch>) -> MembershipState {
        let renewed = Stopwatch::start();
        let mut state = MembershipState {
            node_list: NodeList::default(),
            was_alone,
            contact,
            renewed,
            leases_seen: HashMap::new(),
        };
        state.update_nodes(node_list);
        state
    }

    /// Updates the known state of the nodes.
    fn update_nodes(&mut self, node_list: NodeList) {
        let mut before = std::mem::take(&mut self.leases_seen);
        let since = |(node, till): &(NodeName, String)| {
            let known = before.remove(node).filter(|(seen, _)| seen == till);
            (node.clone(), known.unwrap_or_else(|| (till.clone(), Stopwatch::start())))
        };
        self.leases_seen = node_list.leases.iter().map(since).collect();
        self.node_list = node_list;
    }

    /// Nodes that did not renew for `length`, by this node's clock.
    fn stale(&self, length: Duration) -> Vec<(NodeName, String)> {
        let stale = self.leases_seen.iter().filter(|(_, (_, since))| since.elapsed() >= length);
        stale.map(|(node, (till, _))| (node.clone(), till.clone())).collect()
    }
}

impl ClusterStore {
    /// Joins as the node `name`, which no other node has.
    pub async fn join(
        redis: Redis,
        name: &str,
        settings: ClusterSettings,
    ) -> Result<ClusterStore, RedisError> {
        let mut random = fastrand::Rng::with_seed(settings.seed ^ SystemClock.now_ms());
        let node = NodeName::incarnate(name, SystemClock.now_ms(), random.u16(..))?;
        let keys = PresenceKeys::new(redis.mode());
        let start = open_inbox(&redis, &keys, &node).await?;
        let node_list = change_nodes(&redis, &node, &NodesRequest::join(&settings)).await?;
        let was_alone = node_list.live.iter().all(|other| *other == node);
        let contact = Some(Stopwatch::start());
        let state = MembershipState::new(node_list, was_alone, contact);
        let place = InboxStart { node, start };
        Ok(ClusterStore::at(redis, settings, name, place, state))
    }

    /// Joins as [`ClusterStore::join`], but where Redis is away it becomes a node as soon as it renews.
    pub async fn join_when_possible(
        redis: Redis,
        name: &str,
        settings: ClusterSettings,
    ) -> Result<ClusterStore, RedisError> {
        match ClusterStore::join(redis.clone(), name, settings.clone()).await {
            Err(
                RedisError::Unavailable { .. } | RedisError::Unanswered { .. } | RedisError::Refused { .. },
            ) => {}
            joined => return joined,
        }
        let mut random = fastrand::Rng::with_seed(settings.seed ^ SystemClock.now_ms());
        let node = NodeName::incarnate(name, SystemClock.now_ms(), random.u16(..))?;
        // Other nodes are unknown, so users are not restored from the database.
        let state = MembershipState::new(NodeList::default(), false, None);
        let place = InboxStart { node, start: "0-0".to_owned() };
        Ok(ClusterStore::at(redis, settings, name, place, state))
    }

    fn at(
        redis: Redis,
        settings: ClusterSettings,
        name: &str,
        place: InboxStart,
        state: MembershipState,
    ) -> ClusterStore {
        let random = fastrand::Rng::with_seed(settings.seed.rotate_left(32) ^ SystemClock.now_ms());
        ClusterStore {
            keys: PresenceKeys::new(redis.mode()),
            counters: Arc::default(),
            name: name.to_owned(),
            random: Mutex::new(random),
            place: watch::Sender::new(place),
            former_names: Mutex::default(),
            membership: Mutex::new(state),
            calls: AtomicU64::new(1),
            unanswered: Mutex::default(),
            unsent: Mutex::default(),
            reap_state: Mutex::default(),
            redis,
            settings,
        }
    }

    pub fn node(&self) -> NodeName {
        self.place.borrow().node.clone()
    }

    /// Former incarnations, comma-separated: their entries are removed with each write.
    pub(crate) fn former_names(&self) -> String {
        let former_names = self.former_names.lock();
        former_names.iter().map(NodeName::as_str).collect::<Vec<&str>>().join(",")
    }

    /// Time to live of a user's public keys unless this node renews its entry.
    pub fn keys_ttl(&self) -> Duration {
        self.settings.keys_ttl
    }

    pub fn counters(&self) -> &Arc<ClusterCounters> {
        &self.counters
    }

    /// Entries since this node joined. One reader at a time. Must be called within a Tokio runtime.
    pub fn inbox(&self) -> Inbox {
        Inbox::open(self.redis.clone(), self.keys, Arc::clone(&self.counters), self.place.subscribe())
    }

    /// Renews the lease and stores `info`, a small JSON about this node. Call it several times per lease.
    pub async fn renew(&self, info: &str) -> Result<Membership, RedisError> {
        let node = self.node();
        if self.membership.lock().renewed.elapsed() > DEAD_NODE_TTL / 2 {
            // The list of dead nodes may have forgotten this one.
            self.membership.lock().node_list.is_member = false;
            return Ok(self.membership());
        }
        let stale =
            self.may_declare_dead().then(|| self.membership.lock().stale(self.settings.lease / 5 * 4));
        let asking = NodesRequest { change: "renew", info, stale, lease: self.settings.lease };
        match change_nodes(&self.redis, &node, &asking).await {
            Ok(node_list) => {
                let mut state = self.membership.lock();
                self.counters.nodes.set(node_list.live.len());
                state.renewed = Stopwatch::start();
                state.contact.get_or_insert_with(Stopwatch::start);
                state.update_nodes(node_list);
            }
            Err(error) => {
                self.counters.failures.increment();
                self.membership.lock().contact = None;
                return Err(error);
            }
        }
        if self.membership.lock().node_list.is_member {
            self.keep_inbox(&node).await;
        }
        Ok(self.membership())
    }

    /// The `info` of each node with a valid lease.
    pub async fn infos(&self) -> Result<Vec<(NodeName, String)>, RedisError> {
        let mut command = redis::cmd("HGETALL");
        command.arg(NODES_INFO);
        let mut infos: HashMap<String, String> = self.counted(self.redis.query(&command).await)?;
        let live = self.node_list().live;
        Ok(live.into_iter().filter_map(|node| Some((node.clone(), infos.remove(node.as_str())?))).collect())
    }

    /// Joins under a new incarnation with a new inbox. Other nodes remove the entries of the old one, so all users
    /// must be published and watched again.
    pub async fn rejoin(&self) -> Result<(), RedisError> {
        let before = self.node();
        let random = self.random.lock().u16(..);
        let node = NodeName::incarnate(&self.name, SystemClock.now_ms(), random)?;
        let start = self.counted(open_inbox(&self.redis, &self.keys, &node).await)?;
        let asking = NodesRequest::join(&self.settings);
        let node_list = self.counted(change_nodes(&self.redis, &node, &asking).await)?;
        {
            let mut state = self.membership.lock();
            state.update_nodes(node_list);
            state.renewed = Stopwatch::start();
        }
        self.unanswered.lock().clear();
        {
            let mut former_names = self.former_names.lock();
            former_names.push_front(before.clone());
            former_names.truncate(FORMER_NAMES_MAX);
        }
        self.place.send_replace(InboxStart { node, start });
        self.counters.rejoins.increment();
        // If this fails, its lease ends by itself.
        self.declare_dead(&before).await;
        Ok(())
    }

    /// Other nodes remove what was written under a former incarnation, also if Redis lost the list of dead nodes
    /// meanwhile.
    pub async fn declare_dead(&self, former: &NodeName) {
        self.counted(self.remove_node(former).await).ok();
    }

    /// This node's users become pending at once.
    pub async fn leave(&self) -> Result<(), RedisError> {
        self.membership.lock().node_list.is_member = false;
        self.counted(self.remove_node(&self.node()).await)
    }

    async fn remove_node(&self, node: &NodeName) -> Result<(), RedisError> {
        let asking = NodesRequest { change: "leave", ..NodesRequest::join(&self.settings) };
        change_nodes(&self.redis, node, &asking).await?;
        let mut command = redis::cmd("UNLINK");
        command.arg(self.keys.inbox(node.as_str()));
        self.redis.query::<u8>(&command).await.map(drop)
    }

    /// Whether this node may declare others dead.
    fn may_declare_dead(&self) -> bool {
        let mut state = self.membership.lock();
        if state.renewed.elapsed() > self.settings.lease {
            // The process was suspended; Redis may have been unreachable meanwhile.
            state.contact = None;
        }
        state.contact.is_some_and(|since| since.elapsed() >= self.settings.lease)
    }

    /// Extends the inbox's expiry, and recreates a missing inbox.
    async fn keep_inbox(&self, node: &NodeName) {
        let key = self.keys.inbox(node.as_str());
        let mut pipeline = redis::pipe();
        pipeline.cmd("PEXPIRE").arg(&key).arg(ms(INBOX_TTL)).cmd("XLEN").arg(&key);
        let mut replies = self.send_all(&pipeline).await.into_iter();
        let is_there = self.counted(read_reply::<bool>(replies.next().unwrap_or(Ok(redis::Value::Int(1)))));
        if let Some(Ok(length)) = replies.next().map(read_reply::<usize>) {
            self.counters.inbox_length.set(length);
            if length >= self.settings.inbox_max {
                self.counters.inbox_full.increment();
            }
        }
        if is_there == Ok(false) {
            // The reader detects the gap.
            self.counted(open_inbox(&self.redis, &self.keys, node).await).ok();
        }
    }

    fn membership(&self) -> Membership {
        let state = self.membership.lock();
        Membership {
            is_member: state.node_list.is_member,
            nodes: state.node_list.live.clone(),
            was_alone: state.was_alone,
        }
    }

    /// The nodes, as of the last renewal.
    pub(crate) fn node_list(&self) -> NodeList {
        self.membership.lock().node_list.clone()
    }

    pub(crate) fn next_call(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends a pipeline; counts its duration and its failures.
    pub(crate) async fn send_all(&self, pipeline: &Pipeline) -> Vec<Reply> {
        if pipeline.is_empty() {
            return Vec::new();
        }
        let since = Stopwatch::start();
        let replies = self.redis.pipeline(pipeline).await;
        self.counters.pipeline_seconds.record(since.elapsed());
        self.counters.failures.add(replies.iter().filter(|reply| reply.is_err()).count() as u64);
        replies
    }

    pub(crate) fn counted<T>(&self, result: Result<T, RedisError>) -> Result<T, RedisError> {
        result.inspect_err(|_| self.counters.failures.increment())
    }
}

impl fmt::Debug for ClusterStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterStore({})", self.node())
    }
}

/// Arguments of the script that changes the list of nodes.
struct NodesRequest<'a> {
    change: &'static str,
    info: &'a str,
    /// Nodes that did not renew; none if this node may not declare others dead.
    stale: Option<Vec<(NodeName, String)>>,
    lease: Duration,
}

impl NodesRequest<'_> {
    fn join(settings: &ClusterSettings) -> NodesRequest<'static> {
        NodesRequest { change: "join", info: "{}", stale: None, lease: settings.lease }
    }
}

async fn change_nodes(
    redis: &Redis,
    node: &NodeName,
    asking: &NodesRequest<'_>,
) -> Result<NodeList, RedisError> {
    let mut call = scripts::PRESENCE_NODES.call(&[NODES, NODES_DEAD, NODES_INFO]);
    call.arg(asking.change).arg(node.as_str()).arg(ms(asking.lease)).arg(asking.info);
    call.arg(u8::from(asking.stale.is_some())).arg(ms(DEAD_NODE_TTL));
    for (stale, till) in asking.stale.iter().flatten() {
        call.arg(stale.as_str()).arg(till);
    }
    type Leases = Vec<(String, String)>;
    let (is_member, live, lapsed, gone): (bool, Leases, Leases, Vec<String>) = redis.query(&call).await?;
    let read = |names: &mut dyn Iterator<Item = &String>| {
        let mut nodes: Vec<NodeName> = names.filter_map(|name| NodeName::read(name)).collect();
        nodes.sort();
        nodes
    };
    let leases = live.iter().chain(&lapsed);
    Ok(NodeList {
        is_member,
        leases: leases.filter_map(|(name, till)| Some((NodeName::read(name)?, till.clone()))).collect(),
        live: read(&mut live.iter().map(|(name, _)| name)),
        lapsed: read(&mut lapsed.iter().map(|(name, _)| name)),
        gone: read(&mut gone.iter()),
    })
}

/// Creates an inbox with one entry, whose id is where reading begins.
pub(crate) async fn open_inbox(
    redis: &Redis,
    keys: &PresenceKeys,
    node: &NodeName,
) -> Result<String, RedisError> {
    let key = keys.inbox(node.as_str());
    let mut pipeline = redis::pipe();
    pipeline.cmd("XADD").arg(&key).arg("*").arg("j").arg(1);
    pipeline.cmd("PEXPIRE").arg(&key).arg(ms(INBOX_TTL));
    let replies = redis.transaction(&pipeline).await?;
    read_reply(replies.into_iter().next().ok_or_else(super::reply::unexpected)?)
}

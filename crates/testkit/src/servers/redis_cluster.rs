//! A Redis Cluster of three masters, and replicas that take over from them.

use std::time::Duration;

use super::redis::{RedisBuilder, RedisServer};
use crate::wait::eventually;

const MASTERS: usize = 3;
const SLOTS: usize = 16_384;
/// How long the nodes may take to agree on a busy machine.
const AGREE_LIMIT: Duration = Duration::from_secs(60);

/// A cluster: three masters, then their replicas in the same order. Dropping it ends all nodes.
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
}

impl RedisCluster {
    /// Three masters without replicas that keep nothing on disk.
    pub fn start() -> Self {
        Self::start_with(&RedisServer::builder(), 0)
    }

    /// Three masters with so many replicas each, all built alike.
    pub fn start_with(builder: &RedisBuilder, replicas_each: usize) -> Self {
        let nodes: Vec<RedisServer> =
            (0..MASTERS * (1 + replicas_each)).map(|_| builder.clone().cluster_node().start()).collect();
        let cluster = RedisCluster { nodes };
        for (index, node) in cluster.nodes[..MASTERS].iter().enumerate() {
            let (first, last) = (index * SLOTS / MASTERS, (index + 1) * SLOTS / MASTERS - 1);
            node.cli(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]);
            // Masters with equal epochs would first have to resolve the conflict.
            node.cli(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]);
        }
        cluster.introduce();
        cluster.assign_replicas();
        cluster.wait_ok();
        cluster
    }

    /// The addresses of all nodes that run.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().filter(|node| node.is_running()).map(RedisServer::url).collect()
    }

    /// A node: 0, 1 and 2 began as masters.
    pub fn node(&self, index: usize) -> &RedisServer {
        &self.nodes[index]
    }

    /// A node, to be killed or restarted.
    pub fn node_mut(&mut self, index: usize) -> &mut RedisServer {
        &mut self.nodes[index]
    }

    /// How many nodes there are, running or not.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Never true: there are three nodes at least.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Runs one command with `redis-cli -c`, which follows redirections to whichever node holds the key.
    #[track_caller]
    pub fn cli(&self, args: &[&str]) -> String {
        let through = self.nodes.iter().find(|node| node.is_running()).expect("a node runs");
        through.cli(&[&["-c"], args].concat())
    }

    /// Which node answers for a key now; none while a failover is under way.
    pub fn master_of(&self, key: &str) -> Option<usize> {
        // The others, replicas included, redirect.
        let answers = |node: &RedisServer| node.is_running() && node.try_cli(&["EXISTS", key]).is_ok();
        self.nodes.iter().position(answers)
    }

    /// Kills the node that answers for a key, and says which it was.
    #[track_caller]
    pub fn kill_master_of(&mut self, key: &str) -> usize {
        let master = self.master_of(key).expect("a node answers for the key");
        self.nodes[master].kill();
        master
    }

    /// Waits until some node answers for a key, and says which.
    #[track_caller]
    pub fn wait_master_of(&self, key: &str) -> usize {
        eventually("a replica to take over", AGREE_LIMIT, || self.master_of(key))
    }

    /// Waits until every node that runs says that all slots are served.
    #[track_caller]
    pub fn wait_ok(&self) {
        for node in self.nodes.iter().filter(|node| node.is_running()) {
            eventually("the cluster to be whole", AGREE_LIMIT, || {
                let info = node.try_cli(&["CLUSTER", "INFO"]).unwrap_or_default();
                info.contains("cluster_state:ok").then_some(())
            });
        }
    }

    /// Every node meets every other; gossip alone would take seconds.
    fn introduce(&self) {
        for (index, node) in self.nodes.iter().enumerate() {
            for other in &self.nodes[index + 1..] {
                let bus = other.cli(&["CONFIG", "GET", "cluster-port"]);
                let bus = bus.lines().last().expect("a value follows the name").to_owned();
                node.cli(&["CLUSTER", "MEET", "127.0.0.1", &other.port().to_string(), &bus]);
            }
        }
        for node in &self.nodes {
            eventually("the nodes to know each other", AGREE_LIMIT, || {
                let known = node.cli(&["CLUSTER", "NODES"]);
                let is_settled = known.lines().count() == self.nodes.len() && !known.contains("handshake");
                is_settled.then_some(())
            });
        }
    }

    fn assign_replicas(&self) {
        for (index, replica) in self.nodes.iter().enumerate().skip(MASTERS) {
            let master = self.nodes[index % MASTERS].cli(&["CLUSTER", "MYID"]);
            replica.cli(&["CLUSTER", "REPLICATE", &master]);
        }
        for replica in &self.nodes[MASTERS..] {
            eventually("a replica to follow its master", AGREE_LIMIT, || {
                replica.cli(&["INFO", "replication"]).contains("master_link_status:up").then_some(())
            });
        }
    }
}

//! Number of users online, over all gateways.
//!
//! # Guarantees
//!
//! - Every gateway stores its own counts with its lease. The sum costs one read, however many users there are.
//! - A user with devices at several gateways is counted by the first of them by name. Until a gateway knows of a
//!   remote session, and between renewals, the sum can be off by that much.
//!
//! # Deliberately absent
//!
//! Users that are pending after a gateway died: no gateway has them.

use presence::{Platform, Status, UserCounts};
use serde::{Deserialize, Serialize};

use super::ClusterSync;
use crate::hub::OnlineCount;

/// The `info` of a node's lease.
#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct NodeInfo {
    /// By status, in the order of [`Status::ALL`].
    persons: Vec<u32>,
    connections: u32,
    without_connection: u32,
    /// In the order of [`Platform::ALL`].
    platforms: Vec<u64>,
}

impl ClusterSync {
    pub(super) fn lease_info(&self) -> String {
        let OnlineCount { tally, connections } = self.count_of_this_node();
        let info = NodeInfo {
            persons: tally.users.to_vec(),
            connections: tally.connections,
            without_connection: tally.without_connection,
            platforms: connections.to_vec(),
        };
        serde_json::to_string(&info).unwrap_or_default()
    }

    /// Without users that another gateway counts.
    fn count_of_this_node(&self) -> OnlineCount {
        let mut count = self.users.online_count();
        let own = self.context.store.node();
        for shard in self.users.shards() {
            let shard = shard.lock();
            for user in shard.sync.iter().flat_map(|sync| sync.state.counted_by_others(&own)) {
                let counted = &mut count.tally.users[shard.roster.own_view(user).status as usize];
                *counted = counted.saturating_sub(1);
            }
        }
        count
    }

    /// Over all gateways; only this one if the others cannot be read.
    pub(crate) async fn online_count(&self) -> OnlineCount {
        let mut count = self.count_of_this_node();
        let own = self.context.store.node();
        match self.context.store.infos().await {
            Ok(infos) => {
                for (_, info) in infos.into_iter().filter(|(node, _)| *node != own) {
                    add(&mut count, &serde_json::from_str(&info).unwrap_or_default());
                }
            }
            Err(error) => tracing::debug!(%error, "cannot read the counts of other gateways"),
        }
        count
    }
}

fn add(count: &mut OnlineCount, info: &NodeInfo) {
    let UserCounts { users, connections, without_connection, .. } = &mut count.tally;
    for (status, more) in Status::ALL.into_iter().zip(&info.persons) {
        users[status as usize] = users[status as usize].saturating_add(*more);
    }
    *connections = connections.saturating_add(info.connections);
    *without_connection = without_connection.saturating_add(info.without_connection);
    for (platform, more) in Platform::ALL.into_iter().zip(&info.platforms) {
        count.connections[platform as usize] += more;
    }
}

//! How many are here, over all gateways.
//!
//! # Guarantees
//!
//! - Every gateway says with its lease how many it has. The sum costs one question, however many they are.
//! - Who has devices at several gateways is counted by the first of them by name, so once. While a gateway has not heard
//!   yet that somebody is elsewhere too, and for as long as leases are not renewed, the sum is as much off.
//!
//! # Deliberately absent
//!
//! Those who are pending after a gateway died: no gateway has them.

use std::sync::Arc;

use presence::{Platform, Status, Tally};
use register::RegisterCounters;
use serde::{Deserialize, Serialize};

use crate::hub::{Hub, OnlineCount};

/// What a gateway says of itself.
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

impl Hub {
    /// What other gateways may know of this one.
    pub(super) fn lease_info(&self) -> String {
        let OnlineCount { tally, connections } = self.count_of_this_node();
        let info = NodeInfo {
            persons: tally.persons.to_vec(),
            connections: tally.connections,
            without_connection: tally.without_connection,
            platforms: connections.to_vec(),
        };
        serde_json::to_string(&info).unwrap_or_default()
    }

    /// How many are here, less those whom another gateway counts.
    fn count_of_this_node(&self) -> OnlineCount {
        let mut count = self.online_count();
        let Some(register) = self.register() else { return count };
        let own = register.node();
        for shard in self.shards() {
            let shard = shard.lock();
            let Some(book) = &shard.book else { continue };
            for user in book.counted_elsewhere(&own) {
                let counted = &mut count.tally.persons[shard.roster.own_view(user).status as usize];
                *counted = counted.saturating_sub(1);
            }
        }
        count
    }

    /// How many are here, over all gateways; those of this one where the others cannot be asked about.
    pub async fn online_count_everywhere(&self) -> OnlineCount {
        let mut count = self.count_of_this_node();
        let Some(register) = self.register() else { return count };
        let own = register.node();
        match register.infos().await {
            Ok(infos) => {
                let others = infos.into_iter().filter(|(node, _)| *node != own);
                others
                    .for_each(|(_, info)| add(&mut count, &serde_json::from_str(&info).unwrap_or_default()));
            }
            Err(trouble) => tracing::debug!(%trouble, "how many are at other gateways cannot be asked"),
        }
        count
    }

    /// What the register counts; none for who is alone.
    pub fn register_counters(&self) -> Option<Arc<RegisterCounters>> {
        self.register().map(|register| Arc::clone(register.counters()))
    }

    /// Seconds since the register last answered that all is well; none for who is alone.
    pub fn since_contact_s(&self) -> Option<u64> {
        let sharing = self.outside.sharing.as_ref()?;
        Some(self.now().0.saturating_sub(sharing.contact_at().0) / 1000)
    }

    /// How many gateways there are, as far as this one knows.
    pub fn nodes_alive(&self) -> u64 {
        self.register().map_or(1, |register| register.counters().nodes.get().max(1))
    }
}

fn add(count: &mut OnlineCount, info: &NodeInfo) {
    let Tally { persons, connections, without_connection, .. } = &mut count.tally;
    for (status, more) in Status::ALL.into_iter().zip(&info.persons) {
        persons[status as usize] = persons[status as usize].saturating_add(*more);
    }
    *connections = connections.saturating_add(info.connections);
    *without_connection = without_connection.saturating_add(info.without_connection);
    for (platform, more) in Platform::ALL.into_iter().zip(&info.platforms) {
        count.connections[platform as usize] += more;
    }
}

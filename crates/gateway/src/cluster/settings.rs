//! Times of the cluster.

use std::time::Duration;

use domain::Seconds;

/// All nodes of a cluster have the same settings, except for the seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSettings {
    /// A node that has not renewed its lease for this long may be declared dead.
    pub lease: Duration,
    /// How long a node receives a user's changes after it watched the user.
    pub interest: Duration,
    /// How long users of a dead node can reconnect before they are offline.
    pub pending: Seconds,
    /// Time to live of a user's public keys unless a node renews its entry (P19).
    pub keys_ttl: Duration,
    /// Entries of an inbox, about; older ones are lost, and its reader learns of a gap.
    pub inbox_max: usize,
    /// How long the record of an offline user is kept.
    pub keep: Duration,
    /// Makes names of incarnations differ.
    pub seed: u64,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        ClusterSettings {
            lease: Duration::from_secs(10),
            interest: Duration::from_secs(300),
            pending: Seconds(300),
            keys_ttl: Duration::from_secs(90),
            inbox_max: 100_000,
            keep: Duration::from_secs(24 * 3600),
            seed: 0,
        }
    }
}

/// A duration in milliseconds, as Redis takes it.
pub(crate) fn ms(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

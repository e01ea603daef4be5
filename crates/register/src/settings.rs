//! How long things may take.

use std::time::Duration;

use domain::Seconds;

/// The settings of a node. All nodes of a register have the same, but for the seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterSettings {
    /// A node that has not renewed its standing for this long may be declared dead.
    pub lease: Duration,
    /// How long a node is told of a person after it asked.
    pub interest: Duration,
    /// How long people of a node that died have to come back.
    pub pending: Seconds,
    /// Entries of an inbox, about; older ones are lost, and its reader learns of a gap.
    pub inbox_max: usize,
    /// How long the record of somebody who left is kept.
    pub keep: Duration,
    /// Makes names of incarnations differ.
    pub seed: u64,
}

impl Default for RegisterSettings {
    fn default() -> Self {
        RegisterSettings {
            lease: Duration::from_secs(10),
            interest: Duration::from_secs(300),
            pending: Seconds(300),
            inbox_max: 100_000,
            keep: Duration::from_secs(24 * 3600),
            seed: 0,
        }
    }
}

/// A length in milliseconds, as Redis wants it.
pub(crate) fn ms(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

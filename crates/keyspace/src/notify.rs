//! Whether Redis tells of expired keys: `notify-keyspace-events` must hold `K` and `x` (M6).
//!
//! # Guarantees
//!
//! - What is turned on already stays on: letters are added to the setting, and none is taken away.
//! - A server that does not let us set it is reported, with what to write into its configuration.
//!
//! # Deliberately absent
//!
//! `CONFIG REWRITE`: the file is the operator's. So the setting is gone after a restart of Redis, and whoever listens
//! sets it again on every connection.

use redis::aio::MultiplexedConnection;

use crate::error::RedisError;
use crate::handle::Redis;
use crate::settings::Node;

/// The name of the setting.
const SETTING: &str = "notify-keyspace-events";
/// What to do where Redis does not let us.
pub const REMEDY: &str = "write \"notify-keyspace-events Kx\" into redis.conf and restart Redis, or type CONFIG SET \
                          notify-keyspace-events Kx; until then silent peers are found by the sweep alone, later";

/// Whether a server tells of expired keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpiryNotifications {
    /// It did so before we asked.
    AlreadyEnabled,
    /// It does since we asked.
    Enabled {
        /// The setting as it is now.
        flags: String,
    },
    /// It does not: see [`REMEDY`].
    Refused {
        /// What it says.
        reason: String,
    },
}

impl ExpiryNotifications {
    /// Whether it tells of expired keys now.
    pub fn is_enabled(&self) -> bool {
        !matches!(self, ExpiryNotifications::Refused { .. })
    }
}

impl Redis {
    /// Asks every server (on a cluster, replicas as well: one of them may be master soon) to tell of expired keys.
    /// One that cannot be reached is reported as refusing.
    pub async fn ensure_expiry_notifications(&self) -> Result<Vec<(Node, ExpiryNotifications)>, RedisError> {
        let timeout = Some(self.settings().response_timeout);
        let mut found = Vec::new();
        for node in self.servers().await? {
            let outcome = match self.dialer().dial(&node, timeout).await {
                Ok(mut connection) => ensure_enabled(&mut connection).await,
                Err(error) => ExpiryNotifications::Refused { reason: error.to_string() },
            };
            found.push((node, outcome));
        }
        Ok(found)
    }
}

/// Asks one server.
pub(crate) async fn ensure_enabled(connection: &mut MultiplexedConnection) -> ExpiryNotifications {
    let present: Result<(String, String), _> =
        redis::cmd("CONFIG").arg("GET").arg(SETTING).query_async(connection).await;
    let flags = match present {
        Ok((_, flags)) => flags,
        Err(error) => return ExpiryNotifications::Refused { reason: error.to_string() },
    };
    let Some(flags) = with_required_flags(&flags) else {
        return ExpiryNotifications::AlreadyEnabled;
    };
    match redis::cmd("CONFIG").arg("SET").arg(SETTING).arg(&flags).query_async::<()>(connection).await {
        Ok(()) => ExpiryNotifications::Enabled { flags },
        Err(error) => ExpiryNotifications::Refused { reason: error.to_string() },
    }
}

/// Whether this setting of `notify-keyspace-events` tells of expired keys as we listen to them.
pub fn reports_expired_keys(flags: &str) -> bool {
    with_required_flags(flags).is_none()
}

/// The setting with what is missing from it; none if nothing is. `A` stands for all events, `x` among them.
fn with_required_flags(flags: &str) -> Option<String> {
    let mut all = flags.to_owned();
    if !flags.contains('K') {
        all.push('K');
    }
    if !flags.contains(['x', 'A']) {
        all.push('x');
    }
    (all != flags).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m6_flags_are_added_and_none_is_taken_away() {
        assert_eq!(with_required_flags("").as_deref(), Some("Kx"));
        assert_eq!(with_required_flags("gE").as_deref(), Some("gEKx"));
        assert_eq!(with_required_flags("Ex").as_deref(), Some("ExK"));
        assert_eq!(with_required_flags("AE").as_deref(), Some("AEK"));
        for enough in ["Kx", "xK", "AK", "AKE"] {
            assert!(reports_expired_keys(enough), "{enough}");
        }
    }
}

//! Notifications of expired keys: `notify-keyspace-events` must contain `K` and `x` (M6).
//!
//! # Guarantees
//!
//! - Flags are added to the setting; none is removed.
//! - If a server refuses, that is reported with the line for its configuration.
//!
//! # Deliberately absent
//!
//! `CONFIG REWRITE`: the file belongs to the operator. A restart of Redis therefore loses the flags, and subscribers
//! set them again on every connection.

use redis::aio::MultiplexedConnection;

use crate::error::RedisError;
use crate::handle::Redis;
use crate::settings::Node;

const SETTING: &str = "notify-keyspace-events";
/// For [`ExpiryNotifications::Refused`].
pub const REMEDY: &str = "write \"notify-keyspace-events Kx\" into redis.conf and restart Redis, or run CONFIG SET \
                          notify-keyspace-events Kx; until then expired peers are found only by the reconciliation sweep, later";

/// State of the expiry notifications of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpiryNotifications {
    AlreadyEnabled,
    /// Enabled by this call.
    Enabled {
        /// The new value of `notify-keyspace-events`.
        flags: String,
    },
    /// Disabled: see [`REMEDY`].
    Refused {
        reason: String,
    },
}

impl ExpiryNotifications {
    pub fn is_enabled(&self) -> bool {
        !matches!(self, ExpiryNotifications::Refused { .. })
    }
}

impl Redis {
    /// Enables expiry notifications on every master, and on a cluster on every replica, which may be promoted. An
    /// unreachable server is reported as [`ExpiryNotifications::Refused`].
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

/// Enables expiry notifications on one server.
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

/// Whether this value of `notify-keyspace-events` enables the notifications that we subscribe to.
pub fn reports_expired_keys(flags: &str) -> bool {
    with_required_flags(flags).is_none()
}

/// The value with the missing flags added; none if none is missing. `A` includes `x`.
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
    fn m6_flags_are_added_and_none_is_removed() {
        assert_eq!(with_required_flags("").as_deref(), Some("Kx"));
        assert_eq!(with_required_flags("gE").as_deref(), Some("gEKx"));
        assert_eq!(with_required_flags("Ex").as_deref(), Some("ExK"));
        assert_eq!(with_required_flags("AE").as_deref(), Some("AEK"));
        for enough in ["Kx", "xK", "AK", "AKE"] {
            assert!(reports_expired_keys(enough), "{enough}");
        }
    }
}

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

use crate::error::Trouble;
use crate::handle::Redis;
use crate::settings::Node;

/// The name of the setting.
const SETTING: &str = "notify-keyspace-events";
/// What to do where Redis does not let us.
pub const REMEDY: &str = "write \"notify-keyspace-events Kx\" into redis.conf and restart Redis, or type CONFIG SET \
                          notify-keyspace-events Kx; until then silent peers are found by the sweep alone, later";

/// Whether a server tells of expired keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notifications {
    /// It did so before we asked.
    AlreadyOn,
    /// It does since we asked.
    SetByUs {
        /// The setting as it is now.
        flags: String,
    },
    /// It does not: see [`REMEDY`].
    Refused {
        /// What it says.
        reason: String,
    },
}

impl Notifications {
    /// Whether it tells of expired keys now.
    pub fn is_on(&self) -> bool {
        !matches!(self, Notifications::Refused { .. })
    }
}

impl Redis {
    /// Asks every server (on a cluster, replicas as well: one of them may be master soon) to tell of expired keys.
    /// One that cannot be reached is reported as refusing.
    pub async fn ensure_expiry_notifications(&self) -> Result<Vec<(Node, Notifications)>, Trouble> {
        let timeout = Some(self.settings().response_timeout);
        let mut found = Vec::new();
        for node in self.servers().await? {
            let outcome = match self.dialer().dial(&node, timeout).await {
                Ok(mut connection) => ensure_on(&mut connection).await,
                Err(trouble) => Notifications::Refused { reason: trouble.to_string() },
            };
            found.push((node, outcome));
        }
        Ok(found)
    }
}

/// Asks one server.
pub(crate) async fn ensure_on(connection: &mut MultiplexedConnection) -> Notifications {
    let present: Result<(String, String), _> =
        redis::cmd("CONFIG").arg("GET").arg(SETTING).query_async(connection).await;
    let flags = match present {
        Ok((_, flags)) => flags,
        Err(error) => return Notifications::Refused { reason: error.to_string() },
    };
    let Some(flags) = missing_added(&flags) else {
        return Notifications::AlreadyOn;
    };
    match redis::cmd("CONFIG").arg("SET").arg(SETTING).arg(&flags).query_async::<()>(connection).await {
        Ok(()) => Notifications::SetByUs { flags },
        Err(error) => Notifications::Refused { reason: error.to_string() },
    }
}

/// Whether this setting of `notify-keyspace-events` tells of expired keys as we listen to them.
pub fn tells_of_expired(flags: &str) -> bool {
    missing_added(flags).is_none()
}

/// The setting with what is missing from it; none if nothing is. `A` stands for all events, `x` among them.
fn missing_added(flags: &str) -> Option<String> {
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
        assert_eq!(missing_added("").as_deref(), Some("Kx"));
        assert_eq!(missing_added("gE").as_deref(), Some("gEKx"));
        assert_eq!(missing_added("Ex").as_deref(), Some("ExK"));
        assert_eq!(missing_added("AE").as_deref(), Some("AEK"));
        for enough in ["Kx", "xK", "AK", "AKE"] {
            assert!(tells_of_expired(enough), "{enough}");
        }
    }
}

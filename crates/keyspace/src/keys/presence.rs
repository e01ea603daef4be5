//! Keys of users' presence and of gateways.
//!
//! `presence`, `connection` and `heartbeat` are public, for other programs (P3). The others are private and have the
//! same names in every mode; keys of one script share a hash tag. `lua/presence.lua` documents the record.

use domain::UserId;

use crate::settings::Mode;

/// Sorted set, private: incarnations of gateways, by the end of their lease (ms).
pub const NODES: &str = "{p:nodes}";
/// Sorted set, private: incarnations that were declared dead, by the time of that (ms).
pub const NODES_DEAD: &str = "{p:nodes}:gone";
/// Hash, private: JSON description of each incarnation.
pub const NODES_INFO: &str = "{p:nodes}:info";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresenceKeys {
    is_cluster: bool,
}

/// The keys of one user, in one slot on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserPresenceKeys {
    /// Hash, private: the record (`lua/presence.lua`).
    pub record: String,
    /// Sorted set, private: watching incarnations of gateways, by expiry (ms).
    pub watchers: String,
    /// String: public status, `online`, `away` or `busy`; absent: offline or pending (P3).
    pub presence: String,
    /// String: comma-separated names of the gateways the user is connected to (P3).
    pub connection: String,
    /// String: last activity, in Unix seconds (P3).
    pub heartbeat: String,
}

impl UserPresenceKeys {
    /// In the order of KEYS of the scripts.
    pub fn all(&self) -> [&str; 5] {
        [&self.record, &self.watchers, &self.presence, &self.connection, &self.heartbeat]
    }
}

impl PresenceKeys {
    pub fn new(mode: Mode) -> PresenceKeys {
        PresenceKeys { is_cluster: mode == Mode::Cluster }
    }

    pub fn user(&self, user: UserId) -> UserPresenceKeys {
        let public = |name: &str| match self.is_cluster {
            true => format!("{name}:{{{user}}}"),
            false => format!("{name}:{user}"),
        };
        UserPresenceKeys {
            record: format!("p:u:{{{user}}}"),
            watchers: format!("p:w:{{{user}}}"),
            presence: public("presence"),
            connection: public("connection"),
            heartbeat: public("heartbeat"),
        }
    }

    /// Sorted set, private: users of a shard with an entry of this incarnation, by the entry's deadline (ms).
    pub fn due(&self, shard: u8, incarnation: &str) -> String {
        format!("p:due:{{p{shard:02}}}:{incarnation}")
    }

    /// Sorted set, private: pending users of a shard, by the end of the pending period (ms). Incarnations contain a
    /// dot, so none has this name.
    pub fn due_pending(&self, shard: u8) -> String {
        self.due(shard, "pending")
    }

    /// Stream, private: gateway messages to an incarnation.
    pub fn inbox(&self, incarnation: &str) -> String {
        format!("p:in:{incarnation}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash_slots::slot_of;

    #[test]
    fn p3_names_on_a_single_redis_match_the_requirements() {
        for mode in [Mode::Single, Mode::Sentinel] {
            let keys = PresenceKeys::new(mode).user(UserId::new(7).unwrap());
            assert_eq!(keys.all(), ["p:u:{7}", "p:w:{7}", "presence:7", "connection:7", "heartbeat:7"]);
        }
    }

    #[test]
    fn p16_on_a_cluster_keys_of_a_script_share_a_slot() {
        let keys = PresenceKeys::new(Mode::Cluster);
        let user_keys = keys.user(UserId::new(7).unwrap());
        assert_eq!(user_keys.presence, "presence:{7}");
        let slot = slot_of(b"7");
        assert!(user_keys.all().iter().all(|key| slot_of(key.as_bytes()) == slot));
        assert_eq!(keys.due(3, "gw.1"), "p:due:{p03}:gw.1");
        assert_eq!(slot_of(keys.due(3, "gw.1").as_bytes()), slot_of(keys.due_pending(3).as_bytes()));
        let slot = slot_of(NODES.as_bytes());
        assert!([NODES_DEAD, NODES_INFO].iter().all(|key| slot_of(key.as_bytes()) == slot));
    }
}

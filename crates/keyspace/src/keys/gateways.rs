//! Keys shared by gateways: leader leases, and rooms with members on several gateways.
//!
//! The names are the same on a single Redis and on a cluster: the hash tags are part of them.

/// String, private: lease of the gateway that sends webhooks.
pub const WEBHOOKS_LEASE_KEY: &str = "{p:nodes}:webhooks";
/// String, private: lease of the gateway that prunes the event history.
pub const PRUNING_LEASE_KEY: &str = "{p:nodes}:pruning";

/// The keys of one room, in one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomKeys {
    base: String,
}

impl RoomKeys {
    pub fn of(room: &str) -> RoomKeys {
        // A brace in the name would end the hash tag.
        let mut base = String::with_capacity(room.len() + 8);
        base.push_str("p:r:{");
        for character in room.chars() {
            match character {
                '{' => base.push_str("%7B"),
                '}' => base.push_str("%7D"),
                '%' => base.push_str("%25"),
                other => base.push(other),
            }
        }
        base.push('}');
        RoomKeys { base }
    }

    /// Sorted set, private: gateways with members in the room, by expiry (ms).
    pub fn nodes(&self) -> &str {
        &self.base
    }

    /// Hash, private: the room's members on one gateway by user id, and `v`, a version that rises with each change.
    pub fn members(&self, node: &str) -> String {
        format!("{}:{node}", self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash_slots::slot_of;

    #[test]
    fn p16_keys_of_a_room_share_a_slot_for_any_name() {
        for name in ["lobby", "{}", "}", "{", "a}b{c", "100%", "%7D", "日本"] {
            let keys = RoomKeys::of(name);
            let slot = slot_of(keys.nodes().as_bytes());
            assert_eq!(slot, slot_of(keys.members("gw-a.18c2f0a1b2c3d4e5f").as_bytes()), "{name}");
        }
        assert_ne!(RoomKeys::of("}"), RoomKeys::of("%7D"));
        assert_eq!(RoomKeys::of("lobby").members("gw.1"), "p:r:{lobby}:gw.1");
    }
}

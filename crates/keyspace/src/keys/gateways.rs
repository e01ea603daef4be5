//! Keys of what gateways do together: turns that one of them has at a time, and rooms with people on several.
//!
//! The names are the same on a single Redis and on a cluster: the hash tags are part of them.

/// String, private: which gateway tells the site who comes and goes.
pub const WEBHOOKS_LEASE_KEY: &str = "{p:nodes}:webhooks";
/// String, private: which gateway shortens the history.
pub const PRUNING_LEASE_KEY: &str = "{p:nodes}:pruning";

/// The keys of a room, all in one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomKeys {
    base: String,
}

impl RoomKeys {
    /// The keys of a room of this name.
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

    /// Sorted set, private: gateways with somebody in the room, score = until when that holds (ms).
    pub fn nodes(&self) -> &str {
        &self.base
    }

    /// Hash, private: whom one gateway has in the room, by their user id, and `v`, which grows with each change.
    pub fn members(&self, node: &str) -> String {
        format!("{}:{node}", self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slots::slot_of;

    #[test]
    fn p16_keys_of_a_room_share_a_slot_whatever_its_name_is() {
        for name in ["lobby", "{}", "}", "{", "a}b{c", "100%", "%7D", "日本"] {
            let keys = RoomKeys::of(name);
            let slot = slot_of(keys.nodes().as_bytes());
            assert_eq!(slot, slot_of(keys.members("gw-a.18c2f0a1b2c3d4e5f").as_bytes()), "{name}");
        }
        assert_ne!(RoomKeys::of("}"), RoomKeys::of("%7D"));
        assert_eq!(RoomKeys::of("lobby").members("gw.1"), "p:r:{lobby}:gw.1");
    }
}

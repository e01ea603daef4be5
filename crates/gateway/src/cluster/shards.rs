//! Assigns users to shards, and shards to nodes by rendezvous hashing.
//!
//! # Guarantees
//!
//! - Nodes that know the same nodes agree, and every shard has exactly one owner.
//! - A node that joins or leaves moves only its own share.

use domain::UserId;

use super::node::NodeName;

pub const SHARDS: u8 = 64;

pub fn shard_of(user: UserId) -> u8 {
    u8::try_from(mix(user.get()) % u64::from(SHARDS)).unwrap_or(0)
}

/// The owner of a shard among these nodes: the one with the highest draw.
pub fn owner_of(shard: u8, nodes: &[NodeName]) -> Option<&NodeName> {
    nodes.iter().max_by_key(|node| (draw(shard, node), node.as_str()))
}

fn draw(shard: u8, node: &NodeName) -> u64 {
    // FNV-1a, then mixed: a fixed definition, so that nodes of all versions agree.
    let hash = node.as_str().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    mix(hash ^ mix(u64::from(shard) + 1))
}

/// The last step of SplitMix64: every bit of the number counts for every bit of the result.
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(count: u16) -> Vec<NodeName> {
        (0..count).map(|number| NodeName::incarnate(&format!("gw-{number}"), 1, number).unwrap()).collect()
    }

    #[test]
    fn p13_users_are_spread_evenly_over_the_shards() {
        let mut counts = [0_u32; SHARDS as usize];
        (1..=64_000).for_each(|id| counts[usize::from(shard_of(UserId::new(id).unwrap()))] += 1);
        assert!(counts.iter().all(|count| (800..1200).contains(count)), "{counts:?}");
    }

    #[test]
    fn p13_a_node_that_comes_or_goes_moves_its_own_share_only() {
        assert_eq!(owner_of(0, &[]), None);
        for count in 1..=16 {
            let (few, many) = (nodes(count), nodes(count + 1));
            let new = many.last().unwrap();
            let mut moved = 0;
            for shard in 0..SHARDS {
                let (before, after) = (owner_of(shard, &few).unwrap(), owner_of(shard, &many).unwrap());
                // Shards move only to the new node.
                assert!(after == before || after == new, "shard {shard} of {count} nodes");
                moved += u32::from(after != before);
            }
            let share = u32::from(SHARDS) / u32::from(count + 1);
            assert!(
                moved >= 1 && moved <= share * 2 + 4,
                "{moved} of {SHARDS} moved to one of {}",
                count + 1
            );
        }
        let mut turned = nodes(7);
        turned.reverse();
        assert!((0..SHARDS).all(|shard| owner_of(shard, &turned) == owner_of(shard, &nodes(7))));
    }
}

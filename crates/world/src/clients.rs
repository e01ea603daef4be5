//! Which BitTorrent clients there are: how their peer ids begin, what they call themselves, what they ask for.

use domain::PeerId;
use fastrand::Rng;

/// A program and one of its versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// How its peer ids begin.
    pub prefix: &'static str,
    /// What it says over HTTP.
    pub agent: &'static str,
    /// How many peers it asks for.
    pub numwant: i32,
    /// Of a hundred clients, how many are of this kind.
    share: u32,
}

/// The clients of a private site, by how common they are.
pub const FAMILIES: [Family; 11] = [
    Family { prefix: "-qB5030-", agent: "qBittorrent/5.0.3", numwant: 200, share: 22 },
    Family { prefix: "-qB4670-", agent: "qBittorrent/4.6.7", numwant: 200, share: 20 },
    Family { prefix: "-qB4390-", agent: "qBittorrent/4.3.9", numwant: 200, share: 6 },
    Family { prefix: "-TR4060-", agent: "Transmission/4.0.6", numwant: 80, share: 17 },
    Family { prefix: "-TR3000-", agent: "Transmission/3.00", numwant: 80, share: 8 },
    Family { prefix: "-DE211s-", agent: "Deluge/2.1.1 libtorrent/2.0.9.0", numwant: 200, share: 8 },
    Family { prefix: "-lt0D80-", agent: "rtorrent/0.9.8/0.13.8", numwant: 100, share: 8 },
    Family { prefix: "-UT355W-", agent: "uTorrent/3550(45852)", numwant: 200, share: 4 },
    Family { prefix: "-BI3600-", agent: "BiglyBT 3.6.0.0", numwant: 100, share: 3 },
    Family { prefix: "-LT20B0-", agent: "libtorrent/2.0.11.0", numwant: 200, share: 2 },
    Family { prefix: "A2-1-37-0-", agent: "aria2/1.37.0", numwant: 50, share: 2 },
];

/// A client that private sites do not let in.
pub const FORBIDDEN: Family = Family { prefix: "-XL0019-", agent: "Xunlei/0.0.1.9", numwant: 200, share: 0 };

/// What sites write into their lists: how peer ids begin, the name, and whether it is let in.
pub const RULES: [(&str, &str, bool); 9] = [
    ("-qB", "qBittorrent", true),
    ("-TR", "Transmission", true),
    ("-DE", "Deluge", true),
    ("-lt", "rTorrent", true),
    ("-UT", "µTorrent", true),
    ("-BI", "BiglyBT", true),
    ("-LT", "libtorrent", true),
    ("A2-", "aria2", true),
    ("-XL", "Xunlei 迅雷", false),
];

impl Family {
    /// One of them, the common ones more often.
    pub fn choose(random: &mut Rng) -> Family {
        let mut rest = random.u32(..100);
        for family in FAMILIES {
            match rest.checked_sub(family.share) {
                Some(less) => rest = less,
                None => return family,
            }
        }
        FAMILIES[0]
    }

    /// A new peer id, as programs make one at every start.
    pub fn peer_id(&self, random: &mut Rng) -> PeerId {
        let mut bytes = [0; 20];
        bytes[..self.prefix.len()].copy_from_slice(self.prefix.as_bytes());
        bytes[self.prefix.len()..].fill_with(|| random.alphanumeric() as u8);
        PeerId(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percents_and_every_client_is_on_the_list() {
        assert_eq!(FAMILIES.iter().map(|family| family.share).sum::<u32>(), 100);
        for family in FAMILIES {
            assert!(RULES.iter().any(|(prefix, _, allowed)| *allowed && family.prefix.starts_with(prefix)));
        }
        assert!(RULES.iter().any(|(prefix, _, allowed)| !allowed && FORBIDDEN.prefix.starts_with(prefix)));
    }

    #[test]
    fn a_peer_id_begins_with_its_program_and_goes_on_at_random() {
        let mut random = Rng::with_seed(3);
        let family = Family::choose(&mut random);
        let (one, other) = (family.peer_id(&mut random), family.peer_id(&mut random));
        assert!(one.0.starts_with(family.prefix.as_bytes()));
        assert_ne!(one, other);
    }
}

//! BitTorrent clients: peer id prefixes, user agents, `numwant`.

use domain::PeerId;
use fastrand::Rng;

/// A client program in one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientProgram {
    /// The prefix of its peer ids.
    pub prefix: &'static str,
    /// The `User-Agent` over HTTP.
    pub agent: &'static str,
    pub numwant: i32,
    /// Percentage of all clients.
    share: u32,
}

/// The clients of a private site, most common first.
pub const PROGRAMS: [ClientProgram; 11] = [
    ClientProgram { prefix: "-qB5030-", agent: "qBittorrent/5.0.3", numwant: 200, share: 22 },
    ClientProgram { prefix: "-qB4670-", agent: "qBittorrent/4.6.7", numwant: 200, share: 20 },
    ClientProgram { prefix: "-qB4390-", agent: "qBittorrent/4.3.9", numwant: 200, share: 6 },
    ClientProgram { prefix: "-TR4060-", agent: "Transmission/4.0.6", numwant: 80, share: 17 },
    ClientProgram { prefix: "-TR3000-", agent: "Transmission/3.00", numwant: 80, share: 8 },
    ClientProgram { prefix: "-DE211s-", agent: "Deluge/2.1.1 libtorrent/2.0.9.0", numwant: 200, share: 8 },
    ClientProgram { prefix: "-lt0D80-", agent: "rtorrent/0.9.8/0.13.8", numwant: 100, share: 8 },
    ClientProgram { prefix: "-UT355W-", agent: "uTorrent/3550(45852)", numwant: 200, share: 4 },
    ClientProgram { prefix: "-BI3600-", agent: "BiglyBT 3.6.0.0", numwant: 100, share: 3 },
    ClientProgram { prefix: "-LT20B0-", agent: "libtorrent/2.0.11.0", numwant: 200, share: 2 },
    ClientProgram { prefix: "A2-1-37-0-", agent: "aria2/1.37.0", numwant: 50, share: 2 },
];

pub const TRANSMISSION: ClientProgram = PROGRAMS[3];

/// A client that private sites forbid.
pub const FORBIDDEN: ClientProgram =
    ClientProgram { prefix: "-XL0019-", agent: "Xunlei/0.0.1.9", numwant: 200, share: 0 };

/// Rules of a site: peer id prefix, name, and whether it is allowed.
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

impl ClientProgram {
    /// Chooses by share.
    pub fn choose(random: &mut Rng) -> ClientProgram {
        let mut rest = random.u32(..100);
        for program in PROGRAMS {
            match rest.checked_sub(program.share) {
                Some(less) => rest = less,
                None => return program,
            }
        }
        PROGRAMS[0]
    }

    /// A new peer id, as programs generate at every start.
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
        assert_eq!(PROGRAMS.iter().map(|program| program.share).sum::<u32>(), 100);
        for program in PROGRAMS {
            assert!(RULES.iter().any(|(prefix, _, allowed)| *allowed && program.prefix.starts_with(prefix)));
        }
        assert!(RULES.iter().any(|(prefix, _, allowed)| !allowed && FORBIDDEN.prefix.starts_with(prefix)));
    }

    #[test]
    fn a_peer_id_begins_with_its_program_and_goes_on_at_random() {
        let mut random = Rng::with_seed(3);
        let program = ClientProgram::choose(&mut random);
        let (one, other) = (program.peer_id(&mut random), program.peer_id(&mut random));
        assert!(one.0.starts_with(program.prefix.as_bytes()));
        assert_ne!(one, other);
    }
}

//! The activity lists, read from Redis as other programs do, and by the command.

use std::collections::{BTreeMap, BTreeSet};

use testkit::population::{info_hash_of, passkey_of};
use testkit::{ActivityLists, Population};

use super::Site;

impl Site {
    /// All lists, read with one `redis-cli` (A1, A5). Unregistered torrents are 0.
    #[track_caller]
    pub fn lists_in_redis(&self, population: &Population) -> ActivityLists {
        let torrent_of: BTreeMap<String, u64> =
            population.torrents().into_iter().map(|(id, hash)| (hash.to_string(), id)).collect();
        let mut commands = String::new();
        for (user, passkey) in population.users() {
            for list in ["seed", "leech"] {
                commands
                    .push_str(&format!("ECHO {list}-{user}\nZRANGE tracker:user:{list}:{passkey} 0 -1\n"));
            }
        }
        let mut activity_lists = ActivityLists::default();
        let mut current = ("", 0);
        let replies = self.redis().cli_lines(&commands);
        for line in replies.lines().filter(|line| !line.is_empty()) {
            if let Some((list, user)) = line.split_once('-') {
                current = (list, user.parse().expect("a user's number"));
                continue;
            }
            let set =
                if current.0 == "seed" { &mut activity_lists.seeding } else { &mut activity_lists.leeching };
            set.insert((current.1, torrent_of.get(line).copied().unwrap_or_default()));
        }
        activity_lists
    }

    /// Of one user, by the command.
    #[track_caller]
    pub fn listed(&self, list: &str, user: u64, torrents: u64) -> BTreeSet<u64> {
        let reply = self.server.cli(&["user", list, &user.to_string()]);
        let listed = reply["torrents"].as_array().expect("a list of torrents");
        assert_eq!(reply["count"], listed.len(), "{reply:#}");
        let hashes: BTreeSet<&str> =
            listed.iter().map(|torrent| torrent["infohash"].as_str().expect("an infohash")).collect();
        (1..=torrents).filter(|id| hashes.contains(&*info_hash_of(*id).to_string())).collect()
    }

    /// Asserts that the lists of one user, by the command, are these.
    #[track_caller]
    pub fn assert_listed(&self, expected: &ActivityLists, user: u64, torrents: u64) {
        let of_user = |pairs: &BTreeSet<(u64, u64)>| -> BTreeSet<u64> {
            pairs.iter().filter(|(id, _)| *id == user).map(|(_, torrent)| *torrent).collect()
        };
        let passkey = passkey_of(user).redacted();
        assert_eq!(self.listed("seeding", user, torrents), of_user(&expected.seeding), "seeding, {passkey}");
        assert_eq!(
            self.listed("leeching", user, torrents),
            of_user(&expected.leeching),
            "leeching, {passkey}"
        );
    }
}

//! Dishonest members beside an honest population, each with a torrent of its own, so that the figures of the honest ones
//! can be compared as they are.

use std::collections::BTreeMap;

use domain::AnnounceEvent::{Completed, None, Started, Stopped};
use domain::clock::Stopwatch;
use domain::{AnnounceEvent, InfoHash, Passkey};
use testkit::population::{info_hash_of, passkey_of};
use testkit::{Announce, Family, RawHttp};

use super::Site;

/// What `site::builder` allows a client and a user, in bytes a second.
const RATE: u128 = 1_250_000_000_000;
/// Granted once.
const SLACK_S: u128 = 10;
/// More than is ever credited.
const TOO_MUCH: u64 = 13_000_000_000_000;

/// Users and torrents from this number on belong to cheats.
pub const FIRST_CHEAT: u64 = 1001;

/// A kind of cheating, and the risk that reports it.
const CHEATS: [(u64, Cheat, &str); 6] = [
    (1001, announce_in_a_burst, "client_rate"),
    (1002, alternate_counters, "client_rate"),
    (1003, stop_again_and_again, "upload_after_stop"),
    (1004, invent_clients, "user_rate"),
    (1005, complete_again_and_again, "completed_without_download"),
    (1006, upload_to_no_one, "upload_without_leechers"),
];

type Cheat = fn(&mut Member);

struct Member {
    http: RawHttp,
    passkey: Passkey,
    torrent: InfoHash,
}

impl Member {
    /// Announces, whatever is answered.
    fn announce(&mut self, client: u32, event: AnnounceEvent, uploaded: u64, left: u64) {
        let announce =
            Announce::seeder(self.torrent, client).with_event(event).with_totals(uploaded, 0, left);
        self.http.get(&announce.target(&self.passkey));
    }
}

fn announce_in_a_burst(member: &mut Member) {
    member.announce(1, Started, 0, 0);
    (1..200).for_each(|n| member.announce(1, None, n * TOO_MUCH, 0));
}

fn alternate_counters(member: &mut Member) {
    for _ in 0..100 {
        member.announce(1, None, u64::MAX, 0);
        member.announce(1, None, 0, 0);
    }
}

fn stop_again_and_again(member: &mut Member) {
    (1..200).for_each(|n| member.announce(1, Stopped, n * TOO_MUCH, 0));
}

fn invent_clients(member: &mut Member) {
    for client in 1..16 {
        member.announce(client, Started, 0, 0);
        member.announce(client, None, 12_000_000_000_000, 0);
    }
}

fn complete_again_and_again(member: &mut Member) {
    for client in 1..50 {
        member.announce(client, Started, 0, 1000);
        member.announce(client, Completed, 0, 0);
        member.announce(client, Stopped, 0, 0);
    }
}

fn upload_to_no_one(member: &mut Member) {
    member.announce(1, Started, 0, 0);
    member.announce(1, None, 1_000_000_000, 0);
}

/// Members that have begun to cheat.
pub struct Cheats {
    since: Stopwatch,
}

impl Cheats {
    /// Registers the members and lets each cheat.
    pub fn start(site: &Site) -> Cheats {
        let since = Stopwatch::start();
        for (id, ..) in CHEATS {
            let (passkey, torrent) = (passkey_of(id), info_hash_of(id));
            site.sql(&format!(
                "INSERT INTO users (id, passkey) VALUES ({id}, '{passkey}'); \
                 INSERT INTO torrents (id, infohash) VALUES ({id}, '{torrent}');"
            ));
        }
        for (id, cheat, _) in CHEATS {
            let (passkey, torrent) = (passkey_of(id), info_hash_of(id));
            testkit::eventually("a member to be known", super::PATIENCE, || {
                site.server.try_scrape(&passkey, &torrent).ok().flatten()
            });
            cheat(&mut Member { http: site.server.http(Family::V4), passkey, torrent });
        }
        Cheats { since }
    }

    /// Asserts that none of them earned more than the buckets allow, and that all of them are among the risks.
    #[track_caller]
    pub fn assert_worthless(&self, site: &Site) {
        let elapsed_s = u128::from(self.since.elapsed().as_secs()) + 2;
        let books = site.books();
        let risks = site.server.cli(&["journal", "risks", "--limit", "10000"]);
        let mut reported: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for risk in risks["risks"].as_array().unwrap() {
            let text = |name: &str| risk[name].as_str().unwrap_or_default().to_owned();
            reported.entry(text("user").parse().unwrap()).or_default().push(text("kind"));
        }
        for (id, _, kind) in CHEATS {
            let moved = books.users[&id];
            assert!(moved.uploaded <= RATE * (elapsed_s + SLACK_S), "user {id}: {moved:?}");
            let kinds = reported.get(&id).map(Vec::as_slice).unwrap_or_default();
            assert!(kinds.iter().any(|reported| reported == kind), "user {id}: {kind} is not in {kinds:?}");
        }
        assert_eq!(books.users[&1003].uploaded, 0, "a stopped of an unknown client is credited");
        let completed = site.sql("SELECT completed_count FROM ledger_torrents WHERE id = 1005");
        assert_eq!(completed.trim(), "1", "a user completes a torrent once");
    }
}

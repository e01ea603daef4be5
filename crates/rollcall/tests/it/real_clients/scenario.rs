//! A server with one torrent, and a user for each role.

use std::time::Duration;

use domain::Passkey;
use testkit::clients::{Assignment, Role};
use testkit::{Family, Server, SwarmCounts, TorrentFile, eventually_equal};

/// Long enough for a machine that does much else, too.
pub const PATIENCE: Duration = Duration::from_secs(60);

const PAYLOAD_BYTES: usize = 768 * 1024;
const INTERVAL_S: u64 = 5;

/// How announces reach the tracker.
#[derive(Clone, Copy)]
pub enum Transport {
    /// HTTP alone.
    Http,
    /// UDP alone.
    Udp,
    /// UDP, and HTTP in the next tier of the torrent.
    UdpThenHttp,
}

impl Transport {
    fn schemes(self) -> &'static [&'static str] {
        match self {
            Transport::Http => &["http"],
            Transport::Udp => &["udp"],
            Transport::UdpThenHttp => &["udp", "http"],
        }
    }
}

/// A server with one torrent, a seeding user, a leeching user, and one that only scrapes.
pub struct Scenario {
    pub server: Server,
    pub torrent: TorrentFile,
    seeder: Passkey,
    leecher: Passkey,
    watcher: Passkey,
    over: Transport,
    family: Family,
    grace_s: u64,
}

impl Scenario {
    #[track_caller]
    pub fn start(over: Transport, family: Family) -> Self {
        // Over UDP libtorrent announces every 30 s, whatever the interval, and later on a busy machine.
        Scenario::with_grace(over, family, if matches!(over, Transport::Udp) { 45 } else { 5 })
    }

    /// Lets peers be silent for longer: for clients that do not keep an interval of five seconds.
    #[track_caller]
    pub fn with_grace(over: Transport, family: Family, grace_s: u64) -> Self {
        let server = Server::builder(env!("CARGO_BIN_EXE_rollcall"))
            .set("tracker.announce_interval_s", INTERVAL_S)
            .set("tracker.min_announce_interval_s", 1)
            .set("tracker.peer_grace_s", grace_s)
            .start();
        let torrent = TorrentFile::random("payload.bin", PAYLOAD_BYTES, u64::from(server.port()));
        let [seeder, leecher, watcher] = [1, 2, 3].map(|id| server.add_user(id));
        server.add_torrent(&torrent, &watcher);
        Scenario { server, torrent, seeder, leecher, watcher, over, family, grace_s }
    }

    /// What a client of the seeding or the leeching user is to do.
    pub fn assignment(&self, role: Role) -> Assignment<'_> {
        let passkey = match role {
            Role::Seeder => &self.seeder,
            Role::Leecher => &self.leecher,
        };
        self.assignment_with(role, passkey)
    }

    /// The same with any passkey.
    pub fn assignment_with(&self, role: Role, passkey: &Passkey) -> Assignment<'_> {
        // libtorrent accepts an HTTP tracker on loopback only below `/announce`.
        let url = |scheme: &&str| self.server.announce_url(scheme, self.family, passkey, true);
        let trackers = self.over.schemes().iter().map(url).collect();
        Assignment { torrent: &self.torrent, trackers, role, family: self.family }
    }

    /// Current seeders, leechers, completed.
    pub fn counts(&self) -> (i64, i64, i64) {
        let SwarmCounts { complete, incomplete, downloaded } =
            self.server.scrape(&self.watcher, &self.torrent.info_hash());
        (complete, incomplete, downloaded)
    }

    /// Waits for these counts of seeders, leechers and completed.
    #[track_caller]
    pub fn wait_counts(&self, expected: (i64, i64, i64)) {
        eventually_equal(expected, PATIENCE, || self.counts());
    }

    /// Counts from a UDP scrape, which is answered to addresses with a peer.
    #[track_caller]
    pub fn counts_over_udp(&self) -> (i64, i64, i64) {
        let scraped = self.server.udp(self.family).scrape(&[self.torrent.info_hash()], "");
        let counts = scraped.expect("this address has a peer");
        (counts[0].complete, counts[0].incomplete, counts[0].downloaded)
    }

    /// Waits for these counts as long as a peer that has fallen silent may be remembered.
    #[track_caller]
    pub fn wait_counts_without_announce(&self, expected: (i64, i64, i64)) {
        // Clocks count whole seconds, and a machine may be busy.
        let limit = Duration::from_secs(INTERVAL_S + self.grace_s + 5);
        eventually_equal(expected, limit, || self.counts());
    }
}

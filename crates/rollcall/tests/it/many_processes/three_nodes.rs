//! Three trackers on one Redis, real clients on different ones, and a node killed every few seconds: files arrive, the
//! nodes agree, and accounts are exact.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::Passkey;
use domain::clock::Stopwatch;
use testkit::clients::{Aria2, Assignment, Client, Libtorrent, Role, StartClient, Transmission};
use testkit::{
    Family, Fsync, Moved, RedisServer, Server, ServerBuilder, SwarmCounts, TorrentFile, eventually,
    eventually_equal,
};

use crate::site::{Database, DatabaseKind, PATIENCE, Site, builder, quoted};

const PAYLOAD_BYTES: usize = 1536 * 1024;
/// Kills, at the least; as many more as the transfers take.
const KILLS_MIN: usize = 5;
/// Downtime of a killed node.
const AWAY: Duration = Duration::from_millis(600);
/// How long the transfers may take in all.
const TRANSFER_LIMIT: Duration = Duration::from_secs(120);

/// Kinds of clients, the first of which has the file. Transmission takes connections on loopback, and makes none; and it
/// announces to all trackers of a torrent at once.
const CLIENTS: [StartClient; 4] = [Libtorrent::start, Aria2::start, Transmission::start, Libtorrent::start];

/// Announced totals of a client, at any node.
#[derive(Default)]
struct AnnouncedTotals {
    /// Its counters at the last accepted announce.
    moved: Moved,
    /// Whether it sent `completed`. A client that completes while its node is dead sends another node only that
    /// nothing is left.
    has_completed: bool,
}

struct Nodes {
    /// The first node has all roles, the second also the ledger, the third only the tracker.
    site: Site,
    others: [Server; 2],
    torrent: TorrentFile,
    users: Vec<Passkey>,
    watcher: Passkey,
}

impl Nodes {
    fn start() -> Nodes {
        let redis = RedisServer::builder().append_only(Fsync::Always).start();
        let database = Database::start(DatabaseKind::Postgres);
        let url = database.url().unwrap();
        let node = || -> ServerBuilder {
            builder()
                .set("redis.url", quoted(&redis.url()))
                .set("database.url", quoted(&url))
                .set("tracker.announce_interval_s", 5)
                .set("tracker.min_announce_interval_s", 1)
                .set("tracker.peer_grace_s", 60)
        };
        let server = node().start();
        let others = ["tracker,ledger,activity", "tracker"].map(|roles| node().roles(roles).start());
        let site = Site { server, companion: None, redis: Some(redis), database };
        let torrent = TorrentFile::random("payload.bin", PAYLOAD_BYTES, 3);
        let users = (1..=CLIENTS.len() as u64).map(|id| site.server.add_user(id)).collect();
        let watcher = site.server.add_user(99);
        site.server.add_torrent(&torrent, &watcher);
        let nodes = Nodes { site, others, torrent, users, watcher };
        for index in 0..3 {
            eventually("every node to know the torrent", PATIENCE, || {
                nodes.node(index).try_scrape(&nodes.watcher, &nodes.torrent.info_hash()).ok().flatten()
            });
        }
        nodes
    }

    fn node(&self, index: usize) -> &Server {
        [&self.site.server, &self.others[0], &self.others[1]][index]
    }

    fn node_mut(&mut self, index: usize) -> &mut Server {
        match index {
            0 => &mut self.site.server,
            other => &mut self.others[other - 1],
        }
    }

    /// Every client knows all nodes, and begins with another one.
    fn start_client(&self, number: usize) -> Box<dyn Client> {
        let url =
            |index: usize| self.node(index % 3).announce_url("http", Family::V4, &self.users[number], true);
        let trackers = (number..number + 3).map(url).collect();
        let role = if number == 0 { Role::Seeder } else { Role::Leecher };
        CLIENTS[number](&Assignment { torrent: &self.torrent, trackers, role, family: Family::V4 })
    }

    /// Waits until every node has these counts of seeders, leechers and completed.
    #[track_caller]
    fn wait_counts(&self, expected: (i64, i64, i64)) {
        for index in 0..3 {
            eventually_equal((index, expected), PATIENCE, || {
                let SwarmCounts { complete, incomplete, downloaded } =
                    self.node(index).scrape(&self.watcher, &self.torrent.info_hash());
                (index, (complete, incomplete, downloaded))
            });
        }
    }

    /// Totals of each user's client, whichever node received them.
    fn told(&self) -> BTreeMap<u64, AnnouncedTotals> {
        let listed = self.site.redis().cli(&["XRANGE", "tracker:traffic", "-", "+"]);
        let mut told: BTreeMap<u64, AnnouncedTotals> = BTreeMap::new();
        let mut lines = listed.lines();
        let mut entry: BTreeMap<&str, &str> = BTreeMap::new();
        loop {
            let line = lines.next();
            let is_id =
                |line: &str| line.contains('-') && line.split('-').all(|part| part.parse::<u64>().is_ok());
            if line.is_none_or(is_id) {
                self.hear(&std::mem::take(&mut entry), &mut told);
            }
            match line {
                None => return told,
                Some(id) if is_id(id) => {}
                Some(field) => drop(entry.insert(field, lines.next().unwrap())),
            }
        }
    }

    fn hear(&self, entry: &BTreeMap<&str, &str>, told: &mut BTreeMap<u64, AnnouncedTotals>) {
        let Some(passkey) = entry.get("passkey") else { return };
        let user = self.users.iter().position(|known| known.to_string() == *passkey).unwrap();
        let told = told.entry(user as u64 + 1).or_default();
        let number = |field: &str| entry[field].parse::<u128>().unwrap();
        told.moved.uploaded = told.moved.uploaded.max(number("up"));
        told.moved.downloaded = told.moved.downloaded.max(number("down"));
        told.has_completed |= entry["event"] == "completed";
    }
}

#[test]
fn t3_real_clients_on_three_nodes_of_which_one_is_always_dying() {
    let mut nodes = Nodes::start();
    let mut clients: Vec<Box<dyn Client>> =
        (0..CLIENTS.len()).map(|number| nodes.start_client(number)).collect();
    let transferring = Stopwatch::start();
    let mut kills = 0;
    loop {
        let victim = kills % 3;
        nodes.node_mut(victim).kill();
        std::thread::sleep(AWAY);
        nodes.node_mut(victim).start_again();
        kills += 1;
        if kills >= KILLS_MIN && clients.iter_mut().all(|client| client.has_whole_file()) {
            break;
        }
        assert!(transferring.elapsed() < TRANSFER_LIMIT, "the file did not arrive in time");
    }
    eprintln!("{kills} kills in {:?}", transferring.elapsed());
    for client in &clients[1..] {
        nodes.torrent.assert_intact_in(client.download_folder());
    }
    clients.iter_mut().for_each(|client| client.announce_now());
    eventually("every node to have seeders only", PATIENCE, || {
        let counts = |index| nodes.node(index).scrape(&nodes.watcher, &nodes.torrent.info_hash());
        (0..3).all(|index| (counts(index).complete, counts(index).incomplete) == (4, 0)).then_some(())
    });
    clients.iter_mut().for_each(|client| client.leave());
    let told = nodes.told();
    let completed = told.values().filter(|told| told.has_completed).count();
    assert!(completed > 0, "no client reached a node with the torrent");
    nodes.wait_counts((0, 0, completed as i64));

    let end = nodes.site.settle();
    nodes.site.assert_nothing_failed(&end);
    let claimed = nodes.told().into_iter().map(|(user, told)| (user, told.moved)).collect();
    let books = nodes.site.books();
    crate::site::accounts::assert_same("user", &claimed, &books.users);
    for leecher in 2..=4 {
        assert!(books.users[&leecher].downloaded >= PAYLOAD_BYTES as u128, "{:?}", books.users[&leecher]);
    }
    // A client that sends `completed` to several nodes before they replicate has completed once.
    for (user, told) in told.iter().filter(|(user, _)| **user != 1) {
        let completions = books.completions.get(&(*user, 1)).copied().unwrap_or_default();
        assert_eq!(completions, u64::from(told.has_completed), "user {user}");
    }
}

//! A server that ends, however it ends, and starts again: its swarms are there, and no byte is lost or counted twice.

use domain::AnnounceEvent;
use testkit::population::{info_hash_of, passkey_of};
use testkit::{Announce, AnnounceReply, Family, RedisServer, Server, SwarmCounts, eventually};

use crate::site::{DatabaseKind, PATIENCE, Site, builder, durable_redis};

const TORRENT: u64 = 1;
const SEEDER: u64 = 1;
const LEECHER: u64 = 2;
const FINISHER: u64 = 3;

/// Users 1 to 3 and a torrent.
pub fn register(site: &Site) {
    let users: String = (1..=3)
        .map(|user| format!("INSERT INTO users (id, passkey) VALUES ({user}, '{}');", passkey_of(user)))
        .collect();
    let torrent =
        format!("INSERT INTO torrents (id, infohash, name) VALUES (1, '{}', 'one');", info_hash_of(TORRENT));
    site.sql(&(users + &torrent));
    wait_known(&site.server);
}

/// Until the server lets all of them in.
pub fn wait_known(server: &Server) {
    eventually("users and the torrent to be known", PATIENCE, || {
        let knows =
            |user| matches!(server.try_scrape(&passkey_of(user), &info_hash_of(TORRENT)), Ok(Some(_)));
        (1..=3).all(knows).then_some(())
    });
}

pub fn say(server: &Server, user: u64, event: AnnounceEvent, totals: (u64, u64, u64)) -> AnnounceReply {
    let (uploaded, downloaded, left) = totals;
    let announce =
        Announce::leecher(info_hash_of(TORRENT), user as u32).with_totals(uploaded, downloaded, left);
    let reply = server.announce(Family::V4, &passkey_of(user), &announce.with_event(event));
    assert_eq!(reply.failure_reason, None);
    reply
}

pub fn counts(server: &Server) -> SwarmCounts {
    server.scrape(&passkey_of(1), &info_hash_of(TORRENT))
}

fn restart_unnoticed(redis: Option<RedisServer>, end: impl Fn(&mut Server)) {
    let mut site = Site::start(builder(), redis, DatabaseKind::Sqlite);
    register(&site);
    let server = &mut site.server;
    say(server, SEEDER, AnnounceEvent::Started, (100, 0, 0));
    say(server, LEECHER, AnnounceEvent::Started, (0, 0, 1000));
    say(server, FINISHER, AnnounceEvent::Started, (0, 0, 500));
    say(server, SEEDER, AnnounceEvent::None, (700, 0, 0));
    say(server, FINISHER, AnnounceEvent::Completed, (0, 500, 0));
    let before = counts(server);
    assert_eq!(before, SwarmCounts { complete: 2, incomplete: 1, downloaded: 1 });

    for turn in 1..=2 {
        end(server);
        server.start_again();
        assert_eq!(counts(server), before, "no client has announced yet");
        let reply = say(server, LEECHER, AnnounceEvent::None, (0, 100 * turn, 1000 - 100 * turn));
        assert_eq!(reply.all_peers().len(), 2, "both seeders are handed out at once");
        say(server, SEEDER, AnnounceEvent::None, (700 + 1000 * turn, 0, 0));
        say(server, FINISHER, AnnounceEvent::Completed, (0, 500, 0));
        assert_eq!(counts(server), before, "a repeated completion is none, also after a restart");
    }
    let status = site.settle();
    site.assert_nothing_failed(&status);
    let moved = |user: u64| {
        let moved = site.books().users[&user];
        (moved.uploaded, moved.downloaded)
    };
    assert_eq!(moved(SEEDER), (2600, 0), "from the first announce on");
    assert_eq!(moved(LEECHER), (0, 200));
    assert_eq!(moved(FINISHER), (0, 500));
}

#[test]
fn t3_a_clean_restart_loses_nothing_embedded() {
    restart_unnoticed(None, |server| assert!(server.stop().success()));
}

#[test]
fn t3_a_killed_server_loses_nothing_embedded() {
    restart_unnoticed(None, Server::kill);
}

#[test]
fn t3_a_clean_restart_loses_nothing_on_redis() {
    restart_unnoticed(Some(durable_redis()), |server| assert!(server.stop().success()));
}

#[test]
fn t3_a_killed_server_loses_nothing_on_redis() {
    restart_unnoticed(Some(durable_redis()), Server::kill);
}

/// The journal was lost; what the snapshot holds is served all the same.
#[test]
fn a_snapshot_alone_brings_the_swarms_back_and_a_damaged_one_is_put_aside() {
    let mut site = Site::start(builder(), Some(RedisServer::start()), DatabaseKind::Sqlite);
    register(&site);
    say(&site.server, SEEDER, AnnounceEvent::Started, (0, 0, 0));
    site.settle();
    site.server.stop();
    site.redis().cli(&["FLUSHALL"]);
    site.server.start_again();
    assert_eq!(counts(&site.server).complete, 1);
    assert!(site.server.log().contains("swarms restored"));

    site.server.stop();
    let file = site.server.data_folder().join("swarms.snapshot");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    site.redis().cli(&["FLUSHALL"]);
    site.server.start_again();
    assert_eq!(counts(&site.server).complete, 0);
    site.wait_logged(&["swarm snapshot is unusable", "damaged"]);
    assert!(site.server.data_folder().join("swarms.unusable").exists() && !file.exists());
}

/// Users removed while no server ran are not served again.
#[test]
fn peers_removed_during_a_restart_are_evicted() {
    let mut site = Site::start(builder(), None, DatabaseKind::Sqlite);
    register(&site);
    say(&site.server, SEEDER, AnnounceEvent::Started, (0, 0, 0));
    say(&site.server, LEECHER, AnnounceEvent::Started, (0, 0, 10));
    site.server.stop();
    site.sql(&format!("DELETE FROM users WHERE id = {LEECHER}"));
    site.server.start_again();
    eventually("the removed user's peer to leave", PATIENCE, || {
        (counts(&site.server).incomplete == 0).then_some(())
    });
    assert_eq!(counts(&site.server).complete, 1);
}

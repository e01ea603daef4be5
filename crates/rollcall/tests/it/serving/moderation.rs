//! Slots, approval and banned ports changed on the command line, or in the configuration, take effect within a second.

use domain::{InfoHash, Passkey};
use testkit::{Announce, Family, Server};

use crate::serving::{TORRENT, add_torrent, announce, builder, leecher, seeder, soon};

const SECOND: InfoHash = InfoHash([0x6b; 20]);

/// Why an announce over HTTP is refused, if it is.
fn refusal(server: &Server, passkey: &Passkey, announce: &Announce) -> Option<String> {
    server.announce(Family::V4, passkey, announce).failure_reason
}

fn is_refused_for(server: &Server, passkey: &Passkey, announce: &Announce, reason: &str) -> bool {
    refusal(server, passkey, announce).is_some_and(|said| said.contains(reason))
}

fn counts(server: &Server, watcher: &Passkey) -> (i64, i64) {
    let counts = server.scrape(watcher, &TORRENT);
    (counts.complete, counts.incomplete)
}

#[test]
fn slots_change_live_for_one_and_for_all() {
    let server = builder().set("limits.leeches_per_user_max", 7).start();
    let passkey = server.add_user(1);
    add_torrent(&server, &passkey);
    server.cli(&["torrent", "add", "--infohash", &SECOND.to_string(), "--name", "another"]);
    let second = Announce::leecher(SECOND, 2);
    let stop = second.with_event(domain::AnnounceEvent::Stopped);
    announce(&server, &passkey, &leecher(1));
    soon("the second torrent to be known", || refusal(&server, &passkey, &second).is_none());
    announce(&server, &passkey, &stop);

    server.cli(&["user", "set", "1", "--leech-slots", "1"]);
    soon("the user to be held to one", || {
        let refused = is_refused_for(&server, &passkey, &second, "one at a time");
        if !refused {
            announce(&server, &passkey, &stop);
        }
        refused
    });
    announce(&server, &passkey, &leecher(1));
    server.cli(&["user", "set", "1", "--leech-slots", "default"]);
    soon("the configured limit to hold", || refusal(&server, &passkey, &second).is_none());
    announce(&server, &passkey, &stop);

    let path = server.config_path();
    let config = std::fs::read_to_string(&path).expect("the configuration can be read");
    let lower = config.replace("leeches_per_user_max = 7", "leeches_per_user_max = 1");
    std::fs::write(&path, lower).expect("the configuration can be written");
    server.reload();
    soon("the lower limit to hold", || {
        let refused = is_refused_for(&server, &passkey, &second, "limit");
        if !refused {
            announce(&server, &passkey, &stop);
        }
        refused
    });

    let other = server.add_user(2);
    server.cli(&["torrent", "set", &TORRENT.to_string(), "--leech-slots", "1"]);
    soon("the torrent to be full", || {
        let refused = is_refused_for(&server, &other, &leecher(3), "(1)");
        if !refused {
            announce(&server, &other, &leecher(3).with_event(domain::AnnounceEvent::Stopped));
        }
        refused
    });
}

#[test]
fn a_torrent_is_approved_and_its_peers_find_each_other() {
    let server = builder().start();
    let [uploader, other] = [1, 2].map(|id| server.add_user(id));
    add_torrent(&server, &uploader);
    server.cli(&["torrent", "unapprove", &TORRENT.to_string()]);
    soon("the torrent to await approval", || announce(&server, &uploader, &seeder(1)).interval == Some(60));
    let waiting = announce(&server, &other, &leecher(2));
    assert_eq!((waiting.interval, waiting.min_interval, waiting.peers), (Some(60), Some(60), Some(vec![])));
    assert_eq!(counts(&server, &other), (1, 1));
    server.cli(&["torrent", "approve", &TORRENT.to_string()]);
    // The very next announce behind the approval, though it comes long before the usual min interval.
    soon("the leecher to be given the seeder", || {
        let reply = announce(&server, &other, &leecher(2));
        reply.interval == Some(1800) && reply.peers.is_some_and(|peers| peers.len() == 1)
    });
}

#[test]
fn a_banned_port_is_refused_and_its_peers_leave() {
    let server = builder().start();
    let passkey = server.add_user(1);
    add_torrent(&server, &passkey);
    announce(&server, &passkey, &leecher(1));
    let port = leecher(1).port;
    server.cli(&["port", "ban", &format!("{port}-{}", port + 9), "--reason", "throttled"]);
    soon("its peers to leave", || counts(&server, &passkey) == (0, 0));
    assert!(is_refused_for(&server, &passkey, &leecher(1), "choose another"));
    announce(&server, &passkey, &Announce { port: port - 1, ..leecher(1) });
    server.cli(&["port", "allow", &port.to_string()]);
    soon("the port to be allowed", || refusal(&server, &passkey, &leecher(1)).is_none());
    assert!(is_refused_for(&server, &passkey, &Announce { port: port + 1, ..leecher(1) }, "port"));
}

//! Users, passkeys, torrents and clients changed on the command line take effect within a second.

use testkit::{Family, RetryIn, Server};

use crate::serving::{TORRENT, add_torrent, announce, builder, leecher, seeder, soon};

/// Why an announce over HTTP is refused, if it is.
fn refusal(server: &Server, passkey: &domain::Passkey) -> Option<String> {
    server.announce(Family::V4, passkey, &leecher(1)).failure_reason
}

fn is_refused_for(server: &Server, passkey: &domain::Passkey, reason: &str) -> bool {
    refusal(server, passkey).is_some_and(|said| said.contains(reason))
}

fn counts(server: &Server, watcher: &domain::Passkey) -> (i64, i64) {
    let counts = server.scrape(watcher, &TORRENT);
    (counts.complete, counts.incomplete)
}

#[test]
fn a_rotated_passkey_stops_working_and_its_new_one_works() {
    let server = builder().start();
    let old = server.add_user(1);
    add_torrent(&server, &old);
    announce(&server, &old, &leecher(1));
    let shown = server.cli(&["passkey", "rotate", "--user", "1"]);
    let new: domain::Passkey = shown["passkey"].as_str().expect("a passkey").parse().expect("a passkey");
    assert_ne!(new, old);
    soon("the old passkey to stop working", || is_refused_for(&server, &old, "unknown passkey"));
    let path = format!("/{old}/announce");
    let refused = server.udp(Family::V6).announce(&leecher(1), &path).expect_err("over UDP as well");
    assert!(refused.contains("unknown passkey"), "{refused}");
    announce(&server, &new, &leecher(1));
    assert_eq!(counts(&server, &new), (0, 1), "the same user, so the same peer");
}

#[test]
fn the_peers_of_a_disabled_user_leave_the_swarm() {
    let server = builder().start();
    let [first, second] = [1, 2].map(|id| server.add_user(id));
    add_torrent(&server, &first);
    announce(&server, &first, &seeder(1));
    announce(&server, &second, &leecher(2));
    assert_eq!(counts(&server, &second), (1, 1));
    server.cli(&["user", "disable", "1"]);
    soon("the peers of a disabled user to leave", || counts(&server, &second) == (0, 1));
    assert!(is_refused_for(&server, &first, "disabled"));
    server.cli(&["user", "enable", "1"]);
    soon("an enabled user to be let in", || refusal(&server, &first).is_none());
    server.cli(&["user", "remove", "1"]);
    soon("the peers of a removed user to leave", || counts(&server, &second) == (0, 1));
    assert!(is_refused_for(&server, &first, "unknown passkey"));
}

#[test]
fn a_forbidden_client_is_refused_with_a_reason() {
    let server = builder().start();
    let passkey = server.add_user(1);
    add_torrent(&server, &passkey);
    announce(&server, &passkey, &leecher(1));
    server.cli(&["client", "forbid", "-TR30", "--name", "Transmission 3.0"]);
    soon("a forbidden client to be refused", || is_refused_for(&server, &passkey, "client"));
    soon("its peers to leave", || counts(&server, &passkey) == (0, 0));
    let reply = server.announce(Family::V4, &passkey, &leecher(1));
    assert_eq!(reply.retry_in, Some(RetryIn::Never));
    let reason = reply.failure_reason.expect("a reason");
    assert!(reason.contains("not allowed") && reason.contains("list of clients"), "{reason}");
    server.cli(&["client", "remove", "-TR30"]);
    soon("the client to be let in again", || refusal(&server, &passkey).is_none());
    server.cli(&["client", "allow", "-qB"]);
    soon("a client that is not on the list to be refused", || is_refused_for(&server, &passkey, "client"));
    server.cli(&["client", "allow", "-TR"]);
    soon("a client on the list to be let in", || refusal(&server, &passkey).is_none());
}

#[test]
fn torrents_come_and_go() {
    let server = builder().start();
    let passkey = server.add_user(1);
    assert!(is_refused_for(&server, &passkey, "unknown torrent"));
    server.cli(&["torrent", "add", "--infohash", &TORRENT.to_string(), "--name", "late"]);
    soon("a new torrent to be accepted", || refusal(&server, &passkey).is_none());
    assert_eq!(counts(&server, &passkey), (0, 1));
    server.cli(&["torrent", "disable", &TORRENT.to_string()]);
    soon("a disabled torrent to be refused", || is_refused_for(&server, &passkey, "disabled"));
    soon("its peers to leave", || counts(&server, &passkey) == (0, 0));
    server.cli(&["torrent", "enable", &TORRENT.to_string()]);
    soon("an enabled torrent to be accepted", || refusal(&server, &passkey).is_none());
    server.cli(&["torrent", "remove", &TORRENT.to_string()]);
    soon("a removed torrent to be refused", || is_refused_for(&server, &passkey, "unknown torrent"));
}

#[test]
fn a_new_user_is_admitted_and_still_known_after_a_restart() {
    let mut server = builder().start();
    let passkey = server.add_user(7);
    add_torrent(&server, &passkey);
    announce(&server, &passkey, &leecher(1));
    server.kill();
    server.start_again();
    announce(&server, &passkey, &leecher(1));
}

//! Files that arrive, swarms that are counted, peers that leave and peers that vanish.

use testkit::Family;
use testkit::clients::{Aria2, Client, Libtorrent, QBittorrent, RTorrent, Role, StartClient, Transmission};

use crate::real_clients::scenario::{PATIENCE, Scenario, Transport};

/// A file goes from one client to another, and every count on the way is right. Both are still seeding afterwards.
#[track_caller]
fn move_a_file(
    scenario: &Scenario,
    start_seeder: StartClient,
    start_leecher: StartClient,
) -> (Box<dyn Client>, Box<dyn Client>) {
    assert_eq!(scenario.counts(), (0, 0, 0));
    let mut seeder = start_seeder(&scenario.assignment(Role::Seeder));
    seeder.wait_whole_file(PATIENCE);
    scenario.wait_counts((1, 0, 0));

    let mut leecher = start_leecher(&scenario.assignment(Role::Leecher));
    scenario.wait_counts((1, 1, 0));
    leecher.wait_whole_file(PATIENCE);
    scenario.torrent.assert_intact_in(leecher.download_folder());

    seeder.announce_now();
    scenario.wait_counts((2, 0, 1));
    assert_eq!(scenario.counts_over_udp(), (2, 0, 1));
    (seeder, leecher)
}

/// One client sends `stopped`, the other is killed.
#[track_caller]
fn leave_and_vanish(scenario: &Scenario, mut leaving: Box<dyn Client>, mut vanishing: Box<dyn Client>) {
    leaving.leave();
    scenario.wait_counts((1, 0, 1));

    vanishing.kill();
    assert_eq!(scenario.counts(), (1, 0, 1), "no client has announced completion yet");
    scenario.wait_counts_without_announce((0, 0, 1));
}

#[track_caller]
fn seed_and_download(over: Transport, family: Family, start_seeder: StartClient, start_leecher: StartClient) {
    let scenario = Scenario::start(over, family);
    let (seeder, leecher) = move_a_file(&scenario, start_seeder, start_leecher);
    leave_and_vanish(&scenario, leecher, seeder);
}

#[test]
fn t1_t3_transmission_to_aria2_over_http() {
    seed_and_download(Transport::Http, Family::V4, Transmission::start, Aria2::start);
}

#[test]
fn t1_t3_aria2_to_libtorrent_over_http() {
    seed_and_download(Transport::Http, Family::V4, Aria2::start, Libtorrent::start);
}

#[test]
fn t1_t3_libtorrent_to_transmission_over_http() {
    seed_and_download(Transport::Http, Family::V4, Libtorrent::start, Transmission::start);
}

#[test]
fn t1_t3_libtorrent_to_aria2_over_http_on_ipv6() {
    seed_and_download(Transport::Http, Family::V6, Libtorrent::start, Aria2::start);
}

#[test]
fn t1_transmission_to_libtorrent_over_http_on_ipv6() {
    let scenario = Scenario::start(Transport::Http, Family::V6);
    move_a_file(&scenario, Transmission::start, Libtorrent::start);
}

#[test]
fn t1_t3_libtorrent_to_libtorrent_over_udp() {
    seed_and_download(Transport::Udp, Family::V4, Libtorrent::start, Libtorrent::start);
}

#[test]
fn t1_t3_libtorrent_to_libtorrent_over_udp_on_ipv6() {
    seed_and_download(Transport::Udp, Family::V6, Libtorrent::start, Libtorrent::start);
}

/// For clients that do not keep a short interval: neither is waited for until it is forgotten.
#[track_caller]
fn move_a_file_and_leave(start_seeder: StartClient, start_leecher: StartClient) {
    let scenario = Scenario::with_grace(Transport::Http, Family::V4, 300);
    let (mut seeder, mut leecher) = move_a_file(&scenario, start_seeder, start_leecher);
    leecher.leave();
    scenario.wait_counts((1, 0, 1));
    seeder.leave();
    scenario.wait_counts((0, 0, 1));
}

#[test]
fn t1_libtorrent_to_rtorrent_over_http() {
    move_a_file_and_leave(Libtorrent::start, RTorrent::start);
}

#[test]
fn t1_aria2_to_qbittorrent_over_http() {
    move_a_file_and_leave(Aria2::start, QBittorrent::start);
}

/// Neither client sends its passkey over UDP, so both are refused there and use the next tracker of the torrent.
#[test]
fn t1_clients_that_udp_refuses_still_meet_over_http() {
    let scenario = Scenario::start(Transport::UdpThenHttp, Family::V4);
    move_a_file(&scenario, Transmission::start, Aria2::start);
}

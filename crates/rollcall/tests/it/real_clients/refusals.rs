//! What clients show for a failure reason (T2).

use domain::UserId;
use testkit::Family;
use testkit::clients::{Aria2, Libtorrent, Role, StartClient, Transmission};
use testkit::server::test_passkey;

use crate::real_clients::scenario::{PATIENCE, Scenario, Transport};

const ALL_CLIENTS: [StartClient; 3] = [Transmission::start, Aria2::start, Libtorrent::start];

/// The reason for a UDP announce without a passkey.
const NO_PATH: &str = "no passkey: your client does not send the URL's path over UDP";

/// Starts the clients as seeders with an unknown passkey, and waits until each shows the reason.
#[track_caller]
fn assert_unknown_passkeys_are_refused(scenario: &Scenario, clients: &[StartClient], reason: &str) {
    let stranger = test_passkey(UserId::new(404).expect("a positive number"));
    let assignment = scenario.assignment_with(Role::Seeder, &stranger);
    let mut clients: Vec<_> = clients.iter().map(|start| start(&assignment)).collect();
    for client in &mut clients {
        client.wait_tracker_message(reason, PATIENCE);
    }
    assert_eq!(scenario.counts(), (0, 0, 0));
}

#[test]
fn t2_every_client_shows_why_its_passkey_is_refused_over_http() {
    let scenario = Scenario::start(Transport::Http, Family::V4);
    assert_unknown_passkeys_are_refused(&scenario, &ALL_CLIENTS, "unknown passkey");
}

/// libtorrent 2.0.8 loses the text of a UDP error: its user sees a failure message of no words.
#[test]
fn t2_libtorrent_shows_that_its_passkey_is_refused_over_udp() {
    let scenario = Scenario::start(Transport::Udp, Family::V6);
    assert_unknown_passkeys_are_refused(&scenario, &[Libtorrent::start], "tracker sent a failure message");
}

/// Transmission 3.00 and aria2 1.36 do not send the path of the announce URL over UDP (BEP 41), and with it not the
/// passkey. Their users must learn that it is not their passkey that is wrong.
#[test]
fn t2_clients_that_send_no_passkey_over_udp_show_so() {
    let scenario = Scenario::start(Transport::Udp, Family::V4);
    assert_unknown_passkeys_are_refused(&scenario, &[Transmission::start, Aria2::start], NO_PATH);
}

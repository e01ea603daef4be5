//! Clients that go without a word: a stopped process, whose sockets stay open and whose kernel still acknowledges; a killed
//! one; and one whose packets no longer arrive. What a friend sees, in which order, and when (P5, P7).

use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::presence_clients::agent::{Agent, Kind, Sighting, now};
use crate::presence_clients::fixture::{arrive, identity, people, quick_ladder, server, url};

/// A busy machine is late, never early.
const ROOM: Duration = Duration::from_secs(5);

/// Two friends; the first one looks, the second one is about to fall silent.
struct Pair {
    _server: testkit::Server,
    watcher: Agent,
    silent: Agent,
}

fn pair() -> Pair {
    pair_with("127.0.0.1")
}

/// The same, where the second one's connections come from an address of its own.
fn pair_with(silent_address: &str) -> Pair {
    let server = quick_ladder(server()).start();
    people(&server, &[1, 2], &[(1, 2)]);
    let mut watcher = arrive(Kind::JavaScriptSdk, &server, "1", "laptop");
    let mut silent = Agent::start(Kind::JavaScriptSdk, "2");
    let start = json!({
        "url": url(&server), "identity": identity("2"), "data": {"device": "phone"}, "local_address": silent_address,
    });
    silent.ask("start", start);
    watcher.wait_status("2", "online");
    Pair { _server: server, watcher, silent }
}

/// P7 with shortened settings: heartbeats every 5 s, so overdue at 5, unanswered (1 s) and so away at 6, offline at
/// 15; counted from the last activity, which was up to one ping (2 s) before the silence.
#[track_caller]
fn assert_ladder(watcher: &mut Agent, silent_since: Duration) {
    let away = watcher.wait_status("2", "away");
    assert_between(&away, silent_since, 4, 6);
    let gone = watcher.wait_status("2", "offline");
    assert_between(&gone, silent_since, 13, 15);
    assert!(gone.before.iter().all(|(_, status)| status == "away"), "away, then offline: {gone:?}");
    assert!(gone.user["last_seen"].as_u64().is_some(), "{gone:?}");
}

#[track_caller]
fn assert_between(sighting: &Sighting, since: Duration, earliest_s: u64, latest_s: u64) {
    let after = sighting.at.checked_sub(since).expect("an effect comes after its cause");
    // The last ping may have been late, too, and the server rounds to seconds.
    let earliest = Duration::from_secs(earliest_s).saturating_sub(Duration::from_secs(2));
    let latest = Duration::from_secs(latest_s) + ROOM;
    assert!(
        (earliest..latest).contains(&after),
        "after {after:?}, not {earliest_s} to {latest_s} s: {sighting:?}"
    );
}

#[test]
fn p7_a_suspended_process_is_away_then_offline_and_online_again_when_resumed() {
    let Pair { _server, mut watcher, silent } = pair();
    let silent_since = now();
    silent.process.suspend();
    assert_ladder(&mut watcher, silent_since);
    // It resumes: the server has closed its connection meanwhile (3012), on which its SDK reconnects.
    silent.process.resume();
    watcher.wait_status("2", "online");
}

#[test]
fn p7_a_short_stop_is_online_at_once_when_it_is_over() {
    let Pair { _server, mut watcher, silent } = pair();
    silent.process.suspend();
    watcher.wait_status("2", "away");
    let over_at = now();
    silent.process.resume();
    let back = watcher.wait_status("2", "online");
    assert_between(&back, over_at, 0, 1);
    // On a busy machine the SDK may find that it missed a ping itself, and connect anew.
    let is_expected =
        |status: &str| status == "away" || (status == "offline" && !testkit::is_held_to_promises());
    assert!(back.before.iter().all(|(_, status)| is_expected(status)), "{back:?}");
}

#[test]
fn p5_a_killed_process_is_offline_within_a_second() {
    let Pair { _server, mut watcher, mut silent } = pair();
    let killed_at = now();
    silent.process.kill();
    let gone = watcher.wait_status("2", "offline");
    assert!(gone.at - killed_at < Duration::from_secs(1), "{gone:?}");
    assert_eq!(gone.before, [], "offline, and nothing in between");
}

/// Set for the copy of this program that runs in a network of its own.
const INSIDE: &str = "PRESENCE_TEST_IN_A_NETWORK_OF_ITS_OWN";

/// Loopback is the machine's, and others use it: so this test starts itself again in a network of its own, where it may
/// lose what packets it likes.
#[test]
fn p7_a_lost_network_is_away_then_offline_and_online_again_when_it_is_back() {
    if std::env::var_os(INSIDE).is_some() {
        lose_packets();
        return;
    }
    let script = "ip link set lo up && iptables -A INPUT -s 192.0.2.1 -j DROP && exec \"$@\"";
    if let Err(why) = in_own_network("ip link set lo up && iptables -A INPUT -s 192.0.2.1 -j DROP") {
        eprintln!("skipped: this machine cannot drop packets (unshare, ip, iptables): {why}");
        return;
    }
    let this = std::env::current_exe().unwrap();
    let test =
        "presence_clients::silence::p7_a_lost_network_is_away_then_offline_and_online_again_when_it_is_back";
    let output = Command::new("unshare")
        .args(["--net", "sh", "-c", script, "sh"])
        .arg(this)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success() && said[0].contains("1 passed"), "{}", said.concat());
}

fn in_own_network(script: &str) -> Result<(), String> {
    let output = Command::new("unshare").args(["--net", "sh", "-c", script]).output();
    let output = output.map_err(|error| error.to_string())?;
    output.status.success().then_some(()).ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

fn lose_packets() {
    let Pair { _server: server, mut watcher, silent: _silent } = pair_with("127.0.0.2");
    let rule = |action: &str, direction: &str| {
        let args = [action, "INPUT", direction, "127.0.0.2", "-j", "DROP"];
        assert!(Command::new("iptables").args(args).status().unwrap().success());
    };
    let silent_since = now();
    rule("-A", "--source");
    rule("-A", "--destination");
    assert_ladder(&mut watcher, silent_since);
    rule("-D", "--source");
    rule("-D", "--destination");
    watcher.wait_status("2", "online");
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

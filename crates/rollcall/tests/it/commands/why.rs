//! `rollcall user why`, and multipliers that were ended.

use std::time::Duration;

use domain::{AnnounceEvent, InfoHash};
use serde_json::json;
use testkit::{Announce, Family, Server, eventually};

use crate::commands::Site;

const BINARY: &str = env!("CARGO_BIN_EXE_rollcall");
const PATIENCE: Duration = Duration::from_secs(60);
const HASH: &str = "0123456789abcdef0123456789abcdef01234567";

#[test]
fn l6_why_still_explains_credits_after_a_multiplier_ended() {
    let server = Server::builder(BINARY).start();
    let (passkey, other) = (server.add_user(1), server.add_user(2));
    server.cli(&["user", "set", "1", "--name", "Ada"]);
    server.cli(&["torrent", "add", "--infohash", HASH, "--name", "one"]);
    let hash: InfoHash = HASH.parse().unwrap();
    eventually("the torrent to be known", PATIENCE, || server.try_scrape(&passkey, &hash).ok().flatten());
    server.cli(&["multiplier", "add", "--upload", "200", "--download", "50", "--until", "48h"]);
    let leecher = Announce::leecher(hash, 1).with_totals(0, 0, 5000);
    for (user, said) in [
        (&passkey, leecher.with_event(AnnounceEvent::Started)),
        (&other, Announce::seeder(hash, 2)),
        (&passkey, leecher.with_totals(100, 2000, 3000)),
    ] {
        assert_eq!(server.announce(Family::V4, user, &said).failure_reason, None);
    }
    eventually("the traffic to be counted", PATIENCE, || {
        (server.cli(&["user", "show", "1"])["credited_uploaded"] == "200").then_some(())
    });
    assert_eq!(server.cli(&["user", "show", "1"])["ratio"], json!(0.2));
    let why = || server.cli(&["user", "why", "1", "--torrent", "1"]);
    let before = why();
    assert_eq!(before["entries"][0]["uploaded_delta"], "100", "{before}");
    assert_eq!(before["entries"][0]["credited_uploaded"], "200", "{before}");
    assert_eq!(before["entries"][0]["credited_downloaded"], "1000", "{before}");
    assert_eq!(before["clients"][0]["downloaded"], "2000", "{before}");
    assert_eq!(before["figures"]["downloaded"], "2000", "the figures of that torrent: {before}");
    let mut command = std::process::Command::new(BINARY);
    let text = command.args(["user", "why", "1", "--data"]).arg(server.data_folder()).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    for shown in ["1 (Ada)", "ratio", "0.200", "one\n", "started", "1.95 KiB", "-TR3000-"] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    assert!(!text.contains("none"), "an announce without an event is no word: {text}");
    let never = server.try_cli(&["user", "why", "1", "--torrent", "77"]);
    assert!(String::from_utf8_lossy(&never.stderr).contains("never announced torrent 77"), "{never:?}");
    assert_eq!(server.cli(&["multiplier", "end", "1"])["id"], 1);
    assert_eq!(why()["entries"], before["entries"], "the ended multiplier explains what it did");
    let listed = server.cli(&["multiplier", "list"]);
    assert!(listed["multipliers"][0]["ends_at"].as_u64() > Some(1_700_000_000), "{listed}");
    assert!(!server.try_cli(&["multiplier", "end", "1"]).status.success(), "it has ended");
    assert_eq!(server.cli(&["user", "why", "2"])["entries"].as_array().unwrap().len(), 1);
}

#[test]
fn why_of_an_unknown_user_and_moments_that_are_none_are_refused() {
    let site = Site::new();
    assert_eq!(site.refusal(&["user", "why", "9"]), "there is no user 9");
    let outcome = site.run(&["multiplier", "add", "--until", "soon"]);
    assert_eq!(outcome.exit_code, 2, "{outcome:?}");
    assert!(outcome.stderr.contains("a duration from now"), "{outcome:?}");
    site.text(&["multiplier", "add", "--until", "2100-01-02", "--upload", "150"]);
    assert!(site.text(&["multiplier", "list"]).contains("2100-01-02 00:00"));
}

#[test]
fn a_process_without_the_role_tracker_needs_no_tracker_address() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let silent = ["tracker.http_addr=", "tracker.udp_addr=", "tracker.https_addr=", "site.addr=127.0.0.1:0"];
    let settings = silent.iter().flat_map(|setting| ["--set", setting]);
    let mut arguments = vec!["serve", "--data", crate::commands::text_of(&data)];
    arguments.extend(settings);
    let refused = Site::new().refusal(&arguments);
    assert!(refused.contains("are all empty") && refused.contains("--roles"), "{refused}");
    arguments.extend(["--roles", "gateway,site"]);
    let mut server = testkit::process::Process::start(BINARY, arguments, &folder.path().join("log"));
    eventually("the server to be up", PATIENCE, || server.log().contains(" is up.").then_some(()));
    server.terminate();
    server.wait_end(PATIENCE);
}

//! Entries that could not be taken: retried, given up, looked at, replayed and dropped (J5–J7).

use domain::InfoHash;
use serde_json::Value as Json;
use testkit::population::{info_hash_of, passkey_of};
use testkit::{eventually, eventually_equal};

use crate::any_producer::foreign_writer::{poison, site, write};
use crate::any_producer::script::Entry;
use crate::site::{DatabaseKind, PATIENCE, Site};

fn letters(site: &Site, lane: &str) -> Vec<Json> {
    site.server.cli(&[lane, "list", "--limit", "1000"])["entries"].as_array().unwrap().clone()
}

/// The ledger's only dead letter with this in its reason.
#[track_caller]
fn letter(site: &Site, lane: &str, reason: &str) -> Json {
    let all = letters(site, lane);
    let is_it = |letter: &&Json| {
        letter["group"] == "ztorrent" && letter["reason"].as_str().is_some_and(|text| text.contains(reason))
    };
    all.iter().find(is_it).cloned().unwrap_or_else(|| panic!("no {lane} letter with {reason:?} in {all:#?}"))
}

fn id(letter: &Json) -> &str {
    letter["id"].as_str().unwrap()
}

fn uploaded(site: &Site, user: u64) -> Json {
    site.server.cli(&["user", "show", &user.to_string()])["uploaded"].clone()
}

/// Adds the user that earlier entries refer to, and waits until the server knows it.
fn add_late_user(site: &Site) {
    site.server.cli(&["user", "add", "--id", "900", "--passkey", "feedfacefeedface"]);
    let passkey = "feedfacefeedface".parse().unwrap();
    eventually("the user to be known", PATIENCE, || site.server.try_scrape(&passkey, &info_hash_of(1)).ok());
}

#[test]
fn j5_each_kind_of_poison_lies_in_the_dlq_with_its_reason_and_can_be_shown_and_dropped() {
    let (site, _population) = site(3600, DatabaseKind::Sqlite);
    let poison = poison();
    write(&site, poison.iter().map(|(entry, _)| entry));
    let status = site.settle();
    for (entry, reason) in &poison {
        let found = letter(&site, "dlq", reason);
        assert_eq!((&found["retry"], &found["group"]), (&0.into(), &"ztorrent".into()), "{found:#}");
        let shown = site.server.cli(&["dlq", "show", id(&found)]);
        assert_eq!(shown, found);
        // The original entry, without the passkey.
        assert_eq!(shown["fields"]["du"].as_str().unwrap_or_default(), entry.get("du"));
        assert!(!shown.to_string().contains("feedfacefeedface"), "{shown:#}");
    }
    let first = letter(&site, "dlq", "du: the field is missing");
    assert_eq!(site.server.cli(&["dlq", "drop", id(&first)])["dropped"], 1);
    assert!(!site.server.try_cli(&["dlq", "show", id(&first)]).status.success(), "it is gone");
    let rest = status["dlq"].as_u64().unwrap() - 1;
    assert_eq!(site.server.cli(&["dlq", "drop", "--all"])["dropped"], rest);
    assert_eq!(site.status()["dlq"], 0);
}

#[test]
fn j6_what_fails_every_time_is_given_up_with_the_reason_and_can_be_replayed_and_dropped() {
    let (site, _population) = site(0, DatabaseKind::Sqlite);
    let poison = poison();
    write(&site, poison.iter().map(|(entry, _)| entry));
    let all = poison.len();
    eventually_equal((0.into(), all.into()), PATIENCE, || {
        let status = site.status();
        (status["dlq"].clone(), status["failed"].clone())
    });
    for (_, reason) in &poison {
        assert_eq!(letter(&site, "failed", reason)["retry"], 3, "{reason}");
    }
    let failed = letter(&site, "failed", "no torrent has the infohash");
    assert_eq!(site.server.cli(&["failed", "show", id(&failed)]), failed);

    // The torrent is added, and the dead letter replayed.
    let late = InfoHash([0xab; 20]);
    site.server.cli(&["torrent", "add", "--infohash", &late.to_string(), "--name", "late", "--id", "77"]);
    eventually("the torrent to be known", PATIENCE, || {
        site.server.try_scrape(&passkey_of(1), &late).ok().flatten()
    });
    assert_eq!(site.server.cli(&["failed", "replay", id(&failed)])["replayed"], 1);
    eventually_equal(Json::from("5000"), PATIENCE, || uploaded(&site, 1));
    assert_eq!(site.server.cli(&["torrent", "show", "77"])["uploaded"], "5000");

    // The others fail again, as often as before.
    assert_eq!(site.server.cli(&["failed", "replay", "--all"])["replayed"], all - 1);
    eventually("the rest to be given up again", PATIENCE, || {
        let status = site.status();
        (status["dlq"] == 0 && status["failed"] == all - 1).then_some(())
    });
    assert_eq!(site.server.cli(&["failed", "drop", "--all"])["dropped"], all - 1);
    assert_eq!(site.status()["failed"], 0);
    assert_eq!(uploaded(&site, 1), "5000", "nothing else was credited");
}

#[test]
fn j6_an_entry_of_a_user_who_is_added_later_counts_once_at_a_retry() {
    let (site, _population) = site(2, DatabaseKind::Sqlite);
    let entry = Entry::new(1, 1, 1).with("passkey", "feedfacefeedface").with("du", 12_345);
    write(&site, [&entry]);
    eventually_equal(Json::from(1), PATIENCE, || site.status()["dlq"].clone());
    site.server.cli(&["user", "add", "--id", "900", "--passkey", "feedfacefeedface"]);
    eventually_equal(Json::from("12345"), PATIENCE, || uploaded(&site, 900));
    eventually_equal((0.into(), 0.into()), PATIENCE, || {
        let status = site.status();
        (status["dlq"].clone(), status["failed"].clone())
    });
    assert_eq!(uploaded(&site, 900), "12345");
}

#[test]
fn j7_a_replayed_dead_letter_is_retried_immediately_though_others_wait() {
    let (site, _population) = site(3600, DatabaseKind::Sqlite);
    let entry = Entry::new(1, 1, 1).with("passkey", "feedfacefeedface").with("du", 12_345);
    let poison = poison();
    write(&site, poison.iter().map(|(entry, _)| entry).chain([&entry]));
    let status = site.settle();
    add_late_user(&site);
    let late = letters(&site, "dlq").into_iter().find(|letter| letter["fields"]["du"] == "12345").unwrap();
    assert_eq!(site.server.cli(&["dlq", "replay", id(&late)])["replayed"], 1);
    eventually_equal(Json::from("12345"), PATIENCE, || uploaded(&site, 900));
    eventually_equal(Json::from(status["dlq"].as_u64().unwrap() - 1), PATIENCE, || {
        site.status()["dlq"].clone()
    });
}

#[test]
fn j3_a_dead_letter_written_by_another_program_is_retried() {
    let (site, _population) = site(1, DatabaseKind::Sqlite);
    let command =
        Entry::new(2, 3, 1).with("du", 777).command().replace("tracker:traffic", "tracker:traffic:dlq");
    site.redis().cli_lines(&command);
    eventually_equal(Json::from("777"), PATIENCE, || uploaded(&site, 2));
    eventually_equal(Json::from(0), PATIENCE, || site.status()["dlq"].clone());
}
